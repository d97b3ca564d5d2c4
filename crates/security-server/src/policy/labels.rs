//! Labelling rules, as the policy spells them.

use super::Context;
use std::net::IpAddr;

/// `filecon`.
#[derive(Clone, Debug)]
pub struct FileLabel {
    /// Regular expression over the whole path.
    pub path: Box<str>,
    /// The kinds of file.
    pub kind: flask::FileKind,
    /// The label; `None` for `()`.
    pub context: Option<Context>,
}

/// `portcon`.
#[derive(Clone, Debug)]
pub struct PortLabel {
    /// The protocol.
    pub protocol: flask::Protocol,
    /// First and last port.
    pub ports: (u16, u16),
    /// The label.
    pub context: Context,
}

/// `nodecon`.
#[derive(Clone, Debug)]
pub struct NodeLabel {
    /// The address.
    pub address: IpAddr,
    /// The mask, of the same family.
    pub mask: IpAddr,
    /// The label.
    pub context: Context,
}

/// `genfscon`.
#[derive(Clone, Debug)]
pub struct Genfs {
    /// Name of the file system type.
    pub filesystem: Box<str>,
    /// Path below its root.
    pub path: Box<str>,
    /// The kinds of file.
    pub kind: flask::FileKind,
    /// The label.
    pub context: Context,
}

/// How a file system gets its labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FsUseKind {
    /// From extended attributes.
    Xattr,
    /// From the task that creates the file.
    Task,
    /// By a transition from the task and the file system.
    Trans,
}

/// `fsuse`.
#[derive(Clone, Debug)]
pub struct FsUse {
    /// How the labels are found.
    pub kind: FsUseKind,
    /// Name of the file system type.
    pub filesystem: Box<str>,
    /// Label of the file system.
    pub context: Context,
}

/// `netifcon`.
#[derive(Clone, Debug)]
pub struct Netif {
    /// Name of the interface.
    pub name: Box<str>,
    /// Label of the interface.
    pub interface: Context,
    /// Label of its packets.
    pub packets: Context,
}

/// The label of a device that only some platforms have (InfiniBand, Xen).
#[derive(Clone, Debug)]
pub struct DeviceLabel {
    /// The statement's keyword, as in `ibpkeycon`.
    pub keyword: &'static str,
    /// The device: its words as they stand in the statement.
    pub device: Box<str>,
    /// The label.
    pub context: Context,
}

/// All labelling rules, in the order of the policy.
#[derive(Clone, Debug, Default)]
pub struct Labels {
    /// `filecon`.
    pub files: Vec<FileLabel>,
    /// `portcon`.
    pub ports: Vec<PortLabel>,
    /// `nodecon`.
    pub nodes: Vec<NodeLabel>,
    /// `genfscon`.
    pub genfs: Vec<Genfs>,
    /// `fsuse`.
    pub fs_uses: Vec<FsUse>,
    /// `netifcon`.
    pub netifs: Vec<Netif>,
    /// `ibpkeycon`, `ibendportcon`, `iomemcon`, `ioportcon`, `pcidevicecon`, `pirqcon`,
    /// `devicetreecon`.
    pub devices: Vec<DeviceLabel>,
}
