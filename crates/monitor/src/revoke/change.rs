//! A change of policy from its beginning to its receipt.

use super::{
    ApplyError, end_connection, flight,
    held::{Comparison, Finding, Subject},
    inject::{Call, Injector},
    receipt::{Action, Held, Holder, Manner, Receipt},
    relabel::{changed, relabel},
    stop::{self, PAUSE, Stopped},
};
use crate::{
    caller,
    gate::{Bearing, Gate},
    plan::{Plan, Rights},
    process,
    socket::Endpoints,
    sys::{memory::sealed_nothing, thread::same_descriptors},
};
use labelling::PathRules;
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
use syscalls::Sysno;

/// A call that is made on the program's behalf and takes longer is not waited for.
const SLOW_CALL: Duration = Duration::from_secs(1);
/// A process that is still in a call that began before is killed after that.
const LATE: Duration = Duration::from_secs(2);

/// Between two looks at parents that wait for a child by vfork(2).
const LINGER: Duration = Duration::from_millis(1);

/// Carries a change out and sends its receipt; then waits, until `end`, for threads that could not be let go yet.
pub(super) fn run(gate: &Gate, manner: Manner, receipts: &Sender<Outcome>, end: &AtomicBool) {
    let began = Instant::now();
    match Change::begin(gate, manner, began) {
        Ok(mut change) => {
            let _ = receipts.send(Ok(change.finish()));
            while change.stopped.count() > 0 && !end.load(Ordering::Acquire) {
                std::thread::sleep(LINGER);
                change.look_into_late(false);
            }
        }
        Err(error) => drop(receipts.send(Err(error))),
    }
}

/// What becomes of a change.
pub(super) type Outcome = std::result::Result<Receipt, ApplyError>;

struct Change<'a> {
    gate: &'a Gate,
    manner: Manner,
    began: Instant,
    stopped: Stopped<'a>,
    receipt: Receipt,
    comparison: Comparison<'a>,
    /// What revoked memory is replaced by.
    nothing: OwnedFd,
    /// What processes hold in tables of descriptors of which no thread has stopped.
    late: BTreeMap<u32, Vec<Finding>>,
    /// Processes and threads whose calls were being made when nobody could wait for them any longer.
    stuck: Vec<(u32, u32)>,
    killed: BTreeSet<u32>,
    /// Names of the processes that held something.
    names: HashMap<u32, String>,
    /// What held before, which takes its time to be dropped.
    _old: Arc<Bearing>,
}

impl<'a> Change<'a> {
    /// Puts the new policy in force for everything that is asked from now on, and stops the sandbox.
    fn begin(
        gate: &'a Gate,
        manner: Manner,
        began: Instant,
    ) -> std::result::Result<Self, ApplyError> {
        let labels = gate.server.label_rules()?;
        let rules = PathRules::new(&labels.files)?;
        let plan = Plan::new(&*gate.server, &labels)?;
        let old = gate.bearing.load_full();
        if plan.domains.iter().any(|domain| !old.plan.domains.contains(domain)) {
            return Err(ApplyError::Domains);
        }
        if gate.reads_pass && manner != Manner::Kill && old.plan.loses_reads(&plan) {
            return Err(ApplyError::Reads);
        }
        let nothing = sealed_nothing()?;
        let changed = changed(&old.files, &labels.files);
        let prepared = began.elapsed();
        let began = Instant::now();
        let exact = if plan.same_files(&old.plan) { old.exact } else { Rights::empty() };
        let seqno = gate.server.seqno()?;
        let stuck = gate.passage.close(SLOW_CALL);
        gate.labels.change(rules);
        gate.endpoints.change(&labels);
        gate.bearing.store(Arc::new(Bearing { plan, exact, files: labels.files }));
        gate.paths.forget();
        gate.reset(seqno);
        let all_names = relabel(gate, &changed);
        let stopped = match Stopped::all(gate) {
            Ok(stopped) => stopped,
            Err(error) => {
                reopen(gate);
                return Err(error.into());
            }
        };
        let receipt = Receipt {
            seqno: seqno.0,
            complete: all_names,
            prepared,
            threads: stopped.count() as u32,
            stopped: began.elapsed(),
            ..Receipt::default()
        };
        let mut change = Self {
            gate,
            manner,
            began,
            stopped,
            receipt,
            comparison: Comparison::new(gate),
            nothing,
            late: BTreeMap::new(),
            stuck: Vec::new(),
            killed: BTreeSet::new(),
            names: HashMap::new(),
            _old: old,
        };
        change.end_calls(&stuck);
        Ok(change)
    }

