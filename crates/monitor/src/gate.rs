//! The gate: receives every trapped call, has it decided, and answers it.
//!
//! One thread leads: it waits for a call, handles it and answers, on the caller's own CPU. A watchdog makes
//! another thread lead when a call takes long (a FIFO without a peer, a file system that hangs), so that no
//! call waits for an unrelated one.

use crate::{
    audit::Audit,
    caller::{self, Caller, Identity},
    file::{self, Beyond, Claims, KnownPaths, Plantings},
    label::Labels,
    lacking::Lacking,
    manager::Manager,
    passage::Passage,
    plan::{Plan, Rights},
    process::{self, Processes},
    revoke::Lingering,
    settled::Settled,
    socket,
    sys::{
        notify::{Listener, Notification},
        thread,
    },
    waits::Waits,
};
use arc_swap::ArcSwap;
use flask::SecurityServer;
use rustix::{
    fs::{Mode, OFlags},
    io::{Errno, Result},
};
use std::{
    os::fd::{BorrowedFd, OwnedFd},
    panic::AssertUnwindSafe,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use syscalls::Sysno;

/// `PROC_SUPER_MAGIC` of `linux/magic.h`.
const PROC_MAGIC: i64 = 0x9fa0;
/// The inode number of the root of every proc file system (`PROC_ROOT_INO`).
const PROC_ROOT: u64 = 1;
/// A call that takes longer hands the lead to another thread.
const SLOW: Duration = Duration::from_millis(20);
/// How often a process may lose its parent while its ancestors are looked at.
const MOST_LOST: u32 = 16;
/// Threads that slow calls can hold at once; beyond, calls wait.
const MOST_LEADERS: u64 = 256;

/// The monitor's eyes on the sandbox.
#[derive(Debug)]
pub(crate) struct View {
    /// The proc file system that shows the monitor's PIDs.
    pub(crate) proc: OwnedFd,
    /// `/proc/self/fd` of the monitor, there.
    pub(crate) own_fds: OwnedFd,
    /// The sandbox's first process, which is ours.
    init: u32,
}

impl View {
    pub(crate) fn new(proc: OwnedFd, init: u32) -> Result<Self> {
        let own_fds = rustix::fs::openat(
            &proc,
            "self/fd",
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        Ok(Self { proc, own_fds, init })
    }

    pub(crate) fn is_proc(&self, fd: BorrowedFd<'_>) -> Result<bool> {
        Ok(rustix::fs::fstatfs(fd)?.f_type as i64 == PROC_MAGIC)
    }

    pub(crate) fn is_proc_root(&self, fd: BorrowedFd<'_>) -> Result<bool> {
        Ok(self.is_proc(fd)? && rustix::fs::fstat(fd)?.st_ino == PROC_ROOT)
    }

    /// The monitor's PID of the process that the sandbox calls `inner`.
    pub(crate) fn outer_pid(&self, inner: u32, asker: &Identity) -> Result<u32> {
        if inner == asker.inner_pid {
            return Ok(asker.pid);
        }
        if asker.inner_pid == asker.pid {
            return Ok(inner);
        }
        // All of the sandbox share one PID namespace: none of them can make another.
        let same = |it: &Identity| it.inner_pid == inner && self.is_inside(it.pid);
        let pids = self.pids()?;
        let mut processes = pids.iter().filter_map(|pid| caller::identity(self, *pid).ok());
        match processes.find(same) {
            Some(process) => Ok(process.pid),
            None => self.process_of_thread(inner, &pids).ok_or(Errno::SRCH),
        }
    }

    /// Whether `inner`, a PID that nothing in the sandbox has, can only mean a process outside: there is one, and the
    /// sandbox has not come to that number. The kernel gives numbers out in order, and few processes newer than the
    /// newest can have ended already.
    pub(crate) fn is_outsider(&self, inner: u32) -> bool {
        const ENDED: u32 = 256;
        let inside = self.pids().unwrap_or_default().into_iter().filter(|pid| self.is_inside(*pid));
        let numbers = inside.filter_map(|pid| Some(caller::identity(self, pid).ok()?.inner_pid));
        inner > numbers.max().unwrap_or(0) + ENDED && caller::identity(self, inner).is_ok()
    }

    /// The process, among `pids`, with a thread that the sandbox calls `inner`.
    fn process_of_thread(&self, inner: u32, pids: &[u32]) -> Option<u32> {
        let has_thread = |pid: &&u32| {
            let threads = self.numbers(&format!("{pid}/task")).unwrap_or_default();
            let mut threads =
                threads.into_iter().filter_map(|tid| caller::identity(self, tid).ok());
            threads.any(|thread| thread.inner_tid == inner)
        };
        pids.iter().filter(|pid| self.is_inside(**pid)).find(has_thread).copied()
    }

    /// Every process that the monitor sees.
    pub(crate) fn pids(&self) -> Result<Vec<u32>> {
        self.numbers(".")
    }

    fn numbers(&self, directory: &str) -> Result<Vec<u32>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&self.proc, directory, flags, Mode::empty())?;
        let entries = rustix::fs::Dir::new(fd)?;
        let number = |entry: rustix::fs::DirEntry| entry.file_name().to_str().ok()?.parse().ok();
        Ok(entries.filter_map(|entry| number(entry.ok()?)).collect())
    }

    /// The processes of the sandbox: all that descend from its first, and those left to the monitor.
    pub(crate) fn inside(&self) -> Result<Vec<u32>> {
        let own = std::process::id();
        let mut found = Vec::new();
        let mut parents = vec![self.init, own];
        while let Some(parent) = parents.pop() {
            // Orphans come here and go: the kernel's list leaves others out when one ends while it is read.
            let changes = parent == self.init || parent == own;
            let Some(children) = self.children_twice(parent, changes)? else {
                return Ok(self.pids()?.into_iter().filter(|pid| self.is_inside(*pid)).collect());
            };
            for child in children {
                if child != self.init && !found.contains(&child) {
                    found.push(child);
                    parents.push(child);
                }
            }
        }
        Ok(found)
    }

    /// The children of a process; of one whose children change, when two looks agree.
    fn children_twice(&self, pid: u32, changes: bool) -> Result<Option<Vec<u32>>> {
        const MOST: u32 = 4;
        let now = || none_if_gone(self.children(pid));
        let mut children = now()?;
        for _ in 0..MOST {
            if !changes {
                return Ok(Some(children));
            }
            let again = now()?;
            if again == children {
                return Ok(Some(children));
            }
            children = again;
        }
        Ok(None)
    }

    /// The threads of a process; none if it has ended.
    pub(crate) fn threads(&self, pid: u32) -> Result<Vec<u32>> {
        none_if_gone(self.numbers(&format!("{pid}/task")))
    }

    /// The children of a process, as far as they still run.
    pub(crate) fn children(&self, pid: u32) -> Result<Vec<u32>> {
        let of = |pid: &u32| caller::identity(self, *pid).map(|it| it.parent);
        let list = |tid: &str| caller::read_text(self, &format!("{pid}/task/{tid}/children"));
        match list(&pid.to_string()) {
            // It has ended. The others are not looked at for that: there can be thousands.
            Err(Errno::NOENT) if caller::identity(self, pid).is_err() => Err(Errno::NOENT),
            // The kernel may be built without these files (CONFIG_PROC_CHILDREN).
            Err(Errno::NOENT) => {
                Ok(self.pids()?.into_iter().filter(|it| of(it) == Ok(pid)).collect())
            }
            Err(error) => Err(error),
            Ok(first) => {
                let mut text = first;
                for tid in self.numbers(&format!("{pid}/task"))? {
                    if tid != pid {
                        text.push_str(&none_if_gone(list(&tid.to_string()))?);
                    }
                }
                Ok(text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect())
            }
        }
    }

    /// Whether a process belongs to the sandbox: it came from the command, and through its filter. Orphans go to its
    /// first process, or to the monitor.
    pub(crate) fn is_inside(&self, pid: u32) -> bool {
        let mut at = pid;
        let mut lost = 0;
        while at > 1 && lost < MOST_LOST {
            if at == self.init || at == std::process::id() {
                return pid != at && pid != self.init;
            }
            match caller::identity(self, at) {
                Ok(identity) => at = identity.parent,
                Err(_) if at == pid => return false,
                // A parent that has ended meanwhile has left its children to another.
                Err(_) => (at, lost) = (pid, lost + 1),
            }
        }
        false
    }
}

