//! Who made a connection to a service outside, for whom the kernel names the monitor.
//!
//! The monitor connects a unix socket in the program's place, so `SO_PEERCRED` tells the service
//! the monitor. Before it does, it binds the socket to an abstract name that says who asked for it:
//!
//! ```text
//!  dewar/MONITOR/PID.STARTED.ENTERED/NUMBER      all but the first in hexadecimal
//! ```
//!
//! The service reads that name with getpeername(2), sees from `SO_PEERCRED` that it was the monitor
//! who connected, and asks it. No process of the sandbox can bind such a name, nor connect a socket
//! that bears another's. The answer is given only while the process is the one that it was when it
//! connected: it runs, and has entered no other domain since.

use crate::{
    call::Asker,
    state::MonitorState,
    subject::{self, LabelGeneration},
};
use rustix::{
    io::{Errno, Result},
    net::{SocketAddrUnix, getsockname},
    process::{Pid, PidfdFlags, pidfd_open},
};
use std::{
    fmt,
    os::fd::{AsFd, OwnedFd},
    str::FromStr,
    sync::atomic::{AtomicU64, Ordering},
};

/// What the abstract names of connections begin with.
pub const PREFIX: &[u8] = b"dewar/";

/// The process that asked for a connection, as the name of its socket says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Origin {
    monitor: u32,
    pid: u32,
    generation: LabelGeneration,
}

impl Origin {
    fn of(state: &MonitorState, pid: u32) -> Result<Self> {
        Ok(Self {
            monitor: std::process::id(),
            pid,
            generation: subject::label_generation(state, pid)?,
        })
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { monitor, pid, generation: LabelGeneration { started, entered } } = self;
        write!(f, "dewar/{monitor:x}/{pid:x}.{started:x}.{entered:x}/")
    }
}

impl FromStr for Origin {
    type Err = Errno;

    fn from_str(name: &str) -> Result<Self> {
        let number = |text: &str| u64::from_str_radix(text, 16).map_err(|_| Errno::INVAL);
        let small = |text: &str| u32::from_str_radix(text, 16).map_err(|_| Errno::INVAL);
        let parts: Vec<&str> = name.split(['/', '.']).collect();
        let ["dewar", monitor, pid, started, entered, _] = parts[..] else {
            return Err(Errno::INVAL);
        };
        let generation = LabelGeneration { started: number(started)?, entered: small(entered)? };
        Ok(Self { monitor: small(monitor)?, pid: small(pid)?, generation })
    }
}

/// Names a socket after the process that is about to connect it to a service outside.
///
/// # Errors
///
/// `ACCESS` for a socket that is named after another process, or after this one before it entered
/// its domain. A socket that the program has bound to a name of its own keeps that, and nobody
/// vouches for it.
pub fn sign(asker: Asker<'_>, socket: impl AsFd) -> Result<()> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let origin = Origin::of(asker.state, asker.caller.identity()?.pid)?.to_string();
    loop {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("\0{origin}{number:x}");
        let address = [&(libc::AF_UNIX as u16).to_ne_bytes(), name.as_bytes()].concat();
        match supervisor::socket::bind(socket.as_fd(), &address) {
            // Somebody outside has taken the name.
            Err(Errno::ADDRINUSE) => {}
            // It has a name.
            Err(Errno::INVAL) => break,
            bound => return bound,
        }
    }
    let own = SocketAddrUnix::try_from(getsockname(&socket)?)?;
    match own.abstract_name() {
        Some(name) if name.starts_with(PREFIX) && !name.starts_with(origin.as_bytes()) => {
            Err(Errno::ACCESS)
        }
        _ => Ok(()),
    }
}

/// A process of a sandbox that has made a connection.
#[derive(Debug)]
pub struct Connector {
    /// In the monitor's PID namespace.
    pub pid: u32,
    /// A hold on it.
    pub pidfd: OwnedFd,
    /// Its security context, from before it connected until now.
    pub context: String,
}

/// Who made the connection of that name.
pub fn connector(state: &MonitorState, name: &str) -> Result<Connector> {
    let origin: Origin = name.parse()?;
    let pid = i32::try_from(origin.pid).ok().and_then(Pid::from_raw).ok_or(Errno::SRCH)?;
    let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
    if !state.targets.tree.is_inside(origin.pid) {
        return Err(Errno::SRCH);
    }
    let sid = subject::label_of(state, origin.pid)?;
    // Last: the same process, with the same label, as when the descriptor was opened and the label
    // looked up.
    if Origin::of(state, origin.pid)? != origin {
        return Err(Errno::SRCH);
    }
    let context = state.server.sid_to_context(sid).map_err(|_| Errno::SRCH)?;
    Ok(Connector { pid: origin.pid, pidfd, context })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_who_connected() {
        let generation = LabelGeneration { started: 0xabc_def0, entered: 17 };
        let origin = Origin { monitor: 70_000, pid: 4_000_000, generation };
        assert_eq!(format!("{origin}2f").parse(), Ok(origin));
        assert!(format!("{origin}{:x}", u64::MAX).len() < 107);
    }

    #[test]
    fn other_names_say_nothing() {
        for name in [
            "",
            "dewar/",
            "dewar/1/2.3/4",
            "dewar/1/2.3.4",
            "other/1/2.3.4/5",
            "dewar/1/2.3.4/5/6",
            "dewar/1/-2.3.4/5",
        ] {
            assert_eq!(name.parse::<Origin>(), Err(Errno::INVAL), "{name}");
        }
    }
}
