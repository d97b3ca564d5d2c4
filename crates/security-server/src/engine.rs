//! Decisions over contexts: one policy, one state of its booleans.

use crate::index::{Av, Index, XpermSets};
use crate::policy::{
    Class, Constraint, Context, ContextError, Contexts, DefaultFrom, DefaultRange, Policy, TypeKey,
    TypeRuleKind,
};
use crate::{BoolId, ClassId, RoleId, TypeId};
use std::sync::Arc;

/// A policy ready to decide.
#[derive(Clone, Debug)]
pub struct Engine {
    policy: Arc<Policy>,
    index: Index,
    booleans: Arc<[bool]>,
    process: Option<ProcessClass>,
}

/// The class `process` and the permissions that changing roles needs.
#[derive(Clone, Copy, Debug)]
struct ProcessClass {
    class: ClassId,
    transitions: u32,
}

/// The answer for one question, in the bits of the policy's class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AvDecision {
    /// What is granted.
    pub allowed: u32,
    /// What is recorded when granted.
    pub auditallow: u32,
    /// What is recorded when denied.
    pub auditdeny: u32,
    /// The source's domain is permissive.
    pub permissive: bool,
}

/// The most types that may bound one another in a chain, as in the kernel.
const BOUNDS_DEPTH: u32 = 4;

