//! Which process a calling thread belongs to, without asking `/proc` every time.
//!
//! A descriptor of a thread holds on to the kernel's record of its number. As long as the descriptor does not report an
//! end, that record, and with it the number, belongs to a living thread; and whatever thread that is, it is one of the
//! same process: a record changes hands only within a process, when a thread that executes a program takes over the
//! number of its process.

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{Pid, PidfdFlags, pidfd_open},
};
use std::os::fd::OwnedFd;

/// Threads that are held, each by one descriptor of the monitor.
const MOST: usize = 128;
/// `PIDFD_THREAD` of `linux/pidfd.h`, since Linux 6.9: a thread that need not be the first of its process.
const THREAD: PidfdFlags = PidfdFlags::from_bits_retain(libc::O_EXCL as u32);

/// Calling threads, by number. Two with the same place drive each other out.
#[derive(Debug)]
pub(super) struct Threads([Option<Thread>; MOST]);

/// A thread that is held.
#[derive(Debug)]
pub(super) struct Thread {
    tid: u32,
    pidfd: OwnedFd,
    /// Its process.
    pid: u32,
}

impl Default for Threads {
    fn default() -> Self {
        Self([const { None }; MOST])
    }
}

impl Threads {
    /// The process of thread `tid`, if that has been alive since it was noted.
    pub(super) fn process(&mut self, tid: u32) -> Option<u32> {
        let place = &mut self.0[tid as usize % MOST];
        let thread = place.as_ref().filter(|thread| thread.tid == tid)?;
        if thread.lives() {
            return Some(thread.pid);
        }
        *place = None;
        None
    }

    /// Notes the process of a thread.
    pub(super) fn note(&mut self, thread: Thread) {
        let place = thread.tid as usize % MOST;
        self.0[place] = Some(thread);
    }
}

impl Thread {
    /// Takes hold of the thread with number `tid`, and then asks for its process. `None` if the kernel cannot hold it:
    /// before Linux 6.9 it holds first threads only.
    pub(super) fn hold<E>(
        tid: u32,
        process: impl FnOnce() -> Result<u32, E>,
    ) -> Option<Result<Self, E>> {
        let number = Pid::from_raw(tid.cast_signed())?;
        let pidfd = match pidfd_open(number, THREAD) {
            Err(Errno::INVAL) => pidfd_open(number, PidfdFlags::empty()),
            held => held,
        };
        let pidfd = pidfd.ok()?;
        Some(process().map(|pid| Self { tid, pidfd, pid }))
    }

    /// Whether no end is reported. When in doubt it is.
    fn lives(&self) -> bool {
        let mut fds = [PollFd::new(&self.pidfd, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut fds, Some(&now)) == Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command, Stdio};

    fn sleeper() -> Child {
        Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().expect("start")
    }

    fn end(mut child: Child) {
        child.kill().expect("kill");
        child.wait().expect("wait");
    }

    fn hold(tid: u32, pid: u32) -> Thread {
        Thread::hold(tid, || Ok::<_, Errno>(pid)).expect("a hold").expect("its process")
    }

    #[test]
    fn a_thread_is_known_until_it_ends() {
        let (child, mut threads) = (sleeper(), Threads::default());
        let tid = child.id();
        assert_eq!(threads.process(tid), None);
        threads.note(hold(tid, 7));
        assert_eq!(threads.process(tid), Some(7));
        end(child);
        assert_eq!(threads.process(tid), None);
    }

    #[test]
    fn a_thread_that_is_not_the_first_is_known_until_it_ends() {
        let mut threads = Threads::default();
        let (told, tell) = std::sync::mpsc::channel::<()>();
        let (say, said) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            say.send(rustix::thread::gettid().as_raw_pid().cast_unsigned()).expect("send");
            let _ = tell.recv();
        });
        let tid = said.recv().expect("its number");
        let Some(held) = Thread::hold(tid, || Ok::<_, Errno>(7)) else {
            eprintln!("note: before Linux 6.9, nothing holds such a thread; it is looked up");
            return;
        };
        threads.note(held.expect("its process"));
        assert_eq!(threads.process(tid), Some(7));
        drop(told);
        thread.join().expect("its end");
        // It has left the process by then, or is about to.
        while std::path::Path::new(&format!("/proc/self/task/{tid}")).exists() {
            std::thread::yield_now();
        }
        assert_eq!(threads.process(tid), None);
    }

    /// The kernel is told which number comes next, which only root may.
    #[test]
    fn a_number_that_is_used_again_is_unknown() {
        let mut threads = Threads::default();
        for _ in 0..1000 {
            let child = sleeper();
            let tid = child.id();
            threads.note(hold(tid, 7));
            end(child);
            let next = std::fs::write("/proc/sys/kernel/ns_last_pid", (tid - 1).to_string());
            if next.is_err() {
                eprintln!("note: not run by root, so no number is used again");
                return;
            }
            let again = sleeper();
            let is_same = again.id() == tid;
            let known = threads.process(again.id());
            end(again);
            assert_eq!(known, None);
            if is_same {
                return;
            }
        }
        panic!("no number was used again");
    }
}
