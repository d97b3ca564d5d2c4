//! Changing policies while runs go on.

use super::{Client, Shared, say};
use crate::{
    error::{ChangeError, MOST_BOOLEANS, RETURNING},
    hosted::{HostError, Hosted},
    process,
    quota::Amount,
    registry::Run,
};
use daemon_client::{Changed, ChangedMember, Target};
use flask::{SecurityServer, Seqno};
use server_port::{Acknowledged, Completion, MemberOutcome, Stage, read_sealed};
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    os::fd::OwnedFd,
    sync::{Arc, MutexGuard},
    thread,
    time::{Duration, Instant},
};

/// How often it is looked how several changes go on.
const SHORTEST_LOOK: Duration = Duration::from_millis(1);
const LONGEST_LOOK: Duration = Duration::from_millis(20);

impl Shared {
    /// Changes booleans for `target`; returns when every run concerned has applied it, or when it
    /// is known that it will not. All or nothing of it happens for each security server.
    ///
    /// What the client cannot change of its own keeps it from changing any. Users do not trust each
    /// other: of several targets, one that is another user's concerns that one alone.
    pub(crate) fn set(
        &self,
        client: Client,
        target: &Target,
        booleans: &[(String, bool)],
    ) -> Result<Vec<Changed>, ChangeError> {
        if booleans.len() > MOST_BOOLEANS {
            return Err(ChangeError::TooManyBooleans);
        }
        self.wait_for_all_of(client.uid).map_err(|_| ChangeError::Returning)?;
        let later = match target {
            Target::All => self.not_yet_changed(client.uid),
            Target::Run(_) => Vec::new(),
        };
        match self.set_present(client, target, booleans) {
            Err(ChangeError::NoSuchBooleans) if !later.is_empty() => Ok(later),
            changed => changed.map(|changed| changed.into_iter().chain(later).collect()),
        }
    }

    /// The same for the runs that have their servers.
    fn set_present(
        &self,
        client: Client,
        target: &Target,
        booleans: &[(String, bool)],
    ) -> Result<Vec<Changed>, ChangeError> {
        let targets = self.targets(client, target, booleans)?;
        let stands_alone = |hosted: &Hosted| targets.len() > 1 && hosted.owner != client.uid;
        // Before any of them is changed.
        for hosted in targets.iter().filter(|hosted| !stands_alone(hosted)) {
            self.consider(hosted, &hosted.with_booleans(booleans)?, false)?;
        }
        if let [hosted] = targets.as_slice() {
            return Ok(vec![self.set_one(hosted, booleans)?]);
        }
        // A thread for each user: no run holds up what is another user's.
        let mut users: BTreeMap<u32, Vec<&Hosted>> = BTreeMap::new();
        targets.iter().for_each(|it| users.entry(it.owner).or_default().push(it));
        let own = users.remove(&client.uid).unwrap_or_default();
        let mut ended = thread::scope(|scope| {
            let change = |servers| scope.spawn(move || self.set_each(servers, booleans));
            let others: Vec<_> = users.into_values().map(change).collect();
            let mut ended = self.set_each(own, booleans);
            // One that has panicked says nothing of its servers.
            others.into_iter().for_each(|it| ended.extend(it.join().unwrap_or_default()));
            ended
        });
        targets
            .iter()
            .map(|hosted| match ended.remove(&hosted.id).unwrap_or(Err(ChangeError::Failed)) {
                Err(why) if stands_alone(hosted) => Ok(self.unchanged(hosted, why)),
                change => change,
            })
            .collect()
    }

    /// What is said of runs that `uid` would have changed, had they their servers again.
    fn not_yet_changed(&self, uid: u32) -> Vec<Changed> {
        let mut users: BTreeMap<u32, Vec<ChangedMember>> = BTreeMap::new();
        for run in self.registry().returning(uid) {
            users.entry(run.uid).or_default().push(unchanged_member(&run.id));
        }
        let refused = |uid| Some(format!("the runs of user {uid}: {RETURNING}"));
        let changed = |(uid, members)| Changed {
            seqno: 0,
            complete: false,
            took_us: 0,
            members,
            refused: refused(uid),
        };
        users.into_iter().map(changed).collect()
    }

    /// The servers to change for `target`. A run that shares its server with others gets its own.
    fn targets(
        &self,
        client: Client,
        target: &Target,
        booleans: &[(String, bool)],
    ) -> Result<Vec<Arc<Hosted>>, ChangeError> {
        match target {
            Target::Run(name) => {
                let run = self.registry().find(client.uid, name)?;
                Ok(vec![self.own(&run)?])
            }
            Target::All => self.registry().with_booleans(client.uid, booleans),
        }
    }