impl View {
    /// Whether a process certainly does not belong to the sandbox, nor is the monitor: its ancestors were followed to
    /// the end without meeting either. Says no when in doubt.
    pub(crate) fn is_outside(&self, pid: u32) -> bool {
        (0..MOST_LOST).find_map(|_| self.ancestry_is_outside(pid)).unwrap_or(false)
    }

    /// `None` if an ancestor ended while it was looked at.
    fn ancestry_is_outside(&self, pid: u32) -> Option<bool> {
        let parent = |pid: u32| Some(caller::identity(self, pid).ok()?.parent);
        let mut at = pid;
        loop {
            if at == self.init || at == std::process::id() {
                return Some(false);
            }
            if at <= 1 {
                return Some(true);
            }
            let next = parent(at)?;
            // A parent that ended after it was named leaves its number to others, and its child to another parent.
            if next > 1 && (parent(next).is_none() || parent(at) != Some(next)) {
                return None;
            }
            at = next;
        }
    }
}

/// Of what has ended nothing is left to be found. What cannot be looked at for another reason is an error: it may be there.
pub(crate) fn none_if_gone<T: Default>(found: Result<T>) -> Result<T> {
    match found {
        Err(Errno::NOENT | Errno::SRCH) => Ok(T::default()),
        found => found,
    }
}

