//! What was denied to nobody, and may be why a program failed all the same: for the end of a run
//! that failed.

use std::{
    collections::BTreeSet,
    net::SocketAddr,
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// See the file.
#[derive(Debug)]
pub struct Remarks {
    /// The loopback is the run's own.
    own_loopback: bool,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    /// Programs that act as another user.
    set_ids: BTreeSet<String>,
    /// Where somebody listened on the loopback, and the ports that somebody connected to.
    serving: BTreeSet<SocketAddr>,
    reached: BTreeSet<u16>,
}

impl Remarks {
    /// Of each kind; of more is no word.
    const MOST: usize = 1000;

    /// None yet, of a run with or without a loopback of its own.
    pub fn new(own_loopback: bool) -> Self {
        Self { own_loopback, seen: Mutex::default() }
    }

    /// A program was executed that would have become another user.
    pub fn set_id(&self, program: &Path) {
        let mut seen = self.seen();
        if seen.set_ids.len() < Self::MOST {
            seen.set_ids.insert(program.to_string_lossy().into_owned());
        }
    }

    /// A server listens at this address.
    pub fn serves(&self, address: SocketAddr) {
        let mut seen = self.seen();
        if self.own_loopback && seen.serving.len() < Self::MOST {
            seen.serving.insert(address);
        }
    }

    /// Somebody inside connects to this port.
    pub fn reaches(&self, port: u16) {
        let mut seen = self.seen();
        if self.own_loopback && seen.reached.len() < Self::MOST {
            seen.reached.insert(port);
        }
    }

    /// Memory was to be limited to so many bytes, and no cgroup does so.
    pub fn bounded(bytes: u64) -> String {
        format!(
            "each process had {} MiB of address space (RLIMIT_AS), as no cgroup can be made here for `limits.memory`: what \
             reserves more than it uses (node, go, java) fails at its start. `systemd-run --user --scope -p Delegate=yes dewar \
             run …` limits what is used",
            bytes >> 20
        )
    }

    /// So often was a process killed for want of memory, and a process or thread not made, where a
    /// cgroup limits them.
    pub fn reached(memory: u64, processes: u64) -> Vec<String> {
        let told = |count: u64, limit: &str, what: &str| {
            let times = if count == 1 { "once".into() } else { format!("{count} times") };
            (count > 0).then(|| format!("`{limit}` was reached {times}: {what}"))
        };
        let memory = told(memory, "limits.memory", "the kernel killed a process");
        let made = told(processes, "limits.processes", "a process or thread was not made");
        [memory, made].into_iter().flatten().collect()
    }

    /// What is to be said, in sentences.
    pub fn all(&self) -> Vec<String> {
        let seen = self.seen();
        let set_ids = seen.set_ids.iter().map(|program| {
            format!(
                "`{program}` is set-user-ID, and ran without that: nothing inside of a run becomes another user. Start the run as \
                 that user, or do this outside"
            )
        });
        let is_full = seen.reached.len() >= Self::MOST;
        let is_lonely = |at: &&SocketAddr| !is_full && !seen.reached.contains(&at.port());
        let servers = seen.serving.iter().filter(is_lonely).map(|at| {
            format!(
                "a server had port {} of a loopback that is the run's own, and nothing inside connected to it; \
                 nobody outside can. In a profile: network.loopback = \"none\", network.bind = [\"{at}\"]",
                at.port()
            )
        });
        set_ids.chain(servers).collect()
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_spoken_of_that_nobody_could_reach() {
        let (own, shared) = (Remarks::new(true), Remarks::new(false));
        let at = |text: &str| text.parse::<SocketAddr>().unwrap();
        for remarks in [&own, &shared] {
            remarks.serves(at("[::1]:8000"));
            remarks.serves(at("127.0.0.1:8001"));
            remarks.reaches(8001);
            remarks.set_id(Path::new("/usr/bin/su"));
        }
        let said = own.all();
        assert!(said[0].contains("`/usr/bin/su`") && said[1].contains("port 8000"), "{said:?}");
        assert!(said[1].contains("\"[::1]:8000\""), "{said:?}");
        assert_eq!((said.len(), shared.all().len()), (2, 1));
    }
}