    /// The server of a run, which from now on is its alone. A new one counts as what is compiled of
    /// its policy: so much it takes if the daemon starts anew.
    fn own(&self, run: &Arc<Run>) -> Result<Arc<Hosted>, ChangeError> {
        let _forking = run.forking();
        let own = self.registry().own(run)?;
        if let Some(own) = own {
            return Ok(own);
        }
        let bytes = run.hosted().size();
        let _counted = self.reserve_with_room(run.kept.uid, Amount { runs: 0, bytes })?;
        // Without the registry: whoever has it waits for no answer.
        let fork = run.fork()?;
        let mut registry = self.registry();
        registry.servers.push(Arc::clone(&fork));
        if registry.has(run) {
            return Ok(fork);
        }
        drop(registry);
        // It has ended meanwhile: nobody has the fork, and the next who looks takes it out.
        Err(HostError::Ended.into())
    }

    /// What is said of a user's server that was left as it is.
    fn unchanged(&self, hosted: &Hosted, why: ChangeError) -> Changed {
        let uid = hosted.owner;
        let refused = match why {
            ChangeError::Conflict { run, why } => {
                let pid = self.registry().run(&run).map_or(0, |run| run.kept.pid);
                format!("run {run} of user {uid}, process {pid}: {why}. End it, and set them again")
            }
            why => {
                format!("the runs of user {uid}: {why}. Set them again; if that fails, end them")
            }
        };
        let users = self.registry().users(hosted);
        let member = |run: &Arc<Run>| unchanged_member(&run.kept.id);
        Changed {
            seqno: hosted.state_number().0,
            complete: false,
            took_us: 0,
            members: users.iter().map(member).collect(),
            refused: Some(refused),
        }
    }

    fn set_one(
        &self,
        hosted: &Hosted,
        booleans: &[(String, bool)],
    ) -> Result<Changed, ChangeError> {
        let mut change = self.begin(hosted, hosted.change(), booleans)?;
        let (seqno, patience) = (change.late.seqno, self.settings.patience);
        let act = |run: &str, stage| change.late.act(self, run, stage);
        let members = hosted.members.complete(seqno, patience, act);
        Ok(change.end(members))
    }

    /// Changes servers side by side: one whose runs do not answer holds up no other. Returns how
    /// it went, by the server's number.
    fn set_each(
        &self,
        servers: Vec<&Hosted>,
        booleans: &[(String, bool)],
    ) -> HashMap<i64, Result<Changed, ChangeError>> {
        let (begin, mut ended) = (Instant::now(), HashMap::new());
        let mut waiting: Vec<_> = servers.into_iter().map(|hosted| (hosted, None)).collect();
        while !waiting.is_empty() {
            waiting.retain_mut(|(hosted, change)| {
                let done = self.step(hosted, change, booleans, begin);
                let goes_on = done.is_none();
                ended.extend(done.map(|done| (hosted.id, done)));
                goes_on
            });
            thread::sleep((begin.elapsed() / 8).clamp(SHORTEST_LOOK, LONGEST_LOOK));
        }
        ended
    }

    /// Goes on with the change of one server; returns how it went when it has ended.
    fn step<'h>(
        &self,
        hosted: &'h Hosted,
        change: &mut Option<(UnderWay<'h>, Completion)>,
        booleans: &[(String, bool)],
        begin: Instant,
    ) -> Option<Result<Changed, ChangeError>> {
        let patience = self.settings.patience;
        if change.is_none() {
            let Some(changing) = hosted.try_change() else {
                // A change that is under way there has ended by then.
                return (begin.elapsed() > patience.kill * 3).then_some(Err(ChangeError::Busy));
            };
            *change = match self.begin(hosted, changing, booleans) {
                Ok(change) => {
                    let completion = hosted.members.begin(change.late.seqno, patience);
                    Some((change, completion))
                }
                Err(why) => return Some(Err(why)),
            };
        }
        let (change, completion) = change.as_mut()?;
        let act = |run: &str, stage| change.late.act(self, run, stage);
        let members = hosted.members.poll(completion, act)?;
        Some(Ok(change.end(members)))
    }

