//! The gate: receives every trapped call, has it decided, and answers it.
//!
//! One thread leads: it waits for a call, handles it and answers, on the caller's own CPU. A watchdog makes
//! another thread lead when a call takes long (a FIFO without a peer, a file system that hangs), so that no
//! call waits for an unrelated one.

use crate::{
    audit::Audit,
    caller::Caller,
    file::{self, Beyond, Claims, KnownPaths, Plantings},
    label::Labels,
    lacking::Lacking,
    manager::Manager,
    passage::Passage,
    process::{self, Processes},
    revoke::Lingering,
    socket,
    sys::{
        notify::{Listener, Notification},
        thread,
    },
    waits::Waits,
};
use arc_swap::ArcSwap;
use confine::{Exactness, Plan, Rights, Settled};
use flask::SecurityServer;
use proc::ProcessTree;
use rustix::io::Errno;
use std::{
    os::fd::OwnedFd,
    panic::AssertUnwindSafe,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use syscalls::Sysno;

/// A call that takes longer hands the lead to another thread.
const SLOW: Duration = Duration::from_millis(20);
/// Threads that slow calls can hold at once; beyond, calls wait.
const MOST_LEADERS: u64 = 256;

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
    /// Where the kernel refuses exactly what policy refuses.
    pub(crate) exactness: Exactness,
    /// The labelling rules.
    pub(crate) files: Vec<flask::FileRule>,
}

impl Bearing {
    /// Whether the envelope does not let the program itself read what has this label, though policy may.
    pub(crate) fn opens(&self, label: flask::Sid, class: flask::Class) -> bool {
        (class == flask::Class::Dir && self.first.listed.contains(&label))
            || self.exactness.withheld.contains(&label)
    }
}

/// Everything that deciding a call takes.
pub(crate) struct Gate {
    pub(crate) listener: Listener,
    pub(crate) view: ProcessTree,
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
        let exactness = &bearing.exactness;
        if self.subjects.are_alike() { exactness.first } else { exactness.all }
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
