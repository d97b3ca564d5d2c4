//! A change of policy from its beginning to its receipt.

use super::{
    ApplyError,
    held::{Comparison, Finding, Subject},
    inject::Injector,
    receipt::{Action, Held, Holder, Manner, Receipt},
    stop::Stopped,
};
use crate::{
    caller,
    gate::{Bearing, Gate},
    label::{Status, file_kind},
    plan::{Plan, Rights},
    process,
    sys::{memory::sealed_nothing, ptrace, socket::disconnect, thread},
};
use labelling::{PathRules, stem_dir};
use rustix::{
    fs::{FileType, Mode, OFlags},
    io::{Errno, Result},
    process::{Pid, Signal},
};
use std::{
    collections::BTreeSet,
    os::fd::{AsFd, OwnedFd},
    path::Path,
    sync::mpsc::Sender,
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
    /// What a revoked descriptor is replaced by.
    refusal: OwnedFd,
    /// What revoked memory is replaced by.
    nothing: OwnedFd,
    /// Processes that wait in the kernel and hold something, with what they hold.
    late: Vec<(Subject, Vec<Finding>)>,
    killed: BTreeSet<u32>,
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
        let refusal = refusal(gate)?;
        let nothing = sealed_nothing()?;
        let exact = if plan.same_files(&old.plan) { old.exact } else { Rights::empty() };
        let seqno = gate.server.seqno()?;
        let stuck = gate.passage.close(SLOW_CALL);
        gate.labels.change(rules);
        gate.endpoints.change(&labels);
        gate.bearing.store(std::sync::Arc::new(Bearing { plan, exact }));
        gate.paths.forget();
        gate.reset(seqno);
        let all_names = pin(gate, &labels.files);
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
            refusal,
            nothing,
            late: Vec::new(),
            killed: BTreeSet::new(),
        };
        change.end_calls(&stuck);
        Ok(change)
    }

    /// Takes back what is held, and lets the sandbox go on.
    fn finish(mut self, receipts: &Sender<Outcome>) {
        let processes = self.stopped.processes();
        self.receipt.processes = processes.len() as u32;
        for (pid, threads) in &processes {
            self.look_into(*pid, threads.first().copied());
        }
        for pid in std::mem::take(&mut self.stopped.refused) {
            self.look_into_refused(pid);
        }
        let late: BTreeSet<u32> = self.late.iter().map(|(who, _)| who.pid).collect();
        let early = processes.keys().copied().filter(|pid| !late.contains(pid)).collect();
        self.signal(&early);
        reopen(self.gate);
        self.stopped.release(&early);
        for (who, findings) in std::mem::take(&mut self.late) {
            match self.stopped.wait_for(who.pid, LATE) {
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
            let finding =
                Finding::new(Held::Call, "a call that takes long", flask::AccessVector::ALL);
            self.kill(identity.pid, &[finding], "it was decided before the change");
        }
    }

    fn look_into(&mut self, pid: u32, stopped: Option<u32>) {
        let Ok(ssid) = process::label_of(self.gate, pid) else {
            // It has no label yet, and has done nothing that needs one; what it inherited, its parent holds, too.
            return self.look_as(pid, flask::InitialSid::Unlabeled.into(), stopped);
        };
        self.look_as(pid, ssid, stopped);
    }

    fn look_as(&mut self, pid: u32, ssid: flask::Sid, stopped: Option<u32>) {
        let who = |tid| Subject { pid, tid, ssid };
        let tids = self.gate.view.threads(pid).unwrap_or_default();
        let mut tables: Vec<u32> = Vec::new();
        for tid in &tids {
            if !tables.iter().any(|other| thread::same_descriptors(*other, *tid)) {
                tables.push(*tid);
            }
        }
        for (index, tid) in tables.iter().enumerate() {
            let mut findings = match self.comparison.descriptors(who(*tid)) {
                Ok(findings) => findings,
                Err(Errno::NOENT | Errno::SRCH) => continue,
                Err(error) => return self.unknown(pid, error),
            };
            if index == 0 {
                match self.comparison.mappings(who(*tid)) {
                    Ok(maps) => findings.extend(maps),
                    Err(Errno::NOENT | Errno::SRCH) => {}
                    Err(error) => return self.unknown(pid, error),
                }
            }
            // Calls in its place are made by a thread that uses this very table.
            let own = stopped.filter(|it| *it == *tid || tables.len() == 1);
            let own = own.or_else(|| (tables.len() > 1).then_some(*tid));
            match own {
                _ if findings.is_empty() => {}
                Some(own) => self.repair(who(*tid), Some(own), findings),
                None => self.late.push((who(*tid), findings)),
            }
        }
    }

    /// A process that somebody else traces cannot be repaired, or even stopped.
    fn look_into_refused(&mut self, pid: u32) {
        let ssid = process::label_of(self.gate, pid);
        let who =
            Subject { pid, tid: pid, ssid: ssid.unwrap_or(flask::InitialSid::Unlabeled.into()) };
        let held = self.comparison.descriptors(who).and_then(|mut findings| {
            findings.extend(self.comparison.mappings(who)?);
            Ok(findings)
        });
        match held {
            Ok(findings) if findings.is_empty() => {}
            Ok(findings) => self.kill(pid, &findings, "another process traces it"),
            Err(error) => self.unknown(pid, error),
        }
    }

    fn unknown(&mut self, pid: u32, error: Errno) {
        let finding = Finding::new(Held::Unknown, "unknown", flask::AccessVector::ALL);
        self.kill(pid, &[finding], &format!("it cannot be looked into: {error}"));
    }

    /// Repairs what a process holds, through its stopped thread `tid`; what cannot be repaired ends with its process.
    fn repair(&mut self, who: Subject, tid: Option<u32>, findings: Vec<Finding>) {
        if self.manner == Manner::Kill {
            return self.kill(who.pid, &findings, "");
        }
        let mut injector: Option<Injector<'a>> = None;
        let mut replaced: Option<i32> = None;
        let mut nothing: Option<i32> = None;
        let mut failed: Vec<(Finding, Errno)> = Vec::new();
        for finding in findings {
            let needs_thread = finding.socket.is_none();
            if needs_thread && injector.is_none() {
                let made = tid.ok_or(Errno::SRCH);
                match made.and_then(|tid| Injector::new(self.gate, &mut self.stopped, tid)) {
                    Ok(made) => injector = Some(made),
                    Err(error) => {
                        failed.push((finding, error));
                        continue;
                    }
                }
            }
            let done = match (&finding.held, &finding.socket, &injector) {
                (Held::InFlight(_), Some(socket), _) => {
                    super::flight::empty(socket.as_fd()).map(|()| Action::ShutDown)
                }
                (_, Some(socket), _) => end_connection(socket),
                (Held::Descriptor(fd), _, Some(injector)) => {
                    let refusal = self.refusal.as_fd();
                    replace(injector, refusal, &mut replaced, *fd, finding.cloexec)
                }
                (Held::Mapping(start, end), _, Some(injector)) => {
                    let nothing = nothing_in(injector, self.nothing.as_fd(), &mut nothing);
                    nothing.and_then(|fd| unmap(injector, fd, *start, *end, finding.protection))
                }
                (Held::Watch(fd, number), _, Some(injector)) => {
                    let args = [*fd as u64, *number as u64, 0, 0, 0, 0];
                    injector.call(Sysno::inotify_rm_watch, args).map(|_| Action::Removed)
                }
                _ => Err(Errno::NOTSUP),
            };
            match done {
                Ok(action) => self.note(who.pid, &finding, action, ""),
                Err(error) => failed.push((finding, error)),
            }
        }
        if let (Some(fd), Some(injector)) = (nothing, &injector) {
            let _ = injector.call(Sysno::close, [fd as u64, 0, 0, 0, 0, 0]);
        }
        if let Some((_, error)) = failed.first() {
            let why = format!("it could not be repaired: {error}");
            let failed: Vec<Finding> = failed.into_iter().map(|(finding, _)| finding).collect();
            self.kill(who.pid, &failed, &why);
        }
    }

    fn note(&mut self, pid: u32, finding: &Finding, action: Action, reason: &str) {
        let comm = caller::identity(&self.gate.view, pid).map(|it| it.comm).unwrap_or_default();
        self.receipt.holders.push(Holder {
            pid,
            comm,
            held: finding.held,
            object: finding.object.clone(),
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

/// A file that the monitor can open, and that nobody in the sandbox can read: the kernel asks, at each read of
/// `/proc/PID/io`, whether the reader might trace the process, and says `EACCES`.
fn refusal(gate: &Gate) -> Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    rustix::fs::openat(&gate.view.proc, "self/io", flags, Mode::empty())
}

/// Puts the refusal in the place of descriptor `fd`. The first comes from the monitor, the others are duplicates of it.
fn replace(
    injector: &Injector<'_>,
    refusal: std::os::fd::BorrowedFd<'_>,
    first: &mut Option<i32>,
    fd: i32,
    cloexec: bool,
) -> Result<Action> {
    match *first {
        None => {
            injector.replace(refusal, fd, cloexec)?;
            *first = Some(fd);
        }
        Some(first) => {
            let flags = if cloexec { libc::O_CLOEXEC as u64 } else { 0 };
            injector.call(Sysno::dup3, [first as u64, fd as u64, flags, 0, 0, 0])?;
        }
    }
    Ok(Action::Replaced)
}

/// The number that a file without content has in the process.
fn nothing_in(
    injector: &Injector<'_>,
    nothing: std::os::fd::BorrowedFd<'_>,
    known: &mut Option<i32>,
) -> Result<u64> {
    let fd = match *known {
        Some(fd) => fd,
        None => *known.insert(injector.give(nothing)?),
    };
    Ok(fd as u64)
}

/// Puts pages beyond the end of a file in the place of a mapping: who touches them gets `SIGBUS`.
fn unmap(
    injector: &Injector<'_>,
    nothing: u64,
    start: u64,
    end: u64,
    protection: u64,
) -> Result<Action> {
    let flags = (libc::MAP_SHARED | libc::MAP_FIXED) as u64;
    injector.call(Sysno::mmap, [start, end - start, protection, flags, nothing, 0])?;
    Ok(Action::Unmapped)
}

/// Ends a connection; a stream of TCP by a reset.
fn end_connection(socket: &OwnedFd) -> Result<Action> {
    use rustix::net::{AddressFamily, sockopt};
    let is_unix = sockopt::socket_domain(socket)? == AddressFamily::UNIX;
    if is_unix {
        super::flight::empty(socket.as_fd())?;
        return Ok(Action::ShutDown);
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

/// Labels files with several names that a new rule is about, so that it holds for them by all their names; whether all
/// were found.
fn pin(gate: &Gate, rules: &[flask::FileRule]) -> bool {
    let mut left = MOST_FILES;
    let mut stems: Vec<_> = rules
        .iter()
        .filter(|rule| gate.labels.is_new(rule))
        .map(|rule| stem_dir(&rule.path))
        .collect();
    stems.sort();
    stems.dedup_by(|inner, outer| inner.starts_with(outer));
    stems.iter().all(|stem| pin_below(gate, stem, &mut left))
}

fn pin_below(gate: &Gate, directory: &Path, left: &mut usize) -> bool {
    let Ok(entries) = std::fs::read_dir(directory) else { return true };
    for entry in entries.flatten() {
        if *left == 0 {
            return false;
        }
        *left -= 1;
        let path = entry.path();
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() {
            let is_mount_of_processes = directory == Path::new("/") && path == Path::new("/proc");
            if !is_mount_of_processes && !pin_below(gate, &path, left) {
                return false;
            }
            continue;
        }
        let names = || rustix::fs::lstat(&path).map(|stat| stat.st_nlink);
        let is_about = gate.labels.has_changed(&path, file_kind(FileType::RegularFile));
        if kind.is_file() && is_about && names().is_ok_and(|names| names > 1) {
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let opened = rustix::fs::open(&path, flags, Mode::empty());
            if let Ok(status) = opened.and_then(|file| Status::of(file.as_fd())) {
                gate.labels.pin(&status, &path);
            }
        }
    }
    true
}