impl Engine {
    /// Compiles `policy`, with its booleans as it sets them.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        let booleans: Arc<[bool]> = policy.booleans.values().copied().collect();
        let process = policy.class("process").map(|class| {
            let entry = &policy.classes[class.index()];
            let bit = |name| entry.permission(name).unwrap_or(0);
            ProcessClass { class, transitions: bit("transition") | bit("dyntransition") }
        });
        let index = Index::new(&policy, &booleans);
        Self { policy: Arc::new(policy), index, booleans, process }
    }

    /// The policy.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The compiled rules.
    #[must_use]
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// The state of a boolean.
    #[must_use]
    pub fn boolean(&self, id: BoolId) -> bool {
        self.booleans.get(id.index()).copied().unwrap_or(false)
    }

    /// The same policy with some booleans changed, all at once.
    #[must_use]
    pub fn with_booleans(&self, changes: &[(BoolId, bool)]) -> Self {
        let mut booleans = self.booleans.to_vec();
        for (id, state) in changes {
            if let Some(boolean) = booleans.get_mut(id.index()) {
                *boolean = *state;
            }
        }
        let index = self.index.with_booleans(&self.policy, &booleans);
        Self { index, booleans: booleans.into(), ..self.clone() }
    }

    /// What `source` may do to `target`, an object of `class`.
    #[must_use]
    pub fn compute_av(&self, source: &Context, target: &Context, class: ClassId) -> AvDecision {
        let av = self.bounded_av(source, target, class, BOUNDS_DEPTH);
        let domain = self.policy.types.get_index(source.type_.index()).map(|(_, domain)| domain);
        let silent = domain.is_some_and(|domain| domain.neveraudit);
        AvDecision {
            allowed: av.allow,
            auditallow: if silent { 0 } else { av.auditallow },
            auditdeny: if silent { 0 } else { !av.dontaudit },
            permissive: domain.is_some_and(|domain| domain.permissive),
        }
    }

    /// Whether denials of the domain are recorded, not enforced.
    #[must_use]
    pub fn is_permissive(&self, domain: TypeId) -> bool {
        self.policy.types.get_index(domain.index()).is_some_and(|(_, domain)| domain.permissive)
    }

    /// Rules, then constraints, then role changes, then bounds: each only takes away.
    fn bounded_av(&self, source: &Context, target: &Context, class: ClassId, depth: u32) -> Av {
        let mut av = self.index.rules(source.type_, target.type_, class);
        if av.allow == 0 {
            return av;
        }
        let Some((_, entry)) = self.policy.classes.get_index(class.index()) else { return av };
        let contexts = Contexts { source, target, process: None, policy: &self.policy };
        for constraint in &entry.constraints {
            if constraint.perms & av.allow != 0 && !constraint.program.holds(&contexts) {
                av.allow &= !constraint.perms;
            }
        }
        av.allow &= !self.role_change(source, target, class);
        if av.allow != 0 && depth > 0 {
            av.allow &= self.bound(source, target, class, depth);
        }
        av
    }

    /// The permissions that the change from the source's to the target's role takes away.
    pub(crate) fn role_change(&self, source: &Context, target: &Context, class: ClassId) -> u32 {
        match self.process {
            Some(process)
                if process.class == class
                    && source.role != target.role
                    && !self.policy.role_allows.contains(&(source.role, target.role)) =>
            {
                process.transitions
            }
            _ => 0,
        }
    }

    /// What the type that bounds the source's type may do to the same target (or what bounds that).
    fn bound(&self, source: &Context, target: &Context, class: ClassId, depth: u32) -> u32 {
        match self.bounding(source) {
            None => u32::MAX,
            Some(lower) => {
                let lower_target = self.bounding(target);
                let target = lower_target.as_ref().unwrap_or(target);
                self.bounded_av(&lower, target, class, depth - 1).allow
            }
        }
    }

    /// `context` with the type that bounds its type.
    pub(crate) fn bounding(&self, context: &Context) -> Option<Context> {
        let (_, entry) = self.policy.types.get_index(context.type_.index())?;
        entry.bounds.map(|type_| Context { type_, ..context.clone() })
    }

    /// The extended permissions of `source` on `target`.
    #[must_use]
    pub fn xperms(&self, source: &Context, target: &Context, class: ClassId) -> XpermSets {
        self.index.xperms(&self.policy, source.type_, target.type_, class)
    }

    /// The label that `kind` of question gives: of a new object of `class`, of a member, or to
    /// relabel to.
    ///
    /// # Errors
    ///
    /// The text of the computed context, when it is not valid.
    pub fn compute_label(
        &self,
        kind: TypeRuleKind,
        source: &Context,
        target: &Context,
        class: ClassId,
        name: Option<&str>,
    ) -> Result<Context, String> {
        let policy = &*self.policy;
        let default = Class::default();
        let entry = policy.classes.get_index(class.index()).map_or(&default, |(_, class)| class);
        let like_process = self.is_like_process(class);
        let from_source = |default: Option<DefaultFrom>, otherwise: bool| {
            default.map_or(otherwise, |from| from == DefaultFrom::Source)
        };
        let user_from_source =
            kind != TypeRuleKind::Member && from_source(entry.default_user, true);
        let user = if user_from_source { source.user } else { target.user };
        let role = match entry.default_role {
            Some(DefaultFrom::Source) => source.role,
            Some(DefaultFrom::Target) => target.role,
            None if like_process => source.role,
            None => RoleId::OBJECT,
        };
        let type_from_source = from_source(entry.default_type, like_process);
        let type_ = if type_from_source { source.type_ } else { target.type_ };
        let mut label = Context { user, role, type_, range: None };
        if let Some(found) = self.new_type(kind, source.type_, target.type_, class, name) {
            label.type_ = found;
        }
        if kind == TypeRuleKind::Transition {
            let key = (source.role, target.type_, class);
            label.role = policy.role_transitions.get(&key).copied().unwrap_or(label.role);
        }
        self.new_range(kind, source, target, class, &mut label)
            .and_then(|()| policy.validate(&label))
            .map_err(|_| policy.format_context(&label))?;
        Ok(label)
    }

    /// The type that rules give: one with the object's name first, then one outside conditions.
    fn new_type(
        &self,
        kind: TypeRuleKind,
        source: TypeId,
        target: TypeId,
        class: ClassId,
        name: Option<&str>,
    ) -> Option<TypeId> {
        let transition = kind == TypeRuleKind::Transition;
        let named = name.filter(|_| transition);
        let named =
            named.and_then(|name| self.policy.name_transitions.find(source, target, class, name));
        named.or_else(|| self.index.type_rule(&TypeKey { kind, source, target, class }))
    }

    fn new_range(
        &self,
        kind: TypeRuleKind,
        source: &Context,
        target: &Context,
        class: ClassId,
        label: &mut Context,
    ) -> Result<(), ContextError> {
        let (Some(source_range), Some(target_range)) = (&source.range, &target.range) else {
            return Ok(());
        };
        let single = |level: &crate::policy::Level| crate::policy::Range::single(level.clone());
        let transition = kind == TypeRuleKind::Transition;
        let key = (source.type_, target.type_, class);
        let rule = self.policy.range_transitions.get(&key).filter(|_| transition);
        let entry = self.policy.classes.get_index(class.index());
        let default = entry.and_then(|(_, entry)| entry.default_range).filter(|_| transition);
        let of = |from| match from {
            DefaultFrom::Source => source_range,
            DefaultFrom::Target => target_range,
        };
        let range = match (rule, default) {
            (Some(range), _) => range.clone(),
            (None, Some(DefaultRange::Low(from))) => single(&of(from).low),
            (None, Some(DefaultRange::High(from))) => single(&of(from).high),
            (None, Some(DefaultRange::LowHigh(from))) => (**of(from)).clone(),
            (None, Some(DefaultRange::GlbLub)) => source_range
                .glblub(target_range)
                .ok_or(ContextError::Refused("the ranges do not overlap"))?,
            (None, None) if kind != TypeRuleKind::Member && self.is_like_process(class) => {
                (**source_range).clone()
            }
            (None, None) => single(&source_range.low),
        };
        label.range = Some(Box::new(range));
        Ok(())
    }

    /// Whether objects of the class take role and type after their creator: processes and sockets
    /// do.
    fn is_like_process(&self, class: ClassId) -> bool {
        self.process.is_some_and(|process| process.class == class)
            || self.policy.class_name(class).ends_with("socket")
    }

    /// The `validatetrans` rule that forbids `process` to relabel an object of `class` from `old`
    /// to `new`.
    ///
    /// # Errors
    ///
    /// That rule.
    pub fn validate_transition(
        &self,
        old: &Context,
        new: &Context,
        process: &Context,
        class: ClassId,
    ) -> Result<(), &Constraint> {
        let contexts =
            Contexts { source: old, target: new, process: Some(process), policy: &self.policy };
        let entry = self.policy.classes.get_index(class.index());
        let mut rules = entry.into_iter().flat_map(|(_, entry)| &entry.validations);
        rules.find(|rule| !rule.program.holds(&contexts)).map_or(Ok(()), Err)
    }
}
