//! Classes and permissions of the object managers, found in the policy by name.

use crate::engine::AvDecision;
use crate::policy::{HandleUnknown, Policy};
use crate::{ClassId, LoadError};
use flask::{AccessVector, Class, Classes, Decision, Seqno};
use std::sync::Arc;

/// A class of the object managers as the policy knows it.
#[derive(Debug)]
struct Mapped {
    class: ClassId,
    /// The policy's bit of each permission; 0 where the policy lacks it.
    bits: [u32; 32],
    /// The object managers' bits of the permissions that the policy lacks, and of those beyond the
    /// class.
    unknown: u32,
    beyond: u32,
    /// Whether both number the permissions alike.
    identical: bool,
}

/// For each class of the object managers, the policy's.
#[derive(Debug)]
pub(super) struct Mapping {
    /// By number: the listed ones, and behind them the program's own.
    classes: Vec<Option<Mapped>>,
    names: Arc<Classes>,
    allow_unknown: bool,
}

impl Mapping {
    /// Finds every class and permission by name, those of `names` too.
    ///
    /// # Errors
    ///
    /// [`LoadError`] when one is missing from a policy with `(handleunknown reject)`.
    pub(super) fn new(policy: &Policy, names: Arc<Classes>) -> Result<Self, LoadError> {
        let classes = Class::all().chain(names.own()).map(|class| map_class(policy, &names, class));
        let allow_unknown = policy.handle_unknown == HandleUnknown::Allow;
        let mapping = Self { classes: classes.collect(), allow_unknown, names };
        if policy.handle_unknown == HandleUnknown::Reject
            && let Some((class, permission)) = mapping.lacking().next()
        {
            return Err(LoadError::Unknown { class: class.into(), permission: permission.into() });
        }
        Ok(mapping)
    }

    /// Every class and permission that the object managers know and the policy lacks, by name.
    pub(super) fn lacking(&self) -> impl Iterator<Item = (&str, &str)> {
        let classes = Class::all().chain(self.names.own());
        classes.flat_map(move |class| {
            let missing = self.get(class).map_or(u32::MAX, |mapped| mapped.unknown);
            let names = self.names.names(class, AccessVector(missing));
            names.map(move |permission| (self.names.name(class), permission))
        })
    }

    /// The classes that the object managers know.
    pub(super) fn names(&self) -> &Arc<Classes> {
        &self.names
    }

    fn get(&self, class: Class) -> Option<&Mapped> {
        self.classes.get(usize::from(class.number()) - 1)?.as_ref()
    }

    /// The policy's class.
    pub(super) fn class(&self, class: Class) -> Option<ClassId> {
        self.get(class).map(|mapped| mapped.class)
    }

    /// The policy's bits of `perms`.
    pub(super) fn to_policy(&self, class: Class, perms: AccessVector) -> u32 {
        let mapped = self.get(class);
        let bits = mapped.into_iter().flat_map(|mapped| mapped.bits.iter().enumerate());
        bits.filter(|(n, _)| perms.0 & (1 << n) != 0).fold(0, |all, (_, bit)| all | bit)
    }

    /// What `handleunknown` says about a class that the policy lacks.
    pub(super) fn unknown_class(&self, permissive: bool, seqno: Seqno) -> Decision {
        let allowed = if self.allow_unknown { AccessVector::ALL } else { AccessVector::NONE };
        Decision { allowed, permissive, seqno, ..Decision::DENY_ALL }
    }

    /// The decision in the object managers' bits.
    #[inline]
    pub(super) fn decision(&self, class: Class, av: AvDecision, seqno: Seqno) -> Decision {
        let Some(mapped) = self.get(class) else {
            return self.unknown_class(av.permissive, seqno);
        };
        let (mut allowed, auditallow, mut auditdeny) = if mapped.identical {
            (av.allowed, av.auditallow, av.auditdeny)
        } else {
            (mapped.back(av.allowed), mapped.back(av.auditallow), mapped.back(av.auditdeny))
        };
        if self.allow_unknown {
            allowed |= mapped.unknown;
        } else {
            auditdeny |= mapped.unknown;
        }
        Decision {
            allowed: AccessVector(allowed),
            auditallow: AccessVector(auditallow),
            auditdeny: AccessVector(auditdeny | mapped.beyond),
            permissive: av.permissive,
            seqno,
        }
    }
}

impl Mapped {
    fn back(&self, av: u32) -> u32 {
        let bits = self.bits.iter().enumerate();
        bits.filter(|(_, bit)| av & **bit != 0).fold(0, |all, (n, _)| all | 1 << n)
    }
}

fn map_class(policy: &Policy, names: &Classes, class: Class) -> Option<Mapped> {
    let id = policy.class(names.name(class))?;
    let entry = &policy.classes[id.index()];
    let (mut bits, mut count) = ([0; 32], 0);
    for (bit, name) in bits.iter_mut().zip(names.permissions(class)) {
        *bit = entry.permission(name).unwrap_or(0);
        count += 1;
    }
    let unknown = (0..count).filter(|n| bits[*n] == 0).fold(0, |all, n| all | 1 << n);
    let beyond = u32::MAX.checked_shl(count as u32).unwrap_or(0);
    let identical = bits[..count].iter().enumerate().all(|(n, bit)| *bit == 1 << n)
        && entry.permissions.len() == count;
    Some(Mapped { class: id, bits, unknown, beyond, identical })
}
