//! The audit trail: every denial, with its explanation, and on demand every decision.

use crate::{
    denials::{Denials, Key},
    record::Record,
};
use avc::{Source, Verdict};
use flask::{
    AccessVector, Class, Explanation, InitialSid, Question, SecurityServer, Sid, perm, visible_json,
};
use rustix::{fs::Access as Mode, io::Errno};
use std::{
    io::Write,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};
use supervisor::Caller;
use syscalls::Sysno;

/// A decision as an object manager made it.
pub struct Access {
    /// What was asked.
    pub question: Question,
    /// The permissions that the operation takes.
    pub requested: AccessVector,
    /// `None` when the security server did not answer.
    pub verdict: Option<Verdict>,
    /// Whether the operation passed.
    pub granted: bool,
    /// Policy does not want it on record (`dontaudit`): only a full trail shows it.
    pub quiet: bool,
    /// The object, as the program or the kernel names it.
    pub object: String,
}

/// A refusal that no rule of a policy is the reason for.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// What the program is told.
    pub errno: Errno,
    /// Which part of Dewar refuses.
    pub by: &'static str,
    /// The class of what it is about, in a word of policy or another.
    pub tclass: &'static str,
    /// What was to be done.
    pub missing: &'static str,
    /// What it was to be done to.
    pub object: String,
    /// Why.
    pub reason: &'static str,
    /// What leads to the same end.
    pub instead: &'static str,
}

/// Where records are written as decisions are made: before the program learns of them, a line of
/// JSON each, in one `write`.
pub struct Trail {
    /// Takes the lines.
    pub sink: Box<dyn Write + Send>,
    /// Every decision; without it, denials that policy wants on record.
    pub everything: bool,
}

/// Where records go.
pub struct Audit {
    server: Arc<dyn SecurityServer>,
    trails: Mutex<Vec<Trail>>,
    /// Why one of them took no record, the first time.
    failure: Mutex<Option<std::io::Error>>,
    has_trails: bool,
    wants_everything: bool,
    denials: Mutex<Denials>,
    /// Whether the permissions of the file system refuse this user such a use of a path, whatever
    /// Dewar does.
    refuses: Refuses,
}

/// Whether somebody else than policy refuses to use a path so.
pub type Refuses = Box<dyn Fn(&Path, Mode) -> bool + Send + Sync>;

impl Audit {
    /// No record yet; contexts and explanations are those of `server`.
    pub fn new(server: Arc<dyn SecurityServer>, trails: Vec<Trail>, refuses: Refuses) -> Self {
        Self {
            server,
            has_trails: !trails.is_empty(),
            wants_everything: trails.iter().any(|trail| trail.everything),
            trails: Mutex::new(trails),
            failure: Mutex::default(),
            denials: Mutex::default(),
            refuses,
        }
    }

    /// Whether a trail takes what is granted, too.
    pub fn wants_everything(&self) -> bool {
        self.wants_everything
    }

    /// Records a decision about a call: a denial is kept, unless it is quiet, and written where
    /// there are trails.
    pub fn record(&self, caller: Caller<'_>, call: Sysno, access: &Access) {
        let denied = access.verdict.is_none_or(|verdict| !verdict.missing.is_empty());
        let kept = denied && !access.quiet;
        let known = if kept { self.again(access) } else { None };
        if known.is_some() && !self.has_trails {
            return;
        }
        let new = known.is_none();
        let record = self.describe(caller, call, access, denied, known);
        self.write(&record, kept);
        if kept && new {
            self.lock().keep(key(access), record);
        }
    }

    /// A denial as it would be recorded.
    pub fn denial(&self, caller: Caller<'_>, call: Sysno, access: &Access) -> Record {
        self.describe(caller, call, access, true, None)
    }

    fn write(&self, record: &Record, kept: bool) {
        if !self.has_trails {
            return;
        }
        let mut trails = self.trails.lock().unwrap_or_else(PoisonError::into_inner);
        for trail in trails.iter_mut().filter(|trail| kept || trail.everything) {
            // A full disk must not stop the program; the denials themselves stay in memory.
            if let Err(error) = write_line(&mut *trail.sink, record) {
                self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            }
        }
    }

