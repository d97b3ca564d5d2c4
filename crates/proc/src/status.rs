//! `/proc/TID/status`: proc_pid_status(5).

use std::{collections::BTreeSet, str::FromStr};

/// The text of a `status`, in which fields are looked for when somebody asks.
#[derive(Clone, Debug)]
pub struct Status(String);

/// Identity of a process, read once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Name of the thread.
    pub comm: String,
    /// Process, in the reader's PID namespace.
    pub pid: u32,
    /// Its parent, likewise.
    pub parent: u32,
    /// Process, in its own PID namespace.
    pub inner_pid: u32,
    /// Thread, in its own PID namespace.
    pub inner_tid: u32,
    /// File mode creation mask.
    pub umask: u32,
    /// User ID for file system accesses.
    pub fsuid: u32,
    /// Group ID for file system accesses.
    pub fsgid: u32,
    /// Capabilities in effect: bit n is capability n.
    pub capabilities: u64,
}

/// Signals that wait for a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signals {
    /// Some for the thread, neither blocked nor ignored.
    pub own: bool,
    /// Some for its process, neither blocked nor ignored. Another thread may take them.
    pub shared: bool,
    /// How many threads the process has.
    pub threads: u64,
}

impl Status {
    /// Takes the text of the file.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(text)
    }

    fn field(&self, name: &str) -> Option<&str> {
        self.0.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
    }

    fn words<'a, T: FromStr>(&'a self, name: &str) -> Option<impl Iterator<Item = Option<T>> + 'a> {
        Some(self.field(name)?.split_whitespace().map(|word| word.parse().ok()))
    }

    fn number<T: FromStr>(&self, name: &str, index: usize) -> Option<T> {
        self.words(name)?.nth(index)?
    }

    /// The last of several numbers: that of the innermost PID namespace.
    fn innermost(&self, name: &str) -> Option<u32> {
        self.words(name)?.last()?
    }

    fn bits(&self, name: &str) -> Option<u64> {
        u64::from_str_radix(self.field(name)?.trim(), 16).ok()
    }

    /// Who it is; `None` if something is missing.
    #[must_use]
    pub fn identity(&self) -> Option<Identity> {
        Some(Identity {
            comm: self.field("Name")?.trim().to_owned(),
            pid: self.number("Tgid", 0)?,
            parent: self.parent()?,
            inner_pid: self.innermost("NStgid")?,
            inner_tid: self.innermost("NSpid")?,
            // A process that has ended has none.
            umask: self
                .field("Umask")
                .map_or(Some(0o777), |mask| u32::from_str_radix(mask.trim(), 8).ok())?,
            fsuid: self.number("Uid", 3)?,
            fsgid: self.number("Gid", 3)?,
            capabilities: self.bits("CapEff")?,
        })
    }

    /// The parent process; 0 for one outside of the reader's PID namespace.
    #[must_use]
    pub fn parent(&self) -> Option<u32> {
        self.number("PPid", 0)
    }

    /// The supplementary groups.
    #[must_use]
    pub fn groups(&self) -> Option<BTreeSet<u32>> {
        self.words("Groups")?.collect()
    }

    /// Real, effective, saved and file system user ID.
    #[must_use]
    pub fn users(&self) -> Option<Vec<u32>> {
        self.words("Uid")?.collect()
    }

    /// How many seccomp filters it has.
    #[must_use]
    pub fn filters(&self) -> Option<u32> {
        self.number("Seccomp_filters", 0)
    }

    /// The thread that traces it; 0 for none.
    #[must_use]
    pub fn tracer(&self) -> Option<u32> {
        self.number("TracerPid", 0)
    }

    /// Its process group, in its own PID namespace.
    #[must_use]
    pub fn inner_group(&self) -> Option<u32> {
        self.innermost("NSpgid")
    }

    /// Whether it is in a PID namespace below the reader's.
    #[must_use]
    pub fn has_own_pids(&self) -> bool {
        self.words::<u32>("NSpid").is_some_and(|ids| ids.count() > 1)
    }

    /// Whether a signal reaches it: it neither blocks nor ignores that.
    #[must_use]
    pub fn hears(&self, signal: i32) -> Option<bool> {
        let deaf = self.bits("SigBlk")? | self.bits("SigIgn")?;
        Some(deaf & 1 << (signal - 1) == 0)
    }

    /// The signals that wait for it.
    #[must_use]
    pub fn signals(&self) -> Option<Signals> {
        let heard = !self.bits("SigBlk")? & !self.bits("SigIgn")?;
        Some(Signals {
            own: self.bits("SigPnd")? & heard != 0,
            shared: self.bits("ShdPnd")? & heard != 0,
            threads: self.threads()?,
        })
    }

    /// How many threads its process has, with a first one that has ended.
    #[must_use]
    pub fn threads(&self) -> Option<u64> {
        self.number("Threads", 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_is_read_with_the_innermost_pids() {
        let text = "Name:\tcc1\nUmask:\t0022\nTgid:\t70\nNgid:\t0\nPid:\t71\nPPid:\t60\nTracerPid:\t0\n\
                    Uid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\nGroups:\t4 24 \nCapEff:\t0000000000000401\n\
                    NStgid:\t70\t9\nNSpid:\t71\t10\nNSpgid:\t60\t8\nSeccomp_filters:\t2\n";
        let status = Status::new(text.into());
        let want = Identity {
            comm: "cc1".into(),
            pid: 70,
            parent: 60,
            inner_pid: 9,
            inner_tid: 10,
            umask: 0o22,
            fsuid: 4,
            fsgid: 8,
            capabilities: 0x401,
        };
        assert_eq!(status.identity(), Some(want));
        assert_eq!(status.groups(), Some(BTreeSet::from([4, 24])));
        assert_eq!(status.users(), Some(vec![1, 2, 3, 4]));
        assert_eq!((status.filters(), status.tracer()), (Some(2), Some(0)));
        assert_eq!((status.inner_group(), status.has_own_pids()), (Some(8), true));
        assert_eq!(Status::new("Name:\tcc1\n".into()).identity(), None);
    }

    #[test]
    fn signals_that_are_blocked_or_ignored_are_not_heard() {
        let signals = |own, shared, blocked, ignored| {
            let line = |name, bits: u64| format!("{name}:\t{bits:016x}\n");
            let sets =
                [("SigPnd", own), ("ShdPnd", shared), ("SigBlk", blocked), ("SigIgn", ignored)];
            let sets: String = sets.map(|(name, bits)| line(name, bits)).concat();
            let text = format!("Name:\tcat\nThreads:\t2\nSigQ:\t1/9\n{sets}");
            let status = Status::new(text);
            assert_eq!(status.hears(14), Some(blocked == 0 && ignored == 0));
            let signals = status.signals().expect("signals");
            assert_eq!(signals.threads, 2);
            (signals.own, signals.shared)
        };
        assert_eq!(signals(0x2000, 0, 0, 0), (true, false));
        assert_eq!(signals(0, 0x2000, 0, 0), (false, true));
        assert_eq!(signals(0x2000, 0x2000, 0x2000, 0), (false, false));
        assert_eq!(signals(0x2000, 0x2000, 0, 0x2000), (false, false));
    }
}
