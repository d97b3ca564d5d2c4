//! Reader for binary kernel policies (policydb), versions 30 to 35:
//! `/etc/selinux/*/policy/policy.33` as it is.
//!
//! The format is that of Linux, `security/selinux/ss/policydb.c`. All numbers are little-endian.
//! Every count is checked against the bytes that are left before anything is allocated for it.

mod cursor;
mod labels;
mod numbers;
mod problem;
mod rules;
mod symbols;

use crate::policy::{HandleUnknown, Policy, TypeKind};
use cursor::Cursor;
use numbers::type_index;
pub use problem::Problem;

/// Why a binary policy cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("binary policy, byte {offset}: {problem}")]
pub struct ReadError {
    /// Where reading stopped.
    pub offset: usize,
    /// What is wrong there.
    pub problem: Problem,
}

/// The bits of the header's configuration word.
const CONFIG_MLS: u32 = 1;
const CONFIG_REJECT_UNKNOWN: u32 = 2;
const CONFIG_ALLOW_UNKNOWN: u32 = 4;

/// Names of policy capabilities, by their numbers.
const CAPABILITIES: [&str; 13] = [
    "network_peer_controls",
    "open_perms",
    "extended_socket_class",
    "always_check_network",
    "cgroup_seclabel",
    "nnp_nosuid_transition",
    "genfs_seclabel_symlinks",
    "ioctl_skip_cloexec",
    "userspace_initial_context",
    "netlink_xperm",
    "netif_wildcard",
    "genfs_seclabel_wildcard",
    "functionfs_seclabel",
];

/// Whether `bytes` begin like a binary policy.
#[must_use]
pub fn is_policydb(bytes: &[u8]) -> bool {
    bytes.starts_with(&cursor::MAGIC.to_le_bytes())
}

/// Reads a binary kernel policy.
///
/// # Errors
///
/// [`ReadError`] with the place and the problem.
pub fn read(bytes: &[u8]) -> Result<Policy, ReadError> {
    let mut cursor = Cursor::new(bytes);
    read_policy(&mut cursor).map_err(|problem| ReadError { offset: cursor.offset(), problem })
}

fn read_policy(cursor: &mut Cursor<'_>) -> Result<Policy, Problem> {
    let mut policy = Policy::default();
    let header = header(cursor, &mut policy)?;
    let permissive = cursor.bits(1 << 17)?;
    let neveraudit =
        if cursor.version >= 35 { cursor.bits(1 << 17)? } else { crate::BitSet::new() };
    symbols::read(cursor, &mut policy)?;
    for (set, mark) in [(&permissive, 0), (&neveraudit, 1)] {
        for value in set.iter() {
            let index = type_index(&policy, value as u32)?.index();
            let entry = &mut policy.types[index];
            *(if mark == 0 { &mut entry.permissive } else { &mut entry.neveraudit }) = true;
        }
    }
    rules::read(cursor, &mut policy)?;
    labels::read(cursor, &mut policy, header.label_kinds)?;
    rules::read_range_transitions(cursor, &mut policy)?;
    attributes(cursor, &mut policy)?;
    symbols::check(&policy)?;
    if policy.is_too_large() {
        return Err(Problem::Malformed("there are too many types and classes together"));
    }
    Ok(policy)
}

struct Header {
    label_kinds: u32,
}

fn header(cursor: &mut Cursor<'_>, policy: &mut Policy) -> Result<Header, Problem> {
    if cursor.u32() != Ok(cursor::MAGIC) || cursor.string() != Ok("SE Linux") {
        return Err(Problem::NotAPolicy);
    }
    cursor.version = cursor.u32()?;
    if !(30..=35).contains(&cursor.version) {
        return Err(Problem::Version(cursor.version));
    }
    let config = cursor.u32()?;
    policy.mls = config & CONFIG_MLS != 0;
    policy.handle_unknown = match config & (CONFIG_REJECT_UNKNOWN | CONFIG_ALLOW_UNKNOWN) {
        CONFIG_REJECT_UNKNOWN => HandleUnknown::Reject,
        CONFIG_ALLOW_UNKNOWN => HandleUnknown::Allow,
        _ => HandleUnknown::Deny,
    };
    let label_kinds = if cursor.version >= 31 { 9 } else { 7 };
    if cursor.u32()? != 8 || cursor.u32()? != label_kinds {
        return Err(Problem::Malformed("the number of tables is not that of the version"));
    }
    for number in cursor.bits(1 << 10)?.iter() {
        let name = CAPABILITIES.get(number).map_or_else(|| format!("{number}"), |n| (*n).into());
        policy.capabilities.push(name.into());
    }
    Ok(Header { label_kinds })
}

/// For each type, the attributes that it has.
fn attributes(cursor: &mut Cursor<'_>, policy: &mut Policy) -> Result<(), Problem> {
    let count = policy.types.len();
    for index in 0..count {
        let attributes = cursor.bits(count)?;
        let kind = policy.types[index].kind;
        if kind == TypeKind::Type {
            cursor.insert(&mut policy.types[index].members, index)?;
        }
        for attribute in attributes.iter().filter(|attribute| *attribute != index) {
            match (kind, policy.types[attribute].kind) {
                (TypeKind::Type, TypeKind::Attribute) => {
                    cursor.insert(&mut policy.types[attribute].members, index)?;
                }
                (TypeKind::Unused, _) => {}
                _ => return Err(Problem::Malformed("an attribute's member is not a type")),
            }
        }
    }
    policy.index_attributes();
    Ok(())
}