    /// The denials of this run, each with the number that it has had since it came first, and how
    /// many more there were than are kept.
    pub fn denials(&self) -> (Vec<Record>, u64) {
        let denials = self.lock();
        (denials.all(), denials.dropped)
    }

    /// Why some decision is missing from where it was to be written, if one is.
    pub fn failure(&self) -> Option<std::io::Error> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Counts a denial that there was before under the same policy, and returns its explanation.
    fn again(&self, access: &Access) -> Option<Explanation> {
        let mut denials = self.lock();
        let seqno = access.verdict.map_or(0, |verdict| verdict.seqno.0);
        let record = denials.get_mut(&key(access)).filter(|record| record.seqno == seqno)?;
        record.count += 1;
        record.time = now();
        if !self.has_trails {
            return Some(Explanation::default());
        }
        let (rules, reason) = (record.rules.clone(), record.reason.clone());
        Some(Explanation { rules, reason, would_allow: record.would_allow.clone() })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Denials> {
        self.denials.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn describe(
        &self,
        caller: Caller<'_>,
        call: Sysno,
        access: &Access,
        denied: bool,
        known: Option<Explanation>,
    ) -> Record {
        let Access { question, requested, verdict, granted, .. } = *access;
        let identity = caller.identity().cloned().unwrap_or_default();
        let context = |sid| self.server.sid_to_context(sid).unwrap_or_default();
        let names =
            |vector: AccessVector| vector.names(question.tclass).map(str::to_owned).collect();
        let missing = verdict.map_or(requested, |verdict| verdict.missing);
        let explanation = match known {
            Some(known) => known,
            None if denied => self.explain(question, missing),
            None => Explanation::default(),
        };
        let natively = denied && self.is_refused_natively(caller, access, missing);
        let probed = natively || denied && is_probe(caller, access, missing);
        Record {
            time: now(),
            granted,
            pid: identity.pid,
            comm: caller.comm(),
            program: caller.program().to_string_lossy().into_owned(),
            call: call.name().to_owned(),
            object: access.object.clone(),
            scontext: context(question.ssid),
            tcontext: context(question.tsid),
            tclass: question.tclass.name().to_owned(),
            requested: names(requested),
            missing: names(missing),
            source: verdict.map_or("", |verdict| source_name(verdict.source)).to_owned(),
            seqno: verdict.map_or(0, |verdict| verdict.seqno.0),
            rules: explanation.rules,
            reason: explanation.reason,
            would_allow: explanation.would_allow,
            refused_by: String::new(),
            instead: String::new(),
            probed,
            natively,
            count: 1,
            number: 0,
        }
    }

    /// Records what is refused whatever policy says.
    pub fn refuse(&self, caller: Caller<'_>, (ssid, number): (Sid, Sysno), refusal: &Refusal) {
        let tsid = InitialSid::Kernel.into();
        let question = Question { ssid, tsid, tclass: Class::Process };
        // No decision is about no permission.
        let name = format!("{} {}", refusal.missing, refusal.object);
        let key = (question, AccessVector::NONE, name);
        if !self.has_trails {
            let mut denials = self.lock();
            if let Some(record) = denials.get_mut(&key) {
                (record.count, record.time) = (record.count + 1, now());
                return;
            }
        }
        let identity = caller.identity().cloned().unwrap_or_default();
        let record = Record {
            time: now(),
            pid: identity.pid,
            comm: caller.comm(),
            program: caller.program().to_string_lossy().into_owned(),
            call: number.name().to_owned(),
            object: refusal.object.clone(),
            scontext: self.server.sid_to_context(ssid).unwrap_or_default(),
            tclass: refusal.tclass.to_owned(),
            requested: vec![refusal.missing.to_owned()],
            missing: vec![refusal.missing.to_owned()],
            reason: refusal.reason.to_owned(),
            refused_by: refusal.by.to_owned(),
            instead: refusal.instead.to_owned(),
            // Where `EXDEV` says that a directory does not move, programs copy it.
            probed: matches!(refusal.errno, Errno::NOSYS | Errno::XDEV),
            count: 1,
            ..Record::default()
        };
        self.write(&record, true);
        self.lock().keep(key, record);
    }

    /// Whether the modes of files would have refused this user what was denied.
    fn is_refused_natively(
        &self,
        caller: Caller<'_>,
        access: &Access,
        missing: AccessVector,
    ) -> bool {
        let (path, class) = (Path::new(&access.object), access.question.tclass);
        let own = rustix::process::geteuid().as_raw();
        let Ok(caller) = caller.identity() else { return false };
        if own == 0 || caller.fsuid != own || caller.capabilities != 0 || !path.is_absolute() {
            return false;
        }
        // Outside, a number of the run's is another process's.
        let process = path.strip_prefix("/proc").ok().and_then(|it| it.iter().next()?.to_str());
        if process.is_some_and(|name| name.parse::<u32>().is_ok()) {
            return false;
        }
        let is = |names: &[&str]| missing.names(class).any(|name| names.contains(&name));
        if is(&["add_name", "remove_name", "create", "unlink", "rmdir", "link"]) {
            (self.refuses)(path.parent().unwrap_or(path), Mode::WRITE_OK)
        } else if is(&["write", "append"]) {
            (self.refuses)(path, Mode::WRITE_OK)
        } else if is(&["read", "open"]) {
            (self.refuses)(path, Mode::READ_OK)
        } else {
            false
        }
    }

    fn explain(&self, question: Question, missing: AccessVector) -> Explanation {
        self.server.explain(question, missing).unwrap_or_else(|unreachable| Explanation {
            reason: unreachable.to_string(),
            ..Explanation::default()
        })
    }
}

/// Whether programs do without what was denied: a log, who is logged in since when, or what lies
/// beside their own directory.
fn is_probe(caller: Caller<'_>, access: &Access, missing: AccessVector) -> bool {
    let class = access.question.tclass;
    if class == Class::UnixDgramSocket {
        // syslog(3), and what tells systemd that it is ready.
        return missing == perm::socket::CREATE;
    }
    if ["/var/log/wtmp", "/run/utmp", "/var/run/utmp"].contains(&access.object.as_str()) {
        return true;
    }
    lists_above(caller, Path::new(&access.object), class, missing)
}

/// Whether a program lists a directory above its own: make looks there for what rules might need.
/// Whoever wants the list itself fails without it, and a failure tells of what was probed for.
fn lists_above(caller: Caller<'_>, path: &Path, class: Class, missing: AccessVector) -> bool {
    let lists = missing.names(class).all(|name| ["read", "open"].contains(&name));
    let own = || caller.cwd().and_then(|cwd| proc::path_of(caller.tree, cwd));
    class == Class::Dir && lists && own().is_ok_and(|own| own != path && own.starts_with(path))
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

fn key(access: &Access) -> Key {
    (access.question, access.requested, access.object.clone())
}

fn source_name(source: Source) -> &'static str {
    match source {
        Source::Hint => "hint",
        Source::Cache => "cache",
        Source::Server => "server",
    }
}

fn write_line(sink: &mut dyn Write, record: &Record) -> std::io::Result<()> {
    let line = serde_json::to_string(record)?;
    sink.write_all((visible_json(&line) + "\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_trail_holds_no_control_character_and_says_the_same() {
        let record = Record { comm: "x\u{9b}\u{7f}\u{1b}\n".into(), ..Record::default() };
        let mut line = Vec::new();
        write_line(&mut line, &record).unwrap();
        let text = String::from_utf8(line).unwrap();
        assert!(!text.trim_end().chars().any(char::is_control), "{text:?}");
        assert_eq!(serde_json::from_str::<Record>(&text).unwrap(), record);
    }
}