    /// Changes a server; its runs have yet to apply it.
    fn begin<'h>(
        &self,
        hosted: &Hosted,
        changing: MutexGuard<'h, ()>,
        booleans: &[(String, bool)],
    ) -> Result<UnderWay<'h>, ChangeError> {
        let begin = Instant::now();
        self.consider(hosted, &hosted.with_booleans(booleans)?, false)?;
        let seqno = hosted.set_booleans(booleans)?;
        // Of all runs together: nothing here may put off that they are killed.
        let until = Instant::now() + self.settings.patience.kill;
        let late = Late { seqno, until, frozen: HashMap::new(), killed: HashSet::new() };
        Ok(UnderWay { _changing: changing, begin, late })
    }

    /// Asks for each run that has `hosted` whether it can follow it to `proposed`. One that has not
    /// begun yet is not asked: it finds out when it applies the change, and is killed if it cannot.
    fn consider(
        &self,
        hosted: &Hosted,
        proposed: &dyn SecurityServer,
        kills: bool,
    ) -> Result<(), ChangeError> {
        let users = self.registry().users(hosted);
        for run in users.into_iter().filter(|run| run.lives()) {
            let settled = run.settled().clone();
            if settled.is_empty() {
                continue;
            }
            let admitted = (self.settings.admits)(&settled, proposed, kills);
            admitted.map_err(|why| ChangeError::Conflict { run: run.kept.id.clone(), why })?;
        }
        Ok(())
    }

    /// Replaces the policy of a run. The run itself makes it hold: it asked.
    pub(crate) fn load(
        &self,
        run: &Arc<Run>,
        policy: Option<OwnedFd>,
        kills: bool,
    ) -> Result<Seqno, ChangeError> {
        let policy = policy.ok_or(ChangeError::NotSealed)?;
        let reserved = self.reserve(run.kept.uid, 0, &policy)?;
        let bytes = read_sealed(policy, reserved.bytes())?;
        let hosted = self.own(run)?;
        let _changing = hosted.change();
        // Last: whoever waits for another change keeps nobody from compiling.
        let _compiling = self.quota.compile(run.kept.uid)?;
        let (proposed, size) = hosted.with_policy(&bytes)?;
        let _counted = self.reserve_bytes(run.kept.uid, size)?;
        self.consider(&hosted, &proposed, kills)?;
        Ok(hosted.set_policy(&bytes)?)
    }
}

/// A change of a server that its runs have yet to apply.
struct UnderWay<'h> {
    _changing: MutexGuard<'h, ()>,
    begin: Instant,
    late: Late,
}

impl UnderWay<'_> {
    fn end(&self, members: Vec<Acknowledged>) -> Changed {
        Changed {
            seqno: self.late.seqno.0,
            complete: members.iter().all(is_complete),
            took_us: micros(self.begin.elapsed()),
            members: members.into_iter().map(changed).collect(),
            refused: None,
        }
    }
}

/// The runs that do not answer.
struct Late {
    seqno: Seqno,
    /// How long one is being frozen.
    until: Instant,
    frozen: HashMap<String, Vec<OwnedFd>>,
    killed: HashSet<String>,
}

impl Late {
    /// Does what a change calls for.
    fn act(&mut self, shared: &Shared, name: &str, stage: Stage) {
        let Some(run) = shared.registry().run(name) else { return };
        // It is killed again if that was in vain.
        if stage != Stage::Kill || self.killed.insert(name.to_owned()) {
            let (seqno, word) = (self.seqno, word(stage));
            say(format_args!("run {name} has not applied policy state {seqno}: {word}"));
        }
        let (pid, uid) = (run.kept.pid, run.kept.uid);
        match stage {
            Stage::Report => {}
            Stage::Freeze => {
                let stopped = process::stop_descendants(pid, uid, self.until);
                self.frozen.insert(name.to_owned(), stopped);
            }
            Stage::Thaw => process::go_on(&self.frozen.remove(name).unwrap_or_default()),
            Stage::Kill => {
                // What another user has become is not this one's to kill: its run stays unreached.
                process::kill_if_of(&run.pidfd, pid, uid);
                // Its sandbox ends with it by what the sandbox's first process does, which is
                // frozen, too: it has not become another's since.
                self.frozen.remove(name).unwrap_or_default().iter().for_each(process::kill);
            }
        }
    }
}

/// A run that has applied a change may say itself that something could not be taken back, or is
/// given in vain.
fn is_complete(member: &Acknowledged) -> bool {
    let receipt = serde_json::from_slice::<serde_json::Value>(&member.report).unwrap_or_default();
    let in_vain = receipt["out_of_reach"].as_array().is_some_and(|paths| !paths.is_empty());
    member.outcome != MemberOutcome::Unreached && receipt["complete"] != false && !in_vain
}

fn word(stage: Stage) -> &'static str {
    match stage {
        Stage::Report => "reported",
        Stage::Freeze => "frozen",
        Stage::Thaw => "it has now, and goes on",
        Stage::Kill => "killed",
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// A run that was left as it is.
fn unchanged_member(run: &str) -> ChangedMember {
    ChangedMember {
        run: run.to_owned(),
        outcome: "unchanged".into(),
        after_us: 0,
        late: String::new(),
        report: String::new(),
    }
}

fn changed(member: Acknowledged) -> ChangedMember {
    let outcome = match member.outcome {
        MemberOutcome::Applied => "applied",
        MemberOutcome::Gone => "ended",
        MemberOutcome::Killed => "killed",
        MemberOutcome::Unreached => "unreached",
    };
    ChangedMember {
        run: member.name,
        outcome: outcome.into(),
        after_us: micros(member.after),
        late: member.stage.map(word).unwrap_or_default().into(),
        report: String::from_utf8(member.report).ok().filter(|it| is_short(it)).unwrap_or_default(),
    }
}

/// Reports of all runs go into one answer: none is as long as to keep the others out.
fn is_short(report: &str) -> bool {
    const MOST: usize = 12 << 10;
    report.len() <= MOST
}
