//! Keeping the number of a thread: while somebody traces it, it is given to nobody else, also when
//! the thread has ended.

use crate::sys::ptrace::follow;
use proc::Proc;
use rustix::{
    io::{Errno, Result},
    thread::gettid,
};
use std::{
    sync::mpsc::{Sender, channel},
    thread::{Builder, JoinHandle, sleep},
    time::Duration,
};

/// The number of a thread, which stays that thread's. The thread runs on; signals that it handles
/// wait. Dropped, nobody traces it.
pub struct KeptNumber<'a> {
    proc: &'a Proc,
    tid: u32,
    end: Option<Sender<()>>,
    /// The thread that traces, and its number.
    tracer: Option<(JoinHandle<()>, u32)>,
}

impl<'a> KeptNumber<'a> {
    /// Keeps the number of thread `tid`, of which `proc` tells.
    ///
    /// # Errors
    ///
    /// `PERM` if it is traced or has ended; `SRCH` if there is none.
    pub fn new(proc: &'a Proc, tid: u32) -> Result<Self> {
        let (end, ends) = channel::<()>();
        let (tell, told) = channel();
        // What a thread traces goes on, wherever it is, when the thread ends.
        let trace = move || {
            let _ = tell.send(follow(tid).map(|()| gettid().as_raw_pid().cast_unsigned()));
            let _ = ends.recv();
        };
        let thread = Builder::new().name("number".into()).stack_size(64 << 10);
        let tracer = thread.spawn(trace).map_err(|_| Errno::AGAIN)?;
        let own = told.recv().unwrap_or(Err(Errno::AGAIN))?;
        Ok(Self { proc, tid, end: Some(end), tracer: Some((tracer, own)) })
    }
}

impl Drop for KeptNumber<'_> {
    fn drop(&mut self) {
        self.end = None;
        let Some((tracer, own)) = self.tracer.take() else { return };
        let _ = tracer.join();
        // The kernel wakes who joins a thread (exit_mm) before it ends what the thread traces
        // (exit_notify).
        while self.proc.status(self.tid).is_ok_and(|status| status.tracer() == Some(own)) {
            sleep(Duration::from_micros(20));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        io::{BufRead as _, BufReader},
        process::{Child, ChildStdout, Command, Stdio},
    };

    /// What a shell runs, and the number of its only child, which it tells first. A parent that is
    /// not this process: here a thread that traces makes the whole process its tracer.
    fn shell(script: &str) -> (Child, u32, BufReader<ChildStdout>) {
        let mut shell =
            Command::new("sh").args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap();
        let (mut out, mut line) = (BufReader::new(shell.stdout.take().unwrap()), String::new());
        out.read_line(&mut line).unwrap();
        (shell, line.trim().parse().unwrap(), out)
    }

    #[test]
    fn who_has_ended_keeps_the_number_and_then_is_seen_off() {
        let (mut parent, number, _out) = shell("sleep 0.3 & echo $!; wait");
        let proc = Proc::open().unwrap();
        let kept = KeptNumber::new(&proc, number).unwrap();
        assert_eq!(KeptNumber::new(&proc, number).err(), Some(Errno::PERM));
        std::thread::sleep(std::time::Duration::from_secs(1));
        let status = std::fs::read_to_string(format!("/proc/{number}/status")).unwrap();
        assert!(status.contains("State:\tZ"), "{status}");
        assert_eq!(parent.try_wait().unwrap(), None, "its parent could see it off");
        drop(kept);
        assert!(parent.wait().unwrap().success());
    }

    #[test]
    fn who_is_let_go_is_kept_again_at_once() {
        let (mut parent, number, _out) = shell("sleep 60 & echo $!; wait");
        let proc = Proc::open().unwrap();
        for _ in 0..2000 {
            drop(KeptNumber::new(&proc, number).unwrap());
        }
        let pid = rustix::process::Pid::from_raw(number.cast_signed()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        assert!(parent.wait().unwrap().success());
    }

    #[test]
    fn a_signal_that_comes_meanwhile_is_not_lost() {
        let (mut parent, number, mut out) = shell("sleep 60 & echo $!; wait $!; echo $?");
        let proc = Proc::open().unwrap();
        let kept = KeptNumber::new(&proc, number).unwrap();
        let pid = rustix::process::Pid::from_raw(number.cast_signed()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(50));
        drop(kept);
        let mut status = String::new();
        out.read_line(&mut status).unwrap();
        assert_eq!(status.trim(), (128 + libc::SIGTERM).to_string());
        assert!(parent.wait().unwrap().success());
    }
}
