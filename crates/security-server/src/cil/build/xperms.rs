//! Rules on extended permissions: numbers of `ioctl` commands and netlink messages.

use super::permissions::XpermSet;
use super::statements::LiveStatement;
use super::{Binding, Builder, ClassPerms, Container, Failure, Item, Node, Space, Word, kw};
use crate::BitSet;
use crate::cil::sets::{Sets, set};
use crate::policy::{XpermKind, XpermRule, Xperms};

impl Builder<'_> {
    pub(super) fn permission_x(&mut self, s: &LiveStatement) -> Result<(), Failure> {
        let [name, value] = self.args(s)?;
        let id = self.symbol(s.at, Space::PermissionX, name)?;
        let set = self.xperm_set(s.at, value)?;
        self.permissionx.insert(id, set);
        Ok(())
    }

    fn xperm_set(&mut self, at: Container, node: Node) -> Result<XpermSet, Failure> {
        if let Item::Word(_) = node.item {
            return match self.find(at, Space::PermissionX, node)? {
                Binding::Symbol(id) => {
                    let known = self.permissionx.get(&id).cloned();
                    known.ok_or_else(|| super::expected(node, "set of extended permissions"))
                }
                Binding::Unnamed(node, at) => self.xperm_set(at, node),
                Binding::Text(_) => Err(super::expected(node, "set of extended permissions")),
            };
        }
        let [family, class, numbers] = *self.tree.list(node) else {
            let message = "this is not a set of extended permissions".to_owned();
            return Err(Failure::wrong(node, message, "write `(ioctl class (number …))`"));
        };
        let family = match family.item {
            Item::Word(kw::IOCTL) => XpermKind::Ioctl,
            Item::Word(kw::NLMSG) => XpermKind::Nlmsg,
            _ => return Err(super::expected(family, "family, `ioctl` or `nlmsg`")),
        };
        let classes = self.class_list(at, class)?;
        let numbers = set(self.tree, numbers, &mut Numbers { builder: self })?;
        Ok(XpermSet { family, classes, numbers })
    }

    pub(super) fn xperm_rule(&mut self, s: &LiveStatement) -> Result<(), Failure> {
        let [source, target, value] = self.args(s)?;
        let set = self.xperm_set(s.at, value)?;
        let kind = self.av_kind(s);
        let (branch, place) = self.rule_base(s);
        let pairs = self.pairs(s.at, source, target)?;
        let parts = split(&set.numbers);
        self.spend(s.node, 3 * pairs.len() * set.classes.len() * parts.len())?;
        for (source, target) in pairs {
            for class in &set.classes {
                for xperms in parts.iter().cloned() {
                    self.policy.xperm_rules.push(XpermRule {
                        source,
                        target,
                        class: *class,
                        kind,
                        family: set.family,
                        xperms,
                        branch,
                        place,
                    });
                }
            }
        }
        Ok(())
    }

    pub(super) fn neverallow_x(&mut self, s: &LiveStatement) -> Result<(), Failure> {
        let [source, target, value] = self.args(s)?;
        let set = self.xperm_set(s.at, value)?;
        let name = match set.family {
            XpermKind::Ioctl => "ioctl",
            XpermKind::Nlmsg => "nlmsg",
        };
        for class in set.classes {
            let perms = self.policy.classes[class.index()].permission(name).unwrap_or(0);
            let numbers = Some((set.family, ranges(&set.numbers)));
            let rule =
                self.neverallow_rule(s, source, target, ClassPerms { class, perms }, numbers)?;
            self.policy.neverallows.push(rule);
        }
        Ok(())
    }
}

/// Numbers as rules hold them: whole drivers together, other functions by driver.
fn split(numbers: &BitSet) -> Vec<Xperms> {
    let mut whole = [0u64; 4];
    let mut parts = Vec::new();
    for driver in 0..=u8::MAX {
        let mut functions = [0u64; 4];
        for function in 0..256 {
            if numbers.contains(usize::from(driver) * 256 + function) {
                functions[function / 64] |= 1 << (function % 64);
            }
        }
        if functions == [u64::MAX; 4] {
            whole[usize::from(driver) / 64] |= 1 << (driver % 64);
        } else if functions != [0; 4] {
            parts.push(Xperms::Functions { driver, functions });
        }
    }
    if whole != [0; 4] {
        parts.push(Xperms::Drivers(whole));
    }
    parts
}

/// Numbers as inclusive ranges.
fn ranges(numbers: &BitSet) -> Vec<(u16, u16)> {
    let mut ranges: Vec<(u16, u16)> = Vec::new();
    for number in numbers.iter().map(|number| number as u16) {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    ranges
}

/// Numbers, for expressions over them.
struct Numbers<'a, 'b> {
    builder: &'a Builder<'b>,
}

impl Numbers<'_, '_> {
    fn parse(&self, node: Node) -> Result<usize, Failure> {
        let text = self.builder.text(node)?;
        let number = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
            Some(digits) => u16::from_str_radix(digits, 16),
            None => text.parse(),
        };
        number.map(usize::from).map_err(|_| {
            let message = format!("`{text}` is not a number of 16 bits");
            Failure::wrong(node, message, "write it as 35092 or 0x8914")
        })
    }
}

impl Sets for Numbers<'_, '_> {
    fn all(&self) -> BitSet {
        BitSet::below(1 << 16)
    }

    fn named(&mut self, node: Node, _word: Word) -> Result<BitSet, Failure> {
        Ok([self.parse(node)?].into_iter().collect())
    }

    fn range(&mut self, node: Node, first: Node, last: Node) -> Result<BitSet, Failure> {
        let (first, last) = (self.parse(first)?, self.parse(last)?);
        if first > last {
            let message = "the first number is greater than the last".to_owned();
            return Err(Failure::wrong(node, message, "exchange them"));
        }
        Ok((first..=last).collect())
    }
}
