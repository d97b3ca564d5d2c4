//! What every policy must bear, wherever it came from.

use security_server::policy::{Context, Policy, TypeRuleKind};
use security_server::{ClassId, Engine, RoleId, TypeId, UserId};

/// Decides, labels, explains, analyses and writes with the policy. Nothing here may panic.
pub(crate) fn exercise(policy: Policy) {
    let _ = policy.violations();
    let _ = policy.excesses();
    let _ = policy.to_cil();
    let types = policy.types.len().min(6);
    let classes = policy.classes.len().min(4);
    let range = policy.users.values().next().and_then(|user| user.range.clone()).map(Box::new);
    let engine = Engine::new(policy);
    let context = |index| Context {
        user: UserId(0),
        role: RoleId::OBJECT,
        type_: TypeId::at(index),
        range: range.clone(),
    };
    for (source, target) in (0..types).flat_map(|s| (0..types).map(move |t| (s, t))) {
        let (source, target) = (context(source), context(target));
        for class in (0..classes).map(ClassId::at) {
            let decision = engine.compute_av(&source, &target, class);
            assert_eq!(engine.explain(&source, &target, class, u32::MAX).allowed, decision.allowed);
            let kind = TypeRuleKind::Transition;
            let _ = engine.compute_label(kind, &source, &target, class, Some("name"));
            let _ = engine.xperms(&source, &target, class);
            let _ = engine.validate_transition(&source, &target, &source, class);
        }
    }
}
