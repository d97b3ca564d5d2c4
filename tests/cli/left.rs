//! What a run leaves behind that programs outside would execute: named in its report, by whatever
//! way it came there.

use crate::trust::Home;
use assert_cmd::Command;
use std::{fs, os::unix::fs::symlink};

/// The report of a script that was run with `path` for programs outside.
fn report(home: &Home, path: &str, script: &str) -> String {
    let dewar = |args: &[&str]| {
        let mut dewar = Command::new(test_support::dewar());
        dewar
            .args(args)
            .current_dir(home.path("repo"))
            .env("PATH", path)
            .env("HOME", home.path(""));
        dewar.env("XDG_STATE_HOME", home.path("state")).env("COLUMNS", "1000");
        String::from_utf8(dewar.output().unwrap().stdout).unwrap()
    };
    let run =
        ["run", "--no-daemon", "-q", "-p", "workspace+guarded", "--", "/bin/sh", "-c", script];
    dewar(&run);
    let told = dewar(&["report"]);
    let (_, planted) = told.split_once("what programs outside").expect("a part of the report");
    planted.to_owned()
}

#[test]
fn a_program_in_a_directory_of_path_is_told_however_path_spells_it() {
    let home = Home::new();
    fs::create_dir(home.path("repo/bin")).unwrap();
    symlink("repo", home.path("link")).unwrap();
    for spelled in ["repo/bin", "link/bin", "repo/../repo/bin"] {
        let path = home.path(spelled).display().to_string();
        let told = report(&home, &format!("{path}:/bin:/usr/bin"), "echo > bin/ls");
        assert!(told.contains("/repo/bin/ls "), "{spelled}: {told}");
    }
    let told = report(&home, "./bin:/bin:/usr/bin", "echo > bin/ls");
    assert!(told.contains("/repo/bin/ls "), "{told}");
}

#[test]
fn what_leads_elsewhere_is_told_wherever_it_comes_to_lie() {
    let home = Home::new();
    fs::create_dir(home.path("repo/bin")).unwrap();
    let path = format!("{}:/bin:/usr/bin", home.path("repo/bin").display());
    let script = "set -e; mkdir -p x a b/c; mv bin x/bin; ln -s x bin; ln -s x gradle; ln -s x in\n\
                  ln -s ../notes a/l; mv a/l moved; ln -s ../notes a/k; ln -P a/k linked\n\
                  ln -s ../../notes b/c/l; mv b/c c";
    let told = report(&home, &path, script);
    for name in ["bin", "gradle", "moved", "linked", "c/l"] {
        assert!(told.contains(&format!("/repo/{name} ")), "{name}: {told}");
    }
    for name in ["in", "a/k"] {
        assert!(!told.contains(&format!("/repo/{name} ")), "{name}: {told}");
    }
}

#[test]
fn what_a_link_of_a_trusted_name_leads_to_is_told() {
    let home = Home::new();
    for directory in ["repo/.venv/bin", "repo/envs"] {
        fs::create_dir_all(home.path(directory)).unwrap();
    }
    for (target, link) in [("rules", "Makefile"), ("../../interpreter", ".venv/bin/python")] {
        symlink(target, home.path(&format!("repo/{link}"))).unwrap();
    }
    for file in ["rules", "interpreter", "notes"] {
        fs::write(home.path(&format!("repo/{file}")), "").unwrap();
    }
    let told = report(&home, "/bin:/usr/bin", "echo > rules; echo > interpreter; echo > notes");
    assert!(told.contains("/repo/rules ") && told.contains("/repo/interpreter "), "{told}");
    assert!(!told.contains("/repo/notes "), "{told}");
}

#[test]
fn what_is_removed_hides_nothing_that_is_left() {
    let home = Home::new();
    fs::create_dir(home.path("repo/bin")).unwrap();
    let path = format!("{}:/bin:/usr/bin", home.path("repo/bin").display());
    let told = report(&home, &path, "cd bin; touch $(seq 1000); rm *; echo > ls");
    assert!(told.contains("/repo/bin/ls ") && !told.contains("more that could"), "{told}");
}

#[test]
fn what_nobody_can_look_at_is_told_and_what_can_be_seen_since_is_looked_at() {
    let home = Home::new();
    let path = "/bin:/usr/bin";
    let plant = "mkdir -p m/a; echo > m/Makefile; echo > m/a/Makefile
                 ln -s ../../../notes m/a/link; chmod 000 m";
    let all = ["m/Makefile", "m/a/Makefile", "m/a/link"];
    for (script, names) in [
        (plant, &all[..]),
        ("chmod 755 m", &all),
        ("chmod 300 m; mv m/a n; chmod 755 m", &["m/Makefile", "n/Makefile", "n/link"]),
        ("mv n m/n", &["m/n/link"]),
    ] {
        let told = report(&home, path, script);
        for name in names {
            assert!(told.contains(&format!("/repo/{name} ")), "{script}: {name}: {told}");
        }
    }
}

#[test]
fn what_lies_deeper_than_paths_are_long_is_told() {
    let home = Home::new();
    let script = "import os
for _ in range(17):
    os.mkdir('d' * 250)
    os.chdir('d' * 250)
open('Makefile', 'w').close()
os.symlink('/etc', 'link')
";
    home.write("repo/deep.py", script);
    let told = report(&home, "/bin:/usr/bin", "python3 deep.py");
    let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in ["/Makefile (make", "/link (whoever follows it"] {
        assert!(told.contains(&format!("{part}; it could not be looked at)")), "{told}");
    }
}

#[test]
fn links_are_told_that_lead_out_where_they_are_followed() {
    let home = Home::new();
    fs::create_dir_all(home.path("repo/a/b")).unwrap();
    symlink("../../notes", home.path("repo/a/b/there")).unwrap();
    let root = home.path("notes").display().to_string();
    let script = format!(
        "ln -s /proc/self/root{root} proc; ln -s /proc/self/cwd/../notes cwd; ln -s /tmp/x tmp
         ln -s /var/tmp/x vartmp; ln -s /dev/shm/x shm; ln -s a in; ln -s /usr/bin/env sys; mv a/b b
         ln -s /etc /tmp/own"
    );
    let told = report(&home, "/bin:/usr/bin", &script);
    for name in ["proc", "cwd", "tmp", "vartmp", "shm", "b/there"] {
        assert!(told.contains(&format!("/repo/{name} ")), "{name}: {told}");
    }
    for name in ["/repo/in ", "/repo/sys ", "/tmp/own "] {
        assert!(!told.contains(name), "{name}: {told}");
    }
}

#[test]
fn names_that_are_no_text_count_like_others() {
    let home = Home::new();
    let script = "for name in 'a\\377.mk' '\\377.run.xml' '.envrc.\\377'; do
                      echo > \"$(printf $name)\"; done";
    let told = report(&home, "/bin:/usr/bin", script);
    assert!(told.contains("/repo/a\u{fffd}.mk "), "{told}");
    for name in [&b"\xff.run.xml"[..], b".envrc.\xff"] {
        use std::os::unix::ffi::OsStrExt as _;
        let path = home.path("repo").join(std::ffi::OsStr::from_bytes(name));
        assert!(!path.exists(), "{}", path.display());
    }
}
