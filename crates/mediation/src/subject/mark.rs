//! The mark of a label on a process, which the kernel itself hands on.
//!
//! The limit on file locks (`RLIMIT_LOCKS`) has meant nothing since Linux 2.4.25. But every process
//! still has one: its parent's, from its first moment on; threads share it, and no exec changes it.
//! The filter lets nobody in the sandbox set it, so what the monitor has written there is true of a
//! process and all that it has made, also when nobody else is left who could tell whose child it
//! was.

use flask::Sid;
use proc::ProcessTree;
use rustix::{
    io::{Errno, Result},
    process::{Pid, Resource, Rlimit, prlimit},
};
use supervisor::limit::file_locks;

/// A label, and where a process has it from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) sid: Sid,
    /// Which entry into a domain it was, of all in this run; 0 for the first domain.
    pub(super) entry: u32,
}

impl Mark {
    /// That of the process of a thread of the sandbox. As long as the number may be another's, so
    /// may the mark.
    pub(super) fn of(tree: &ProcessTree, tid: u32) -> Result<Self> {
        let limit = match file_locks(tid) {
            // It has changed its IDs; the text is for everybody.
            Err(Errno::PERM) => tree.proc.limit(tid, "Max file locks")?,
            limit => limit?,
        };
        Self::from_limit(limit).ok_or(Errno::PERM)
    }

    /// Puts it on a process, which makes no children meanwhile.
    pub(super) fn put(self, pid: u32) -> Result<()> {
        let pid = Pid::from_raw(pid.cast_signed()).ok_or(Errno::SRCH)?;
        let limit = Rlimit { current: Some(self.limit()), maximum: None };
        prlimit(Some(pid), Resource::Locks, limit).map(drop)
    }

    fn limit(self) -> u64 {
        u64::from(self.entry) << 32 | u64::from(self.sid.get())
    }

    fn from_limit(limit: u64) -> Option<Self> {
        // No limit: nobody has been marked here.
        let sid = Sid::new(limit as u32).filter(|_| limit != u64::MAX)?;
        Some(Self { sid, entry: (limit >> 32) as u32 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_limit_tells_its_mark() {
        for (sid, entry) in [(1, 0), (u32::MAX, 0), (7, u32::MAX)] {
            let mark = Mark { sid: Sid::new(sid).expect("a SID"), entry };
            assert_eq!(Mark::from_limit(mark.limit()), Some(mark));
        }
    }

    #[test]
    fn who_was_not_marked_has_no_label() {
        for limit in [0, 1 << 32, u64::MAX] {
            assert_eq!(Mark::from_limit(limit), None);
        }
    }

    /// The child of a child, which nobody has marked.
    #[test]
    fn the_kernel_hands_a_mark_on() {
        let mark = Mark { sid: Sid::new(7).expect("a SID"), entry: 3 };
        let mut sh = Command::new("sh");
        sh.args(["-c", "read go; grep 'Max file locks' /proc/self/limits"]);
        let mut sh = sh.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("start `sh`");
        mark.put(sh.id()).expect("a mark");
        assert_eq!(file_locks(sh.id()), Ok(mark.limit()));
        drop(sh.stdin.take());
        let said = sh.wait_with_output().expect("its end").stdout;
        let said = String::from_utf8(said).expect("UTF-8");
        assert_eq!(said.split_whitespace().nth(3), Some(&*mark.limit().to_string()));
    }
}
