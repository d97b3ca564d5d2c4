//! A change of policy from its beginning to its receipt.

mod beginning;
mod cores;
mod ending;
mod verify;

use super::{
    ApplyError,
    held::{Comparison, Finding, Subject, replaced},
    naming::NamedFiles,
    receipt::{Action, Held, Holder, Receipt, RevokeMode},
    repair::repair,
};
use crate::gate::Gate;
use flask::Sid;
use mediation::subject::outer_label_of;
use rustix::io::{Errno, Result};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    os::fd::{AsFd, OwnedFd},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::Sender,
    },
    time::{Duration, Instant},
};
use supervisor::{
    Injector, PAUSE, Stopped,
    flight::{self, Ended},
    signal_inside,
    thread::same_descriptors,
};

/// A call that is made on the program's behalf and takes longer is not waited for.
const SLOW_CALL: Duration = Duration::from_secs(1);
/// A process that is still in a call that began before is killed after that.
const LATE: Duration = Duration::from_secs(2);
/// Between two looks at parents that wait for a child by vfork(2).
const LINGER: Duration = Duration::from_millis(1);

/// Carries a change out and sends its receipt; then waits, until `end`, for threads that could not
/// be let go yet.
pub(super) fn run(
    gate: &Arc<Gate>,
    (mode, named): (RevokeMode, NamedFiles),
    receipts: &Sender<ApplyResult>,
    end: &AtomicBool,
) {
    match PolicyTransition::begin(gate, (mode, named), Instant::now()) {
        Ok(mut change) => {
            let _ = receipts.send(Ok(change.finish()));
            while change.stopped.count() > 0 && !end.load(Ordering::Acquire) {
                std::thread::sleep(LINGER);
                change.release_settled();
            }
        }
        Err(error) => drop(receipts.send(Err(error))),
    }
}

/// What becomes of a change.
pub(super) type ApplyResult = std::result::Result<Receipt, ApplyError>;

struct PolicyTransition<'a> {
    gate: &'a Arc<Gate>,
    mode: RevokeMode,
    began: Instant,
    stopped: Stopped<'a>,
    receipt: Receipt,
    comparison: Comparison<'a>,
    /// What revoked memory is replaced by.
    nothing: OwnedFd,
    /// What parents by vfork(2) hold, of whose tables no thread has stopped.
    late: BTreeMap<u32, Vec<Finding>>,
    /// Calls that were being made when nobody could wait for them any longer, by notification; each
    /// with its process, or with its thread if that had ended.
    stuck: BTreeMap<u64, u32>,
    killed: BTreeSet<u32>,
    /// Those that were sent a signal for what they have lost.
    told: BTreeSet<u32>,
    /// Names of the processes that held something.
    names: HashMap<u32, String>,
    /// Policy on files is another.
    changes_files: bool,
    /// Domains whose processes end, for what the kernel would go on granting them.
    ending: Vec<(Sid, String)>,
}

