//! A process that holds permissions, so that they can be taken back from it.

use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};
use std::{fmt, io, net::TcpStream, os::fd::OwnedFd, path::Path, str::FromStr, time::Duration};

/// The file that is taken back, in the working directory of the holder.
pub const FILE: &str = "taken";
/// Made by the holder when it holds everything.
pub const READY: &str = "ready";
/// Made by whoever has taken it back.
pub const DONE: &str = "done";

/// What is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HeldResource {
    /// Open descriptors of one process.
    Descriptors,
    /// Mappings of one process.
    Mappings,
    /// TCP connections of one process.
    Connections,
    /// Processes with an open descriptor each.
    Processes,
}

impl HeldResource {
    /// All kinds.
    pub const ALL: [Self; 4] =
        [Self::Descriptors, Self::Mappings, Self::Connections, Self::Processes];

    /// The word that stands for it on a command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Descriptors => "descriptors",
            Self::Mappings => "mappings",
            Self::Connections => "connections",
            Self::Processes => "processes",
        }
    }

    /// Holds `count` of them in the working directory, says so by making [`READY`], and waits for
    /// [`DONE`]. Connections go to port `port` of this machine. Meant for a process with one
    /// thread.
    ///
    /// # Errors
    ///
    /// What the system says when there cannot be so many.
    pub fn hold(self, count: usize, port: u16) -> io::Result<()> {
        let open = || {
            rustix::fs::open(FILE, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
                .map_err(io::Error::from)
        };
        let mut descriptors: Vec<OwnedFd> = Vec::new();
        match self {
            Self::Descriptors => {
                for _ in 0..count {
                    descriptors.push(open()?);
                }
            }
            Self::Mappings => {
                let file = open()?;
                for _ in 0..count {
                    crate::sys::keep_mapped(&file)?;
                }
            }
            Self::Connections => {
                for _ in 0..count {
                    descriptors.push(TcpStream::connect(("127.0.0.1", port))?.into());
                }
            }
            Self::Processes => {
                descriptors.push(open()?);
                for _ in 1..count {
                    crate::sys::fork(sleep_for_ever)?;
                }
            }
        }
        std::fs::write(READY, "")?;
        while !Path::new(DONE).exists() {
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}

/// Lets this process open as many files as its hard limit allows.
///
/// # Errors
///
/// When the system refuses.
pub fn may_open_many() -> io::Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    Ok(setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })?)
}

fn sleep_for_ever() -> u8 {
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}

impl fmt::Display for HeldResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for HeldResource {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|it| it.name() == name);
        known.ok_or_else(|| format!("`{name}` is nothing that can be held here"))
    }
}
