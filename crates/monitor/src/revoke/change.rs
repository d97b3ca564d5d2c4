//! A change of policy from its beginning to its receipt.

use super::{
    ApplyError,
    held::{Comparison, Finding, Subject},
    inject::{Call, Injector},
    receipt::{Action, Held, Holder, Manner, Receipt},
    stop::{self, Stopped},
};
use crate::{
    caller,
    gate::{Bearing, Gate},
    label::{Status, file_kind},
    plan::{Plan, Rights},
    process,
    sys::{memory::sealed_nothing, socket::disconnect, thread::same_descriptors},
};
use flask::FileRule;
use labelling::{PathRules, stem_dir};
use rustix::{
    fs::{FileType, Mode, OFlags},
    io::{Errno, Result},
    process::{Pid, Signal},
};
use std::{
    collections::{BTreeSet, HashMap, HashSet},
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
    sync::{Arc, mpsc::Sender},
    time::{Duration, Instant},
};
use syscalls::Sysno;

/// A call that is made on the program's behalf and takes longer is not waited for.
const SLOW_CALL: Duration = Duration::from_secs(1);
/// A process whose threads all wait in the kernel, and that holds what was taken back, is killed after that.
const LATE: Duration = Duration::from_secs(2);
/// Files that are looked at for further names of what a new labelling rule is about.
const MOST_FILES: usize = 100_000;

/// Carries a change out and sends its receipt; then waits for threads that could not be let go yet.
pub(super) fn run(gate: &Gate, manner: Manner, receipts: &Sender<Outcome>) {
    let began = Instant::now();
    match Change::begin(gate, manner, began) {
        Ok(change) => change.finish(receipts),
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
    /// Processes that wait in the kernel and hold something, with what they hold.
    late: Vec<(Subject, Vec<Finding>)>,
    killed: BTreeSet<u32>,
    /// Names of the processes that held something.
    names: HashMap<u32, String>,
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
        let prepared = began.elapsed();
        let began = Instant::now();
        let exact = if plan.same_files(&old.plan) { old.exact } else { Rights::empty() };
        let seqno = gate.server.seqno()?;
        let stuck = gate.passage.close(SLOW_CALL);
        gate.labels.change(rules);
        gate.endpoints.change(&labels);
        let changed = changed(&old.files, &labels.files);
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
            late: Vec::new(),
            killed: BTreeSet::new(),
            names: HashMap::new(),
        };
        change.end_calls(&stuck);
        Ok(change)
    }

    /// Takes back what is held, and lets the sandbox go on.
    fn finish(mut self, receipts: &Sender<Outcome>) {
        let processes = self.stopped.processes();
        self.receipt.processes = processes.len() as u32;
        self.look_into_refused();
        for (pid, threads) in &processes {
            self.look_into(*pid, threads);
        }
        let late: BTreeSet<u32> = self.late.iter().map(|(who, _)| who.pid).collect();
        let early = processes.keys().copied().filter(|pid| !late.contains(pid)).collect();
        self.signal(&early);
        reopen(self.gate);
        self.stopped.release(&early);
        for (who, findings) in std::mem::take(&mut self.late) {
            let able = |tid: u32| same_descriptors(tid, who.tid);
            match self.stopped.wait_for(who.pid, able, LATE) {
                Some(tid) => self.repair(who, Some(tid), findings),
                None => self.kill(who.pid, &findings, "it waits in the kernel"),
            }
            self.stopped.release(&BTreeSet::from([who.pid]));
        }
        let kept = |holder: &Holder| holder.action == Action::Kept;
        self.receipt.complete &= !self.receipt.holders.iter().any(kept);
        self.receipt.took = self.began.elapsed();
        let _ = receipts.send(Ok(std::mem::take(&mut self.receipt)));
        self.stopped.release_all();
    }

    /// Calls that were decided before and are still being made cannot be taken back: their processes end.
    fn end_calls(&mut self, stuck: &[u32]) {
        for tid in stuck {
            let Ok(identity) = caller::identity(&self.gate.view, *tid) else { continue };
            let finding = Finding::vague(Held::Call, "a call that takes long");
            self.kill(identity.pid, &[finding], "it was decided before the change");
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
                None => self.late.push((who, findings)),
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
                    empty(socket)
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

/// Throws away what a socket would receive.
fn empty(socket: &OwnedFd) -> Result<Action> {
    super::flight::empty(socket.as_fd()).map(|()| Action::ShutDown)
}

/// Ends a connection; a stream of TCP by a reset.
fn end_connection(socket: &OwnedFd) -> Result<Action> {
    use rustix::net::{AddressFamily, sockopt};
    let is_unix = sockopt::socket_domain(socket)? == AddressFamily::UNIX;
    if is_unix {
        return empty(socket);
    }
    if sockopt::socket_type(socket)? == rustix::net::SocketType::STREAM {
        disconnect(socket.as_fd())?;
        return Ok(Action::Reset);
    }
    // Wakes whoever waits for a datagram.
    let _ = rustix::net::shutdown(socket, rustix::net::Shutdown::Both);
    disconnect(socket.as_fd())?;
    Ok(Action::ShutDown)
}

/// Where the files lie that one list of rules speaks of and the other does not, or otherwise.
fn changed(old: &[FileRule], new: &[FileRule]) -> Vec<PathBuf> {
    let key = |rule: &FileRule| (rule.path.clone(), rule.sid);
    let [old, new] = [old, new].map(|rules| rules.iter().map(key).collect::<HashSet<_>>());
    let mut stems: Vec<_> =
        old.symmetric_difference(&new).map(|(path, _)| stem_dir(path)).collect();
    stems.sort();
    stems.dedup_by(|inner, outer| inner.starts_with(outer));
    stems
}

/// Labels anew the files below `stems` whose rule has changed, also those that nobody opens again: a file has the new
/// label by all its names, and is known by its number. Whether all were found.
fn relabel(gate: &Gate, stems: &[PathBuf]) -> bool {
    let mut left = MOST_FILES;
    stems.iter().all(|stem| relabel_below(gate, stem, &mut left))
}

fn relabel_below(gate: &Gate, at: &Path, left: &mut usize) -> bool {
    if *left == 0 {
        return false;
    }
    *left -= 1;
    let Ok(stat) = rustix::fs::lstat(at) else { return true };
    let kind = FileType::from_raw_mode(stat.st_mode);
    if gate.labels.has_changed(at, file_kind(kind)) {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::open(at, flags, Mode::empty());
        if let Ok(status) = opened.and_then(|file| Status::of(file.as_fd())) {
            gate.labels.relabel(&status, at, kind != FileType::Directory && stat.st_nlink > 1);
        }
    }
    // What the kernel makes up as it is looked at has one name and no end.
    if kind != FileType::Directory || at == Path::new("/proc") {
        return true;
    }
    let Ok(entries) = std::fs::read_dir(at) else { return true };
    entries.flatten().all(|entry| relabel_below(gate, &entry.path(), left))
}
