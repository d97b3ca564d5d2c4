//! What an answer gives, to whom, and what it does if it cannot be carried out.

use crate::{
    ask::{Home, text},
    terminal::Terminal,
};
use std::{
    fs,
    io::{BufRead as _, BufReader, ErrorKind, Read as _},
    net::TcpListener,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Child, ChildStdout, Stdio},
    time::Duration,
};
use test_support::copy_program;

/// A profile with a domain that inherits nothing, and its program in the workspace.
fn with_domain(home: &Home) -> String {
    copy_program(Path::new("/bin/cat"), &home.path().join("work/low"));
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
    copy_program(Path::new("/bin/true"), &home.path().join("tool"));
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

/// Somebody who hears the questions of the run `it`, one on a line.
fn hear(home: &Home) -> (Child, BufReader<ChildStdout>) {
    let mut events =
        home.command(&[], &["ask", "it", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(events.stdout.take().unwrap());
    lines.read_line(&mut String::new()).unwrap();
    (events, lines)
}

/// Two calls that the same line would grant, both asked about when `answer` is given to the one
/// that writes. What was said, and the run, whose other question may still be open.
fn with_two_questions(home: &Home, answer: &str) -> (Child, String) {
    let script = "while [ ! -e go ]; do sleep 0.1; done
        (echo more >>~/notes.txt) & chmod 640 ~/notes.txt & wait";
    let run = ["run", "--no-daemon", "--ask", "--name", "it", "--", "sh", "-c", script];
    let run = home.command(&[], &run).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    home.say_soon(&["ask", "it", "--list"], "no question");
    let (mut events, mut lines) = hear(home);
    fs::write(home.path().join("work/go"), "").unwrap();
    let mut number = 0;
    for _ in 0..2 {
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        let question = &serde_json::from_str::<serde_json::Value>(&line).unwrap()["question"];
        if question["wants"].as_array().unwrap().iter().any(|it| it == "write") {
            number = question["id"].as_u64().unwrap();
        }
    }
    let said = home.say(&["ask", "it", "--answer", &format!("{number}={answer}")]);
    events.kill().unwrap();
    events.wait().unwrap();
    (run, text(&said.stdout) + &text(&said.stderr))
}

fn mode_of_notes(home: &Home) -> u32 {
    fs::metadata(home.path().join("notes.txt")).unwrap().permissions().mode() & 0o777
}

#[test]
fn once_passes_the_call_that_was_shown_and_none_that_the_same_line_would_grant() {
    let home = Home::new();
    let before = mode_of_notes(&home);
    let (mut run, said) = with_two_questions(&home, "once");
    assert!(said.contains(": once"), "{said}");
    let other = home.say_soon(&["ask", "it", "--list"], "setattr");
    let number = other.split(':').next().unwrap();
    assert_eq!(mode_of_notes(&home), before);
    home.say(&["ask", "it", "--answer", &format!("{number}=no")]);
    run.wait().unwrap();
    let notes = fs::read_to_string(home.path().join("notes.txt")).unwrap();
    assert_eq!((notes.as_str(), mode_of_notes(&home)), ("these are notesmore\n", before));
    assert_eq!(home.answers(), ["once", "no"]);
}

#[test]
fn what_is_given_to_the_run_passes_all_that_the_same_line_grants() {
    let home = Home::new();
    let (mut run, said) = with_two_questions(&home, "run");
    assert!(said.contains(": run"), "{said}");
    run.wait().unwrap();
    let notes = fs::read_to_string(home.path().join("notes.txt")).unwrap();
    assert_eq!((notes.as_str(), mode_of_notes(&home)), ("these are notesmore\n", 0o640));
}

#[test]
fn a_connection_that_passed_once_is_revoked_with_all_others() {
    let home = Home::new();
    let service = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = service.local_addr().unwrap().port();
    let profile = home.path().join("other.toml");
    let text_of = "extends = \"workspace\"\n[network]\nconnect = [\"192.0.2.1:1\"]\n";
    fs::write(&profile, text_of).unwrap();
    let script = format!(
        "until [ -e go ]; do sleep 0.1; done; exec 3<>/dev/tcp/127.0.0.1/{port}; read -u 3"
    );
    let profile = profile.display().to_string();
    let run = [
        "run",
        "--no-daemon",
        "--ask",
        "--name",
        "it",
        "-p",
        &profile,
        "--",
        "bash",
        "-c",
        &script,
    ];
    let mut run = home.command(&[], &run).stdout(Stdio::null()).spawn().unwrap();
    home.say_soon(&["ask", "it", "--list"], "no question");
    let (mut events, mut lines) = hear(&home);
    fs::write(home.path().join("work/go"), "").unwrap();
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    let question = &serde_json::from_str::<serde_json::Value>(&line).unwrap()["question"];
    let answer = format!("{}=once", question["id"]);
    home.say(&["ask", "it", "--answer", &answer]);
    let (mut connection, _) = service.accept().unwrap();
    home.say_soon(&["revoke", "it", "--net", &format!("127.0.0.1:{port}")], "complete");
    connection.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let ended = connection.read(&mut [0]).map_err(|error| error.kind());
    assert!(matches!(ended, Ok(0) | Err(ErrorKind::ConnectionReset)), "{ended:?}");
    run.wait().unwrap();
    events.kill().unwrap();
    events.wait().unwrap();
}

#[test]
fn events_as_json_steer_no_terminal() {
    let home = Home::new();
    let name = "c\u{9b}2J\u{202e}t";
    test_support::copy_program(Path::new("/bin/cat"), &home.path().join("work").join(name));
    let script = "while [ ! -e go ]; do sleep 0.1; done; ./c*t ~/notes.txt";
    let run = ["run", "--no-daemon", "--ask", "--name", "it", "--", "sh", "-c", script];
    let mut run = home.command(&[], &run).spawn().unwrap();
    home.say_soon(&["ask", "it", "--list"], "no question");
    let mut events =
        home.command(&[], &["ask", "it", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(events.stdout.take().unwrap());
    lines.read_line(&mut String::new()).unwrap();
    fs::write(home.path().join("work/go"), "").unwrap();
    let mut said = String::new();
    lines.read_line(&mut said).unwrap();
    let listed = home.say_soon(&["ask", "it", "--list", "--json"], "notes.txt");
    home.say(&["ask", "it", "--answer", "1=no"]);
    let _ = (run.wait(), events.wait());
    for said in [said, listed] {
        assert!(!said.contains(['\u{9b}', '\u{202e}']), "{said:?}");
        assert!(said.contains(r"c\u009b2J\u202et"), "{said:?}");
    }
}
