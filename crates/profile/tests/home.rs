//! A home below a directory for temporary files, as in containers and on CI services.

mod common;

use common::{compile_in, rights};
use flask::{FileKind, FileRule};
use labelling::PathRules;
use profile::{Compiled, PathRights, PathRule, Source, Variables, shipped};
use registries::{ConfigRoots, RealPaths, Tool};
use std::path::Path;

/// The variables where the home is `home`; with or without a view.
fn variables(home: &str, has_view: bool) -> Variables {
    let workspace = Path::new(home).join("work");
    let asked = |tool: Tool| {
        let roots = ConfigRoots {
            home: Path::new(home),
            workspace: &workspace,
            root: Path::new("/nonexistent"),
            variables: &[],
            paths: &RealPaths::new(),
        };
        let files = tool.asked(&roots).files;
        let known = common::variables().registries[tool.name()].clone();
        (tool.name().to_owned(), profile::Registries { files, ..known })
    };
    Variables {
        registries: Tool::ALL.into_iter().map(asked).collect(),
        home: home.into(),
        tmp: if has_view { "/tmp".into() } else { "/tmp/dewar-1".into() },
        private_network: has_view,
        shares_temporary: !has_view,
        kept: Vec::new(),
        fixed: Vec::new(),
        led: Vec::new(),
        workspace,
        ..common::variables()
    }
}

fn compiled(source: &Source, variables: &Variables) -> Compiled {
    compile_in(source, variables).unwrap_or_else(|e| panic!("{source:?}: {e:?}"))
}

/// What `workspace` hides or denies below the home, from there.
fn kept_back() -> Vec<String> {
    let workspace = compiled(&Source::Shipped("workspace".into()), &variables("/home/me", true));
    let paths = workspace.paths.iter().filter(|path| !path.rights[0].read && !path.is_way);
    let literal = paths.filter_map(|path| path.regex.strip_suffix("(/.*)?"));
    let plain = literal.map(|regex| regex.replace('\\', ""));
    let below = plain.filter_map(|path| path.strip_prefix("/home/me/").map(str::to_owned));
    below.collect()
}

/// What each domain may do with each of `paths`, below `home`.
fn rights_below(compiled: &Compiled, home: &str, paths: &[String]) -> Vec<Vec<PathRights>> {
    let rules: Vec<_> = compiled.paths.iter().filter(|it| !it.is_way && !it.by_name).collect();
    let named =
        |path: &PathRule| FileRule { path: path.regex.clone(), kind: FileKind::Any, sid: None };
    let named: Vec<FileRule> = rules.iter().copied().map(named).collect();
    let labels = PathRules::new(&named).unwrap();
    let rights = |path: &String| {
        let path = Path::new(home).join(path);
        labels.rule(&path, FileKind::Any).map(|rule| rules[rule].rights.clone()).unwrap_or_default()
    };
    paths.iter().map(rights).collect()
}

/// No rule of the policy lets a domain read what it may neither read nor execute: not as a program
/// by which it is entered either.
fn nothing_gives_what_is_kept_back(compiled: &Compiled) {
    for (index, domain) in compiled.domains.iter().enumerate() {
        let kept_back = |path: &&PathRule| !path.rights[index].read && !path.rights[index].exec;
        for path in compiled.paths.iter().filter(kept_back) {
            let start = format!("(allow {}_t {} (file (", domain.name, path.type_name);
            let reads = |line: &&str| line.starts_with(&start) && line.contains(" read ");
            assert_eq!(compiled.cil.lines().find(reads), None, "{}", path.regex);
        }
    }
}

#[test]
fn a_domain_may_not_read_the_programs_that_are_denied_to_it() {
    let rules = "[domains.t]\nexec = ['${workspace}']\n\
                 files.deny = ['${workspace}/.env']\nfiles.hide = ['${workspace}/keys']\n";
    let text = format!("extends = 'workspace'\n{rules}");
    let source = Source::Text { name: "test.toml".into(), text, directory: "/nowhere".into() };
    let compiled = compiled(&source, &variables("/home/me", true));
    nothing_gives_what_is_kept_back(&compiled);
    let leads = compiled.cil.lines().filter(|line| line.starts_with("(typetransition main_t"));
    assert!(leads.clone().count() > 0 && leads.clone().all(|line| !line.contains("env")));
}

