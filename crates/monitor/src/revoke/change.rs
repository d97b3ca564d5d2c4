//! A change of policy from its beginning to its receipt.

mod verify;

use super::{
    ApplyError,
    held::{Comparison, Finding, Subject, loses, replaced},
    receipt::{Action, Held, Holder, Receipt, RevokeMode},
    relabel::{changed, relabel},
    repair::repair,
};
use crate::{gate::Gate, subject::outer_label_of};
use confine::{Exactness, KernelPolicy, PolicyState, Rights, refuse_taken};
use flask::Sid;
use rustix::{
    io::{Errno, Result},
    process::{Pid, Signal},
};
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
    lives,
    memory::sealed_nothing,
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
    mode: RevokeMode,
    receipts: &Sender<ApplyResult>,
    end: &AtomicBool,
) {
    let began = Instant::now();
    match PolicyTransition::begin(gate, mode, began) {
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
    /// Processes and threads whose calls were being made when nobody could wait for them any
    /// longer.
    stuck: Vec<(u32, u32)>,
    killed: BTreeSet<u32>,
    /// Names of the processes that held something.
    names: HashMap<u32, String>,
    /// Something is labelled otherwise.
    relabels: bool,
    /// Domains whose processes end, for what the kernel would go on granting them.
    ending: Vec<(Sid, String)>,
    /// What held before, which takes its time to be dropped.
    old: Arc<PolicyState>,
}

impl<'a> PolicyTransition<'a> {
    /// Puts the new policy in force for everything that is asked from now on, and stops the
    /// sandbox.
    fn begin(
        gate: &'a Arc<Gate>,
        mode: RevokeMode,
        began: Instant,
    ) -> std::result::Result<Self, ApplyError> {
        let policy = KernelPolicy::new(&*gate.state.server)?;
        let taken = gate.settled.compare(&*gate.state.server, &policy)?;
        refuse_taken(&taken, mode.kills())?;
        let mut ending = gate.settled.ending(&*gate.state.server, &policy, &taken)?;
        let KernelPolicy { plan, first, labels, rules, .. } = policy;
        let old = gate.state.policy.load_full();
        let out_of_reach = gate.settled.out_of_reach(&old.plan, &plan);
        let nothing = sealed_nothing()?;
        let changed = changed(&old.files, &labels.files);
        let told = Receipt { prepared: began.elapsed(), out_of_reach, ..Receipt::default() };
        let began = Instant::now();
        let same = plan.same_files(&old.plan) && first.same_files(&old.first);
        let still = |exact| if same { exact } else { Rights::empty() };
        let Exactness { all, first: for_first, ref withheld } = old.exactness;
        let exactness =
            Exactness { all: still(all), first: still(for_first), withheld: withheld.clone() };
        let seqno = gate.state.server.seqno()?;
        let stuck = gate.state.targets.quiesce.close(SLOW_CALL);
        gate.state.labels.change(rules);
        gate.sockets.endpoints.change(&labels);
        let files = labels.files;
        let now = PolicyState { plan, first, exactness, files };
        gate.state.policy.store(Arc::new(now));
        gate.files.paths.forget();
        gate.state.caches.reset(seqno);
        let all_names = relabel(gate, &changed);
        let receipt = Receipt { seqno: seqno.0, complete: all_names, ..told };
        if mode == RevokeMode::End {
            let losing = old.plan.domains.iter().filter(|ssid| loses(gate, **ssid));
            ending.splice(..0, losing.map(|ssid| (*ssid, "everything".to_owned())));
        }
        let mut change = Self {
            gate,
            mode,
            began,
            stopped: Stopped::new(&gate.state.targets),
            receipt,
            comparison: Comparison::new(gate),
            nothing,
            late: BTreeMap::new(),
            stuck: Vec::new(),
            killed: BTreeSet::new(),
            names: HashMap::new(),
            relabels: !changed.is_empty(),
            ending,
            old,
        };
        change.end_calls(&stuck);
        if let Err(error) = change.stop() {
            Gate::reopen(gate);
            return Err(error.into());
        }
        change.receipt.threads = change.stopped.count() as u32;
        change.receipt.stopped = change.began.elapsed();
        Ok(change)
    }

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

    /// Whether something is granted no longer, or labelled otherwise. To compare every decision
    /// takes longer than to stop a process, so it is asked only where it matters.
    fn takes(&self) -> bool {
        self.relabels || self.old.plan.domains.iter().any(|ssid| loses(self.gate, *ssid))
    }

    /// A process that another traces cannot be stopped, and not be looked into soundly: it ends, if
    /// the change takes anything from anybody.
    fn end_refused(&mut self, pid: u32) {
        if !self.takes() {
            return;
        }
        let ssid = outer_label_of(&self.gate.state, pid);
        let mut held = self.comparison.everything(pid, ssid).map(all).unwrap_or_default();
        if held.is_empty() {
            held.push(Finding::vague(Held::Unknown, "unknown"));
        }
        self.kill(pid, &held, "another process traces it");
        let until = Instant::now() + LATE;
        while lives(&self.gate.state.targets.tree, pid) {
            if Instant::now() > until {
                self.receipt.complete = false;
                break;
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Takes back what is held, and lets the sandbox go on.
    fn finish(&mut self) -> Receipt {
        let processes = self.stopped.processes();
        self.receipt.processes = processes.len() as u32;
        for (pid, threads) in &processes {
            self.inspect(*pid, threads);
        }
        let early = processes.into_keys().filter(|pid| !self.late.contains_key(pid)).collect();
        self.signal(&early);
        // Before any call is decided again: an exec waits for the other threads of its process to
        // end, which those that are held could not.
        self.stopped.release(&early);
        Gate::reopen(self.gate);
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
        for (pid, tid) in std::mem::take(&mut self.stuck) {
            if self.gate.state.targets.quiesce.is_inside(tid) {
                let call = Finding::vague(Held::Call, "a call made on its behalf");
                self.note(pid, &call, Action::Kept, "it is being made and cannot be stopped");
            }
        }
        self.gate.sockets.endpoints.relabel(&self.gate.state);
        self.receipt.conclude();
        self.receipt.took = self.began.elapsed();
        std::mem::take(&mut self.receipt)
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

    /// Calls that were decided before and are still being made cannot be taken back: their
    /// processes end.
    fn end_calls(&mut self, stuck: &[u32]) {
        for tid in stuck {
            let Ok(identity) = self.gate.state.targets.tree.proc.identity(*tid) else { continue };
            let finding = Finding::vague(Held::Call, "a call that takes long");
            self.kill(identity.pid, &[finding], "it was decided before the change");
            self.stuck.push((identity.pid, *tid));
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

    fn unknown(&mut self, pid: u32, error: Errno) {
        let finding = Finding::vague(Held::Unknown, "unknown");
        self.kill(pid, &[finding], &format!("it cannot be looked into: {error}"));
    }

    /// Repairs what a process holds, through its stopped thread `tid`; what cannot be repaired ends
    /// with its process.
    fn repair(&mut self, who: Subject, tid: Option<u32>, findings: Vec<Finding>) {
        if self.mode.kills() {
            return self.kill(who.pid, &findings, "");
        }
        let proc = &self.gate.state.targets.tree.proc;
        let (mut done, mut rest) = (Vec::<(Finding, Result<Action>)>::new(), Vec::new());
        for finding in findings {
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
                    why = format!("it could not be repaired: {error}");
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

    fn kill(&mut self, pid: u32, findings: &[Finding], reason: &str) {
        let killed = send(pid, Signal::KILL).is_ok();
        self.killed.insert(pid);
        for finding in findings {
            let action = if killed { Action::Killed } else { Action::Kept };
            self.note(pid, finding, action, reason);
        }
    }

    /// Tells the processes that lost something.
    fn signal(&self, pids: &BTreeSet<u32>) {
        let RevokeMode::Signal(number) = self.mode else { return };
        let Some(signal) = Signal::from_named_raw(number) else { return };
        let holders: BTreeSet<u32> = self.receipt.holders.iter().map(|it| it.pid).collect();
        for pid in holders.intersection(pids).filter(|pid| !self.killed.contains(pid)) {
            let _ = send(*pid, signal);
        }
    }
}

fn all(held: Vec<(Subject, Vec<Finding>)>) -> Vec<Finding> {
    held.into_iter().flat_map(|(_, findings)| findings).collect()
}

fn send(pid: u32, signal: Signal) -> Result<()> {
    rustix::process::kill_process(Pid::from_raw(pid as i32).ok_or(Errno::SRCH)?, signal)
}
