//! What a command did, in short: what it was granted to write, remove, execute, connect and bind
//! to, each object once.
//!
//! An object manager notes it where it grants. So what the kernel does alone leaves nothing here:
//! reading, and in mode `fast` whatever the envelope is exact about.

use flask::{AccessVector, Class, perm};
use serde::{Deserialize, Serialize};
use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};
use supervisor::Caller;
use syscalls::Sysno;

/// Objects of one kind that are kept; of more, only their number.
const MOST: usize = 2_000;

/// What was done with an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A file was made, or opened to be written.
    Wrote,
    /// A name was removed.
    Removed,
    /// A program was executed.
    Executed,
    /// An endpoint or a unix socket was connected or sent to.
    Contacted,
    /// A socket was bound to an endpoint.
    Bound,
}

/// What was done with one object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Deed {
    /// What.
    pub kind: Kind,
    /// With which object.
    pub object: String,
    /// Who: the name of the first process that did.
    pub comm: String,
    /// Its process, in the monitor's PID namespace.
    #[serde(default)]
    pub pid: u32,
    /// How often.
    pub count: u64,
    /// When first, in seconds since 1970.
    pub first: f64,
    /// When last.
    pub last: f64,
}

/// All of it, while the command runs.
#[derive(Default)]
pub struct Activity(Mutex<Known>);

#[derive(Default)]
struct Known {
    deeds: HashMap<(Kind, String), Deed>,
    kept: HashMap<Kind, usize>,
    more: HashMap<Kind, u64>,
}

impl Kind {
    /// What it is that an object manager grants; `None` for what is not noted.
    fn of(call: Sysno, class: Class, requested: AccessVector) -> Option<Self> {
        let some_of = |of: AccessVector| !(requested & of).is_empty();
        match class {
            Class::File if call == Sysno::execve || call == Sysno::execveat => {
                some_of(perm::file::EXECUTE).then_some(Self::Executed)
            }
            Class::File | Class::LnkFile | Class::FifoFile | Class::SockFile => {
                let writes = perm::file::WRITE | perm::file::APPEND | perm::file::CREATE;
                if some_of(perm::file::UNLINK) {
                    Some(Self::Removed)
                } else {
                    some_of(writes).then_some(Self::Wrote)
                }
            }
            Class::Endpoint if some_of(perm::endpoint::NAME_BIND) => Some(Self::Bound),
            Class::Endpoint => some_of(perm::endpoint::NAME_CONNECT | perm::endpoint::SENDTO)
                .then_some(Self::Contacted),
            Class::TcpSocket => some_of(perm::tcp_socket::LOOPBACK_BIND).then_some(Self::Bound),
            Class::UnixStreamSocket => {
                some_of(perm::unix_stream_socket::CONNECTTO).then_some(Self::Contacted)
            }
            _ => None,
        }
    }
}

impl Activity {
    /// Notes what was granted, if it is of a kind that is kept. `object` is called only then.
    pub fn note(
        &self,
        (caller, call): (Caller<'_>, Sysno),
        class: Class,
        requested: AccessVector,
        object: &dyn Fn() -> String,
    ) {
        if let Some(kind) = Kind::of(call, class, requested) {
            let who = || (caller.comm(), caller.identity().map_or(0, |it| it.pid));
            self.keep(kind, object(), who);
        }
    }

    fn keep(&self, kind: Kind, object: String, who: impl FnOnce() -> (String, u32)) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (kind, object);
        if let Some(deed) = known.deeds.get_mut(&key) {
            deed.count += 1;
            deed.last = now;
            return;
        }
        let kept = known.kept.entry(kind).or_default();
        if *kept >= MOST {
            *known.more.entry(kind).or_default() += 1;
            return;
        }
        *kept += 1;
        let object = key.1.clone();
        let (comm, pid) = who();
        let deed = Deed { kind, object, comm, pid, count: 1, first: now, last: now };
        known.deeds.insert(key, deed);
    }

    /// Everything so far in the order in which it began, and how much more of each kind there was.
    pub fn all(&self) -> (Vec<Deed>, Vec<(Kind, u64)>) {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut deeds: Vec<Deed> = known.deeds.values().cloned().collect();
        deeds.sort_by(|a, b| a.first.total_cmp(&b.first).then_with(|| a.object.cmp(&b.object)));
        let mut more: Vec<(Kind, u64)> = known.more.iter().map(|(k, count)| (*k, *count)).collect();
        more.sort_unstable();
        (deeds, more)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_kept_once_with_its_count_and_a_flood_is_counted() {
        let deeds = Activity::default();
        for n in 0..MOST + 7 {
            deeds.keep(Kind::Wrote, n.to_string(), || ("cc".into(), 1));
        }
        deeds.keep(Kind::Wrote, "0".into(), || ("ld".into(), 2));
        deeds.keep(Kind::Executed, "/usr/bin/cc".into(), || ("make".into(), 3));
        let (all, more) = deeds.all();
        assert_eq!((all.len(), more.as_slice()), (MOST + 1, &[(Kind::Wrote, 7)][..]));
        let first = all.iter().find(|deed| deed.object == "0").unwrap();
        assert_eq!((first.count, first.comm.as_str()), (2, "cc"));
    }

    #[test]
    fn what_a_server_is_bound_to_is_kept_apart_from_whom_it_asks() {
        for (class, requested, kind) in [
            (Class::Endpoint, perm::endpoint::NAME_BIND, Kind::Bound),
            (Class::TcpSocket, perm::tcp_socket::LOOPBACK_BIND, Kind::Bound),
            (Class::Endpoint, perm::endpoint::NAME_CONNECT, Kind::Contacted),
        ] {
            assert_eq!(Kind::of(Sysno::bind, class, requested), Some(kind));
        }
    }

    #[test]
    fn reading_and_looking_are_no_deeds() {
        for requested in [perm::file::READ, perm::file::GETATTR, perm::file::OPEN] {
            assert_eq!(Kind::of(Sysno::openat, Class::File, requested), None);
        }
        let mapped = Kind::of(Sysno::mmap, Class::File, perm::file::EXECUTE);
        assert_eq!(mapped, None, "a library is no program");
    }
}
