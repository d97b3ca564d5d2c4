//! Rules on types: access vectors and labels of new objects.

use super::statements::{LiveStatement, Statements};
use super::{Builder, ClassPerms, Container, Failure, Item, Node, Report, Space, kw};
use crate::policy::{
    AvKind, AvRule, Neverallow, TypeKey, TypeKind, TypeRule, TypeRuleKind, XpermKind,
};
use crate::{BitSet, ClassId, TypeId};

/// The objects that a rule is about.
#[derive(Clone, Copy, Debug)]
pub(super) enum RuleObject {
    /// Those of a type or attribute.
    Type(TypeId),
    /// Those of the subject's own type.
    Own,
    /// Those of every type but the subject's own.
    NotOwn,
    /// Those of the types of the source attribute but the subject's own.
    Other,
}

impl Builder<'_> {
    /// Reads rules on types.
    pub(super) fn rules(&mut self, statements: &Statements, report: &mut Report) {
        let av = [kw::ALLOW, kw::AUDITALLOW, kw::DONTAUDIT];
        self.each(statements, &av, report, Self::av_rule);
        self.each(statements, &[kw::PERMISSIONX], report, Self::permission_x);
        let xperms = [kw::ALLOWX, kw::AUDITALLOWX, kw::DONTAUDITX];
        self.each(statements, &xperms, report, Self::xperm_rule);
        self.each(statements, &[kw::NEVERALLOW], report, Self::neverallow);
        self.each(statements, &[kw::NEVERALLOWX], report, Self::neverallow_x);
        let types = [kw::TYPETRANSITION, kw::TYPEMEMBER, kw::TYPECHANGE];
        self.each(statements, &types, report, Self::type_rule);
        self.each(statements, &[kw::RANGETRANSITION], report, Self::range_transition);
        self.policy.index_attributes();
        self.each(statements, &[kw::DENY], report, Self::deny);
    }

    /// The kind of an access vector rule by its keyword.
    pub(super) fn av_kind(&self, s: &LiveStatement) -> AvKind {
        match self.keyword(s) {
            kw::ALLOW | kw::ALLOWX => AvKind::Allow,
            kw::AUDITALLOW | kw::AUDITALLOWX => AvKind::AuditAllow,
            _ => AvKind::DontAudit,
        }
    }

    fn av_rule(&mut self, s: &LiveStatement) -> Result<(), Failure> {
        let [source, target, perms] = self.args(s)?;
        let kind = self.av_kind(s);
        let (branch, place) = self.rule_base(s);
        let pairs = self.pairs(s.at, source, target)?;
        for ClassPerms { class, perms } in self.class_perms(s.at, perms)? {
            if perms != 0 {
                self.spend(s.node, pairs.len())?;
                self.policy.av_rules.extend(pairs.iter().map(|(source, target)| AvRule {
                    source: *source,
                    target: *target,
                    class,
                    kind,
                    perms,
                    branch,
                    place,
                }));
            }
        }
        Ok(())
    }

    pub(super) fn target(&mut self, at: Container, node: Node) -> Result<RuleObject, Failure> {
        Ok(match node.item {
            Item::Word(kw::SELF) => RuleObject::Own,
            Item::Word(kw::NOTSELF) => RuleObject::NotOwn,
            Item::Word(kw::OTHER) => RuleObject::Other,
            _ => RuleObject::Type(self.type_id(at, node)?),
        })
    }

    /// The (source, target) pairs of a rule. Attributes stay as they are, except with `self` and
    /// its kin.
    pub(super) fn pairs(
        &mut self,
        at: Container,
        source_node: Node,
        target: Node,
    ) -> Result<Vec<(TypeId, TypeId)>, Failure> {
        let source = self.type_id(at, source_node)?;
        let target = self.target(at, target)?;
        let members = &self.policy.types[source.index()].members;
        let types = |set: &BitSet| set.iter().map(TypeId::at).collect::<Vec<_>>();
        let others = match target {
            RuleObject::Type(target) => return Ok(vec![(source, target)]),
            RuleObject::Own => return Ok(types(members).into_iter().map(|id| (id, id)).collect()),
            RuleObject::Other => types(members),
            RuleObject::NotOwn => {
                let all = self.policy.types.values().enumerate();
                let all = all.filter(|(_, entry)| entry.kind == TypeKind::Type);
                all.map(|(index, _)| TypeId::at(index)).collect()
            }
        };
        self.spend(source_node, members.len().saturating_mul(others.len()))?;
        let pairs = types(members).into_iter().flat_map(|source| {
            others.iter().filter(move |other| **other != source).map(move |other| (source, *other))
        });
        Ok(pairs.collect())
    }

    fn neverallow(&mut self, s: &LiveStatement) -> Result<(), Failure> {
        let [source, target, perms] = self.args(s)?;
        for perms in self.class_perms(s.at, perms)? {
            let rule = self.neverallow_rule(s, source, target, perms, None)?;
            self.policy.neverallows.push(rule);
        }
        Ok(())
    }

    pub(super) fn neverallow_rule(
        &mut self,
        s: &LiveStatement,
        source: Node,
        target: Node,
        perms: ClassPerms,
        xperms: Option<(XpermKind, Vec<(u16, u16)>)>,
    ) -> Result<Neverallow, Failure> {
        let sources = self.members(s.at, Space::Type, source)?;
        let (targets, except_self) = match self.target(s.at, target)? {
            RuleObject::Own => (None, false),
            RuleObject::Other => (Some(sources.clone()), true),
            RuleObject::NotOwn => (Some(BitSet::below(self.policy.types.len())), true),
            RuleObject::Type(id) => (Some(self.policy.types[id.index()].members.clone()), false),
        };
        let text = self.tree.sources.snippet(s.node.offset);
        self.spend(
            s.node,
            (text.len() + sources.words() + targets.as_ref().map_or(0, BitSet::words)) / 4,
        )?;
        Ok(Neverallow {
            sources,
            targets,
            except_self,
            class: perms.class,
            perms: perms.perms,
            xperms,
            text: text.into(),
            place: self.place(s.node),
        })
    }

    fn type_rule(&mut self, s: &LiveStatement) -> Result<(), Failure> {
        let kind = match self.keyword(s) {
            kw::TYPETRANSITION => TypeRuleKind::Transition,
            kw::TYPEMEMBER => TypeRuleKind::Member,
            _ => TypeRuleKind::Change,
        };
        let (source, target, class, name, result) = match *self.rest(s) {
            [source, target, class, result] => (source, target, class, None, result),
            [source, target, class, name, result] if kind == TypeRuleKind::Transition => {
                (source, target, class, Some(name), result)
            }
            _ => return Err(self.misuse(s)),
        };
        let sources = self.members(s.at, Space::Type, source)?;
        let targets = match target.item {
            Item::Word(kw::SELF) => None,
            _ => Some(self.members(s.at, Space::Type, target)?),
        };
        let classes = self.class_list(s.at, class)?;
        let result = self.single_type(s.at, result)?;
        let name = match name {
            Some(Node { item: Item::Word(kw::STAR), .. }) | None => None,
            Some(name) => Some(self.text_or_param(s.at, name)?),
        };
        match name {
            Some(name) => {
                self.name_transition(s, &sources, targets.as_ref(), &classes, name, result)
            }
            None => self.type_rules(s, kind, &sources, targets.as_ref(), &classes, result),
        }
    }

    fn name_transition(
        &mut self,
        s: &LiveStatement,
        sources: &BitSet,
        targets: Option<&BitSet>,
        classes: &[ClassId],
        name: &str,
        result: TypeId,
    ) -> Result<(), Failure> {
        if s.branch.is_some() {
            let message = "a `typetransition` with a name cannot stand in a `booleanif`".to_owned();
            return Err(Failure::wrong(s.node, message, "put it outside, or use `tunableif`"));
        }
        let pairs: Vec<(BitSet, TypeId)> = match targets {
            Some(targets) => targets.iter().map(|t| (sources.clone(), TypeId::at(t))).collect(),
            None => {
                let one = |index: usize| ([index].into_iter().collect(), TypeId::at(index));
                sources.iter().map(one).collect()
            }
        };
        let cells: usize = pairs.iter().map(|(sources, _)| sources.words()).sum();
        self.spend(s.node, cells.saturating_mul(classes.len()))?;
        let transitions = &mut self.policy.name_transitions;
        for (sources, target) in pairs {
            for class in classes {
                transitions.add(&sources, target, *class, name, result);
            }
        }
        Ok(())
    }

    fn type_rules(
        &mut self,
        s: &LiveStatement,
        kind: TypeRuleKind,
        sources: &BitSet,
        targets: Option<&BitSet>,
        classes: &[ClassId],
        result: TypeId,
    ) -> Result<(), Failure> {
        let (branch, place) = self.rule_base(s);
        self.spend(s.node, product(sources, targets, classes))?;
        for source in sources.iter() {
            let own = [source].into_iter().collect();
            for target in targets.unwrap_or(&own).iter() {
                for class in classes {
                    let (source, target) = (TypeId::at(source), TypeId::at(target));
                    let key = TypeKey { kind, source, target, class: *class };
                    self.policy.type_rules.push(TypeRule { key, result, branch, place });
                }
            }
        }
        Ok(())
    }

    fn range_transition(&mut self, s: &LiveStatement) -> Result<(), Failure> {
        let [source, target, classes, range] = self.args(s)?;
        let sources = self.members(s.at, Space::Type, source)?;
        let targets = self.members(s.at, Space::Type, target)?;
        let classes = self.class_list(s.at, classes)?;
        let range = self.range(s.at, range)?;
        let each = 2 + range.low.cats.words() + range.high.cats.words();
        self.spend(s.node, product(&sources, Some(&targets), &classes).saturating_mul(each))?;
        for source in sources.iter().map(TypeId::at) {
            for target in targets.iter().map(TypeId::at) {
                for class in &classes {
                    let key = (source, target, *class);
                    self.policy.range_transitions.insert(key, range.clone());
                }
            }
        }
        Ok(())
    }

    /// Takes permissions out of `allow` rules. A rule that also grants something else is split.
    fn deny(&mut self, s: &LiveStatement) -> Result<(), Failure> {
        let [source, target, perms] = self.args(s)?;
        for perms in self.class_perms(s.at, perms)? {
            let denied = self.neverallow_rule(s, source, target, perms, None)?;
            let rules = std::mem::take(&mut self.policy.av_rules);
            let mut kept = Vec::with_capacity(rules.len());
            for rule in rules {
                self.deny_in(s.node, &rule, &denied, &mut kept)?;
            }
            self.policy.av_rules = kept;
        }
        Ok(())
    }

    /// What is left of `rule` after `denied`.
    fn deny_in(
        &self,
        node: Node,
        rule: &AvRule,
        denied: &Neverallow,
        kept: &mut Vec<AvRule>,
    ) -> Result<(), Failure> {
        let types = &self.policy.types;
        let sources = &types[rule.source.index()].members;
        let targets = &types[rule.target.index()].members;
        let meets = rule.kind == AvKind::Allow
            && rule.class == denied.class
            && rule.perms & denied.perms != 0
            && sources.iter().any(|source| denied.sources.contains(source))
            && denied.targets.as_ref().is_none_or(|t| targets.iter().any(|id| t.contains(id)));
        if !meets {
            kept.push(*rule);
            return Ok(());
        }
        self.spend(node, sources.len().saturating_mul(targets.len()))?;
        let rest = rule.perms & !denied.perms;
        if rest != 0 {
            kept.push(AvRule { perms: rest, ..*rule });
        }
        let perms = rule.perms & denied.perms;
        for source in sources.iter() {
            for target in targets.iter().filter(|target| !denied.covers(source, *target)) {
                let (source, target) = (TypeId::at(source), TypeId::at(target));
                kept.push(AvRule { source, target, perms, ..*rule });
            }
        }
        Ok(())
    }
}

/// How many rules a rule on sets stands for; without targets, on each source itself.
fn product(sources: &BitSet, targets: Option<&BitSet>, classes: &[ClassId]) -> usize {
    let targets = targets.map_or(1, BitSet::len);
    sources.len().saturating_mul(targets).saturating_mul(classes.len())
}

impl Neverallow {
    /// Whether the rule is about this pair of types.
    #[must_use]
    pub fn covers(&self, source: usize, target: usize) -> bool {
        self.sources.contains(source)
            && match &self.targets {
                None => source == target,
                Some(targets) => {
                    targets.contains(target) && !(self.except_self && source == target)
                }
            }
    }
}