/// How a trapped call ends.
#[derive(Debug)]
pub(crate) enum Answer {
    /// The program makes the call itself. Whoever gives this answer says why that is sound.
    Continue,
    /// The call has been made on the program's behalf, and returned this.
    Return(i64),
    /// The call has been made on the program's behalf, and opened this.
    Open { fd: OwnedFd, cloexec: bool },
    /// The call is answered by another thread.
    Elsewhere,
    /// The call has left the way through the gate already, and comes again.
    Again,
}

/// What an object manager makes of a call: an answer, or the errno that the program sees.
pub(crate) type Outcome = std::result::Result<Answer, Errno>;

/// What a policy comes to, within what the kernel was told at the start.
#[derive(Debug)]
pub(crate) struct Bearing {
    pub(crate) plan: Plan,
    /// The same for the first domain alone, which the envelope is made for.
    pub(crate) first: Plan,
    /// Rights that the envelope refuses exactly where policy does.
    pub(crate) exact: Rights,
    /// The same as long as every process is in the first domain.
    pub(crate) exact_for_first: Rights,
    /// Labels of files that the envelope lets nobody read, as it could not tell them from others that are refused.
    pub(crate) withheld: Vec<flask::Sid>,
    /// The labelling rules.
    pub(crate) files: Vec<flask::FileRule>,
}

impl Bearing {
    /// Whether the envelope does not let the program itself read what has this label, though policy may.
    pub(crate) fn opens(&self, label: flask::Sid, class: flask::Class) -> bool {
        (class == flask::Class::Dir && self.first.listed.contains(&label))
            || self.withheld.contains(&label)
    }
}

