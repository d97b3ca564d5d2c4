//! Who receives calls: one thread leads, and a watchdog makes another lead when a call takes long.

use crate::gate::Gate;
use rustix::io::Errno;
use std::{
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::Thread,
    time::Duration,
};

/// A call that takes longer hands the lead to another thread.
const SLOW: Duration = Duration::from_millis(20);
/// Threads that slow calls can hold at once; beyond, calls wait.
const MOST_LEADERS: u64 = 256;
/// The term of whoever never leads: the first is 1.
const NO_TERM: u64 = 0;
/// Looks without a call under way, after which the watchdog rests: a second.
const LOOKS: u32 = 50;
/// What is looked at now and then is looked at that often while nobody calls.
const REST: Duration = Duration::from_secs(1);

/// Who leads, and what the leader is at.
#[derive(Debug, Default)]
pub(crate) struct Lead {
    /// Grows with every change of leader. Whoever led before still finishes what it has received.
    term: AtomicU64,
    /// The call that the leader of this term handles; 0 when it waits.
    at: Mutex<u64>,
    /// Threads that lead or finish what they began as leader.
    threads: AtomicU64,
    watchdog: OnceLock<Thread>,
    /// The watchdog is to be woken by the next call.
    rests: AtomicBool,
    /// Calls wait for a leader, of whom there can be no more.
    is_missing: AtomicBool,
}

impl Lead {
    /// Whoever leads in `term` is at this call; what others are at keeps nobody waiting.
    pub(crate) fn begin(&self, term: u64, id: u64) {
        self.note(term, id);
        self.wake();
    }

    /// The leader of `term` waits for the next call.
    pub(crate) fn end(&self, term: u64) {
        self.note(term, 0);
    }

    fn note(&self, term: u64, id: u64) {
        let mut at = self.at();
        if self.term.load(Ordering::SeqCst) == term {
            *at = id;
        }
    }

    /// Begins a term, with no call under way.
    fn take(&self) -> u64 {
        let mut at = self.at();
        *at = 0;
        self.term.fetch_add(1, Ordering::SeqCst) + 1
    }

    fn at(&self) -> MutexGuard<'_, u64> {
        self.at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether no call is under way.
    fn is_idle(&self) -> bool {
        let leads = *self.at() == 0 && self.threads.load(Ordering::SeqCst) == 1;
        leads && !self.is_missing.load(Ordering::SeqCst)
    }

    /// The calling thread, the watchdog, waits for a call, and no longer than `most`.
    fn rest(&self, most: Duration) {
        self.rests.store(true, Ordering::SeqCst);
        // Who began a call before that wakes nobody.
        if self.is_idle() {
            std::thread::park_timeout(most);
        }
        self.rests.store(false, Ordering::SeqCst);
    }

    fn wake(&self) {
        if self.rests.load(Ordering::SeqCst)
            && let Some(watchdog) = self.watchdog.get()
        {
            watchdog.unpark();
        }
    }
}

impl Gate {
    /// Begins to receive calls; whether there is a thread that does.
    pub(crate) fn begin(gate: &Arc<Self>) -> bool {
        gate.state.targets.listener.hand_over_on_one_cpu();
        Self::new_leader(gate)
    }

    /// Watches the leader until no process of the sandbox is left.
    pub(crate) fn watch(self: Arc<Self>) {
        let _ = self.lead.watchdog.set(std::thread::current());
        let (mut last, mut idle) = (0, 0);
        while self.lead.threads.load(Ordering::Acquire) > 0 {
            if idle < LOOKS {
                std::thread::sleep(SLOW);
            } else {
                self.lead.rest(REST);
            }
            self.state
                .targets
                .quiesce
                .waits
                .interrupt(&self.state.targets.listener, &self.state.targets.tree);
            supervisor::end_held_up_execs(&self.state.targets.execs, &self.state.targets.tree);
            self.stand_in();
            self.state.labels.let_go();
            self.state.inside.stack.let_go_of_files();
            if let Some(kept) = &self.sockets.kept {
                kept.let_go_at_times(&self.state.targets.tree);
            }
            let at = *self.lead.at();
            let slow = at != 0 && at == last;
            if slow && self.lead.threads.load(Ordering::Acquire) < MOST_LEADERS {
                Self::new_leader(&self);
            }
            last = at;
            // Where sockets are kept, what nobody has any more is let go of soon.
            let rests = self.lead.is_idle() && self.sockets.kept.is_none();
            idle = if rests { idle + 1 } else { 0 };
        }
    }

