//! `typebounds`, `rolebounds` and `userbounds`: what `secilc` refuses to compile,
//! `dewar policy check` reports.

use conformance::secilc;
use security_server::analysis::Excess;
use security_server::policy::Policy;
use security_server::{cil, policydb};
use std::collections::BTreeSet;
use std::fmt::Write as _;

const BASE: &str = "(class file (read write open)) (class dir (read search)) (class process (fork))
(classorder (file dir process)) (sid kernel) (sidorder (kernel)) (user u) (user v) (role r) (role s) (role object_r)
(type a) (type b) (type c) (type d) (typeattribute x) (typeattribute y) (boolean p true) (boolean q false)
(roletype r a) (roletype r b) (userrole u r)
(sensitivity s0) (sensitivityorder (s0)) (mls false) (userlevel u (s0)) (userrange u ((s0) (s0)))
(userlevel v (s0)) (userrange v ((s0) (s0))) (sidcontext kernel (u r a ((s0) (s0))))
(allow a a (process (fork)))
";

/// Random numbers that are the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }

    fn of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }
}

/// A policy with bounds, in which parents mostly have what their children have.
fn policy(random: &mut Random) -> String {
    let mut text = BASE.to_owned();
    let _ = writeln!(
        text,
        "(typeattributeset x ({} {}))",
        random.of(&["a", "b"]),
        random.of(&["c", "d"])
    );
    let _ = writeln!(text, "(typeattributeset y (not {}))", random.of(&["a", "b", "c", "d"]));
    let chain = [("a", "b"), ("b", "c"), ("a", "d")];
    for (parent, child) in chain.iter().take(1 + random.below(3)) {
        let _ = writeln!(text, "(typebounds {parent} {child})");
    }
    let names = ["a", "b", "c", "d", "x", "y"];
    for _ in 0..2 + random.below(6) {
        let (source, target) = (random.of(&names), random.of(&names));
        let target = if random.below(6) == 0 { "self" } else { target };
        let perms =
            random.of(&["file (read)", "file (read write)", "file (open)", "dir (read search)"]);
        let rule = format!("(allow {source} {target} ({perms}))");
        // The same for the parent, sometimes for other objects or under another condition.
        let twin = format!(
            "(allow a {} ({perms}))",
            if random.below(3) == 0 { random.of(&names) } else { target }
        );
        for rule in [rule, twin] {
            let condition = random.of(&["p", "(not p)", "(and p q)"]);
            let _ = match random.below(5) {
                0 => writeln!(text, "(booleanif {condition} (true {rule}))"),
                1 => writeln!(text, "(booleanif {condition} (true {rule}) (false {rule}))"),
                2 => writeln!(text, "(booleanif {condition} (false {rule}))"),
                _ => writeln!(text, "{rule}"),
            };
        }
    }
    text
}

/// The bounded types that `secilc` refuses, as it names them; none if it compiles the policy.
fn refused(name: &str, text: &str) -> BTreeSet<String> {
    let Err(error) = secilc(name, text, &["-c", "33"]) else { return BTreeSet::new() };
    let said = format!("{error:#}");
    let children =
        said.lines().filter_map(|line| line.split_once("Child type ")).map(|(_, rest)| rest);
    let children: BTreeSet<String> =
        children.filter_map(|rest| rest.split_whitespace().next()).map(str::to_owned).collect();
    assert!(!children.is_empty(), "secilc refused it for another reason: {said}\n{text}");
    children
}

fn reported(policy: &Policy) -> BTreeSet<String> {
    let child = |excess: &Excess| match excess {
        Excess::Rule { child, .. } => policy.type_name(*child).to_owned(),
        Excess::Role { child, .. } => policy.role_name(*child).to_owned(),
        Excess::User { child, .. } => policy.user_name(*child).to_owned(),
    };
    policy.excesses().iter().map(child).collect()
}

fn compile(text: &str) -> Policy {
    cil::compile(&[("bounds.cil", text)]).unwrap_or_else(|errors| panic!("{errors}\n{text}"))
}

#[test]
fn bounded_types_that_secilc_refuses_are_the_ones_reported() {
    let mut random = Random(7);
    let (mut good, mut bad) = (0, 0);
    for round in 0..250 {
        let text = policy(&mut random);
        let theirs = refused(&format!("bounds-{round}"), &text);
        assert_eq!(reported(&compile(&text)), theirs, "{text}");
        *(if theirs.is_empty() { &mut good } else { &mut bad }) += 1;
    }
    println!("{good} good, {bad} bad");
    assert!(good > 50 && bad > 50, "{good} good, {bad} bad");
}

#[test]
fn a_binary_policy_is_checked_as_its_text_is() {
    let text =
        format!("{BASE}(typebounds a b) (allow b c (file (read write))) (allow a c (file (read)))");
    // Without the check, `secilc` compiles what breaks it.
    let compiled =
        secilc("bounds-unchecked", &text, &["-c", "33", "-N"]).expect("secilc accepts it");
    let binary = policydb::read(&std::fs::read(compiled).unwrap()).expect("the policy is read");
    for policy in [&compile(&text), &binary] {
        let [Excess::Rule { rule, target, perms, .. }] = &policy.excesses()[..] else {
            panic!("{:?}", policy.excesses())
        };
        let rule = &policy.av_rules[*rule];
        assert_eq!(policy.format_rule(rule), "(allow b c (file (read write)))");
        assert_eq!(policy.type_name(*target), "c");
        assert_eq!(policy.format_perms(rule.class, *perms), "(write)");
    }
}

#[test]
fn roles_and_users_beyond_their_bounds_are_reported_where_secilc_refuses_them() {
    for (extra, want) in [
        ("(rolebounds r s) (roletype s b)", None),
        ("(rolebounds r s) (roletype s c)", Some("s")),
        ("(userbounds u v) (userrole v r)", None),
        ("(userbounds u v) (userrole v s)", Some("v")),
    ] {
        let text = format!("{BASE}{extra}");
        let theirs = secilc("bounds-roles", &text, &["-c", "33"]);
        assert_eq!(theirs.is_err(), want.is_some(), "{extra}: {theirs:?}");
        assert_eq!(reported(&compile(&text)).iter().map(String::as_str).next(), want, "{extra}");
    }
}
