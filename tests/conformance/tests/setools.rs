//! `dewar policy query` and `diff` find what `sesearch` and `sediff` of setools find.

use conformance::{debian_policy, secilc, setools};
use security_server::analysis::{How, MatchingRule, Query, Which, diff};
use security_server::policy::{AvKind, Policy, TypeRuleKind};
use security_server::{Engine, policydb};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn engine(path: &Path) -> Engine {
    Engine::new(policydb::read(&std::fs::read(path).unwrap()).expect("the policy is read"))
}

fn small(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("policies/{name}.cil"));
    std::fs::read_to_string(path).unwrap()
}

fn compiled(name: &str, text: &str) -> PathBuf {
    secilc(&format!("setools-{name}"), text, &["-c", "33"]).expect("secilc accepts the policy")
}

/// A rule of setools as words: keyword, names, permissions in order; a condition as the branch.
fn words(line: &str) -> String {
    let (rule, condition) = line.split_once(" [ ").map_or((line, None), |(r, c)| (r, Some(c)));
    let rule = rule.trim().trim_end_matches(';').replacen(':', " ", 1).replace(" - ", "-");
    let mut words: Vec<&str> =
        rule.split_whitespace().filter(|word| !matches!(*word, "{" | "}")).collect();
    if matches!(words[0], "allow" | "auditallow" | "dontaudit") && words.len() > 4 {
        words[4..].sort_unstable();
    }
    let branch = condition.map(|c| c.rsplit(':').next().unwrap_or_default().trim().to_lowercase());
    words.extend(branch.as_deref());
    words.join(" ")
}

/// The same words for a rule of ours.
fn our_words(policy: &Policy, found: &MatchingRule<'_>) -> String {
    let (type_, class) = (|id| policy.type_name(id), |id| policy.class_name(id));
    let text = match *found {
        MatchingRule::Av(rule) => {
            let (_, entry) = policy.classes.get_index(rule.class.index()).unwrap();
            let mut perms: Vec<&str> = entry.names_of(rule.perms).collect();
            perms.sort_unstable();
            let key =
                [rule.kind.keyword(), type_(rule.source), type_(rule.target), class(rule.class)];
            [&key[..], &perms].concat().join(" ")
        }
        MatchingRule::Type(rule) => {
            let keyword = rule.key.kind.keyword().replace("type", "type_");
            let key = (type_(rule.key.source), type_(rule.key.target), class(rule.key.class));
            format!("{keyword} {} {} {} {}", key.0, key.1, key.2, type_(rule.result))
        }
        MatchingRule::Named { source, target, class: c, name, result } => {
            let (source, target, result) = (type_(source), type_(target), type_(result));
            format!("type_transition {source} {target} {} {result} {name}", class(c))
        }
        MatchingRule::Range { source, target, class: c, range } => {
            let (source, target) = (type_(source), type_(target));
            format!(
                "range_transition {source} {target} {} {}",
                class(c),
                policy.format_range(range)
            )
        }
        MatchingRule::RoleAllow(from, to) => {
            format!("allow {} {}", policy.role_name(from), policy.role_name(to))
        }
        MatchingRule::RoleTransition { source, target, class: c, result } => {
            let (source, result) = (policy.role_name(source), policy.role_name(result));
            format!("role_transition {source} {} {} {result}", type_(target), class(c))
        }
        MatchingRule::Xperm(_) => unreachable!("compared by their numbers"),
    };
    let branch = found.branch().map_or(String::new(), |branch| format!(" {}", branch.when));
    text + &branch
}