/// Everything that deciding a call takes.
pub(crate) struct Gate {
    pub(crate) listener: Listener,
    pub(crate) view: View,
    pub(crate) server: Arc<dyn SecurityServer>,
    pub(crate) files: Manager,
    pub(crate) processes: Manager,
    pub(crate) sockets: Manager,
    pub(crate) labels: Labels,
    pub(crate) paths: KnownPaths,
    /// Names that make a directory a repository.
    pub(crate) claims: Claims,
    /// What a program outside may execute later.
    pub(crate) plantings: Plantings,
    pub(crate) subjects: Processes,
    pub(crate) endpoints: socket::Endpoints,
    pub(crate) peers: socket::Peers,
    pub(crate) audit: Arc<Audit>,
    /// What the policy in force comes to on this machine.
    pub(crate) bearing: ArcSwap<Bearing>,
    /// What the kernel was told at the start.
    pub(crate) settled: Settled,
    /// What the view keeps back: what is not found in it is explained.
    pub(crate) beyond: Beyond,
    /// The IDs that every on-behalf operation is done with: the program's, unless it changed them.
    pub(crate) ids: (u32, u32),
    /// Some domain has a capability that lets it change its IDs.
    pub(crate) ids_change: bool,
    /// What the kernel refuses root for want of a capability.
    pub(crate) lacking: Lacking,
    /// The capabilities that the sandbox may have: bit n is capability n.
    pub(crate) capabilities: u64,
    /// Nothing is decided: the base that measurements compare with.
    pub(crate) off: bool,
    pub(crate) lead: Lead,
    /// The way in, for calls and for changes of policy.
    pub(crate) passage: Passage,
    /// The last change of policy. Held by whoever makes one.
    pub(crate) changing: Mutex<Option<Lingering>>,
    /// What a descriptor is replaced by that policy has taken back.
    pub(crate) refusal: OwnedFd,
    /// Calls on the program's behalf that wait for a peer.
    pub(crate) waits: Waits,
}

/// Who leads, and what the leader is at.
#[derive(Debug, Default)]
pub(crate) struct Lead {
    /// Grows with every change of leader.
    term: AtomicU64,
    /// The call that the leader handles; 0 when it waits.
    at: AtomicU64,
    /// Threads that lead or finish what they began as leader.
    threads: AtomicU64,
}

impl Gate {
    /// Serves until no process of the sandbox is left.
    pub(crate) fn serve(self: Arc<Self>) {
        self.listener.hand_over_on_one_cpu();
        Self::new_leader(&self);
        let mut last = 0;
        while self.lead.threads.load(Ordering::Acquire) > 0 {
            std::thread::sleep(SLOW);
            self.waits.interrupt(&self);
            let at = self.lead.at.load(Ordering::Acquire);
            let slow = at != 0 && at == last;
            if slow && self.lead.threads.load(Ordering::Acquire) < MOST_LEADERS {
                Self::new_leader(&self);
            }
            last = at;
        }
    }

    /// Lets calls in again after a change of policy, and has those made that came meanwhile: by a leader, as any other.
    pub(crate) fn reopen(gate: &Arc<Self>) {
        if gate.passage.open() {
            Self::new_leader(gate);
        }
    }

    fn new_leader(gate: &Arc<Self>) {
        let term = gate.lead.term.fetch_add(1, Ordering::AcqRel) + 1;
        gate.lead.at.store(0, Ordering::Release);
        gate.lead.threads.fetch_add(1, Ordering::AcqRel);
        let leader = Arc::clone(gate);
        let lead = move || {
            leader.lead_through(term);
            leader.lead.threads.fetch_sub(1, Ordering::AcqRel);
        };
        let thread = std::thread::Builder::new().name("gate".into()).stack_size(256 << 10);
        if thread.spawn(lead).is_err() {
            gate.lead.threads.fetch_sub(1, Ordering::AcqRel);
        }
    }

    fn lead_through(&self, term: u64) {
        // Working directory and file mode creation mask are this thread's own from here on.
        let ready = thread::own_file_system_state().is_ok()
            && rustix::process::fchdir(&self.view.own_fds).is_ok();
        if !ready {
            return;
        }
        while self.lead.term.load(Ordering::Acquire) == term {
            if let Some(call) = self.passage.next_held() {
                // It has waited for long: another thread may have the number of its caller by now.
                if self.listener.is_valid(call.id) {
                    self.admit(&call);
                }
                continue;
            }
            match self.listener.receive() {
                Ok(Some(call)) => self.admit(&call),
                Ok(None) => {}
                Err(Errno::NOENT) if !self.is_deserted() => {}
                Err(_) => return,
            }
        }
        // Those that came while this thread held the sandbox still, and another took the lead.
        while let Some(call) = self.passage.next_held() {
            self.admit(&call);
        }
    }

