//! What `dewar trust` tells: all that is given of this machine, where a screen shows it.

use crate::trust::Home;
use std::fs;

fn told(home: &Home, profile: &str) -> String {
    home.write("repo/dewar.toml", profile);
    let said = home.say(&["trust"]);
    assert_eq!(said.status, 1, "{}{}", said.out, said.err);
    said.out
}

#[test]
fn what_a_profile_names_in_the_machines_temporary_directories_is_told_among_the_worst() {
    let home = Home::new();
    for place in ["/tmp", "/dev/shm", "/var/tmp"] {
        let named = format!("{place}/krb5cc_1009");
        for (lists, verbs) in [
            (&["write", "exec"][..], "write and execute"),
            (&["write"], "write"),
            (&["read"], "read"),
        ] {
            let lists: String =
                lists.iter().map(|list| format!("files.{list} = ['{named}']\n")).collect();
            let line = format!("may also {verbs} {named}, this machine's own\n");
            let said = told(&home, &format!("extends = 'workspace'\n{lists}"));
            assert!(said.contains(&line), "{lists}: {said}");
            assert!(!said.contains("may not execute"), "{lists}: {said}");
            home.write("repo/bound.toml", &format!("extends = 'workspace'\n{lists}"));
            let said = told(&home, "extends = 'workspace'\npropose.within = 'bound.toml'\n");
            assert!(said.contains(&line), "{lists}: {said}");
        }
        for glob in ["mine-*/f", "mine/*", "mine/**/f"] {
            let profile = format!("extends = 'workspace'\nfiles.read = ['{place}/{glob}']\n");
            let said = told(&home, &profile);
            let line = format!(" {place}/{glob}, this machine's own\n");
            assert!(said.contains(&line), "{said}");
        }
    }
    let said = told(&home, "extends = 'workspace'\n");
    assert!(!said.contains("this machine's own"), "{said}");
}

#[test]
fn a_pattern_over_what_is_kept_back_otherwise_is_told() {
    let home = Home::new();
    let base = "files.write = ['${workspace}', '${tmp}']\nfiles.exec = ['/usr']\n";
    for (glob, is_told) in [
        ("${home}/.local/share/uv/c*/*", true),
        ("${home}/.local/share/uv/credentials*", true),
        ("${home}/.dotnet/c*/*/*", true),
        ("${home}/**/*.toml", true),
        ("${home}/.local/share/uv/x*", false),
        ("${home}/Documents/*/notes", false),
    ] {
        let said = told(&home, &format!("files.read = ['{glob}']\n{base}"));
        let line = format!("read {}, where some is kept back", glob.replace("${home}", "~"));
        assert_eq!(said.contains(&line), is_told, "{glob}: {said}");
        // What it extends keeps it back all the same.
        let said = told(&home, &format!("extends = 'workspace'\nfiles.read = ['{glob}']\n"));
        assert!(!said.contains(", where some is kept back"), "{glob}: {said}");
    }
}

#[test]
fn what_is_told_last_is_on_the_screen_however_long_paths_are() {
    let home = Home::new();
    let long = ["b".repeat(100).as_str(); 38].join("/");
    let said = told(
        &home,
        &format!(
            "extends = 'workspace'\nfiles.read = ['${{home}}/.aws', '${{home}}/.wget-hsts/{long}']\n"
        ),
    );
    let behind = said.split_once("may also read ~/.aws, kept back otherwise").expect(&said).1;
    let rows: usize = behind.lines().map(|line| line.chars().count().div_ceil(80).max(1)).sum();
    assert!(rows < 20 && behind.contains("characters more]"), "{said}");
    // As many as a screen would take are counted, and not asked about.
    let many: String =
        (0..110).map(|at| format!("'${{home}}/{}/{at}', ", "b".repeat(230))).collect();
    home.write("repo/dewar.toml", &format!("extends = 'workspace'\nfiles.read = [{many}]\n"));
    let said = home.say(&["trust", "--yes"]);
    assert!(said.status == 2 && said.err.contains("nobody reads at a prompt"), "{}", said.err);
    fs::remove_file(home.path("repo/dewar.toml")).unwrap();
}
