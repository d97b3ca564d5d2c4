//! Changing policies while runs go on.

use super::{Shared, say, text};
use crate::{hosted::Hosted, process, registry::Run, session::Client};
use daemon_client::{Changed, ChangedMember, Policy, Target};
use flask::Seqno;
use server_port::{Acknowledged, Outcome, Stage, read_sealed};
use std::{
    collections::HashMap,
    os::fd::OwnedFd,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

/// Booleans of one change.
const MOST_BOOLEANS: usize = 256;

impl Shared {
    /// Changes booleans for `target`; returns when every run concerned has applied it, or when it is known that it
    /// will not. All or nothing of it happens for each security server.
    pub(crate) fn set(
        &self,
        client: Client,
        target: &Target,
        booleans: &[(String, bool)],
    ) -> Result<Vec<Changed>, String> {
        if booleans.len() > MOST_BOOLEANS {
            return Err(format!("more than {MOST_BOOLEANS} booleans cannot be changed at once"));
        }
        let targets = self.registry().targets(client.uid, target, booleans)?;
        // Side by side: a run that does not answer holds up its own server's change only.
        thread::scope(|scope| {
            let change = |hosted: &Arc<Hosted>| {
                let hosted = Arc::clone(hosted);
                scope.spawn(move || self.set_one(&hosted, booleans))
            };
            let changes: Vec<_> = targets.iter().map(change).collect();
            let ended = changes.into_iter().map(|change| change.join());
            ended.map(|change| change.unwrap_or_else(|_| Err("the change failed".into()))).collect()
        })
    }

    fn set_one(&self, hosted: &Hosted, booleans: &[(String, bool)]) -> Result<Changed, String> {
        let _changing = hosted.change();
        let begin = Instant::now();
        let seqno = hosted.set_booleans(booleans).map_err(text)?;
        Ok(self.complete(hosted, seqno, begin))
    }

    /// Replaces the policy of a run. The run itself makes it hold: it asked.
    pub(crate) fn load(&self, run: &Arc<Run>, policy: Option<OwnedFd>) -> Result<Seqno, String> {
        let policy = policy.ok_or("a policy is loaded from sealed memory")?;
        let bytes = read_sealed(policy, Policy::MOST_BYTES).map_err(text)?;
        if self.registry().is_full(run.kept.uid, bytes.len()) {
            return Err("this user's runs have as large policies as they may have".into());
        }
        let hosted = self.registry().own(run).map_err(text)?;
        let _changing = hosted.change();
        hosted.set_policy(&bytes).map_err(text)
    }

    /// Waits for everybody who uses `hosted`.
    fn complete(&self, hosted: &Hosted, seqno: Seqno, begin: Instant) -> Changed {
        let mut frozen: HashMap<String, Vec<OwnedFd>> = HashMap::new();
        let act = |name: &str, stage: Stage| {
            let Some(run) = self.registry().run(name) else { return };
            say(format_args!("run {name} has not applied policy state {seqno}: {}", word(stage)));
            match stage {
                Stage::Report => {}
                Stage::Freeze => {
                    frozen.insert(
                        name.to_owned(),
                        process::stop_descendants(run.kept.pid, run.kept.uid),
                    );
                }
                Stage::Thaw => process::go_on(&frozen.remove(name).unwrap_or_default()),
                Stage::Kill => {
                    // What another user has become is not this one's to kill: its run stays unreached.
                    let (pid, uid) = (run.kept.pid, run.kept.uid);
                    process::kill_if_of(&run.pidfd, pid, uid);
                    // Its sandbox ends with it by what the sandbox's first process does, which is frozen, too: it has not
                    // become another's since.
                    frozen.remove(name).unwrap_or_default().iter().for_each(process::kill);
                }
            }
        };
        let members = hosted.members.complete(seqno, self.settings.patience, act);
        Changed {
            seqno: seqno.0,
            complete: members.iter().all(is_complete),
            took_us: micros(begin.elapsed()),
            members: members.into_iter().map(changed).collect(),
        }
    }
}

/// A run that has applied a change may say itself that something could not be taken back.
fn is_complete(member: &Acknowledged) -> bool {
    let receipt = serde_json::from_slice::<serde_json::Value>(&member.report).unwrap_or_default();
    member.outcome != Outcome::Unreached && receipt["complete"] != false
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

fn changed(member: Acknowledged) -> ChangedMember {
    let outcome = match member.outcome {
        Outcome::Applied => "applied",
        Outcome::Gone => "ended",
        Outcome::Killed => "killed",
        Outcome::Unreached => "unreached",
    };
    ChangedMember {
        run: member.name,
        outcome: outcome.into(),
        after_us: micros(member.after),
        late: member.stage.map(word).unwrap_or_default().into(),
        report: String::from_utf8_lossy(&member.report).into_owned(),
    }
}
