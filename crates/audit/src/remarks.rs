//! What was denied to nobody, and may be why a program failed all the same: for the end of a run
//! that failed.

use crate::Listening;
use std::{
    collections::BTreeSet,
    net::SocketAddr,
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// That calls were refused for want of descriptors.
const LACKS_DESCRIPTORS: &str = "Dewar holds descriptors for the run (sockets with a name, terminals, opens that wait), and what is left \
    is for `dewar ps` and `dewar revoke`: calls failed (ENFILE). `ulimit -Hn` bounds them";

/// The ports that the kernel draws from in a network of its own, for who asks for none in
/// particular (`net.ipv4.ip_local_port_range`).
const DRAWN: std::ops::RangeInclusive<u16> = 32_768..=60_999;

/// What was seen that a program may have failed for.
#[derive(Debug)]
pub struct Remarks {
    /// Where the machine's services listen, if the loopback is the run's own.
    machine: Option<Listening>,
    /// The process that the command of the run begins as.
    pub command: u32,
    /// Which limits hold for less than the whole run ([`Remarks::bounded`]): for its start.
    pub bounded: Option<String>,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    /// Programs that would have got rights of their own, each with what gives them.
    privileged: BTreeSet<(String, &'static str)>,
    /// Where somebody listened on the loopback, and where somebody connected to.
    serving: BTreeSet<SocketAddr>,
    reached: BTreeSet<SocketAddr>,
    /// Calls were refused for want of descriptors.
    lacks_descriptors: bool,
}

impl Remarks {
    /// Of each kind; more are not kept.
    const MOST: usize = 1000;

    /// None yet. A run with a loopback of its own says where those of the `machine` listen.
    pub fn new(machine: Option<Listening>, command: u32) -> Self {
        Self { machine, command, bounded: None, seen: Mutex::default() }
    }

    /// A program was executed that would have got rights of its own: `what` it is.
    pub fn privileged(&self, program: &Path, what: &'static str) {
        let mut seen = self.seen();
        if seen.privileged.len() < Self::MOST {
            seen.privileged.insert((program.to_string_lossy().into_owned(), what));
        }
    }

    /// A server listens at this address.
    pub fn serves(&self, address: SocketAddr) {
        let mut seen = self.seen();
        if self.machine.is_some() && seen.serving.len() < Self::MOST {
            seen.serving.insert(address);
        }
    }

    /// Somebody inside connects to this address.
    pub fn reaches(&self, address: SocketAddr) {
        let mut seen = self.seen();
        if self.machine.is_some() && seen.reached.len() < Self::MOST {
            seen.reached.insert(SocketAddr::new(address.ip().to_canonical(), address.port()));
        }
    }

    /// A call was refused, as the monitor holds too much for the run already.
    pub fn lacks_descriptors(&self) {
        self.seen().lacks_descriptors = true;
    }

    /// Memory was to be limited to so many bytes, or processes to so many, and no cgroup does so,
    /// which would tell whether they ran out.
    pub fn bounded(bytes: Option<u64>, processes: Option<u64>) -> Option<String> {
        let memory = bytes.map(|bytes| {
            format!(
                "`limits.memory` leaves each process {} MiB of address space (node, go and java take more)",
                bytes >> 20
            )
        });
        let processes =
            processes.map(|count| format!("`limits.processes` leaves this user {count} processes"));
        let held = memory.into_iter().chain(processes).collect::<Vec<_>>().join(", ");
        (!held.is_empty()).then(|| {
            format!(
                "without a cgroup, {held}; \
                 `systemd-run --user --scope -p Delegate=yes dewar run …` has one"
            )
        })
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
        let privileged = seen.privileged.iter().map(|(program, what)| {
            let instead = match *what {
                "set-user-ID" => "Start the run as that user, or do this outside",
                _ => "Do this outside",
            };
            format!(
                "`{program}` is {what}, which counts for nothing in a run: it ran without, or not at all, as nothing inside \
                 becomes another user or group or gets rights by its program. {instead}"
            )
        });
        let services =
            self.machine.as_ref().map_or_else(Vec::new, |machine| seen.out_of_reach(machine));
        let lacking = seen.lacks_descriptors.then(|| LACKS_DESCRIPTORS.to_owned());
        privileged.chain(seen.unreached()).chain(services).chain(lacking).collect()
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seen {
    /// Servers inside that nobody connected to, at ports that somebody outside can know.
    fn unreached(&self) -> impl Iterator<Item = String> {
        let is_full = self.reached.len() >= Remarks::MOST;
        let is_reached = |port: u16| self.reached.iter().any(|it| it.port() == port);
        let servers = self
            .serving
            .iter()
            .filter(move |at| !is_full && !DRAWN.contains(&at.port()) && !is_reached(at.port()));
        servers.map(|at| {
            format!(
                "a server had port {} of a loopback that is the run's own, and nothing inside connected to it; \
                 nobody outside can. In a profile: network = {{ loopback = \"none\", bind = [\"{at}\"] }}",
                at.port()
            )
        })
    }

    /// Services of the `machine` that somebody inside took for one of the run.
    fn out_of_reach(&self, machine: &Listening) -> Vec<String> {
        let is_full = self.serving.len() >= Remarks::MOST;
        let is_served = |port: u16| is_full || self.serving.iter().any(|it| it.port() == port);
        let missed: Vec<&SocketAddr> =
            self.reached.iter().filter(|it| !is_served(it.port())).collect();
        if missed.is_empty() {
            return Vec::new();
        }
        let outside = machine.addresses();
        let is_outside = |it: &SocketAddr| outside.iter().any(|at| takes(at, it));
        let ports: BTreeSet<u16> =
            missed.into_iter().filter(|it| is_outside(it)).map(SocketAddr::port).collect();
        let told = |port| {
            format!(
                "nobody listens at port {port} of the run's own loopback, and a service of the machine does at its own: \
                 `loopback`, added to the profile (`-p NAME+loopback`; in a file: extends = \"NAME+loopback\"), reaches it"
            )
        };
        ports.into_iter().map(told).collect()
    }
}

/// Whether who connects to `address` gets to whoever listens at `at`.
fn takes(at: &SocketAddr, address: &SocketAddr) -> bool {
    let (own, asked) = (at.ip().to_canonical(), address.ip());
    at.port() == address.port()
        && (own == asked || own.is_unspecified() && (own.is_ipv6() || asked.is_ipv4()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn servers_are_spoken_of_that_nobody_could_reach() {
        let (own, shared) = (Remarks::new(Some(Listening::here()), 1), Remarks::new(None, 1));
        let at = |text: &str| text.parse::<SocketAddr>().unwrap();
        for remarks in [&own, &shared] {
            remarks.serves(at("[::1]:8000"));
            remarks.serves(at("127.0.0.1:8001"));
            remarks.serves(at("127.0.0.1:39629"));
            remarks.reaches(at("127.0.0.1:8001"));
            remarks.privileged(Path::new("/usr/bin/su"), "set-user-ID");
        }
        let said = own.all();
        assert!(said[0].contains("`/usr/bin/su`") && said[1].contains("port 8000"), "{said:?}");
        let (_, line) = said[1].split_once("In a profile: ").unwrap();
        assert_eq!(line, r#"network = { loopback = "none", bind = ["[::1]:8000"] }"#);
        assert_eq!((said.len(), shared.all().len()), (2, 1));
    }

    #[test]
    fn a_limit_that_no_cgroup_holds_is_spoken_of_shortly_with_what_to_do() {
        assert_eq!(Remarks::bounded(None, None), None);
        let said = Remarks::bounded(Some(512 << 20), Some(5)).unwrap();
        for part in ["`limits.memory`", "512 MiB", "5 processes", "Delegate=yes dewar run"] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert!(said.chars().count() < 260 && said.matches(". ").count() == 0, "{said}");
    }

    #[test]
    fn a_service_of_the_machine_is_spoken_of_that_somebody_took_for_one_of_the_run() {
        let service = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = service.local_addr().unwrap();
        let nobody = SocketAddr::from((at.ip(), 1));
        for (serves, reaches, want) in
            [(None, at, true), (Some(at), at, false), (None, nobody, false)]
        {
            let remarks = Remarks::new(Some(Listening::here()), 1);
            serves.into_iter().for_each(|it| remarks.serves(it));
            remarks.reaches(reaches);
            let said = remarks.all().concat();
            let is_told = said.contains(&format!("nobody listens at port {} of", at.port()));
            assert_eq!(is_told, want, "{said}");
        }
        assert!(takes(&"[::]:80".parse().unwrap(), &"127.0.0.1:80".parse().unwrap()));
        assert!(!takes(&"127.0.0.53:80".parse().unwrap(), &"127.0.0.1:80".parse().unwrap()));
    }
}