    /// Takes back what is held, and lets the sandbox go on.
    fn finish(&mut self) -> Receipt {
        self.look_into_refused();
        let processes = self.stopped.processes();
        self.receipt.processes = processes.len() as u32;
        for (pid, threads) in &processes {
            self.look_into(*pid, threads);
        }
        let early = processes.into_keys().filter(|pid| !self.may_hold_more(*pid)).collect();
        self.signal(&early);
        reopen(self.gate);
        self.stopped.release(&early);
        let until = Instant::now() + LATE;
        while self.look_into_late(Instant::now() > until) {
            std::thread::sleep(PAUSE);
        }
        for (pid, tid) in std::mem::take(&mut self.stuck) {
            if self.gate.passage.is_inside(tid) {
                let call = Finding::vague(Held::Call, "a call made on its behalf");
                self.note(pid, &call, Action::Kept, "it is being made and cannot be stopped");
            }
        }
        Endpoints::relabel(self.gate);
        let kept = |holder: &Holder| holder.action == Action::Kept;
        self.receipt.complete &= !self.receipt.holders.iter().any(kept);
        self.receipt.took = self.began.elapsed();
        std::mem::take(&mut self.receipt)
    }

    /// Whether a process holds something still, or may be getting it by a call that began before. Who makes a child is
    /// not held up by it: the child stops at birth, and the thread at the end of the call.
    fn may_hold_more(&self, pid: u32) -> bool {
        self.late.contains_key(&pid) || self.stopped.is_late(pid) && !self.stopped.only_forks(pid)
    }

    /// Looks once more into processes with a call that began before, when it has ended, and lets them go on; also into
    /// children that such a call made. Those whose call goes on end when time is `over`. Whether somebody is left.
    fn look_into_late(&mut self, over: bool) -> bool {
        let mut left = false;
        self.stopped.look();
        for (pid, threads) in self.stopped.processes() {
            if !self.stopped.is_late(pid) {
                self.late.remove(&pid);
                self.look_into(pid, &threads);
            }
            if self.may_hold_more(pid) && !self.killed.contains(&pid) {
                if !over {
                    left = true;
                    continue;
                }
                let call = || vec![Finding::vague(Held::Call, "a call that takes long")];
                let held = self.late.remove(&pid).unwrap_or_else(call);
                self.kill(pid, &held, "it waits in the kernel in a call that began before");
            }
            let pids = BTreeSet::from([pid]);
            self.signal(&pids);
            self.stopped.release(&pids);
        }
        left
    }

    /// Calls that were decided before and are still being made cannot be taken back: their processes end.
    fn end_calls(&mut self, stuck: &[u32]) {
        for tid in stuck {
            let Ok(identity) = caller::identity(&self.gate.view, *tid) else { continue };
            let finding = Finding::vague(Held::Call, "a call that takes long");
            self.kill(identity.pid, &[finding], "it was decided before the change");
            self.stuck.push((identity.pid, *tid));
        }
    }

