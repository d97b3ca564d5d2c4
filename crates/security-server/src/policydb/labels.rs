//! Labelling rules.

use super::cursor::Cursor;
use super::numbers::{role_index, type_index};
use super::problem::Problem;
use super::rules::class_index;
use super::symbols::read_range;
use crate::UserId;
use crate::policy::{
    Context, DeviceLabel, FsUse, FsUseKind, Genfs, Netif, NodeLabel, Policy, PortLabel,
};
use flask::{FileKind, Protocol};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Names of the kernel's initial SIDs, by number from 1.
const INITIAL_SIDS: [&str; 27] = [
    "kernel",
    "security",
    "unlabeled",
    "fs",
    "file",
    "file_labels",
    "init",
    "any_socket",
    "port",
    "netif",
    "netmsg",
    "node",
    "igmp_packet",
    "icmp_socket",
    "tcp_socket",
    "sysctl_modprobe",
    "sysctl",
    "sysctl_fs",
    "sysctl_kernel",
    "sysctl_net",
    "sysctl_net_unix",
    "sysctl_vm",
    "sysctl_dev",
    "kmod",
    "policy",
    "scmp_packet",
    "devnull",
];

/// Reads the labelling rules of all kinds.
pub(super) fn read(
    cursor: &mut Cursor<'_>,
    policy: &mut Policy,
    kinds: u32,
) -> Result<(), Problem> {
    for kind in 0..kinds {
        for _ in 0..cursor.count(16)? {
            match kind {
                0 => initial_sid(cursor, policy)?,
                1 => filesystem(cursor, policy)?,
                2 => port(cursor, policy)?,
                3 => netif(cursor, policy)?,
                4 => node4(cursor, policy)?,
                5 => fs_use(cursor, policy)?,
                6 => node6(cursor, policy)?,
                7 => ib_pkey(cursor, policy)?,
                _ => ib_end_port(cursor, policy)?,
            }
        }
    }
    for _ in 0..cursor.count(8)? {
        let filesystem = cursor.string()?;
        for _ in 0..cursor.count(16)? {
            genfs(cursor, policy, filesystem)?;
        }
    }
    Ok(())
}

fn context(cursor: &mut Cursor<'_>, policy: &Policy) -> Result<Context, Problem> {
    let (user, role, type_) = (cursor.u32()?, cursor.u32()?, cursor.u32()?);
    let range = read_range(cursor)?;
    let user_id = user.checked_sub(1).map(UserId);
    let context = Context {
        user: user_id.ok_or(Problem::Number { kind: "user", number: user })?,
        role: role_index(policy, role)?,
        type_: type_index(policy, type_)?,
        range: Some(Box::new(range)).filter(|_| policy.mls),
    };
    let valid = policy.validate(&context);
    valid.map_err(|_| Problem::Malformed("a label is not a valid context"))?;
    Ok(context)
}

fn initial_sid(cursor: &mut Cursor<'_>, policy: &mut Policy) -> Result<(), Problem> {
    let number = cursor.u32()?;
    let index = (number as usize).checked_sub(1);
    let known = index.and_then(|index| INITIAL_SIDS.get(index));
    let name = known.map_or_else(|| format!("sid{number}"), |name| (*name).to_owned());
    let context = context(cursor, policy)?;
    policy.initial_sids.insert(name.into(), Some(context));
    Ok(())
}

/// Labels of file systems by name are not used by any kernel any more; they are read over.
fn filesystem(cursor: &mut Cursor<'_>, policy: &Policy) -> Result<(), Problem> {
    cursor.string()?;
    context(cursor, policy)?;
    context(cursor, policy)?;
    Ok(())
}

fn port(cursor: &mut Cursor<'_>, policy: &mut Policy) -> Result<(), Problem> {
    let protocol = match cursor.u32()? {
        6 => Protocol::Tcp,
        17 => Protocol::Udp,
        33 => Protocol::Dccp,
        132 => Protocol::Sctp,
        _ => return Err(Problem::Malformed("a port has an unknown protocol")),
    };
    let (low, high) = (u16::try_from(cursor.u32()?), u16::try_from(cursor.u32()?));
    let (Ok(low), Ok(high)) = (low, high) else {
        return Err(Problem::Malformed("a port is greater than 65,535"));
    };
    let context = context(cursor, policy)?;
    policy.labels.ports.push(PortLabel { protocol, ports: (low, high), context });
    Ok(())
}

