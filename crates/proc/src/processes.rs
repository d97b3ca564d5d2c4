//! Processes by their kinship: threads, children, descendants, and the one walk up from a process.

use crate::{Proc, Stat, none_if_gone};
use rustix::io::{Errno, Result};
use std::{collections::HashMap, os::fd::AsFd};

/// How often a process may lose its parent while its ancestors are looked at.
const MOST_LOST: u32 = 16;

/// How a walk to the ancestors of a process counts a parent that may have ended meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Care {
    /// Each step is as the kernel says it once.
    Once,
    /// Each step is looked at again. A parent that ended after it was named leaves its number to
    /// others, and its child to another parent.
    Twice,
}

impl<Fd: AsFd> Proc<Fd> {
    /// Every process in sight.
    ///
    /// # Errors
    ///
    /// Those of openat(2) and getdents(2).
    pub fn pids(&self) -> Result<Vec<u32>> {
        self.numbers(".")
    }

    /// The threads of a process; none if it has ended.
    ///
    /// # Errors
    ///
    /// Those of openat(2) and getdents(2).
    pub fn threads(&self, pid: u32) -> Result<Vec<u32>> {
        none_if_gone(self.numbers(&format!("{pid}/task")))
    }

    /// The parent of a process; 0 if it is not in sight.
    ///
    /// # Errors
    ///
    /// As of [`Proc::identity`].
    pub fn parent(&self, pid: u32) -> Result<u32> {
        self.status(pid)?.parent().ok_or(Errno::SRCH)
    }

    /// The children of a process, as far as they still run.
    ///
    /// # Errors
    ///
    /// `ENOENT` if it has ended; else as of [`Proc::text`].
    pub fn children(&self, pid: u32) -> Result<Vec<u32>> {
        let list = |tid: u32| self.text(&format!("{pid}/task/{tid}/children"));
        match list(pid) {
            // It has ended. The others are not looked at for that: there can be thousands.
            Err(Errno::NOENT) if self.parent(pid).is_err() => Err(Errno::NOENT),
            // The kernel may be built without these files (CONFIG_PROC_CHILDREN).
            Err(Errno::NOENT) => {
                let is_child = |it: &u32| self.parent(*it) == Ok(pid);
                Ok(self.pids()?.into_iter().filter(is_child).collect())
            }
            Err(error) => Err(error),
            Ok(first) => {
                let mut text = first;
                for tid in self.numbers(&format!("{pid}/task"))? {
                    if tid != pid {
                        text.push_str(&none_if_gone(list(tid))?);
                    }
                }
                Ok(text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect())
            }
        }
    }

    /// Every process that descends from `top`, as one look at all of them finds it.
    #[must_use]
    pub fn descendants(&self, top: u32) -> Vec<(u32, Stat)> {
        let pids = self.pids().unwrap_or_default();
        let all: HashMap<u32, Stat> =
            pids.into_iter().filter_map(|pid| Some((pid, self.stat(pid).ok()?))).collect();
        let below = |pid: u32| {
            // Bounded, in case the numbers changed meanwhile.
            let mut line =
                std::iter::successors(all.get(&pid), |stat| all.get(&stat.parent)).take(all.len());
            line.any(|stat| stat.parent == top)
        };
        all.iter().filter(|(pid, _)| below(**pid)).map(|(pid, stat)| (*pid, *stat)).collect()
    }

    /// The first of `pid` and its ancestors that `is_top`, and which child of it led there (itself
    /// if it is `pid`); `None` if there is none. An error if ancestors ended time and again while
    /// they were looked at, or the process itself did.
    pub(crate) fn ancestor(
        &self,
        pid: u32,
        care: Care,
        is_top: impl Fn(u32) -> bool,
    ) -> Result<Option<(u32, u32)>> {
        let walk = || -> Result<Option<(u32, u32)>> {
            let (mut at, mut below) = (pid, pid);
            loop {
                if is_top(at) {
                    return Ok(Some((at, below)));
                }
                if at <= 1 {
                    return Ok(None);
                }
                let next = self.parent(at)?;
                let looks_again = care == Care::Twice && next > 1;
                if looks_again && (self.parent(next).is_err() || self.parent(at) != Ok(next)) {
                    return Err(Errno::SRCH);
                }
                (at, below) = (next, at);
            }
        };
        (0..MOST_LOST).map(|_| walk()).find(Result::is_ok).unwrap_or(Err(Errno::SRCH))
    }

    /// Whether `top` is `pid`, or an ancestor of it; no when in doubt.
    #[must_use]
    pub fn is_at_or_below(&self, pid: u32, top: u32) -> bool {
        matches!(self.ancestor(pid, Care::Once, |it| it == top), Ok(Some(_)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn kinship_is_seen_from_above_and_from_below() {
        let proc = Proc::open().expect("/proc");
        let mut sh = Command::new("sh");
        sh.args(["-c", "cat; exit"]).stdin(Stdio::piped()).stdout(Stdio::null());
        let mut sh = sh.spawn().expect("start `sh`");
        let cat = loop {
            match proc.children(sh.id()).expect("children")[..] {
                [cat] => break cat,
                _ => std::thread::yield_now(),
            }
        };
        let own = std::process::id();
        assert!(proc.children(own).expect("children").contains(&sh.id()));
        let below: Vec<u32> = proc.descendants(own).into_iter().map(|(pid, _)| pid).collect();
        assert!(below.contains(&sh.id()) && below.contains(&cat));
        assert!(proc.is_at_or_below(cat, own) && !proc.is_at_or_below(own, cat));
        for care in [Care::Once, Care::Twice] {
            assert_eq!(proc.ancestor(cat, care, |pid| pid == own), Ok(Some((own, sh.id()))));
            assert_eq!(proc.ancestor(cat, care, |_| false), Ok(None));
        }
        drop(sh.stdin.take());
        sh.wait().expect("its end");
        assert!(proc.ancestor(cat, Care::Once, |_| false).is_err());
        assert_eq!(proc.children(cat), Err(Errno::NOENT));
    }
}
