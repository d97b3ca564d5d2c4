//! What an answer gives, to whom, and what it does if it cannot be carried out.

use crate::ask::{Home, Terminal, text};
use std::{fs, process::Stdio};

/// A profile with a domain that inherits nothing, and its program in the workspace.
fn with_domain(home: &Home) -> String {
    fs::copy("/bin/cat", home.path().join("work/low")).unwrap();
    let profile = home.path().join("p.toml");
    let text = "extends = 'workspace'\n[domains.low]\nexec = ['${workspace}/low']\ninherit = false\n\
                files = { exec = ['/usr', '/lib', '/lib64', '${workspace}'], read = ['/etc'], write = ['/dev'] }\n";
    fs::write(&profile, text).unwrap();
    profile.display().to_string()
}

#[test]
fn what_one_domain_is_given_no_other_gets() {
    let home = Home::new();
    let profile = with_domain(&home);
    let options = ["-p", &profile, "--ask-timeout", "3s"];
    let mut terminal = Terminal::run(&home, &options, "cat ~/notes.txt; ./low ~/notes.txt");
    terminal.answer("r\n");
    let (rest, _) = terminal.end();
    assert_eq!(rest.matches("these are notes").count(), 1, "{rest}");
    assert_eq!(home.answers(), ["run", "time-out"], "{rest}");
}

#[test]
fn what_one_domain_is_allowed_once_no_other_gets() {
    let home = Home::new();
    let profile = with_domain(&home);
    // Where the home is in the view: what a view has left out cannot be given.
    let script = "cat ~/notes.txt; until [ -e go ]; do sleep 0.1; done
        cat ~/notes.txt; ./low ~/notes.txt";
    let run = [
        "run",
        "--no-daemon",
        "--without",
        "mount",
        "--name",
        "it",
        "-p",
        &profile,
        "--",
        "sh",
        "-c",
        script,
    ];
    let run =
        home.command(&[], &run).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    home.say_soon(&["allow", "it", "--all", "--once"], "files.read");
    fs::write(home.path().join("work/go"), "").unwrap();
    let output = run.wait_with_output().unwrap();
    let out = text(&output.stdout);
    assert_eq!(out, "these are notes", "{}", text(&output.stderr));
}

#[test]
fn no_answer_is_offered_that_cannot_be_carried_out() {
    let home = Home::new();
    fs::copy("/bin/true", home.path().join("tool")).unwrap();
    for script in ["~/tool", "ls ~", "echo > /dev/tcp/192.0.2.1/80"] {
        let script = format!("bash -c '{script}'");
        let mut terminal = Terminal::run(&home, &["--ask-timeout", "30s"], &script);
        let asked = terminal.answer("n\n");
        assert!(asked.contains("allow [o]nce") && !asked.contains("[r]un"), "{script}: {asked}");
        terminal.end();
    }
}

#[test]
fn a_profile_is_not_changed_where_the_running_sandbox_refuses_what_would_be_in_it() {
    let home = Home::new();
    let profile = home.path().join("p.toml").display().to_string();
    // Nothing is given to a run in which not everything is decided.
    let options = ["-p", &profile, "--enforce", "files,processes", "--ask-timeout", "3s"];
    let mut terminal = Terminal::run(&home, &options, "cat ~/notes.txt");
    terminal.answer("p\n");
    terminal.expect("not done: ");
    terminal.end();
    assert_eq!(fs::read_to_string(&profile).unwrap(), "extends = \"workspace\" # mine\n");
}