fn netif(cursor: &mut Cursor<'_>, policy: &mut Policy) -> Result<(), Problem> {
    let name = cursor.string()?.into();
    let (interface, packets) = (context(cursor, policy)?, context(cursor, policy)?);
    policy.labels.netifs.push(Netif { name, interface, packets });
    Ok(())
}

fn node4(cursor: &mut Cursor<'_>, policy: &mut Policy) -> Result<(), Problem> {
    // Addresses are in network order, whatever the order of other numbers.
    let address = Ipv4Addr::from(cursor.bytes::<4>()?).into();
    let mask = Ipv4Addr::from(cursor.bytes::<4>()?).into();
    let context = context(cursor, policy)?;
    policy.labels.nodes.push(NodeLabel { address, mask, context });
    Ok(())
}

fn node6(cursor: &mut Cursor<'_>, policy: &mut Policy) -> Result<(), Problem> {
    let address = Ipv6Addr::from(cursor.bytes::<16>()?).into();
    let mask = Ipv6Addr::from(cursor.bytes::<16>()?).into();
    let context = context(cursor, policy)?;
    policy.labels.nodes.push(NodeLabel { address, mask, context });
    Ok(())
}

fn fs_use(cursor: &mut Cursor<'_>, policy: &mut Policy) -> Result<(), Problem> {
    let kind = match cursor.u32()? {
        1 => FsUseKind::Xattr,
        2 => FsUseKind::Trans,
        3 => FsUseKind::Task,
        _ => return Err(Problem::Malformed("a file system gets its labels in no known way")),
    };
    let filesystem = cursor.string()?.into();
    let context = context(cursor, policy)?;
    policy.labels.fs_uses.push(FsUse { kind, filesystem, context });
    Ok(())
}

fn ib_pkey(cursor: &mut Cursor<'_>, policy: &mut Policy) -> Result<(), Problem> {
    let subnet = u64::from_be_bytes(cursor.bytes::<8>()?);
    let (low, high) = (cursor.u32()?, cursor.u32()?);
    let subnet = Ipv6Addr::from(u128::from(subnet) << 64);
    let device = format!("{subnet} ({low} {high})").into();
    let context = context(cursor, policy)?;
    policy.labels.devices.push(DeviceLabel { keyword: "ibpkeycon", device, context });
    Ok(())
}

fn ib_end_port(cursor: &mut Cursor<'_>, policy: &mut Policy) -> Result<(), Problem> {
    let (len, port) = (cursor.u32()?, cursor.u32()?);
    let name = cursor.name(len)?;
    let device = format!("{name} {port}").into();
    let context = context(cursor, policy)?;
    policy.labels.devices.push(DeviceLabel { keyword: "ibendportcon", device, context });
    Ok(())
}

fn genfs(cursor: &mut Cursor<'_>, policy: &mut Policy, name: &str) -> Result<(), Problem> {
    let path = cursor.string()?.into();
    let class = cursor.u32()?;
    let kind = match class {
        0 => FileKind::Any,
        _ => file_kind(policy.class_name(class_index(policy, class)?))?,
    };
    let context = context(cursor, policy)?;
    policy.labels.genfs.push(Genfs { filesystem: name.into(), path, kind, context });
    Ok(())
}

fn file_kind(class: &str) -> Result<FileKind, Problem> {
    Ok(match class {
        "file" => FileKind::File,
        "dir" => FileKind::Dir,
        "chr_file" => FileKind::Char,
        "blk_file" => FileKind::Block,
        "sock_file" => FileKind::Socket,
        "fifo_file" => FileKind::Pipe,
        "lnk_file" => FileKind::Symlink,
        _ => return Err(Problem::Malformed("a file system's label is for no kind of file")),
    })
}
