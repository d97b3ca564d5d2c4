//! Changing policies while runs go on.

use super::{Client, Shared, say};
use crate::{
    error::{ChangeError, MOST_BOOLEANS},
    hosted::Hosted,
    process,
    registry::Run,
};
use daemon_client::{Changed, ChangedMember, Target};
use flask::{SecurityServer, Seqno};
use server_port::{Acknowledged, MemberOutcome, Stage, read_sealed};
use std::{
    collections::{HashMap, HashSet},
    os::fd::OwnedFd,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

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
        let targets = self.registry().targets(client.uid, target, booleans)?;
        let stands_alone = |hosted: &Hosted| targets.len() > 1 && hosted.owner != client.uid;
        // Before any of them is changed.
        for hosted in targets.iter().filter(|hosted| !stands_alone(hosted)) {
            self.consider(hosted, &hosted.with_booleans(booleans)?, false)?;
        }
        // Side by side: a run that does not answer holds up its own server's change only.
        thread::scope(|scope| {
            let change = |hosted: &Arc<Hosted>| {
                let hosted = Arc::clone(hosted);
                scope.spawn(move || self.set_one(&hosted, booleans))
            };
            let changes: Vec<_> = targets.iter().map(change).collect();
            let ended = changes.into_iter().map(|change| change.join());
            let ended = ended.map(|change| change.unwrap_or(Err(ChangeError::Failed)));
            let each = targets.iter().zip(ended);
            each.map(|(hosted, change)| match change {
                Err(why) if stands_alone(hosted) => Ok(self.unchanged(hosted, why)),
                change => change,
            })
            .collect()
        })
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
        let member = |run: &Arc<Run>| ChangedMember {
            run: run.kept.id.clone(),
            outcome: "unchanged".into(),
            after_us: 0,
            late: String::new(),
            report: String::new(),
        };
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
        let _changing = hosted.change();
        let begin = Instant::now();
        self.consider(hosted, &hosted.with_booleans(booleans)?, false)?;
        let seqno = hosted.set_booleans(booleans)?;
        Ok(self.complete(hosted, seqno, begin))
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
        let hosted = self.registry().own(run)?;
        let _changing = hosted.change();
        // Last: whoever waits for another change keeps nobody from compiling.
        let _compiling = self.quota.compile(run.kept.uid)?;
        self.consider(&hosted, &hosted.with_policy(&bytes)?, kills)?;
        Ok(hosted.set_policy(&bytes)?)
    }

    /// Waits for everybody who uses `hosted`.
    fn complete(&self, hosted: &Hosted, seqno: Seqno, begin: Instant) -> Changed {
        let mut frozen: HashMap<String, Vec<OwnedFd>> = HashMap::new();
        let mut killed = HashSet::new();
        // Of all runs together: nothing here may put off that they are killed.
        let until = Instant::now() + self.settings.patience.kill;
        let act = |name: &str, stage: Stage| {
            let Some(run) = self.registry().run(name) else { return };
            // It is killed again if that was in vain.
            if stage != Stage::Kill || killed.insert(name.to_owned()) {
                let word = word(stage);
                say(format_args!("run {name} has not applied policy state {seqno}: {word}"));
            }
            match stage {
                Stage::Report => {}
                Stage::Freeze => {
                    let (pid, uid) = (run.kept.pid, run.kept.uid);
                    let stopped = process::stop_descendants(pid, uid, until);
                    frozen.insert(name.to_owned(), stopped);
                }
                Stage::Thaw => process::go_on(&frozen.remove(name).unwrap_or_default()),
                Stage::Kill => {
                    // What another user has become is not this one's to kill: its run stays
                    // unreached.
                    let (pid, uid) = (run.kept.pid, run.kept.uid);
                    process::kill_if_of(&run.pidfd, pid, uid);
                    // Its sandbox ends with it by what the sandbox's first process does, which is
                    // frozen, too: it has not become another's since.
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
            refused: None,
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
        report: String::from_utf8_lossy(&member.report).into_owned(),
    }
}
