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

/// How much an [`Explanation`] says: the author of a policy may be whoever is denied by it.
#[derive(Clone, Copy, Debug)]
pub struct Most {
    /// Rules; of more, it says how many they are.
    pub rules: usize,
    /// Bytes of each text.
    pub bytes: usize,
}

impl Most {
    /// What people read, and records keep.
    pub const OF_A_RECORD: Self = Self { rules: 16, bytes: 1024 };

    /// What a tool lists for somebody who asks about one policy.
    pub const OF_A_LIST: Self = Self { rules: 10_000, bytes: 16 << 10 };
}

impl Reasons {
    /// The same in words, no more than records keep.
    #[must_use]
    pub fn into_words(self, policy: &Policy) -> Explanation {
        self.into_words_within(policy, Most::OF_A_RECORD)
    }

    /// The same in words, no more than `most`.
    #[must_use]
    pub fn into_words_within(self, policy: &Policy, most: Most) -> Explanation {
        let denied = self.requested & !self.allowed;
        let rules = self.rules.iter().take(most.rules).map(|number| {
            let rule = &policy.av_rules[*number as usize];
            rule_in_words(policy, rule, most)
        });
        let mut rules: Vec<String> = rules.collect();
        let more = self.rules.len() - rules.len();
        if more > 0 {
            rules.push(format!("; and {more} more"));
        }
        if denied == 0 {
            return Explanation { rules, ..Default::default() };
        }
        if let Some(removed) = self.removed.iter().find(|removed| removed.perms & denied != 0) {
            let reason = cut(self.removed_reason(policy, removed, most), most);
            let would_allow = match &removed.by {
                Remover::RoleChange(rule) => whole(rule.clone(), most),
                _ => None,
            };
            return Explanation { rules, reason, would_allow };
        }
        Explanation {
            rules,
            reason: cut(self.no_rule(policy, denied, most), most),
            would_allow: whole(self.rule_for(policy, denied), most),
        }
    }

    fn removed_reason(&self, policy: &Policy, removed: &Removed, most: Most) -> String {
        let perms = policy.format_perms(self.class, removed.perms);
        match &removed.by {
            Remover::Constraint(constraint) => {
                let text = policy.format_constraint_within(self.class, constraint, most.bytes);
                let text = cut(text, most);
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

    fn no_rule(&self, policy: &Policy, denied: u32, most: Most) -> String {
        let perms = policy.format_perms(self.class, denied);
        let granting = self.disabled.iter().map(|number| &policy.av_rules[*number as usize]);
        let mut granting = granting.filter(|r| r.kind == AvKind::Allow && r.perms & denied != 0);
        match granting.next().and_then(|rule| rule.branch.map(|branch| (rule, branch))) {
            Some((rule, branch)) => {
                let condition = policy.format_condition_within(branch.condition, most.bytes);
                let rule = rule_in_words(policy, rule, most);
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

/// A rule and its place.
fn rule_in_words(policy: &Policy, rule: &AvRule, most: Most) -> String {
    cut(policy.format_rule(rule), most) + &cut(policy.format_place(rule.place), most)
}

fn cut(mut text: String, most: Most) -> String {
    if text.len() > most.bytes {
        text.truncate(text.floor_char_boundary(most.bytes));
        text.push('…');
        text.shrink_to_fit();
    }
    text
}

/// A part of a rule is none.
fn whole(rule: String, most: Most) -> Option<String> {
    Some(rule).filter(|rule| rule.len() <= most.bytes)
}

impl Policy {
    /// ` (FILE:LINE)`, or nothing where the place is not known.
    #[must_use]
    pub fn format_place(&self, place: Option<SourceLine>) -> String {
        let found = place.and_then(|p| Some((self.sources.get(p.source as usize)?, p.line)));
        found.map_or_else(String::new, |(source, line)| format!("    {source}:{line}"))
    }
}
