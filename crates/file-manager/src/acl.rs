//! Access control lists, as acl(5) has them: whom the value of an extended attribute names.

use audit::Refusal;
use mediation::call::Asker;
use rustix::io::Errno;
use std::ffi::CStr;

/// `ACL_USER` and `ACL_GROUP` of `linux/posix_acl.h`.
const USER: u16 = 0x02;
const GROUP: u16 = 0x08;

/// Whether an extended attribute is such a list.
pub(super) fn is_acl(name: &CStr) -> bool {
    name.to_bytes().starts_with(b"system.posix_acl_")
}

/// A user or group that `value` names, and that is not the run's own, in words.
/// `linux/posix_acl_xattr.h` has the layout: a header of 4 bytes, and entries of 8, with tag,
/// rights and ID.
fn named(value: &[u8], own: (u32, u32)) -> Option<String> {
    let entries = value.get(4..)?.chunks_exact(8);
    entries.into_iter().find_map(|entry| {
        let tag = u16::from_le_bytes(entry[..2].try_into().ok()?);
        let id = u32::from_le_bytes(entry[4..].try_into().ok()?);
        match tag {
            USER if id != own.0 => Some(format!("user {id}")),
            GROUP if id != own.1 => Some(format!("group {id}")),
            _ => None,
        }
    })
}

/// What the program sees where the kernel has refused to set an attribute with `errno`: in a user
/// namespace with one ID, a list can name nobody else, and that is on record.
pub(super) fn refused(asker: Asker<'_>, (name, value): (&CStr, &[u8]), errno: Errno) -> Errno {
    let on_behalf = &asker.state.on_behalf;
    let may_name = !(on_behalf.one_id && errno == Errno::INVAL && is_acl(name));
    match named(value, on_behalf.ids) {
        Some(object) if !may_name => asker.refuse(&Refusal {
            errno: Errno::OPNOTSUPP,
            by: "the user namespace",
            tclass: "file",
            missing: asker.number.name(),
            object,
            reason: "an access control list names it, and the run's user namespace has no ID but its own user's and group's",
            instead: "start the run with --without user, which also takes the namespaces that it needs it for, or set the list \
                      outside of the run",
        }),
        _ => errno,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `user::rw-,user:65534:r--,group::r--,group:7:r--,mask::r--,other::r--`, of these IDs.
    fn list(user: u32, group: u32) -> Vec<u8> {
        let none = u32::MAX;
        let entries =
            [(1, 6, none), (2, 4, user), (4, 4, none), (8, 4, group), (16, 4, none), (32, 4, none)];
        let mut value = 2_u32.to_le_bytes().to_vec();
        for (tag, rights, id) in entries {
            value.extend(u16::to_le_bytes(tag));
            value.extend(u16::to_le_bytes(rights));
            value.extend(u32::to_le_bytes(id));
        }
        value
    }

    #[test]
    fn whoever_is_not_the_runs_own_is_named() {
        let named = |user, group| named(&list(user, group), (1000, 100));
        assert_eq!(named(65534, 100).as_deref(), Some("user 65534"));
        assert_eq!(named(1000, 7).as_deref(), Some("group 7"));
        assert_eq!(named(1000, 100), None);
    }

    #[test]
    fn a_list_that_is_none_names_nobody() {
        for end in 0..list(7, 7).len() {
            let _ = named(&list(7, 7)[..end], (0, 0));
        }
        assert_eq!(named(b"", (0, 0)), None);
        assert_eq!(named(&[255; 11], (0, 0)), None);
    }
}
