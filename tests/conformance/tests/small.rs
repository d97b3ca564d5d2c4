//! Small policies for what Debian's does not use: compiled by secilc and read as binary, and read
//! as CIL, they must decide as libsepol does.

use conformance::{Oracle, Sample, Tally, compare, secilc};
use security_server::policy::Context;
use security_server::{Engine, cil, policydb};
use std::path::Path;

const POLICIES: [&str; 3] = ["mls", "conditional", "containers"];

fn text(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("policies/{name}.cil"));
    std::fs::read_to_string(path).unwrap()
}

fn from_cil(name: &str, text: &str) -> Engine {
    let compiled = cil::compile(&[(format!("{name}.cil"), text)]);
    Engine::new(compiled.unwrap_or_else(|errors| {
        panic!("{:#?}", errors.errors().iter().map(ToString::to_string).collect::<Vec<_>>())
    }))
}

fn from_binary(path: &Path) -> Engine {
    Engine::new(policydb::read(&std::fs::read(path).unwrap()).unwrap())
}

#[test]
fn small_policies_decide_as_libsepol_does() {
    let oracle = Oracle::build().expect("the oracle is built");
    for name in POLICIES {
        for version in ["30", "31", "32", "33"] {
            let compiled = secilc(&format!("{name}-{version}"), &text(name), &["-c", version]);
            let compiled = compiled.expect("secilc accepts the policy");
            let (ours, binary) = (from_cil(name, &text(name)), from_binary(&compiled));
            let exported = from_cil(name, &binary.policy().to_cil());
            let exported_ours = from_cil(name, &ours.policy().to_cil());
            let engines = [ours, binary, exported, exported_ours];
            for flip in [false, true] {
                let sample = oracle.sample(&compiled, 10_000, 5, flip).expect("the oracle answers");
                for engine in &engines {
                    let tally: Tally = compare(engine, Sample(&sample)).expect("a sample");
                    println!("{name} {version} {tally:?}");
                    assert!(
                        tally.differences.is_empty(),
                        "{name}: {}",
                        tally.differences.join("\n")
                    );
                    assert!(tally.granting > 100, "{name}: most questions were empty");
                }
            }
        }
    }
}

#[test]
fn extended_permissions_are_read_alike_from_text_and_from_binary() {
    let compiled = secilc("xperms-33", &text("xperms"), &["-c", "33"]).expect("secilc accepts it");
    let (ours, binary) = (from_cil("xperms", &text("xperms")), from_binary(&compiled));
    let exported = from_cil("xperms", &binary.policy().to_cil());
    let mut limited = 0;
    for (source, target) in [("a", "a"), ("a", "b"), ("a", "c"), ("b", "b"), ("b", "c"), ("c", "a")]
    {
        for class in ["file", "dir"] {
            let sets = [&ours, &binary, &exported].map(|engine| {
                let policy = engine.policy();
                let context = |t: &str| policy.parse_context(&format!("u:object_r:{t}")).unwrap();
                engine.xperms(&context(source), &context(target), policy.class(class).unwrap())
            });
            assert_eq!(sets[0], sets[1], "{source} {target} {class}");
            assert_eq!(sets[0], sets[2], "{source} {target} {class}");
            limited += usize::from(sets[0].limited);
        }
    }
    assert_eq!(limited, 4);
}

#[test]
fn permissive_domains_bounds_and_names_are_read_alike_from_text_and_from_binary() {
    let compiled = secilc("marks-33", &text("xperms"), &["-c", "33"]).expect("secilc accepts it");
    let (ours, binary) = (from_cil("xperms", &text("xperms")), from_binary(&compiled));
    for engine in [&ours, &binary] {
        let policy = engine.policy();
        let type_ = |name: &str| &policy.types[name];
        assert!(type_("b").permissive && !type_("a").permissive);
        assert_eq!(type_("b").bounds.map(|id| policy.type_name(id)), Some("a"));
        let (a, c) =
            (policy.type_or_attribute("a").unwrap(), policy.type_or_attribute("c").unwrap());
        let dir = policy.class("dir").unwrap();
        let found = policy.name_transitions.find(a, c, dir, "spool");
        assert_eq!(found.map(|id| policy.type_name(id)), Some("b"));
        assert_eq!(policy.name_transitions.find(a, c, dir, "other"), None);
    }
}

#[test]
fn relabelling_is_refused_where_libsepol_refuses_it() {
    let oracle = Oracle::build().expect("the oracle is built");
    let compiled = secilc("validate", &text("mls"), &["-c", "33"]).expect("secilc accepts it");
    let engine = from_cil("mls", &text("mls"));
    let objects = ["u:object_r:x:s0", "u:object_r:x:s1:c0", "v:object_r:y:s0", "w:object_r:x:s2"];
    let processes = ["u:r:a:s0-s2:c0.c5", "u:q:b:s0", "v:r:a:s0:c0-s1:c0.c2", "u:q:a:s1"];
    let mut questions = String::new();
    let mut ours = Vec::new();
    let parse = |text: &str| -> Context { engine.policy().parse_context(text).unwrap() };
    for (old, new, process) in triples(&objects, &processes) {
        questions += &format!("validate {old} {new} file {process}\n");
        let class = engine.policy().class("file").unwrap();
        let allowed =
            engine.validate_transition(&parse(old), &parse(new), &parse(process), class).is_ok();
        ours.push(if allowed { "ok" } else { "refused" });
    }
    let theirs = oracle.ask(&compiled, &questions).expect("the oracle answers");
    assert_eq!(theirs.lines().collect::<Vec<_>>(), ours);
    assert!(ours.contains(&"ok") && ours.contains(&"refused"));
}

fn triples<'a>(
    objects: &'a [&'a str],
    processes: &'a [&'a str],
) -> impl Iterator<Item = (&'a str, &'a str, &'a str)> {
    objects.iter().flat_map(move |old| {
        objects.iter().flat_map(move |new| processes.iter().map(move |p| (*old, *new, *p)))
    })
}
