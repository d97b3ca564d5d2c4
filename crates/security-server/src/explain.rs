//! Why a permission is granted or denied.

use crate::engine::Engine;
use crate::policy::{AvKind, AvRule, Constraint, Context, Contexts, Policy, SourceLine};
use crate::{ClassId, TypeId};
use flask::Explanation;

/// What bears on one question.
#[derive(Clone, Debug)]
pub struct Reasons {
    /// The permissions that were asked about.
    pub requested: u32,
    /// Those that are granted.
    pub allowed: u32,
    /// The rules in force that name one of them, as numbers of [`Policy::av_rules`].
    pub rules: Vec<u32>,
    /// The rules that would be in force if booleans were set otherwise.
    pub disabled: Vec<u32>,
    /// What took permissions away that rules grant.
    pub removed: Vec<Removed>,
    source: TypeId,
    target: TypeId,
    class: ClassId,
}

/// Something that took permissions away.
#[derive(Clone, Debug)]
pub struct Removed {
    /// The permissions.
    pub perms: u32,
    /// What it was.
    pub by: Remover,
}

/// What took permissions away.
#[derive(Clone, Debug)]
pub enum Remover {
    /// A `constrain` or `mlsconstrain`.
    Constraint(Constraint),
    /// No `roleallow` lets the source's role change to the target's.
    RoleChange(String),
    /// The type that bounds the source lacks them.
    Bounds(TypeId),
}

impl Engine {
    /// Why `source` may or may not use `requested` on `target`.
    #[must_use]
    pub fn explain(
        &self,
        source: &Context,
        target: &Context,
        class: ClassId,
        requested: u32,
    ) -> Reasons {
        let policy = self.policy();
        let decision = self.compute_av(source, target, class);
        let mut reasons = Reasons {
            requested,
            allowed: decision.allowed & requested,
            rules: Vec::new(),
            disabled: Vec::new(),
            removed: Vec::new(),
            source: source.type_,
            target: target.type_,
            class,
        };
        let (sources, targets) = (
            &policy.types[source.type_.index()].attributes,
            &policy.types[target.type_.index()].attributes,
        );
        for (rule, number) in policy.av_rules.iter().zip(0..) {
            let bears = rule.class == class
                && rule.perms & requested != 0
                && sources.binary_search(&rule.source).is_ok()
                && targets.binary_search(&rule.target).is_ok();
            if bears {
                let active = rule.branch.is_none_or(|branch| self.index().holds(branch));
                let list = if active { &mut reasons.rules } else { &mut reasons.disabled };
                list.push(number);
            }
        }
        let granted = self.index().rules(source.type_, target.type_, class).allow & requested;
        self.removed(source, target, class, granted, &mut reasons.removed);
        reasons
    }

    fn removed(
        &self,
        source: &Context,
        target: &Context,
        class: ClassId,
        mut granted: u32,
        removed: &mut Vec<Removed>,
    ) {
        let policy = self.policy();
        let contexts = Contexts { source, target, process: None, policy };
        let Some((_, entry)) = policy.classes.get_index(class.index()) else { return };
        for constraint in &entry.constraints {
            let perms = constraint.perms & granted;
            if perms != 0 && !constraint.program.holds(&contexts) {
                removed.push(Removed { perms, by: Remover::Constraint(constraint.clone()) });
                granted &= !perms;
            }
        }
        let perms = granted & self.role_change(source, target, class);
        if perms != 0 {
            let role = |context: &Context| {
                policy.roles.get_index(context.role.index()).map_or("?", |(name, _)| name)
            };
            let rule = format!("(roleallow {} {})", role(source), role(target));
            removed.push(Removed { perms, by: Remover::RoleChange(rule) });
            granted &= !perms;
        }
        if let Some(lower) = self.bounding(source) {
            let lower_target = self.bounding(target);
            let target = lower_target.as_ref().unwrap_or(target);
            let perms = granted & !self.compute_av(&lower, target, class).allowed;
            if perms != 0 {
                removed.push(Removed { perms, by: Remover::Bounds(lower.type_) });
            }
        }
    }
}

impl Reasons {
    /// The same in words.
    #[must_use]
    pub fn into_words(self, policy: &Policy) -> Explanation {
        let denied = self.requested & !self.allowed;
        let rules = self.rules.iter().map(|number| {
            let rule = &policy.av_rules[*number as usize];
            policy.format_rule(rule) + &policy.format_place(rule.place)
        });
        let rules = rules.collect();
        if denied == 0 {
            return Explanation { rules, ..Default::default() };
        }
        if let Some(removed) = self.removed.iter().find(|removed| removed.perms & denied != 0) {
            let reason = self.removed_reason(policy, removed);
            let would_allow = match &removed.by {
                Remover::RoleChange(rule) => Some(rule.clone()),
                _ => None,
            };
            return Explanation { rules, reason, would_allow };
        }
        Explanation {
            rules,
            reason: self.no_rule(policy, denied),
            would_allow: Some(self.rule_for(policy, denied)),
        }
    }

    fn removed_reason(&self, policy: &Policy, removed: &Removed) -> String {
        let perms = policy.format_perms(self.class, removed.perms);
        match &removed.by {
            Remover::Constraint(constraint) => {
                let text = policy.format_constraint(self.class, constraint);
                let place = policy.format_place(constraint.place);
                format!("a rule grants {perms}, but a constraint does not hold: {text}{place}")
            }
            Remover::RoleChange(rule) => {
                format!("a rule grants {perms}, but there is no `{rule}`")
            }
            Remover::Bounds(bound) => {
                let bound = policy.type_name(*bound);
                format!("a rule grants {perms}, but `{bound}`, which bounds the source, lacks it")
            }
        }
    }

    fn no_rule(&self, policy: &Policy, denied: u32) -> String {
        let perms = policy.format_perms(self.class, denied);
        let granting = self.disabled.iter().map(|number| &policy.av_rules[*number as usize]);
        let mut granting = granting.filter(|r| r.kind == AvKind::Allow && r.perms & denied != 0);
        match granting.next().and_then(|rule| rule.branch.map(|branch| (rule, branch))) {
            Some((rule, branch)) => {
                let condition = policy.format_condition(branch.condition);
                let rule = policy.format_rule(rule) + &policy.format_place(rule.place);
                format!(
                    "{rule} would grant it, but holds only while {condition} is {}",
                    branch.when
                )
            }
            None => format!("no rule grants {perms}"),
        }
    }

    fn rule_for(&self, policy: &Policy, perms: u32) -> String {
        policy.format_rule(&AvRule {
            source: self.source,
            target: self.target,
            class: self.class,
            kind: AvKind::Allow,
            perms,
            branch: None,
            place: None,
        })
    }
}

impl Policy {
    /// ` (FILE:LINE)`, or nothing where the place is not known.
    #[must_use]
    pub fn format_place(&self, place: Option<SourceLine>) -> String {
        let found = place.and_then(|p| Some((self.sources.get(p.source as usize)?, p.line)));
        found.map_or_else(String::new, |(source, line)| format!("    {source}:{line}"))
    }
}