#[test]
fn queries_find_the_rules_that_sesearch_finds() {
    let path = debian_policy().expect("Debian's policy is installed");
    let engine = engine(&path);
    let types = [TypeRuleKind::Transition, TypeRuleKind::Member, TypeRuleKind::Change];
    let allow = [Which::Av(AvKind::Allow)];
    let of = |kind: Which, source, target, class| Query {
        kinds: vec![kind],
        source,
        target,
        class,
        expand: true,
        ..Query::default()
    };
    let queries: Vec<(&str, Query<'_>)> = vec![
        (
            "--allow -s sshd_t -c file -p write",
            Query { perms: vec!["write"], ..of(allow[0], Some("sshd_t"), None, Some("file")) },
        ),
        (
            "--allow -s sshd_t -c file -ds",
            Query { expand: false, ..of(allow[0], Some("sshd_t"), None, Some("file")) },
        ),
        (
            "--allow -s domain -ds -dt",
            Query { expand: false, ..of(allow[0], Some("domain"), None, None) },
        ),
        (
            "--allow -t shadow_t -p read,write",
            Query { perms: vec!["read", "write"], ..of(allow[0], None, Some("shadow_t"), None) },
        ),
        ("--auditallow", of(Which::Av(AvKind::AuditAllow), None, None, None)),
        (
            "--dontaudit -s init_t -c dir",
            of(Which::Av(AvKind::DontAudit), Some("init_t"), None, Some("dir")),
        ),
        ("-T -s init_t", of(Which::Type(types[0]), Some("init_t"), None, None)),
        ("-T -t device_t", of(Which::Type(types[0]), None, Some("device_t"), None)),
        ("--type_member", of(Which::Type(types[1]), None, None, None)),
        ("--type_change -c chr_file", of(Which::Type(types[2]), None, None, Some("chr_file"))),
        ("--range_trans", of(Which::RangeTransition, None, None, None)),
        ("--role_allow -s sysadm_r", of(Which::RoleAllow, Some("sysadm_r"), None, None)),
        ("--role_allow", of(Which::RoleAllow, None, None, None)),
        ("--role_trans -s sysadm_r", of(Which::RoleTransition, Some("sysadm_r"), None, None)),
    ];
    let mut rows = 0;
    for (arguments, query) in queries {
        let said =
            setools("sesearch", &arguments.split(' ').collect::<Vec<_>>(), &[&path]).unwrap();
        let mut theirs: Vec<String> = said.lines().map(words).collect();
        let found = engine.query(&query).unwrap();
        let mut ours: Vec<String> =
            found.iter().map(|rule| our_words(engine.policy(), rule)).collect();
        theirs.sort();
        ours.sort();
        if query.kinds == [Which::RoleAllow] {
            // Debian's policy holds one twice.
            theirs.dedup();
        }
        let first = ours.iter().zip(&theirs).find(|(ours, theirs)| ours != theirs);
        assert!(ours == theirs, "{arguments}: {} {} {first:?}", ours.len(), theirs.len());
        assert!(!ours.is_empty(), "{arguments} finds nothing");
        println!("{arguments}: {}", ours.len());
        rows += ours.len();
    }
    assert!(rows > 1_000, "{rows} rows");
}

#[test]
fn extended_permissions_are_found_where_sesearch_finds_them() {
    let path = compiled("xperms", &small("xperms"));
    let engine = engine(&path);
    let kinds = [AvKind::Allow, AvKind::AuditAllow, AvKind::DontAudit].map(Which::Xperm).to_vec();
    for (arguments, xperms) in [
        (&[][..], vec![]),
        (&["-x", "0x8910"], vec![(0x8910, 0x8910)]),
        (&["-x", "0x1001"], vec![(0x1001, 0x1001)]),
    ] {
        let all = ["--allowxperm", "--auditallowxperm", "--dontauditxperm"];
        let said = setools("sesearch", &[&all[..], arguments].concat(), &[&path]).unwrap();
        let mut theirs = BTreeSet::new();
        for line in said.lines() {
            let line = line.trim_end_matches(';').replace(':', " ");
            let words: Vec<&str> =
                line.split_whitespace().filter(|w| !matches!(*w, "{" | "}")).collect();
            let number =
                |text: &str| u16::from_str_radix(text.trim_start_matches("0x"), 16).unwrap();
            for range in &words[5..] {
                let (low, high) = range.split_once('-').unwrap_or((range, range));
                theirs.extend((number(low)..=number(high)).map(|n| (words[..5].join(" "), n)));
            }
        }
        let query = Query { kinds: kinds.clone(), xperms, ..Query::default() };
        let mut ours = BTreeSet::new();
        for found in engine.query(&query).unwrap() {
            let MatchingRule::Xperm(rule) = found else { panic!("{found:?}") };
            let policy = engine.policy();
            let (source, target) = (policy.type_name(rule.source), policy.type_name(rule.target));
            let key = format!(
                "{}xperm {source} {target} {} ioctl",
                rule.kind.keyword(),
                policy.class_name(rule.class)
            );
            ours.extend(rule.xperms.numbers().iter().map(|n| (key.clone(), n as u16)));
        }
        assert_eq!(ours, theirs, "{arguments:?}");
        assert!(!ours.is_empty());
    }
}

/// What becomes of `mls.cil` in the newer policy.
const CHANGES: [(&str, &str); 9] = [
    ("(roleallow r q)", ""),
    ("(allow a self (file (write)))", ""),
    ("(typetransition a x process b)", "(typetransition a x process c)"),
    (
        "(mlsconstrain (file (write)) (and (eq l1 l2) (domby h1 h2)))",
        "(mlsconstrain (file (write)) (eq l1 l2))",
    ),
    (
        "(rangetransition a x process ((s0) (s1 (c0 c1))))",
        "(rangetransition a x process ((s0) (s1 (c0))))",
    ),
    ("(roletransition r x process q)", "(roletransition r x process p)"),
    ("(userrole w p)", ""),
    ("(defaultuser dir target)", ""),
    ("(userrange w ((s1) (s3 (range c1 c5))))", "(userrange w ((s1) (s2 (range c1 c5))))"),
];
const ADDITIONS: &str = "(type new) (allow new new (file (read))) (allow a x (process (signal)))
(role s) (roleallow p s) (user n) (userrole n r) (userlevel n (s0)) (userrange n ((s0) (s0)))
(boolean extra true) (booleanif extra (true (allow b b (db (use)))) (false (allow a b (db (use)))))
(rangetransition b x process ((s0) (s0))) (typepermissive c) (typechange b object dir x)
(validatetrans dir (eq u1 u2)) (dontaudit a a (dir (read)))";

