//! Extended permissions: few policies have them, so they are looked up pair by pair.

use crate::hash::HashMap;
use crate::policy::{AvKind, Branch, Policy, XpermKind, XpermRule, Xperms};
use crate::{BitSet, ClassId, TypeId};

/// What extended permission rules say about one (source, target, class).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct XpermSets {
    /// Whether any rule exists: then numbers outside [`Self::allow`] are denied, though the
    /// permission is granted.
    pub limited: bool,
    /// Granted `ioctl` numbers.
    pub allow: Numbers,
    /// Numbers that are recorded when granted.
    pub auditallow: Numbers,
    /// Numbers that are not recorded when denied.
    pub dontaudit: Numbers,
}

/// 16-bit numbers of each family.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Numbers {
    /// `ioctl` commands.
    pub ioctl: BitSet,
    /// Netlink message types.
    pub nlmsg: BitSet,
}

impl Numbers {
    /// The numbers of one family.
    #[must_use]
    pub fn of(&self, family: XpermKind) -> &BitSet {
        match family {
            XpermKind::Ioctl => &self.ioctl,
            XpermKind::Nlmsg => &self.nlmsg,
        }
    }

    fn add(&mut self, family: XpermKind, xperms: &Xperms) {
        let set = match family {
            XpermKind::Ioctl => &mut self.ioctl,
            XpermKind::Nlmsg => &mut self.nlmsg,
        };
        set.union_with(&xperms.numbers());
    }
}

impl Xperms {
    /// The numbers, of 16 bits.
    #[must_use]
    pub fn numbers(&self) -> BitSet {
        let mut set = BitSet::new();
        match self {
            Self::Functions { driver, functions } => {
                for (word, bits) in functions.iter().enumerate() {
                    set.insert_word(usize::from(*driver) * 4 + word, *bits);
                }
            }
            Self::Drivers(drivers) => {
                let whole = (0..256).filter(|d| drivers[d / 64] & (1 << (d % 64)) != 0);
                for driver in whole {
                    (0..4).for_each(|word| set.insert_word(driver * 4 + word, u64::MAX));
                }
            }
        }
        set
    }
}

/// Numbers of rules, by source, target and class.
#[derive(Debug, Default)]
pub(super) struct XpermIndex {
    by_key: HashMap<(TypeId, TypeId, ClassId), Vec<u32>>,
}

impl XpermIndex {
    pub(super) fn new(rules: &[XpermRule]) -> Self {
        let mut by_key: HashMap<_, Vec<u32>> = HashMap::default();
        for (rule, number) in rules.iter().zip(0..) {
            by_key.entry((rule.source, rule.target, rule.class)).or_default().push(number);
        }
        Self { by_key }
    }

    pub(super) fn collect(
        &self,
        policy: &Policy,
        source: TypeId,
        target: TypeId,
        class: ClassId,
        active: &dyn Fn(Branch) -> bool,
    ) -> XpermSets {
        let mut sets = XpermSets::default();
        if self.by_key.is_empty() {
            return sets;
        }
        let attributes = |id: TypeId| {
            policy.types.get_index(id.index()).map_or(&[][..], |(_, entry)| &entry.attributes)
        };
        for source in attributes(source) {
            for target in attributes(target) {
                let rules = self.by_key.get(&(*source, *target, class)).into_iter().flatten();
                let rules = rules.map(|number| &policy.xperm_rules[*number as usize]);
                for rule in rules.filter(|rule| rule.branch.is_none_or(active)) {
                    sets.add(rule);
                }
            }
        }
        sets
    }
}

impl XpermSets {
    fn add(&mut self, rule: &XpermRule) {
        self.limited = true;
        let numbers = match rule.kind {
            AvKind::Allow => &mut self.allow,
            AvKind::AuditAllow => &mut self.auditallow,
            AvKind::DontAudit => &mut self.dontaudit,
        };
        numbers.add(rule.family, &rule.xperms);
    }
}
