//! What the tests of profiles share.
#![allow(dead_code, reason = "each test program uses a part")]

use profile::{Compiled, PathRights, ProfileErrors, Source, Variables, load};
use std::process::Command;

/// The variables of all tests.
pub(crate) fn variables() -> Variables {
    Variables {
        workspace: "/home/me/work".into(),
        home: "/home/me".into(),
        tmp: "/tmp/dewar".into(),
        user: "me".into(),
        nameservers: vec!["192.0.2.53".parse().unwrap()],
        private_network: true,
        registries: registries(),
        shares_temporary: false,
        mounted: Vec::new(),
        confidential: Vec::new(),
        misleading: Vec::new(),
        kept: vec!["/home/me/.cache/dewar".into(), "/home/me/{a}*/dewar".into()],
        fixed: vec!["/home/me/work/audit".into()],
        led: vec![("/home/me/work/.envrc".into(), "/home/me/work/env".into())],
    }
}

/// What each tool asks on a machine without configuration; npm has a mirror.
fn registries() -> std::collections::BTreeMap<String, profile::Registries> {
    let of = |tool: registries::Tool| {
        let nowhere = std::path::Path::new("/nonexistent");
        let roots = registries::ConfigRoots {
            home: nowhere,
            workspace: nowhere,
            root: nowhere,
            variables: &[],
            paths: &registries::RealPaths::new(),
        };
        let asked = tool.asked(&roots);
        let mut registries = profile::Registries {
            endpoints: asked.endpoints.iter().map(ToString::to_string).collect(),
            ..profile::Registries::default()
        };
        if tool == registries::Tool::Npm {
            registries.endpoints = vec!["mirror.example.org:8443".into()];
            registries.files = vec!["/home/me/.npmrc".into()];
            registries.variables =
                vec![("npm_config_registry".into(), "https://mirror.example.org:8443/".into())];
        }
        (tool.name().to_owned(), registries)
    };
    registries::Tool::ALL.into_iter().map(of).collect()
}

/// Compiles `text`; `example.org` and its neighbours have addresses, `nowhere.example` has none.
pub(crate) fn compile(text: &str) -> Result<Compiled, ProfileErrors> {
    let source =
        Source::Text { name: "test.toml".into(), text: text.into(), directory: "/nowhere".into() };
    compile_source(&source)
}

/// The same for any source.
pub(crate) fn compile_source(source: &Source) -> Result<Compiled, ProfileErrors> {
    compile_in(source, &variables())
}

/// The same where variables stand for something else.
pub(crate) fn compile_in(
    source: &Source,
    variables: &Variables,
) -> Result<Compiled, ProfileErrors> {
    load(source, variables, &mut |names| names.iter().map(|name| addresses(name)).collect())
}

fn addresses(name: &str) -> profile::Addresses {
    match name {
        "nowhere.example" => Err(std::io::Error::other("no such host")),
        "v6.example.org" => Ok(vec!["2001:db8::1".parse().unwrap()]),
        _ => Ok(vec!["192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap()]),
    }
}

/// What `domain` may do with `path`, as a directory or something in one, by the labelling rules and
/// rights of the policy: the last rule that matches.
pub(crate) fn rights(compiled: &Compiled, domain: &str, path: &str) -> PathRights {
    let index = compiled.domains.iter().position(|d| d.name == domain).unwrap();
    let matching =
        compiled.paths.iter().rev().filter(|rule| !rule.is_way && !rule.by_name).find(|rule| {
            let mut regex = regex::bytes::RegexBuilder::new(&format!("^(?:{})$", rule.regex));
            regex.unicode(false).build().unwrap().is_match(path.as_bytes())
        });
    matching.map_or(PathRights::default(), |rule| rule.rights[index])
}

/// `r`, `w` and `x` for what is granted; `hidden` for what is hidden; empty for nothing.
pub(crate) fn letters(rights: PathRights) -> String {
    if rights.hidden {
        return "hidden".to_owned();
    }
    let letters = [(rights.read, 'r'), (rights.write, 'w'), (rights.exec, 'x')];
    letters.into_iter().filter(|(granted, _)| *granted).map(|(_, letter)| letter).collect()
}

/// What the reference compiler says about a policy: nothing if it accepts it.
pub(crate) fn secilc(cil: &str) -> Result<(), String> {
    let dir = tempfile::tempdir().unwrap();
    let text = dir.path().join("policy.cil");
    std::fs::write(&text, cil).unwrap();
    let output = Command::new("secilc")
        .args(["-o", "/dev/null", "-f", "/dev/null"])
        .arg(&text)
        .output()
        .expect("secilc is installed (package `secilc`)");
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(()) } else { Err(said.into_owned()) }
}