/// The differences that `sediff` prints, one by one, in the words of [`our_differences`].
fn their_differences(said: &str) -> BTreeSet<String> {
    let mut differences = BTreeSet::new();
    let mut section = String::new();
    for line in said.lines() {
        let (indent, text) = (line.len() - line.trim_start().len(), line.trim());
        let Some((sign, rest)) =
            text.split_once(' ').filter(|(sign, _)| matches!(*sign, "+" | "-" | "*"))
        else {
            if indent == 3 {
                section = text
                    .split_once(' ')
                    .map_or("", |(_, s)| s)
                    .split(':')
                    .next()
                    .unwrap_or("")
                    .to_owned();
            }
            continue;
        };
        let plain =
            rest.split(" [ ").next().unwrap_or(rest).trim_end_matches(';').replace(':', " ");
        let words: Vec<&str> =
            plain.split_whitespace().filter(|w| !matches!(*w, "{" | "}")).collect();
        match section.as_str() {
            _ if indent > 6 => {}
            "Allow Rules" | "Dontaudit Rules" => {
                for perm in &words[4..] {
                    let (sign, perm) = match (sign, perm.split_at(1)) {
                        ("*", (sign @ ("+" | "-"), perm)) => (sign, perm),
                        ("*", _) => continue,
                        (sign, _) => (sign, *perm),
                    };
                    differences.insert(format!("{sign} {} {perm}", words[..4].join(" ")));
                }
            }
            "Type_transition Rules"
            | "Type_change Rules"
            | "Type_member Rules"
            | "Role_transition Rules" => {
                let keyword = words[0].replace('_', "");
                differences.insert(format!("{sign} {keyword} {}", words[1..4].join(" ")));
            }
            "Range_transition Rules" => {
                differences.insert(format!("{sign} rangetransition {}", words[1..4].join(" ")));
            }
            "Role Allow Rules" => {
                differences.insert(format!("{sign} roleallow {} {}", words[1], words[2]));
            }
            "Booleans" | "Roles" | "Types" | "Users" | "Type Attributes" => {
                let name = section.trim_start_matches("Type ").trim_end_matches('s').to_lowercase();
                // A type has nothing to be modified but that it is permissive.
                let (sign, name) = if name == "type" && sign == "*" {
                    ("+", "permissive".into())
                } else {
                    (sign, name)
                };
                differences.insert(format!("{sign} {name} {}", words[0]));
            }
            "MLS Constraints" | "Validatetrans" => {
                differences.insert(format!("{sign} constraint {}", words[0]));
            }
            "Defaults" => {
                differences.insert(format!("{sign} default {}", words[0].replace('_', "")));
            }
            other => panic!("a section that we do not know: {other}"),
        }
    }
    differences
}

fn our_differences(old: &Engine, new: &Engine) -> BTreeSet<String> {
    let mut ours = BTreeSet::new();
    let found = diff(old, new);
    for change in &found.authority {
        let key = format!(
            "{} {} {} {}",
            change.kind.keyword(),
            change.source,
            change.target,
            change.class
        );
        ours.extend(change.added.iter().map(|perm| format!("+ {key} {perm}")));
        ours.extend(change.removed.iter().map(|perm| format!("- {key} {perm}")));
    }
    for change in &found.facts {
        let sign = match change.how {
            How::Added(_) => "+",
            How::Removed(_) => "-",
            How::Changed { .. } | How::Members { .. } => "*",
        };
        let first = change.about.trim_start_matches('(').split(' ').next().unwrap_or_default();
        ours.insert(match change.section {
            "constraint" | "default" => format!("{sign} {} {first}", change.section),
            "roleallow" => format!("{sign} {}", change.about.trim_matches(['(', ')'])),
            // setools tells it with the user.
            "userrange" | "userlevel" => {
                format!("{} user {first}", if sign == "*" { "*" } else { "+" })
            }
            section => format!("{sign} {section} {}", change.about),
        });
    }
    ours
}

#[test]
fn differences_are_those_that_sediff_finds() {
    let old = small("mls");
    let mut new = old.clone();
    for (from, to) in CHANGES {
        assert!(new.contains(from), "{from}");
        new = new.replace(from, to);
    }
    new += ADDITIONS;
    let paths = [compiled("old", &old), compiled("new", &new)];
    let said = setools("sediff", &[], &[&paths[0], &paths[1]]).unwrap();
    let theirs = their_differences(&said);
    assert_eq!(our_differences(&engine(&paths[0]), &engine(&paths[1])), theirs);
    assert!(theirs.len() > 40, "{}", theirs.len());
}
