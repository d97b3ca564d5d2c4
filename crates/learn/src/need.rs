//! What a profile lacks for an access, in its own terms: a list, and what to put into it.

use crate::{Access, judge::endpoint};
use flask::Protocol;
use std::{net::SocketAddr, path::PathBuf};

/// An entry that a profile lacks.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Need {
    /// The domain that lacks it; `None` for the base domain.
    pub domain: Option<String>,
    /// What is lacking.
    pub what: What,
}

/// What can be lacking.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum What {
    /// The names in a directory.
    List(PathBuf),
    /// A file, to read.
    Read(PathBuf),
    /// A file, to change, make or remove.
    Write(PathBuf),
    /// A program.
    Exec(PathBuf),
    /// An address to connect or send to; whether by UDP.
    Connect(SocketAddr, bool),
    /// An address to bind; whether for UDP.
    Bind(SocketAddr, bool),
    /// A unix socket to connect to, as `unix:` or `unixgram:` name it.
    Unix(&'static str, String),
    /// Sockets of a kind; a rule about some address brings them. Whether those of UDP.
    Sockets(bool),
    /// A protocol of netlink.
    Netlink,
    /// A capability, as profiles name it.
    Capability(String),
}

/// What would grant `missing` of `access`; `None` where no line of a profile could.
#[must_use]
pub fn need(access: &Access, missing: &[String]) -> Option<Need> {
    let wants = |names: &[&str]| missing.iter().any(|name| names.contains(&name.as_str()));
    let what = match access.tclass.as_str() {
        "blk_file" => return None,
        // Devices are used, and neither made nor watched.
        "chr_file" if missing.iter().any(|it| it == "create" || it.starts_with("watch")) => {
            return None;
        }
        "file" | "dir" | "lnk_file" | "chr_file" | "fifo_file" | "sock_file" => {
            let path = access.path()?.to_owned();
            file(&access.tclass, &wants, path)?
        }
        "endpoint" => {
            let (address, protocol) = endpoint(&access.object)?;
            let is_udp = protocol == Protocol::Udp;
            match wants(&["name_bind"]) {
                true => What::Bind(address, is_udp),
                false => What::Connect(address, is_udp),
            }
        }
        "unix_stream_socket" if wants(&["connectto"]) => unix("unix", access)?,
        "unix_dgram_socket" if wants(&["sendto"]) => unix("unixgram", access)?,
        "udp_socket" => What::Sockets(true),
        "tcp_socket" => What::Sockets(false),
        "netlink_socket" => What::Netlink,
        "capability" => What::Capability(missing.first()?.clone()),
        _ => return None,
    };
    Some(Need { domain: access.domain().map(str::to_owned), what })
}

fn file(class: &str, wants: &dyn Fn(&[&str]) -> bool, path: PathBuf) -> Option<What> {
    const CHANGES: [&str; 13] = [
        "write",
        "append",
        "create",
        "unlink",
        "rename",
        "link",
        "setattr",
        "add_name",
        "remove_name",
        "rmdir",
        "reparent",
        "lock",
        "relabelto",
    ];
    if wants(&["execute", "execute_no_trans"]) {
        return Some(What::Exec(path));
    }
    if wants(&CHANGES) {
        return Some(What::Write(path));
    }
    if class == "dir" && wants(&["read", "open"]) && !wants(&["watch"]) {
        return Some(What::List(path));
    }
    let reads = ["read", "open", "getattr", "search", "watch", "ioctl", "map"];
    wants(&reads).then_some(What::Read(path))
}

fn unix(scheme: &'static str, access: &Access) -> Option<What> {
    // An unbound or foreign process's socket is no name.
    let name = access.object.strip_prefix("unix:").filter(|_| !access.is_about_a_process())?;
    Some(What::Unix(scheme, name.to_owned()))
}

impl What {
    /// The list that it goes into; `None` where it goes into no list.
    #[must_use]
    pub fn key(&self) -> Option<&'static str> {
        Some(match self {
            Self::List(_) => "files.list",
            Self::Read(_) => "files.read",
            Self::Write(_) => "files.write",
            Self::Exec(_) => "files.exec",
            Self::Connect(..) | Self::Unix(..) => "network.connect",
            Self::Bind(..) => "network.bind",
            Self::Capability(_) => "capabilities",
            Self::Sockets(_) | Self::Netlink => return None,
        })
    }

    /// Where it leads outside, if it is about connecting: `unix:PATH`, `ADDRESS:PORT`.
    #[must_use]
    pub fn address(&self) -> Option<String> {
        match self {
            Self::Connect(address, _) => Some(address.to_string()),
            Self::Unix(scheme, name) => Some(format!("{scheme}:{name}")),
            _ => None,
        }
    }

    /// The path, if it is about one.
    #[must_use]
    pub fn path(&self) -> Option<&PathBuf> {
        match self {
            Self::List(path) | Self::Read(path) | Self::Write(path) | Self::Exec(path) => {
                Some(path)
            }
            _ => None,
        }
    }
}
