//! Which programs keep the domain that executes them, and which lead out of it.

mod common;

use common::{compile, compile_source, secilc};
use flask::{FileKind, FileRule, Sid};
use profile::{Compiled, Source, shipped};
use std::path::Path;

/// What a project, or a program that it brings, can have made executable: names that a guard keeps,
/// names like any other, and the caches of tools.
const BROUGHT: [&str; 12] = [
    "/home/me/work/evil",
    "/home/me/work/.vscode/evil",
    "/home/me/work/a/.git/hooks/evil",
    "/home/me/work/a/AGENTS.md",
    "/home/me/work/commondir",
    "/home/me/work/a/node_modules/.vscode/evil",
    "/tmp/dewar/evil",
    "/home/me/.cache/go-build/evil",
    "/home/me/.gradle/caches/evil",
    "/home/me/.npm/evil",
    "/home/me/.cache/evil",
    "/home/me/tools/evil",
];

/// The labelling rules of a profile.
struct Labels<'a> {
    compiled: &'a Compiled,
    rules: labelling::PathRules,
}

impl<'a> Labels<'a> {
    fn of(compiled: &'a Compiled) -> Self {
        let rule = |(index, rule): (usize, &profile::PathRule)| {
            let is_made = rule.type_name.contains("pointer") || rule.is_way;
            // Of names, the first parts: links.
            let is_link = rule.by_name && !is_made && !rule.regex.ends_with("(/.*)?");
            let kind = match (is_made, is_link) {
                (true, _) => FileKind::File,
                (_, true) => FileKind::Symlink,
                _ => FileKind::Any,
            };
            FileRule { path: rule.regex.clone(), kind, sid: Sid::new(index as u32 + 100) }
        };
        let rules: Vec<FileRule> = compiled.paths.iter().enumerate().map(rule).collect();
        Self { compiled, rules: labelling::PathRules::new(&rules).unwrap() }
    }

    /// The rule about the file at `path`.
    fn rule(&self, path: &str) -> Option<&'a profile::PathRule> {
        let sid = self.rules.sid(Path::new(path), FileKind::File).get();
        self.compiled.paths.get((sid as usize).checked_sub(100)?)
    }
}

/// The type of the file at `path`.
fn type_of(compiled: &Compiled, path: &str) -> String {
    Labels::of(compiled).rule(path).map_or("default_t", |rule| &rule.type_name).to_owned()
}

fn type_name<'a>(compiled: &'a Compiled, domain: &str) -> &'a str {
    &compiled.domains.iter().find(|it| it.name == domain).unwrap().type_name
}

/// Whether `domain` executes a file of `object` without leaving.
fn keeps(compiled: &Compiled, domain: &str, object: &str) -> bool {
    compiled.cil.contains(&format!("(allow {} {object} files_exec)", type_name(compiled, domain)))
}

/// Where a file of `object` leads from `domain`.
fn leads<'a>(compiled: &'a Compiled, domain: &str, object: &str) -> Option<&'a str> {
    let start = format!("(typetransition {} {object} process ", type_name(compiled, domain));
    let line = compiled.cil.lines().find_map(|line| line.strip_prefix(&start));
    line.and_then(|rest| rest.strip_suffix("_t)"))
}

/// Of a profile, the domains that have more than what they start, each with the one where all else
/// leads.
const MANAGERS: [(&str, &[(&str, &str)]); 9] = [
    ("npm", &[("npm", "scripts")]),
    ("pnpm", &[("npm", "scripts")]),
    ("go", &[("go", "tests"), ("nested", "tests"), ("compile", "tests")]),
    ("cargo", &[("cargo", "build")]),
    ("uv", &[("uv", "build")]),
    ("git", &[("git", "helpers")]),
    ("claude", &[("main", "tools")]),
    ("codex", &[("main", "tools")]),
    ("gemini", &[("main", "tools")]),
];

#[test]
fn whatever_a_project_brings_leaves_the_domain_of_who_starts_it_in_every_combination() {
    let others: Vec<&str> = shipped().iter().map(|(name, _)| *name).collect();
    let mut looked_at = 0;
    for (profile, domains) in MANAGERS {
        let others = others.iter().filter(|other| **other != profile);
        let both = others.flat_map(|it| [format!("{profile}+{it}"), format!("{it}+{profile}")]);
        for names in both.chain([profile.to_owned()]) {
            // Some do not combine.
            let Ok(both) = compile_source(&Source::from_argument(&names)) else { continue };
            let labels = Labels::of(&both);
            for path in BROUGHT {
                let Some(rule) = labels.rule(path) else { continue };
                for (domain, catch_all) in domains {
                    let object = &rule.type_name;
                    assert!(!keeps(&both, domain, object), "{names}: {domain} keeps {path}");
                    let index = both.domains.iter().position(|it| it.name == *domain).unwrap();
                    if rule.rights[index].exec {
                        let led = leads(&both, domain, object);
                        assert_eq!(led, Some(*catch_all), "{names}: {domain}, {path}");
                        looked_at += 1;
                    }
                }
            }
        }
    }
    assert!(looked_at > 1000, "{looked_at}");
}