    /// Lets calls in again after a change of policy, and has those made that came meanwhile: by a
    /// leader, as any other.
    pub(crate) fn reopen(gate: &Arc<Self>) {
        if gate.state.targets.quiesce.open() && !Self::new_leader(gate) {
            gate.lead.is_missing.store(true, Ordering::SeqCst);
            gate.lead.wake();
        }
    }

    /// Makes the calls that nobody leads through as there can be no more threads: the watchdog.
    fn stand_in(&self) {
        if self.lead.is_missing.swap(false, Ordering::SeqCst) && self.prepare_thread() {
            self.make_held(NO_TERM);
        }
    }

    /// Makes the calling thread one that makes calls for the program; whether it is.
    fn prepare_thread(&self) -> bool {
        let own_fds = &self.state.targets.tree.own_fds;
        self.state.on_behalf.fs_state.prepare_thread(own_fds).is_ok()
    }

    /// Whether there is to be a new leader; the one there is leads until it begins.
    fn new_leader(gate: &Arc<Self>) -> bool {
        gate.lead.threads.fetch_add(1, Ordering::AcqRel);
        let leader = Arc::clone(gate);
        let lead = move || {
            if leader.prepare_thread() {
                leader.lead_through(leader.lead.take());
            }
            leader.lead.threads.fetch_sub(1, Ordering::AcqRel);
            leader.lead.wake();
        };
        let thread = std::thread::Builder::new().name("gate".into()).stack_size(256 << 10);
        let is_made = thread.spawn(lead).is_ok();
        if !is_made {
            gate.lead.threads.fetch_sub(1, Ordering::AcqRel);
        }
        is_made
    }

    fn lead_through(&self, term: u64) {
        while self.lead.term.load(Ordering::Acquire) == term {
            if let Some(call) = self.state.targets.quiesce.next_held() {
                // It has waited for long: another thread may have the number of its caller by now.
                if self.state.targets.listener.is_valid(call.id) {
                    self.admit(term, &call);
                }
                continue;
            }
            match self.state.targets.listener.receive() {
                Ok(Some(call)) => self.admit(term, &call),
                Ok(None) => {}
                Err(Errno::NOENT) if !self.is_deserted() => {}
                Err(_) => return,
            }
        }
        self.make_held(term);
    }

    /// Makes calls that came while this thread held the sandbox still, and another took the lead.
    fn make_held(&self, term: u64) {
        while let Some(call) = self.state.targets.quiesce.next_held() {
            self.admit(term, &call);
        }
    }

    /// Whether the last process of the sandbox is gone.
    fn is_deserted(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, poll};
        let mut fds = [PollFd::new(&self.state.targets.listener, PollFlags::IN)];
        let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut fds, Some(&now)).is_err() || fds[0].revents().contains(PollFlags::HUP)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn a_call_wakes_the_watchdog_and_one_under_way_keeps_it_awake() {
        const LONG: Duration = Duration::from_secs(3600);
        let lead = Arc::new(Lead { threads: AtomicU64::new(1), ..Lead::default() });
        let term = lead.take();
        lead.begin(term, 1);
        let resting = Arc::clone(&lead);
        let (woken, wakes) = channel();
        std::thread::spawn(move || {
            let _ = resting.watchdog.set(std::thread::current());
            resting.rest(LONG);
            woken.send("kept awake").unwrap();
            resting.end(term);
            resting.rest(LONG);
            woken.send("woken").unwrap();
        });
        let next = || wakes.recv_timeout(Duration::from_secs(60));
        assert_eq!(next(), Ok("kept awake"));
        while !lead.rests.load(Ordering::SeqCst) || !lead.is_idle() {
            std::thread::yield_now();
        }
        lead.begin(term, 2);
        assert_eq!(next(), Ok("woken"));
    }

    #[test]
    fn what_a_former_leader_is_at_hides_nothing_that_the_leader_is_at() {
        let lead = Lead::default();
        let former = lead.take();
        lead.begin(former, 1);
        let term = lead.take();
        assert_eq!(*lead.at(), 0);
        lead.begin(term, 2);
        for other in [former, NO_TERM] {
            lead.begin(other, 3);
            assert_eq!(*lead.at(), 2);
            lead.end(other);
            assert_eq!(*lead.at(), 2);
        }
        lead.end(term);
        assert_eq!(*lead.at(), 0);
    }
}
