//! A service outside that acts for whoever connects, such as Docker's, is granted to nobody who
//! does not name it, and what it gives is said.

use super::{ask, learn::Home, terminal};
use std::{fs, os::unix::net::UnixListener};

/// What such a service gives, as `policy/deputies` has it.
const GIVES: &str = "your rights outside (containers with any file of yours in them)";

/// Asks for containers, as `docker ps` does.
const CLIENT: &str = "import os, socket\ntry:\n    socket.socket(socket.AF_UNIX).connect(os.path.expanduser('~/.rd/docker.sock'))\n    print('connected')\nexcept OSError as error:\n    print(error)";

/// A home with the service.
fn prepare() -> (Home, UnixListener, String) {
    let home = Home::new();
    fs::create_dir_all(home.path().join(".rd")).unwrap();
    let socket = home.path().join(".rd/docker.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    (home, listener, socket.display().to_string())
}

#[test]
fn what_acts_for_whoever_connects_is_allowed_by_its_full_name_only() {
    let (home, _listener, socket) = prepare();
    let run = ["run", "--no-daemon", "--", "/usr/bin/python3", "-c", CLIENT];
    let said = home.say(&run);
    assert!(!said.out.contains("connected"), "{}", said.out);

    let said = home.say(&["explain"]).out;
    assert!(said.contains(&format!("gives        {GIVES}")), "{said}");
    assert!(said.contains(&format!("name it in full: {socket}")), "{said}");
    let said = home.say(&["explain", "--toml"]).out;
    assert!(said.contains(GIVES) && said.contains("name it in full"), "{said}");
    assert!(said.lines().all(|line| line.starts_with('#') || line.is_empty()), "{said}");
    let said = home.say(&["explain", "--json"]).out;
    let record: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(record["denials"][0]["gives_outside"], GIVES, "{said}");
    assert_eq!(record["would_allow"], serde_json::json!([]), "{said}");

    for words in [&["--all"][..], &["1"]] {
        let said = home.say(&[&["allow", "--write", "dewar.toml"], words].concat());
        assert!(said.status == 1 && said.out.contains(GIVES), "{}{}", said.out, said.err);
        assert!(!home.work().join("dewar.toml").exists());
    }
    let said = home.say(&["allow", &socket, "--write", "dewar.toml", "--dry-run"]);
    assert!(said.out.contains(&format!("GIVES whoever connects {GIVES}")), "{}", said.out);
    assert!(!home.work().join("dewar.toml").exists());
    let said = home.say(&["allow", &socket, "--write", "dewar.toml"]);
    assert_eq!(said.status, 0, "{}{}", said.out, said.err);
    let line = "\"unix:${home}/.rd/docker.sock\"";
    assert!(home.profile().contains(line), "{}", home.profile());
    let allowed =
        ["run", "--no-daemon", "-p", "./dewar.toml", "--", "/usr/bin/python3", "-c", CLIENT];
    assert_eq!(home.say(&allowed).out, "connected\n", "{}", home.profile());
}

#[test]
fn a_profile_that_lets_programs_act_outside_says_so_before_it_is_trusted_or_run() {
    let (home, _listener, socket) = prepare();
    let text = "extends = 'workspace'\nnetwork.connect = ['unix:${home}/.rd/docker.sock', 'unix:/run/docker.sock']\n";
    fs::write(home.work().join("dewar.toml"), text).unwrap();
    let said = home.say(&["trust"]);
    assert!(said.out.contains(&format!("GIVES {GIVES}, by {socket}")), "{}", said.out);
    assert!(said.out.contains("GIVES root on this machine"), "{}", said.out);
    let said = home.say(&["run", "--dry-run", "-p", "./dewar.toml", "--", "true"]);
    assert!(said.out.contains(GIVES), "{}{}", said.out, said.err);
    let said = home.say(&["run", "--dry-run", "--", "true"]);
    assert!(!said.out.contains("GIVES"), "{}", said.out);
}

#[test]
fn whoever_connects_by_a_link_is_told_of_as_by_its_name() {
    let (home, _listener, socket) = prepare();
    std::os::unix::fs::symlink(&socket, home.work().join("harmless.sock")).unwrap();
    let text = "extends = 'workspace'\nfiles.write = ['${home}/.rd']\n";
    fs::write(home.work().join("p.toml"), text).unwrap();
    let client = CLIENT.replace("~/.rd/docker.sock", "harmless.sock");
    let run = ["run", "--no-daemon", "-p", "./p.toml", "--", "/usr/bin/python3", "-c", &client];
    let said = home.say(&run);
    assert!(!said.out.contains("connected"), "{}", said.out);
    let said = home.say(&["explain", "--json"]).out;
    let record: serde_json::Value = serde_json::from_str(&said).unwrap();
    let denied = &record["denials"][0];
    assert_eq!(denied["object"], format!("unix:{socket}"), "{said}");
    assert_eq!(denied["gives_outside"], GIVES, "{said}");
}

#[test]
fn what_acts_for_whoever_connects_is_never_learned_only_said() {
    let (home, _listener, _) = prepare();
    let command = ["learn", "-o", "l.toml", "--", "/usr/bin/python3", "-c", CLIENT];
    let said = home.say(&command);
    assert!(!said.out.contains("connected"), "{}", said.out);
    assert!(said.err.contains("stays denied") && said.err.contains(GIVES), "{}", said.err);
    let profile = || fs::read_to_string(home.work().join("l.toml")).unwrap();
    let learned = profile();
    let said = |line: &&str| line.contains("docker.sock") || line.contains(GIVES);
    assert!(learned.lines().filter(said).all(|line| line.starts_with('#')), "{learned}");
    assert!(learned.contains("# Not in it, for python3") && learned.contains(GIVES), "{learned}");
    home.say(&[&["learn", "--force"], &command[1..]].concat());
    assert_eq!(profile(), learned);
}

#[test]
fn a_question_about_it_says_what_it_gives_and_wants_its_full_name() {
    let home = ask::Home::new();
    fs::create_dir_all(home.path().join(".rd")).unwrap();
    let socket = home.path().join(".rd/docker.sock");
    let _listener = UnixListener::bind(&socket).unwrap();
    fs::write(home.path().join("work/client.py"), CLIENT).unwrap();
    let profile = home.path().join("p.toml").display().to_string();
    let script = "/usr/bin/python3 client.py; /usr/bin/python3 client.py";
    let mut terminal = terminal::Terminal::run(&home, &["-p", &profile], script);
    for letter in ["o", "r", "p"] {
        let asked = terminal.answer(&format!("{letter}\n"));
        let is_first = letter == "o";
        assert!(asked.contains(GIVES), "{asked}");
        assert!(is_first || asked.contains("name it in full"), "{asked}");
    }
    terminal.answer(&format!("o {}\n", socket.display()));
    assert!(terminal.answer("n\n").contains("connected"));
    let (rest, _) = terminal.end();
    assert!(!rest.contains("connected"), "{rest}");
    assert_eq!(home.answers(), ["once", "no"]);
    assert_eq!(fs::read_to_string(&profile).unwrap(), "extends = \"workspace\" # mine\n");
}