#[test]
fn what_stays_itself_is_listed_by_its_own_exec_in_every_shipped_profile() {
    for (name, _) in shipped() {
        let profile = compile_source(&Source::Shipped((*name).into())).unwrap();
        for (index, domain) in profile.domains.iter().enumerate() {
            let is_left = |to: &profile::Domain| {
                let named = |from: &Vec<String>| from.contains(&domain.name);
                to.programs.iter().any(|it| it == "*") && to.from.as_ref().is_none_or(named)
            };
            if !profile.domains.iter().any(is_left) {
                continue;
            }
            for rule in profile.paths.iter().filter(|rule| rule.rights[index].exec) {
                if keeps(&profile, &domain.name, &rule.type_name) {
                    let own = |program: &String| {
                        rule.path.as_ref().is_some_and(|path| path.starts_with(program))
                            || rule.glob.starts_with(program.as_str())
                            || domain.programs.iter().any(|it| it.contains('*'))
                    };
                    let is_own = domain.programs.iter().any(own);
                    assert!(is_own, "{name}: {} keeps {}", domain.name, rule.regex);
                }
            }
        }
    }
}

#[test]
fn a_file_in_the_place_of_a_directory_leads_where_others_beside_it_do() {
    let text = "extends = 'npm'\nfiles.hide = ['${workspace}/secrets/key.pem']\n";
    let compiled = compile(text).unwrap();
    let object = type_of(&compiled, "/home/me/work/secrets");
    assert!(object.contains("way"), "{object}");
    assert!(!keeps(&compiled, "npm", &object));
    assert_eq!(leads(&compiled, "npm", &object), Some("scripts"));
    assert_eq!(leads(&compiled, "main", &object), Some("scripts"));
}

#[test]
fn a_domain_for_all_else_has_what_a_later_line_makes_executable() {
    let text = "[files]\nexec = ['/usr']\n[domains.tool]\nexec = ['/usr/bin/tool']\nfrom = ['main']\n\
                [domains.rest]\nexec = ['*']\nfrom = ['tool']\n";
    let own = "[domains.main.files]\nexec = ['${home}/a']\n";
    let compiled = compile(&text.replace("'/usr']", "'/usr', '${home}/tools']")).unwrap();
    secilc(&compiled.cil).unwrap_or_else(|said| panic!("{said}"));
    for path in ["/home/me/tools/x", "/usr/bin/x"] {
        let object = type_of(&compiled, path);
        assert_eq!(leads(&compiled, "tool", &object), Some("rest"), "{path}");
        assert_eq!(leads(&compiled, "main", &object), None, "{path}");
        assert!(keeps(&compiled, "rest", &object) && keeps(&compiled, "main", &object));
    }
    let object = type_of(&compiled, "/usr/bin/tool");
    assert_eq!(leads(&compiled, "main", &object), Some("tool"));
    assert_eq!(leads(&compiled, "tool", &object), None);
    let object = type_of(&compiled, "/etc/x");
    assert_eq!(leads(&compiled, "tool", &object), None, "not executable");
    let alone = compile(&format!("{text}{own}")).unwrap();
    assert!(keeps(&alone, "main", &type_of(&alone, "/home/me/a/x")));
}

#[test]
fn two_domains_for_all_else_that_one_starts_are_refused() {
    let text = "[domains.one]\nexec = ['*']\nfrom = ['main']\n[domains.two]\nexec = ['*']\n";
    let errors = compile(&format!("files.exec = ['/usr']\n{text}")).unwrap_err();
    let said = format!("{errors:?}");
    assert!(said.contains("AmbiguousDomain"), "{said}");
}

#[test]
fn a_profile_on_top_that_forgets_the_network_forgets_that_of_domains() {
    for names in ["go+offline", "npm+offline", "cargo+offline", "uv+offline", "git+offline"] {
        let both = compile_source(&Source::from_argument(names)).unwrap();
        for domain in &both.domains {
            assert!(domain.is_offline(), "{names}: {}", domain.name);
        }
    }
    let text = "[domains.a]\nexec = ['/a']\nnetwork.connect = ['example.org:443']\n\
                [network]\ninherit = false\n";
    // What it says itself, it means.
    assert!(!compile(text).unwrap().domains[1].is_offline());
}