impl PolicyTransition<'_> {
    /// Stops the sandbox. What cannot be stopped in time ends: while it runs it could hand things
    /// to others, who have been looked into already.
    fn stop(&mut self) -> Result<()> {
        let mut until = Instant::now() + LATE;
        let mut is_last = false;
        while !self.stopped.stop(until)? {
            for pid in self.stopped.take_refused() {
                self.end_refused(pid);
            }
            if Instant::now() <= until {
                continue;
            }
            if is_last {
                self.receipt.complete = false;
                break;
            }
            for pid in self.stopped.waited_for() {
                let call = Finding::vague(Held::Call, "a call that takes long");
                self.kill(pid, &[call], "it waits in the kernel in a call that began before");
            }
            (until, is_last) = (Instant::now() + LATE, true);
        }
        Ok(())
    }

    /// Takes back what is held, and lets the sandbox go on.
    fn finish(&mut self) -> Receipt {
        self.receipt.processes = self.inspect_all();
        let were_late = !self.late.is_empty();
        self.go_on();
        if were_late {
            self.wait_for_late();
            self.look_again();
        }
        self.note_stuck();
        self.gate.sockets.endpoints.relabel(&self.gate.state);
        self.receipt.conclude();
        self.receipt.took = self.began.elapsed();
        std::mem::take(&mut self.receipt)
    }

    /// Looks into all that is held; how many processes that are.
    fn inspect_all(&mut self) -> u32 {
        let processes = self.stopped.processes();
        for (pid, threads) in &processes {
            self.inspect(*pid, threads);
            self.end_cores(*pid);
        }
        processes.len() as u32
    }

    /// Lets all go on but those that are late.
    fn go_on(&mut self) {
        let processes = self.stopped.processes();
        let early = processes.into_keys().filter(|pid| !self.late.contains_key(pid)).collect();
        self.signal(&early);
        // Before any call is decided again: an exec waits for the other threads of its process to
        // end, which those that are held could not; and what is dying still has its descriptors,
        // which others could fetch.
        self.stopped.release(&early);
        self.see_off();
        Gate::reopen(self.gate);
    }

    /// Takes from the late what they hold as they come back; in time, or they end.
    fn wait_for_late(&mut self) {
        let until = Instant::now() + LATE;
        while !self.late.is_empty() {
            self.release_settled();
            if Instant::now() > until {
                for (pid, held) in std::mem::take(&mut self.late) {
                    self.kill(pid, &held, "its child by vfork has not executed a program");
                }
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Stops the sandbox once more, and takes what others have fetched meanwhile from those that
    /// were late (`pidfd_getfd`). Nobody else had anything any more: whoever is late now has
    /// fetched it, and ends, so that there is no third time.
    fn look_again(&mut self) {
        let stuck = self.gate.state.targets.quiesce.close(SLOW_CALL);
        self.end_calls(&stuck);
        self.receipt.complete &= self.stop().is_ok();
        self.inspect_all();
        for (pid, held) in std::mem::take(&mut self.late) {
            self.kill(pid, &held, "it has fetched what was taken, and waits for a child by vfork");
        }
        self.go_on();
    }

    /// Looks into parents by vfork(2) that have come back from it, if they hold something, and lets
    /// them go on.
    fn release_settled(&mut self) {
        self.stopped.scan();
        for (pid, threads) in self.stopped.processes() {
            if self.stopped.is_late(pid) {
                continue;
            }
            if self.late.remove(&pid).is_some() {
                self.inspect(pid, &threads);
            }
            let pids = BTreeSet::from([pid]);
            self.signal(&pids);
            self.stopped.release(&pids);
        }
    }

    fn inspect(&mut self, pid: u32, stopped: &[u32]) {
        let ssid = outer_label_of(&self.gate.state, pid);
        // Whose label cannot be found out may be in any domain.
        let ends = self.ending.iter().find(|(domain, _)| ssid.is_none_or(|ssid| ssid == *domain));
        if let Some((_, what)) = ends {
            let finding = Finding::vague(Held::Settled, what.clone());
            return self.kill(
                pid,
                &[finding],
                "the kernel does not take it from a process that runs",
            );
        }
        let held = match self.comparison.everything(pid, ssid) {
            Ok(held) => held,
            Err(error) => return self.unknown(pid, error),
        };
        let only = held.len() == 1;
        for (who, findings) in held.into_iter().filter(|(_, findings)| !findings.is_empty()) {
            // Calls in its place are made by a thread that uses this very table.
            let able = |tid: &&u32| only || same_descriptors(**tid, who.tid);
            match stopped.iter().find(able) {
                Some(tid) => self.repair(who, Some(*tid), findings),
                None => self.late.entry(pid).or_default().extend(findings),
            }
        }
    }

    /// Repairs what a process holds, through its stopped thread `tid`; what cannot be repaired ends
    /// with its process.
    fn repair(&mut self, who: Subject, tid: Option<u32>, findings: Vec<Finding>) {
        if self.mode.kills() {
            return self.kill(who.pid, &findings, "");
        }
        let proc = &self.gate.state.targets.tree.proc;
        let (mut done, mut rest) = (Vec::<(Finding, Result<Action>)>::new(), Vec::new());
        let connects = &self.gate.sockets.endpoints.ports.connects;
        for finding in findings {
            // What it is to listen for while it is under way has to end first.
            let listener =
                finding.socket.as_ref().filter(|_| matches!(finding.held, Held::Listener(_)));
            let _ending = listener.map(|listener| connects.end_all(listener));
            let ended = finding.socket.as_ref().map(|socket| match finding.held {
                Held::InFlight(_) => flight::empty(proc, socket.as_fd()).map(|()| Action::ShutDown),
                _ => flight::end_connection(proc, socket).map(|ended| match ended {
                    Ended::Reset => Action::Reset,
                    Ended::ShutDown => Action::ShutDown,
                }),
            });
            match ended {
                Some(Ok(_)) | None if finding.by_call => rest.push(finding),
                Some(ended) => done.push((finding, ended)),
                None => done.push((finding, Err(Errno::BADF))),
            }
        }
        if !rest.is_empty() {
            let injector = tid.ok_or(Errno::SRCH);
            let injector = injector.and_then(|tid| Injector::new(&mut self.stopped, tid));
            let results = match injector {
                Ok(injector) => {
                    let fds = (self.nothing.as_fd(), self.gate.refusal.as_fd());
                    repair(&injector, fds, &rest)
                }
                Err(error) => vec![Err(error); rest.len()],
            };
            done.extend(rest.into_iter().zip(results));
            self.stopped.end_locks((who.pid, who.tid), &replaced(&done));
        }
        let (mut repaired, mut failed) = (Vec::new(), Vec::new());
        let mut why = String::new();
        for (finding, result) in done {
            match result {
                Ok(action) if finding.by_call => repaired.push((finding, action)),
                Ok(action) => self.note(who.pid, &finding, action, ""),
                Err(error) => {
                    why = verify::failure(error);
                    failed.push(finding);
                }
            }
        }
        self.verify(who, repaired, failed.is_empty());
        if !failed.is_empty() {
            self.kill(who.pid, &failed, &why);
        }
    }

    fn note(&mut self, pid: u32, finding: &Finding, action: Action, reason: &str) {
        let name = || self.gate.state.targets.tree.proc.identity(pid).map(|it| it.comm);
        let comm = self.names.entry(pid).or_insert_with(|| name().unwrap_or_default()).clone();
        self.receipt.holders.push(Holder {
            pid,
            comm,
            held: finding.held,
            object: finding.object.clone(),
            lost: finding.lost.iter().map(|it| (*it).to_owned()).collect(),
            action,
            reason: reason.to_owned(),
            after: self.began.elapsed(),
        });
    }

    /// Tells the processes that lost something, each once.
    fn signal(&mut self, pids: &BTreeSet<u32>) {
        let RevokeMode::Signal(number) = self.mode else { return };
        let holders: BTreeSet<u32> = self.receipt.holders.iter().map(|it| it.pid).collect();
        for pid in holders.intersection(pids).filter(|pid| !self.killed.contains(pid)) {
            if self.told.insert(*pid) {
                let _ = signal_inside(&self.gate.state.targets.tree, *pid, number);
            }
        }
    }
}
