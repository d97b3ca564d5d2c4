//! Labelling rules: which security context an object has when it is first met.

use crate::Sid;
use std::net::IpAddr;

/// The kinds of file that a rule can be limited to, as in a file-contexts specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// Every kind.
    Any,
    /// Regular files.
    File,
    /// Directories.
    Dir,
    /// Character devices.
    Char,
    /// Block devices.
    Block,
    /// Sockets.
    Socket,
    /// FIFOs.
    Pipe,
    /// Symbolic links.
    Symlink,
}

/// `filecon`: files whose whole absolute path matches a regular expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRule {
    /// Regular expression over the whole path (anchored at both ends). The rule with the longest
    /// literal stem wins; among equals, the later.
    pub path: String,
    /// The kinds of file it is for.
    pub kind: FileKind,
    /// The label; `None` (CIL's `()`) leaves the file with the initial SID `file`.
    pub sid: Option<Sid>,
}

/// Transport protocols that have ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// DCCP.
    Dccp,
    /// SCTP.
    Sctp,
}

/// `portcon`: a range of ports. The narrowest range wins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortRule {
    /// The protocol.
    pub protocol: Protocol,
    /// First port, inclusive.
    pub low: u16,
    /// Last port, inclusive.
    pub high: u16,
    /// The label.
    pub sid: Sid,
}

/// `nodecon`: addresses that equal `address` under `mask`. The longest mask wins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRule {
    /// The network's address.
    pub address: IpAddr,
    /// The network's mask, of the same family.
    pub mask: IpAddr,
    /// The label.
    pub sid: Sid,
}

/// All labelling rules of a policy, in the order of its text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelRules {
    /// `filecon` rules.
    pub files: Vec<FileRule>,
    /// `portcon` rules.
    pub ports: Vec<PortRule>,
    /// `nodecon` rules.
    pub nodes: Vec<NodeRule>,
}
