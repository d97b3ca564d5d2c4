//! The decisions of one program about its own objects.

use crate::{
    About, Builder, ChangeError, Denied, Hint, Question, Record, Seqno, Sid, Stats, Status,
    UnknownName, Unreachable, Verdict, hold::Hold, parts::Parts, source::Source,
};
use daemon_client::Writer;
use flask::{AccessVector, Class, Classes, Decision, Explanation, LabelError, SecurityServer};
use std::{
    fmt, io,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

/// Decides about one program's own objects.
pub struct Manager {
    parts: Arc<Parts>,
    server: Arc<dyn SecurityServer>,
    hold: Hold,
    /// The program's classes as the daemon is told.
    sent: Vec<(String, Vec<String>)>,
    spool: Mutex<Option<Writer>>,
    /// Held while this program changes the policy: what it is told last is what holds last.
    changing: Mutex<()>,
}

impl Manager {
    /// Begins to say what to open. `name` is what `dewar daemon --runs` and `dewar audit --run`
    /// call it.
    pub fn builder(name: &str) -> Builder {
        Builder::new(name)
    }

    pub(crate) fn begin(
        parts: Parts,
        hold: Hold,
        sent: Vec<(String, Vec<String>)>,
        spool: Option<Writer>,
    ) -> io::Result<Self> {
        let (parts, server) = (Arc::new(parts), hold.server());
        if let Hold::Daemon(registration, _) = &hold {
            let parts = Arc::clone(&parts);
            registration.follow_by_path(move |change| {
                parts.apply(change.seqno, None);
                parts.told(change.seqno);
                Some(b"{}".to_vec())
            })?;
        }
        let (spool, changing) = (Mutex::new(spool), Mutex::default());
        Ok(Self { parts, server, hold, sent, spool, changing })
    }

    /// The class that the program calls so: its own, or else one of `policy/access_vectors`.
    ///
    /// # Errors
    ///
    /// [`UnknownName`].
    pub fn class(&self, name: &str) -> Result<Class, UnknownName> {
        let found = self.parts.classes.class(name);
        found.ok_or_else(|| UnknownName { what: "class".into(), name: name.into() })
    }

    /// The permission of that name.
    ///
    /// # Errors
    ///
    /// [`UnknownName`].
    pub fn permission(&self, class: Class, name: &str) -> Result<AccessVector, UnknownName> {
        let what = || format!("permission of class `{}`", self.parts.classes.name(class));
        let found = self.parts.classes.permission(class, name);
        found.ok_or_else(|| UnknownName { what: what(), name: name.into() })
    }

    /// The names of classes and permissions.
    #[must_use]
    pub fn classes(&self) -> &Classes {
        &self.parts.classes
    }

    /// What of the program's own classes (class, permission) the policy lacked when the manager was
    /// opened, so that its `handleunknown` decides.
    #[must_use]
    pub fn lacking(&self) -> &[(String, String)] {
        &self.parts.lacking
    }

    /// The SID of a security context. Ask once for each object and subject, not for each check.
    ///
    /// # Errors
    ///
    /// [`LabelError`].
    pub fn sid(&self, context: &str) -> Result<Sid, LabelError> {
        self.server.context_to_sid(context)
    }

    /// The security context of a SID: what is kept with an object beyond the manager's life.
    ///
    /// # Errors
    ///
    /// [`LabelError`].
    pub fn context(&self, sid: Sid) -> Result<String, LabelError> {
        self.server.sid_to_context(sid)
    }

    /// The label of a new object of class `q.tclass` that `q.ssid` makes in `q.tsid`:
    /// `typetransition`, for that name if a rule names one.
    ///
    /// # Errors
    ///
    /// [`LabelError`].
    pub fn create(&self, q: Question, name: Option<&str>) -> Result<Sid, LabelError> {
        self.server.compute_create(q, name)
    }

    /// The label of the member that `q.ssid` sees of the polyinstantiated object `q.tsid`.
    ///
    /// # Errors
    ///
    /// [`LabelError`].
    pub fn member(&self, q: Question) -> Result<Sid, LabelError> {
        self.server.compute_member(q)
    }

    /// Whether `q.ssid` may use every permission of `requested` on `q.tsid`. What policy wants on
    /// record goes there, with what `about` tells. Asking for nothing is a mistake, and denied.
    ///
    /// # Errors
    ///
    /// [`Denied`], also when the security server does not answer.
    #[inline]
    pub fn check<'a>(
        &self,
        q: Question,
        requested: AccessVector,
        hint: &Hint,
        about: impl FnOnce() -> About<'a>,
    ) -> Result<(), Denied> {
        if self.parts.avc.grants_at_hint(q, requested, hint) {
            return Ok(());
        }
        self.look_further(q, requested, hint, about)
    }

    /// The same without a record, and without regard to [`Manager::set_enforcing`]: the verdict
    /// itself.
    ///
    /// # Errors
    ///
    /// [`Unreachable`]; the caller denies.
    #[inline]
    pub fn has_perm(
        &self,
        q: Question,
        requested: AccessVector,
        hint: &Hint,
    ) -> Result<Verdict, Unreachable> {
        self.parts.avc.has_perm(q, requested, hint)
    }

    /// Whether an answer that is kept grants all of `requested`, with nothing to be recorded: most
    /// of what is asked, and the least that asking can take. `false` says nothing:
    /// [`Manager::check`] does.
    #[inline]
    #[must_use]
    pub fn grants_kept(&self, q: Question, requested: AccessVector, hint: &Hint) -> bool {
        self.parts.avc.grants_kept(q, requested, hint)
    }

    /// The same by names, for what is asked seldom: contexts, class and permission as the policy
    /// spells them.
    ///
    /// # Errors
    ///
    /// [`Denied`]; whatever is unknown is denied, too.
    pub fn check_by_name<'a>(
        &self,
        (scontext, tcontext): (&str, &str),
        (tclass, permission): (&str, &str),
        about: impl FnOnce() -> About<'a>,
    ) -> Result<(), Denied> {
        let unknown = || Denied {
            scontext: scontext.into(),
            tcontext: tcontext.into(),
            tclass: tclass.into(),
            missing: vec![permission.into()],
            answered: true,
        };
        let class = self.class(tclass).map_err(|_| unknown())?;
        let requested = self.permission(class, permission).map_err(|_| unknown())?;
        let (Ok(ssid), Ok(tsid)) = (self.sid(scontext), self.sid(tcontext)) else {
            return Err(unknown());
        };
        self.check(Question { ssid, tsid, tclass: class }, requested, &Hint::default(), about)
    }

    /// The security server's own answer: slower than a check, and without a record.
    ///
    /// # Errors
    ///
    /// [`Unreachable`]; the caller denies.
    pub fn decision(&self, q: Question) -> Result<Decision, Unreachable> {
        self.server.compute_av(q)
    }

    /// Why `requested` is granted or denied. Slow: for people.
    ///
    /// # Errors
    ///
    /// [`Unreachable`].
    pub fn explain(
        &self,
        q: Question,
        requested: AccessVector,
    ) -> Result<Explanation, Unreachable> {
        self.server.explain(q, requested)
    }

    /// Replaces the policy by these files, at once for every check that begins after it has
    /// returned. SIDs keep their meaning; those of contexts that the new policy does not know count
    /// as `unlabeled`.
    ///
    /// # Errors
    ///
    /// [`ChangeError`]; the policy before is in force.
    pub fn load(&self, files: &[PathBuf]) -> Result<Seqno, ChangeError> {
        self.load_sources(&files.iter().cloned().map(Source::File).collect::<Vec<_>>())
    }

    /// The same from texts in CIL: name and text each.
    ///
    /// # Errors
    ///
    /// As for [`Manager::load`].
    pub fn load_text(&self, texts: &[(&str, &str)]) -> Result<Seqno, ChangeError> {
        let text = |(name, text): &(&str, &str)| Source::Text((*name).into(), (*text).into());
        self.load_sources(&texts.iter().map(text).collect::<Vec<_>>())
    }

    fn load_sources(&self, sources: &[Source]) -> Result<Seqno, ChangeError> {
        let changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let (seqno, deny_unknown) = self.hold.load(sources, &self.sent)?;
        self.parts.apply(seqno, Some(deny_unknown));
        drop(changing);
        self.parts.tell(&self.hold, seqno);
        Ok(seqno)
    }

    /// Changes booleans of the policy, all or none. What a daemon serves, `dewar policy set`
    /// changes, too.
    ///
    /// # Errors
    ///
    /// [`ChangeError`]; then nothing has changed.
    pub fn set_booleans(&self, booleans: &[(&str, bool)]) -> Result<Seqno, ChangeError> {
        let changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let seqno = self.hold.set_booleans(booleans)?;
        match self.hold {
            Hold::Own(_) => self.parts.apply(seqno, None),
            // The thread that follows has applied it before.
            Hold::Daemon(..) => self.parts.avc.reset(seqno),
        }
        drop(changing);
        self.parts.tell(&self.hold, seqno);
        Ok(seqno)
    }

    /// Whether denials are enforced from now on, or only put on record.
    pub fn set_enforcing(&self, enforcing: bool) {
        self.parts.status.set_enforcing(enforcing);
    }

    /// What can be seen to change by one load from memory.
    #[must_use]
    pub fn status(&self) -> &Status {
        &self.parts.status
    }

    /// The newest policy state heard of.
    #[must_use]
    pub fn seqno(&self) -> Seqno {
        self.parts.avc.current()
    }

    /// How many checks there were, and where their answers were found.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.parts.avc.stats()
    }

    /// What the daemon calls this manager: the RUN of `dewar policy set` and `dewar audit --run`;
    /// `None` without one.
    #[must_use]
    pub fn run(&self) -> Option<&str> {
        match &self.hold {
            Hold::Own(_) => None,
            Hold::Daemon(registration, _) => Some(registration.id()),
        }
    }

    /// A check that the hint does not plainly grant: kept out of [`Manager::check`], so that its
    /// callers inline the hint alone.
    #[inline(never)]
    fn look_further<'a>(
        &self,
        q: Question,
        requested: AccessVector,
        hint: &Hint,
        about: impl FnOnce() -> About<'a>,
    ) -> Result<(), Denied> {
        let asked = self.parts.avc.ask(q, requested, hint);
        let (missing, verdict) = (asked.missing(), asked.verdict());
        let names = |av| self.parts.classes.names(q.tclass, av).map(str::to_owned).collect();
        let context = |sid| self.server.sid_to_context(sid).unwrap_or_default();
        let passes = verdict.is_some() && !self.parts.status.enforcing();
        let granted = !requested.is_empty() && (asked.granted() || passes);
        if granted && !asked.is_recorded() {
            return Ok(());
        }
        let denied = Denied {
            scontext: context(q.ssid),
            tcontext: context(q.tsid),
            tclass: self.parts.classes.name(q.tclass).to_owned(),
            missing: names(missing),
            answered: verdict.is_some(),
        };
        if asked.is_recorded() && self.records() {
            let record = self.record(q, (requested, missing), verdict, &denied);
            self.put_on_record(&Record { granted, ..record }.with(about()));
        }
        if granted { Ok(()) } else { Err(denied) }
    }

    fn record(
        &self,
        q: Question,
        (requested, missing): (AccessVector, AccessVector),
        verdict: Option<Verdict>,
        denied: &Denied,
    ) -> Record {
        let explained = match missing.is_empty() {
            true => Explanation::default(),
            false => self.server.explain(q, missing).unwrap_or_else(|unreachable| Explanation {
                reason: unreachable.to_string(),
                ..Explanation::default()
            }),
        };
        let names = self.parts.classes.names(q.tclass, requested).map(str::to_owned);
        Record::of(denied, names.collect(), verdict, explained)
    }

    fn records(&self) -> bool {
        self.parts.hooks.audit.is_some() || matches!(self.hold, Hold::Daemon(..))
    }

    fn put_on_record(&self, record: &Record) {
        let mut spool = self.spool.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(spool) = &mut *spool {
            spool.append(format!("{}\n", record.to_json()).as_bytes());
        }
        drop(spool);
        if let Some(audit) = &self.parts.hooks.audit {
            audit(record);
        }
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        if let Hold::Daemon(registration, _) = &self.hold {
            // A daemon that is away takes the records when it comes back.
            let _ = registration.end();
        }
    }
}

impl fmt::Debug for Manager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Manager").field("run", &self.run()).field("seqno", &self.seqno()).finish()
    }
}
