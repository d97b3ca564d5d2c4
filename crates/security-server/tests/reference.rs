//! The compiled index against a slow, obvious evaluator, over random small policies.

use proptest::prelude::*;
use security_server::policy::{AvKind, Context, Policy};
use security_server::{BoolId, ClassId, Engine, RoleId, TypeId, UserId, cil};
use std::fmt::Write as _;

const TYPES: u32 = 6;
const ATTRIBUTES: u32 = 4;
const BOOLEANS: u32 = 3;

/// A rule by numbers: source and target count types first, then attributes; `branch` is (boolean,
/// value).
#[derive(Clone, Debug)]
struct Rule {
    kind: u8,
    source: u32,
    target: u32,
    class: u8,
    perms: u8,
    branch: Option<(u32, bool)>,
}

fn rule() -> impl Strategy<Value = Rule> {
    let name = 0..TYPES + ATTRIBUTES;
    let branch = proptest::option::weighted(0.4, (0..BOOLEANS, any::<bool>()));
    (0..3u8, name.clone(), name, 0..2u8, 1..8u8, branch).prop_map(
        |(kind, source, target, class, perms, branch)| Rule {
            kind,
            source,
            target,
            class,
            perms,
            branch,
        },
    )
}

/// The policy's text. Bit t of `members[a]` makes type t a member of attribute a; `bounds` are
/// (parent, child).
fn text(rules: &[Rule], members: &[u8], bounds: Option<(u32, u32)>) -> String {
    let mut out = String::from(
        "(class c0 (p0 p1 p2)) (class c1 (p0 p1 p2)) (classorder (c0 c1)) (user u) (role r)\n",
    );
    let name = |n: u32| if n < TYPES { format!("t{n}") } else { format!("a{}", n - TYPES) };
    for n in 0..TYPES {
        let _ = writeln!(out, "(type t{n})");
    }
    for n in 0..BOOLEANS {
        let _ = writeln!(out, "(boolean b{n} false)");
    }
    for (n, members) in members.iter().enumerate() {
        let _ = writeln!(out, "(typeattribute a{n})");
        for t in (0..TYPES).filter(|t| members & (1 << t) != 0) {
            let _ = writeln!(out, "(typeattributeset a{n} (t{t}))");
        }
    }
    if let Some((parent, child)) = bounds.filter(|(parent, child)| parent != child) {
        let _ = writeln!(out, "(typebounds t{parent} t{child})");
    }
    for rule in rules {
        let keyword = ["allow", "auditallow", "dontaudit"][usize::from(rule.kind)];
        let perms: String =
            (0..3).filter(|p| rule.perms & (1 << p) != 0).map(|p| format!("p{p} ")).collect();
        let (source, target) = (name(rule.source), name(rule.target));
        let line = format!("({keyword} {source} {target} (c{} ({perms})))", rule.class);
        let _ = match rule.branch {
            Some((boolean, value)) => writeln!(out, "(booleanif b{boolean} ({value} {line}))"),
            None => writeln!(out, "{line}"),
        };
    }
    out
}

/// Every rule, one after the other; then the bound.
fn slow(
    policy: &Policy,
    states: &[bool],
    source: TypeId,
    target: TypeId,
    class: ClassId,
) -> [u32; 3] {
    let is = |name: TypeId, type_: TypeId| {
        name == type_ || policy.types[name.index()].members.contains(type_.index())
    };
    let mut av = [0; 3];
    for rule in &policy.av_rules {
        let active = rule.branch.is_none_or(|branch| {
            policy.conditions[branch.condition.index()].holds(states) == branch.when
        });
        if active && rule.class == class && is(rule.source, source) && is(rule.target, target) {
            av[match rule.kind {
                AvKind::Allow => 0,
                AvKind::AuditAllow => 1,
                AvKind::DontAudit => 2,
            }] |= rule.perms;
        }
    }
    if let Some(bound) = policy.types[source.index()].bounds {
        let target = policy.types[target.index()].bounds.unwrap_or(target);
        av[0] &= slow(policy, states, bound, target, class)[0];
    }
    av
}

fn context(type_: u32) -> Context {
    Context { user: UserId(0), role: RoleId::OBJECT, type_: TypeId(type_), range: None }
}

proptest! {
    #[test]
    fn the_index_answers_what_the_rules_say(
        rules in prop::collection::vec(rule(), 0..40),
        members in prop::collection::vec(0..64u8, ATTRIBUTES as usize),
        bounds in prop::option::of((0..TYPES, 0..TYPES)),
        states in prop::collection::vec(any::<bool>(), BOOLEANS as usize),
    ) {
        let text = text(&rules, &members, bounds);
        let policy = cil::compile(&[("random.cil", &text)]).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let engine = Engine::new(policy.clone());
        let changes: Vec<_> = (0..).map(BoolId).zip(states.iter().copied()).collect();
        let engine = engine.with_booleans(&changes);
        for (source, target, class) in (0..TYPES).flat_map(|s| {
            (0..TYPES).flat_map(move |t| [(s, t, ClassId(0)), (s, t, ClassId(1))])
        }) {
            let fast = engine.compute_av(&context(source), &context(target), class);
            let slow = slow(&policy, &states, TypeId(source), TypeId(target), class);
            prop_assert_eq!(
                [fast.allowed, fast.auditallow, !fast.auditdeny], slow, "t{} t{}\n{}", source, target, text
            );
        }
    }
}