    /// Decisions asked for so far, by object manager.
    pub(crate) fn decisions(&self) -> Vec<(&'static str, avc::Stats)> {
        let managers =
            [("file", &self.files), ("process", &self.processes), ("socket", &self.sockets)];
        managers.map(|(name, manager)| (name, manager.stats())).to_vec()
    }

    /// Whether the last process of the sandbox is gone.
    fn is_deserted(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, poll};
        let mut fds = [PollFd::new(&self.listener, PollFlags::IN)];
        let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut fds, Some(&now)).is_err() || fds[0].revents().contains(PollFlags::HUP)
    }

    /// Rights that the kernel refuses exactly where policy does: the program may make such calls itself.
    pub(crate) fn exact(&self) -> Rights {
        let bearing = self.bearing.load();
        if self.subjects.are_alike() { bearing.exact_for_first } else { bearing.exact }
    }

    /// Handles a call, unless it is kept for the end of a change of policy.
    pub(crate) fn admit(&self, call: &Notification) {
        if self.passage.enter(call) {
            self.handle(call);
        }
    }

    /// What was answered before `seqno` holds no longer.
    pub(crate) fn reset(&self, seqno: flask::Seqno) {
        for manager in [&self.files, &self.processes, &self.sockets] {
            manager.reset(seqno);
        }
    }

    fn handle(&self, call: &Notification) {
        // IDs of notifications are never zero for long: they start at random and grow.
        let id = call.id.max(1);
        self.lead.at.store(id, Ordering::Release);
        let outcome = std::panic::catch_unwind(AssertUnwindSafe(|| self.decide(call)));
        let outcome = outcome.unwrap_or(Err(Errno::PERM));
        let comes_again = matches!(outcome, Ok(Answer::Again));
        self.answer(call, outcome);
        if !comes_again {
            self.passage.leave(call.id);
        }
        let _ = self.lead.at.compare_exchange(id, 0, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Answers a call. Errors mean that the caller is gone, which is no concern of ours.
    pub(crate) fn answer(&self, call: &Notification, outcome: Outcome) {
        let _ = match outcome {
            Ok(Answer::Continue) => self.listener.send_continue(call.id),
            Ok(Answer::Return(value)) => self.listener.send_result(call.id, Ok(value)),
            Ok(Answer::Open { fd, cloexec }) => {
                use std::os::fd::AsFd;
                let sent = self.listener.send_fd(call.id, fd.as_fd(), cloexec);
                // The program's table of descriptors is full, or it is gone.
                if let Err(error) = sent {
                    self.listener.send_result(call.id, Err(error))
                } else {
                    sent
                }
            }
            Ok(Answer::Elsewhere | Answer::Again) => Ok(()),
            Err(error) => self.listener.send_result(call.id, Err(error)),
        };
    }

    fn decide(&self, call: &Notification) -> Outcome {
        if self.off {
            // Soundness is not asked for: the whole run was started without decisions.
            return Ok(Answer::Continue);
        }
        let (who, cwd) = (std::cell::OnceCell::new(), std::cell::OnceCell::new());
        let caller = Caller { view: &self.view, call, who: &who, cwd: &cwd };
        let number = Sysno::new(call.nr as usize).ok_or(Errno::NOSYS)?;
        let ssid = self.subjects.sid(self, call)?;
        let asker = Asker { gate: self, caller, ssid, number };
        asker.take_capabilities()?;
        self.lacking.watch(number, || Self::dispatch(asker))
    }

    fn dispatch(asker: Asker<'_>) -> Outcome {
        if let Some(outcome) = file::decide(asker) {
            return outcome;
        }
        if let Some(outcome) = process::decide(asker) {
            return outcome;
        }
        socket::decide(asker).unwrap_or(Err(Errno::NOSYS))
    }
}

/// A call with its subject.
#[derive(Clone, Copy)]
pub(crate) struct Asker<'a> {
    pub(crate) gate: &'a Gate,
    pub(crate) caller: Caller<'a>,
    pub(crate) ssid: flask::Sid,
    pub(crate) number: Sysno,
}