    fn look_into(&mut self, pid: u32, stopped: &[u32]) {
        let ssid = process::label_of(self.gate, pid).ok();
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

    /// Processes that others trace cannot be repaired, or even stopped: those that hold something are killed. They run
    /// meanwhile, and can hand things to each other, so this ends only when none of those left has anything.
    fn look_into_refused(&mut self) {
        let until = Instant::now() + LATE;
        loop {
            let refused = self.stopped.refused.clone();
            let mut found = false;
            for pid in refused.into_iter().filter(|pid| stop::lives(self.gate, *pid)) {
                if self.killed.contains(&pid) {
                    found = true;
                    continue;
                }
                let ssid = process::label_of(self.gate, pid).ok();
                match self.comparison.everything(pid, ssid).map(all) {
                    Ok(findings) if findings.is_empty() => continue,
                    Ok(findings) => self.kill(pid, &findings, "another process traces it"),
                    Err(error) => self.unknown(pid, error),
                }
                found = true;
            }
            if !found || Instant::now() > until {
                self.receipt.complete &= !found;
                return;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    fn unknown(&mut self, pid: u32, error: Errno) {
        let finding = Finding::vague(Held::Unknown, "unknown");
        self.kill(pid, &[finding], &format!("it cannot be looked into: {error}"));
    }

    /// Repairs what a process holds, through its stopped thread `tid`; what cannot be repaired ends with its process.
    fn repair(&mut self, who: Subject, tid: Option<u32>, findings: Vec<Finding>) {
        if self.manner == Manner::Kill {
            return self.kill(who.pid, &findings, "");
        }
        let (sockets, rest): (Vec<_>, Vec<_>) =
            findings.into_iter().partition(|finding| finding.socket.is_some());
        let mut done: Vec<(Finding, Result<Action>)> = Vec::new();
        for finding in sockets {
            let ended = finding.socket.as_ref().map_or(Err(Errno::BADF), |socket| {
                if matches!(finding.held, Held::InFlight(_)) {
                    flight::empty(socket.as_fd()).map(|()| Action::ShutDown)
                } else {
                    end_connection(socket)
                }
            });
            done.push((finding, ended));
        }
        if !rest.is_empty() {
            let injector = tid.ok_or(Errno::SRCH);
            let injector =
                injector.and_then(|tid| Injector::new(self.gate, &mut self.stopped, tid));
            let results = match injector {
                Ok(injector) => self.repair_through(&injector, &rest),
                Err(error) => vec![Err(error); rest.len()],
            };
            done.extend(rest.into_iter().zip(results));
        }
        let mut failed = Vec::new();
        let mut why = String::new();
        for (finding, result) in done {
            match result {
                Ok(action) => self.note(who.pid, &finding, action, ""),
                Err(error) => {
                    why = format!("it could not be repaired: {error}");
                    failed.push(finding);
                }
            }
        }
        if !failed.is_empty() {
            self.kill(who.pid, &failed, &why);
        } else if !self.stopped.refused.is_empty() {
            self.verify(who);
        }
    }

    /// A process that could not be stopped may share memory with the one that was repaired, and so have had a hand in it.
    fn verify(&mut self, who: Subject) {
        match self.comparison.everything(who.pid, who.ssid).map(all) {
            Ok(findings) if findings.is_empty() => {}
            Ok(findings) => self.kill(who.pid, &findings, "its repair was interfered with"),
            Err(error) => self.unknown(who.pid, error),
        }
    }

    /// Repairs descriptors, mappings and watches by calls in the place of the process.
    fn repair_through(&self, injector: &Injector<'_>, findings: &[Finding]) -> Vec<Result<Action>> {
        let is_mapping = |finding: &&Finding| matches!(finding.held, Held::Mapping(..));
        let nothing = findings.iter().find(is_mapping).map(|_| injector.give(self.nothing.as_fd()));
        let flags = descriptor_flags(injector, findings);
        let mut first: Option<(i32, Result<()>)> = None;
        let mut calls: Vec<Call> = Vec::new();
        // For each finding, what the calls come to: the result of one of them, or one already there.
        let mut plans: Vec<std::result::Result<(usize, Action), Result<Action>>> = Vec::new();
        for (finding, flags) in findings.iter().zip(flags) {
            let call = match (finding.held, &first, &nothing) {
                (Held::Descriptor(fd), None, _) => {
                    let result = injector.replace(self.gate.refusal.as_fd(), fd, flags != 0);
                    first = Some((fd, result));
                    plans.push(Err(result.map(|()| Action::Replaced)));
                    continue;
                }
                (Held::Descriptor(fd), Some((first, Ok(()))), _) => Ok((
                    (Sysno::dup3, [*first as u64, fd as u64, flags, 0, 0, 0]),
                    Action::Replaced,
                )),
                (Held::Descriptor(_), Some((_, Err(error))), _) => Err(*error),
                (Held::Mapping(start, end), _, Some(Ok(fd))) => {
                    // Pages beyond the end of a file: who touches them gets `SIGBUS`.
                    let flags = (libc::MAP_SHARED | libc::MAP_FIXED) as u64;
                    let args = [start, end - start, finding.protection, flags, *fd as u64, 0];
                    Ok(((Sysno::mmap, args), Action::Unmapped))
                }
                (Held::Mapping(..), _, Some(Err(error))) => Err(*error),
                (Held::Watch(fd, number), ..) => {
                    let args = [fd as u64, number as u64, 0, 0, 0, 0];
                    Ok(((Sysno::inotify_rm_watch, args), Action::Removed))
                }
                _ => Err(Errno::NOTSUP),
            };
            plans.push(match call {
                Ok((call, action)) => {
                    calls.push(call);
                    Ok((calls.len() - 1, action))
                }
                Err(error) => Err(Err(error)),
            });
        }
        let results = injector.calls(&calls);
        if let Some(Ok(fd)) = nothing {
            let _ = injector.call(Sysno::close, [fd as u64, 0, 0, 0, 0, 0]);
        }
        let outcome = |plan: std::result::Result<(usize, Action), Result<Action>>| match plan {
            Ok((index, action)) => results[index].map(|_| action),
            Err(result) => result,
        };
        plans.into_iter().map(outcome).collect()
    }

    fn note(&mut self, pid: u32, finding: &Finding, action: Action, reason: &str) {
        let name = || caller::identity(&self.gate.view, pid).map(|it| it.comm);
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
        let Manner::Signal(number) = self.manner else { return };
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

/// Lets calls in again, and answers those that came meanwhile.
fn reopen(gate: &Gate) {
    gate.passage.open();
    for call in gate.passage.held() {
        gate.admit(&call);
    }
}

fn send(pid: u32, signal: Signal) -> Result<()> {
    rustix::process::kill_process(Pid::from_raw(pid as i32).ok_or(Errno::SRCH)?, signal)
}

/// For each finding, the flags of its descriptor as dup3(2) takes them.
fn descriptor_flags(injector: &Injector<'_>, findings: &[Finding]) -> Vec<u64> {
    let call = |finding: &Finding| match finding.held {
        Held::Descriptor(fd) => Some((Sysno::fcntl, [fd as u64, libc::F_GETFD as u64, 0, 0, 0, 0])),
        _ => None,
    };
    let mut results =
        injector.calls(&findings.iter().filter_map(call).collect::<Vec<_>>()).into_iter();
    let flags = |finding| {
        let got = call(finding).and_then(|_| results.next()?.ok());
        let closed_on_exec = got.is_some_and(|flags| flags & libc::FD_CLOEXEC as u64 != 0);
        if closed_on_exec { libc::O_CLOEXEC as u64 } else { 0 }
    };
    findings.iter().map(flags).collect()
}
