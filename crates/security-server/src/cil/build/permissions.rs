//! Permissions that names stand for.

use crate::policy::XpermKind;
use crate::{BitSet, ClassId};

/// Permissions of one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClassPerms {
    pub(super) class: ClassId,
    pub(super) perms: u32,
}

/// A set of extended permissions that a name stands for.
#[derive(Clone, Debug)]
pub(super) struct XpermSet {
    pub(super) family: XpermKind,
    pub(super) classes: Vec<ClassId>,
    pub(super) numbers: BitSet,
}
