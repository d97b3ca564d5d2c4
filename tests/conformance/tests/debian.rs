//! Debian's policy, decided by libsepol and by us: as its package compiled it, from its modules in
//! CIL, and from the CIL that `checkpolicy` makes of the compiled one.

use conformance::{Oracle, Sample, Tally, compare, debian_modules, debian_policy, decompile};
use security_server::{Engine, cil, policydb};
use std::sync::OnceLock;

/// Questions for each state of the booleans.
const QUESTIONS: usize = 60_000;

/// The same questions for every test: with booleans as the policy sets them, and with half of them
/// inverted.
fn samples() -> &'static [String; 2] {
    static SAMPLES: OnceLock<[String; 2]> = OnceLock::new();
    SAMPLES.get_or_init(|| {
        let oracle = Oracle::build().expect("the oracle is built");
        let policy = debian_policy().expect("Debian's policy is installed");
        let seed = std::env::var("DEWAR_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
        println!("seed {seed} (set DEWAR_SEED for others)");
        let sample =
            |flip| oracle.sample(&policy, QUESTIONS, seed, flip).expect("the oracle answers");
        [sample(false), sample(true)]
    })
}

fn decides_as_libsepol_does(engine: &Engine) {
    let mut tally = Tally::default();
    for sample in samples() {
        tally.add(compare(engine, Sample(sample)).expect("the sample is understood"));
    }
    println!("{tally:?}");
    assert!(tally.differences.is_empty(), "{}", tally.differences.join("\n"));
    assert!(tally.decisions >= 100_000, "too few decisions: {}", tally.decisions);
    assert!(tally.granting * 3 > tally.decisions, "most questions were empty: {tally:?}");
    assert!(tally.labels >= 100_000, "too few labels: {}", tally.labels);
}

#[test]
fn the_binary_policy_decides_as_libsepol_does() {
    let path = debian_policy().expect("Debian's policy is installed");
    let policy = policydb::read(&std::fs::read(path).unwrap()).expect("the policy is read");
    let rules = policy.av_rules.iter();
    let allows = rules.filter(|rule| rule.kind == security_server::policy::AvKind::Allow).count();
    assert!(allows > 100_000, "{allows} rules");
    decides_as_libsepol_does(&Engine::new(policy));
}

#[test]
fn the_modules_in_cil_decide_as_libsepol_does() {
    let modules = debian_modules().expect("Debian's modules are installed");
    let modules = modules.iter().filter(|module| module.enabled);
    let files: Vec<(&str, &str)> = modules.map(|m| (&*m.name, &*m.text)).collect();
    let policy = cil::compile(&files).unwrap_or_else(|errors| panic!("{errors}"));
    decides_as_libsepol_does(&Engine::new(policy));
}

#[test]
fn the_decompiled_policy_decides_as_libsepol_does() {
    let path = debian_policy().expect("Debian's policy is installed");
    let text = decompile(&path).expect("checkpolicy decompiles");
    let policy =
        cil::compile(&[("decompiled.cil", text)]).unwrap_or_else(|errors| panic!("{errors}"));
    decides_as_libsepol_does(&Engine::new(policy));
}

#[test]
fn every_module_compiles() {
    let modules = debian_modules().expect("Debian's modules are installed");
    assert!(modules.len() > 300, "{} modules", modules.len());
    let files: Vec<(&str, &str)> = modules.iter().map(|m| (&*m.name, &*m.text)).collect();
    cil::compile(&files).unwrap_or_else(|errors| panic!("{errors}"));
}

#[test]
fn exports_decide_alike() {
    let path = debian_policy().expect("Debian's policy is installed");
    let policy = policydb::read(&std::fs::read(path).unwrap()).expect("the policy is read");
    let exported = cil::compile(&[("export.cil", policy.to_cil())]);
    decides_as_libsepol_does(&Engine::new(exported.unwrap_or_else(|errors| panic!("{errors}"))));
}
