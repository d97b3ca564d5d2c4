//! Sets of permissions, and the security server's answers made of them.

use crate::Class;
use std::{fmt, ops};

/// Permission bits of one class: bit n is the n-th permission of that class in
/// `policy/access_vectors`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AccessVector(pub u32);

impl AccessVector {
    /// No permission.
    pub const NONE: Self = Self(0);
    /// Every permission that a class could have.
    pub const ALL: Self = Self(u32::MAX);

    /// Whether no permission is in it.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The permissions of `self` that `allowed` lacks.
    #[must_use]
    pub const fn missing_from(self, allowed: Self) -> Self {
        Self(self.0 & !allowed.0)
    }

    /// Whether `self` holds every permission of `other`.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        other.0 & !self.0 == 0
    }

    /// The names that `class` gives to these permissions; bits beyond the class are left out.
    pub fn names(self, class: Class) -> impl Iterator<Item = &'static str> {
        let names = class.permissions().iter().enumerate();
        names.filter(move |(bit, _)| self.0 & (1 << bit) != 0).map(|(_, name)| *name)
    }
}

impl ops::BitOr for AccessVector {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl ops::BitOrAssign for AccessVector {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl ops::BitAnd for AccessVector {
    type Output = Self;
    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

/// Number of a policy state inside one security server. It grows with every change of policy or
/// boolean, so an answer that carries a smaller one is out of date and must not be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seqno(pub u32);

impl fmt::Display for Seqno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The security server's answer for one (source SID, target SID, class).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// What is granted.
    pub allowed: AccessVector,
    /// What is recorded when granted.
    pub auditallow: AccessVector,
    /// What is recorded when denied.
    pub auditdeny: AccessVector,
    /// The source's domain is permissive: denials are recorded, not enforced.
    pub permissive: bool,
    /// The policy state that this follows from.
    pub seqno: Seqno,
}

impl Decision {
    /// Nothing allowed, every denial recorded: what holds when there is no answer.
    pub const DENY_ALL: Self = Self {
        allowed: AccessVector::NONE,
        auditallow: AccessVector::NONE,
        auditdeny: AccessVector::ALL,
        permissive: false,
        seqno: Seqno(0),
    };
}
