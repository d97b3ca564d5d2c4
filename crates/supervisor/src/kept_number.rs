//! Keeping the number of a thread: while somebody traces it, it is given to nobody else, also when
//! the thread has ended.

use crate::sys::ptrace::follow;
use rustix::io::{Errno, Result};
use std::{
    sync::mpsc::{Sender, channel},
    thread::{Builder, JoinHandle},
};

/// The number of a thread, which stays that thread's. The thread runs on; signals that it handles
/// wait.
pub struct KeptNumber {
    end: Option<Sender<()>>,
    tracer: Option<JoinHandle<()>>,
}

impl KeptNumber {
    /// Keeps the number of thread `tid`.
    ///
    /// # Errors
    ///
    /// `PERM` if it is traced or has ended; `SRCH` if there is none.
    pub fn new(tid: u32) -> Result<Self> {
        let (end, ends) = channel::<()>();
        let (tell, told) = channel();
        // What a thread traces goes on, wherever it is, when the thread ends.
        let trace = move || {
            let _ = tell.send(follow(tid));
            let _ = ends.recv();
        };
        let thread = Builder::new().name("number".into()).stack_size(64 << 10);
        let tracer = Some(thread.spawn(trace).map_err(|_| Errno::AGAIN)?);
        let kept = Self { end: Some(end), tracer };
        told.recv().unwrap_or(Err(Errno::AGAIN))?;
        Ok(kept)
    }
}

impl Drop for KeptNumber {
    fn drop(&mut self) {
        self.end = None;
        if let Some(tracer) = self.tracer.take() {
            let _ = tracer.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        io::{BufRead as _, BufReader},
        process::Command,
    };

    #[test]
    fn who_has_ended_keeps_the_number_and_then_is_seen_off() {
        let mut parent = Command::new("sh");
        parent.args(["-c", "sleep 0.3 & echo $!; wait"]).stdout(std::process::Stdio::piped());
        let mut parent = parent.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(parent.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let number = line.trim().parse().unwrap();
        let kept = KeptNumber::new(number).unwrap();
        assert_eq!(KeptNumber::new(number).err(), Some(Errno::PERM));
        std::thread::sleep(std::time::Duration::from_secs(1));
        let status = std::fs::read_to_string(format!("/proc/{number}/status")).unwrap();
        assert!(status.contains("State:\tZ"), "{status}");
        assert_eq!(parent.try_wait().unwrap(), None, "its parent could see it off");
        drop(kept);
        assert!(parent.wait().unwrap().success());
    }

    #[test]
    fn a_signal_that_comes_meanwhile_is_not_lost() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let kept = KeptNumber::new(child.id()).unwrap();
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(50));
        drop(kept);
        let status = child.wait().unwrap();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(libc::SIGTERM));
    }
}