#[test]
fn what_workspace_keeps_back_is_kept_back_wherever_the_home_lies() {
    let secrets = kept_back();
    assert!(secrets.iter().any(|secret| secret == ".npmrc") && secrets.len() > 100);
    for (name, _) in shipped() {
        for has_view in [true, false] {
            let source = Source::Shipped((*name).into());
            let usual = compiled(&source, &variables("/home/me", has_view));
            let usual = rights_below(&usual, "/home/me", &secrets);
            for home in ["/tmp/me", "/tmp/dewar-1/me", "/dev/shm/me", "/tmp"] {
                let here = compiled(&source, &variables(home, has_view));
                nothing_gives_what_is_kept_back(&here);
                let here = rights_below(&here, home, &secrets);
                let both = secrets.iter().zip(here.iter().zip(&usual));
                // Where no rule is about it, `/tmp` as a whole is the run's own.
                for (secret, (here, usual)) in both.filter(|(_, (_, usual))| !usual.is_empty()) {
                    assert_eq!(here, usual, "{name}, view {has_view}: {home}/{secret}");
                }
            }
        }
    }
}

#[test]
fn a_file_that_registries_believe_is_not_written_and_stays_as_it_is_otherwise() {
    let home = "/tmp/me";
    for (files, read, hidden) in [
        ("write = ['${home}']", true, false),
        ("write = ['${home}']\nhide = ['${home}/.npmrc']", false, true),
        ("write = ['${home}']\ndeny = ['${home}/.npmrc']", false, false),
        ("write = ['/tmp']", false, false),
        ("write = ['/tmp']\nread = ['${home}']", true, false),
    ] {
        let text = format!("[files]\n{files}\n[network]\nregistries = ['npm']\n");
        for has_view in [true, false] {
            let variables = Variables { tmp: "/tmp".into(), ..variables(home, has_view) };
            let source = Source::Text {
                name: "test.toml".into(),
                text: text.clone(),
                directory: "/nowhere".into(),
            };
            let found = rights(&compiled(&source, &variables), "main", "/tmp/me/.npmrc");
            // With a view, the whole of `/tmp` is the run's own.
            let is_own = has_view && files == "write = ['/tmp']";
            assert_eq!((found.read, found.hidden), (read || is_own, hidden), "{files} {has_view}");
            assert_eq!(found.write, is_own, "{files} {has_view}");
        }
    }
}

/// What one domain names there is the machine's for all: whoever has the directory as a whole has
/// that of the run's own files.
#[test]
fn what_one_domain_names_of_the_machine_no_other_has_with_a_directory_of_the_runs_own() {
    let own = "[files]\nwrite = ['/tmp', '/var/tmp', '/dev/shm']\nexec = ['/tmp']\n";
    let other = "[domains.other]\nexec = ['/usr/bin/other']\n";
    for rules in [
        format!("{own}{other}files.read = ['/tmp/named', '/var/tmp/named', '/dev/shm/named']\n"),
        format!("{own}{other}files.write = ['/tmp/named', '/var/tmp/named', '/dev/shm/named']\n"),
        format!(
            "{own}{other}network.connect = ['unix:/tmp/named', 'unix:/var/tmp/named', 'unix:/dev/shm/named']\n"
        ),
        format!(
            "{own}[network]\nconnect = ['unix:/tmp/named', 'unix:/var/tmp/named', 'unix:/dev/shm/named']\n"
        ),
        format!(
            "{own}[domains.other]\nexec = ['/tmp/named', '/var/tmp/named', '/dev/shm/named']\n"
        ),
    ] {
        let source = |text: &str| Source::Text {
            name: "test.toml".into(),
            text: text.to_owned(),
            directory: "/nowhere".into(),
        };
        for has_view in [true, false] {
            let variables = Variables { tmp: "/tmp".into(), ..variables("/home/me", has_view) };
            let found = compiled(&source(&rules), &variables);
            for place in ["/tmp", "/var/tmp", "/dev/shm"] {
                let named = format!("{place}/named");
                let main = common::letters(rights(&found, "main", &named));
                assert_eq!(main, "", "{rules} {has_view} {named}");
                let beside = rights(&found, "main", &format!("{place}/beside"));
                assert!(beside.write, "{rules} {has_view} {place}");
            }
        }
    }
    // The other way round.
    let rules = "[files]\nread = ['/tmp/named']\n[domains.other]\nexec = ['/usr/bin/other']\n\
                 inherit = false\nfiles.write = ['/tmp']\n";
    let found = compiled(
        &Source::Text { name: "test.toml".into(), text: rules.into(), directory: "/".into() },
        &Variables { tmp: "/tmp".into(), ..variables("/home/me", true) },
    );
    assert_eq!(common::letters(rights(&found, "other", "/tmp/named")), "");
    assert_eq!(common::letters(rights(&found, "main", "/tmp/named")), "r");
    assert!(rights(&found, "other", "/tmp/beside").write);
}
