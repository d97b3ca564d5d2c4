//! What projects and programs try so that a person grants more than is meant.

use crate::learn::Home;
use std::fs;
use test_support::copy_program;

/// A list of a profile.
fn list(profile: &str, table: &str, key: &str) -> Vec<String> {
    let profile: toml::Table = profile.parse().expect(profile);
    let list = profile.get(table).and_then(|table| table.get(key)).and_then(|it| it.as_array());
    let text = |value: &toml::Value| value.as_str().expect("a string").to_owned();
    list.into_iter().flatten().map(text).collect()
}

#[test]
fn no_program_gets_a_line_into_a_profile_by_its_name() {
    let home = Home::new();
    let name = "x\n]\nwrite = [\"${home}\"]\nhide = [ #";
    let script = "cp /bin/cat \"$0\"; \"./$0\" ~/notes.txt";
    home.say(&["run", "--no-daemon", "--", "sh", "-c", script, name]);
    let said = home.say(&["allow", "--all", "--write", "dewar.toml"]);
    assert_eq!(said.status, 0, "{}{}", said.out, said.err);
    let written = home.profile();
    assert_eq!(list(&written, "files", "read"), ["${home}/notes.txt"], "{written}");
    assert!(list(&written, "files", "write").is_empty(), "{written}");
    assert!(!written.lines().any(|line| line.starts_with("hide")), "{written}");
    let said = home.say(&["explain", "--toml"]);
    assert!(said.out.parse::<toml::Table>().is_ok(), "{}", said.out);
    assert!(list(&said.out, "files", "write").is_empty(), "{}", said.out);
}

#[test]
fn a_run_does_not_choose_which_profile_is_written() {
    let home = Home::new();
    let strict = home.path().join("strict.toml");
    fs::write(&strict, "extends = \"workspace\"\n").unwrap();
    home.say(&[
        "run",
        "--no-daemon",
        "--",
        "sh",
        "-c",
        "ln -s ../strict.toml dewar.toml; cat ~/notes.txt",
    ]);
    let said = home.say(&["allow", "--all", "--write", "dewar.toml"]);
    assert_eq!(said.status, 2, "{}{}", said.out, said.err);
    assert!(
        said.err.contains("`dewar.toml` is a link; name the file that is meant"),
        "{}",
        said.err
    );
    assert_eq!(fs::read_to_string(strict).unwrap(), "extends = \"workspace\"\n");
}

#[test]
fn a_name_that_no_profile_can_hold_is_left_out_and_the_rest_is_allowed() {
    let home = Home::new();
    let script = "cat ~/notes.txt; mkdir -p ~/\"$0\"; : > ~/\"$0\"; exit 0";
    home.say(&["run", "--no-daemon", "--", "sh", "-c", script, "a\u{202e}b"]);
    let said = home.say(&["allow", "--all", "--write", "dewar.toml"]);
    assert_eq!(said.status, 1, "{}{}", said.out, said.err);
    assert!(said.out.contains("no line names it"), "{}{}", said.out, said.err);
    assert!(said.out.contains("a\\u202eb") && !said.out.contains('\u{202e}'), "{}", said.out);
    let written = home.profile();
    assert_eq!(list(&written, "files", "read"), ["${home}/notes.txt"], "{written}");
    assert!(list(&written, "files", "write").is_empty(), "{written}");
}

#[test]
fn learning_runs_nothing_that_another_flag_says_not_to_run() {
    let home = Home::new();
    for flag in ["--dry-run", "--ask", "--audit=x", "--without=mount"] {
        let said = home.say(&["run", "--learn", flag, "--", "touch", "started"]);
        assert!(
            said.status == 2 && said.err.contains("cannot be used with"),
            "{flag}: {}",
            said.err
        );
        assert!(!home.work().join("started").exists(), "{flag}");
    }
}

#[test]
fn nothing_is_learned_above_a_projects_profile_that_nobody_has_trusted() {
    let home = Home::new();
    // It hides nothing, so that everything would be granted.
    let wide = "[files]\nread = ['/']\nwrite = ['${workspace}']\nexec = ['/']\n[network]\nconnect = ['*:*']\n";
    fs::write(home.work().join("dewar.toml"), wide).unwrap();
    let read = ["--", "sh", "-c", "touch started; cat ~/.ssh/id_ed25519"];
    for learn in [
        &["run", "--learn"][..],
        &["learn", "--merge"],
        &["learn", "--merge", "-o", "./dewar.toml"],
    ] {
        let said = home.say(&[learn, &read].concat());
        assert!(said.status == 2 && said.err.contains("you have not trusted it"), "{}", said.err);
        assert!(!home.work().join("started").exists() && said.out.is_empty(), "{learn:?}");
    }
    let said = home.say(&[&["run", "--learn", "-p", "agent"][..], &read].concat());
    assert!(said.status == 2 && said.err.contains("would mean nothing"), "{}", said.err);
    assert_eq!(home.profile(), wide);

    // What Dewar has made itself is the user's, until somebody else changes it.
    let home = Home::new();
    assert_eq!(home.say(&["learn", "--", "true"]).status, 0);
    let said = home.say(&["run", "--learn", "--", "cat", "../notes.txt"]);
    assert_eq!(said.status, 0, "{}", said.err);
    assert_eq!(list(&home.profile(), "files", "read"), ["${home}/notes.txt"]);
    fs::write(home.work().join("dewar.toml"), home.profile() + "# changed\n").unwrap();
    assert_eq!(home.say(&["run", "--learn", "--", "true"]).status, 2);
}

#[test]
fn whatever_is_learned_above_secrets_stay_denied() {
    let home = Home::new();
    let cat = fs::canonicalize("/bin/cat").unwrap();
    let low = home.work().join("low");
    copy_program(&cat, &low);
    let wide = "[files]\nread = ['/']\nwrite = ['${workspace}']\nexec = ['/']\n[env]\npass = ['*']\n\
                [domains.low]\nexec = ['${workspace}/low']\ninherit = false\nfiles.exec = ['/']\n";
    fs::write(home.path().join("wide.toml"), wide).unwrap();
    for program in ["cat", "./low"] {
        let script = format!("{program} ~/notes.txt ~/.ssh/id_ed25519 /etc/shadow");
        let said = home.say(&["learn", "--force", "-p", "../wide.toml", "--", "sh", "-c", &script]);
        assert_eq!(said.out, "notes", "{program}: {}", said.err);
    }
}

#[test]
fn a_run_inside_a_run_follows_each_flag_or_starts_nothing() {
    let home = Home::new();
    test_support::install(&home.work(), &["dewar"]);
    let flags = "-n --ask --mode=fast --daemon --record=all --without=net --enforce=files --stats --show-env";
    let script =
        format!("for f in {flags}; do ./dewar run -p workspace $f -- touch $f; echo $?; done");
    let said = home.say(&["run", "--no-daemon", "-p", "workspace", "--", "sh", "-c", &script]);
    assert_eq!(said.out, "125\n".repeat(9), "{}", said.err);
    assert!(said.err.contains("cannot follow --dry-run; nothing was started"), "{}", said.err);
    let left = fs::read_dir(home.work()).unwrap().flatten();
    let left: Vec<_> =
        left.map(|it| it.file_name()).filter(|it| it != "dewar" && it != "input").collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_run_inside_a_run_takes_the_profile_that_it_would_take_outside() {
    let home = Home::new();
    test_support::install(&home.work(), &["dewar"]);
    let strict = "extends = 'workspace'\n[files]\ndeny = ['${workspace}/input']\n";
    fs::write(home.work().join("dewar.toml"), strict).unwrap();
    let inner = ["--", "sh", "-c", "./dewar run -- cat input; echo $?"];
    let said = home.say(&[&["run", "--no-daemon", "-p", "workspace"][..], &inner].concat());
    // Nor would it be used there before it is trusted.
    assert_eq!(said.out, "2\n", "{}", said.err);
    assert!(said.err.contains("not used unasked inside"), "{}", said.err);
    let named = ["--", "sh", "-c", "./dewar run -p ./dewar.toml -- cat input; echo $?"];
    let said = home.say(&[&["run", "--no-daemon", "-p", "workspace"][..], &named].concat());
    assert_eq!(said.out, "1\n", "{}", said.err);
    assert!(said.err.contains("within what that run may do"), "{}", said.err);
    assert_eq!(home.say(&["trust", "--yes"]).status, 0);
    let said = home.say(&[&["run", "--no-daemon"][..], &inner].concat());
    assert_eq!(said.out, "1\n", "{}", said.err);
    assert!(said.err.contains("started with this very profile"), "{}", said.err);
}

#[test]
fn a_dry_run_makes_no_directory() {
    let home = Home::new();
    let profile = "extends = 'workspace'\n[files]\nwrite = ['${home}/.made/']\n";
    fs::write(home.path().join("p.toml"), profile).unwrap();
    let said = home.say(&["run", "-n", "-p", "../p.toml", "--", "true"]);
    assert!(said.status == 0 && !home.path().join(".made").exists(), "{}", said.err);
    let said = home.say(&["run", "--no-daemon", "-p", "../p.toml", "--", "true"]);
    assert!(said.status == 0 && home.path().join(".made").exists(), "{}", said.err);
}

#[test]
fn directories_that_a_profile_wants_are_made_where_no_link_of_a_run_leads() {
    let home = Home::new();
    for directory in ["elsewhere", "data"] {
        fs::create_dir(home.path().join(directory)).unwrap();
    }
    let profile = "extends = 'workspace'\n[files]\n\
         write = ['${workspace}/cache/sub/', '${home}/data/', '${home}/data/a/b/']\n";
    fs::write(home.path().join("p.toml"), profile).unwrap();
    let run =
        |script| home.say(&["run", "--no-daemon", "-p", "../p.toml", "--", "sh", "-c", script]);
    assert_eq!(run("test -d cache/sub && test -d ../data/a/b").status, 0);
    for script in
        ["rm -r cache; ln -s ../elsewhere cache", "rm -r ../data/a; ln -s ../elsewhere ../data/a"]
    {
        assert_eq!(run(script).status, 0, "{script}");
        let said = run("true");
        assert!(said.status == 125 && said.err.contains("it is a link"), "{script}: {}", said.err);
        assert_eq!(fs::read_dir(home.path().join("elsewhere")).unwrap().count(), 0, "{script}");
        // What was made in the place of the first is none of the second.
        let _ = fs::remove_file(home.work().join("cache"));
    }
}

/// A trail and a report hold names that the program chose.
#[test]
fn what_is_written_follows_no_link_that_a_run_has_left_and_waits_for_no_pipe() {
    let home = Home::new();
    let script = "for name in trail report.html p.toml; do ln -s ../notes.txt $name; done; \
                  ln -s ../elsewhere out; mkfifo pipe; echo old > plain.html; mkdir kept app; \
                  for name in decision.json run.jsonl; do ln -s ../../notes.txt kept/$name; done; \
                  ln -s ../../notes.txt app/Makefile";
    fs::create_dir(home.path().join("elsewhere")).unwrap();
    home.say(&["run", "--no-daemon", "--", "sh", "-c", script]);
    let whole = home.work().join("out/trail").display().to_string();
    for (args, status) in [
        (&["run", "--no-daemon", "--audit", &whole, "--", "true"][..], 2),
        (&["run", "--no-daemon", "--audit", "trail", "--", "true"], 2),
        (&["run", "--no-daemon", "--audit", "out/trail", "--", "true"], 2),
        (&["run", "--no-daemon", "--audit", "pipe", "--", "true"], 2),
        (&["run", "--no-daemon", "--mode", "fast", "--audit", "trail", "--", "true"], 2),
        (&["report", "-o", "report.html"], 125),
        (&["report", "-o", "out/report.html"], 125),
        (&["report", "-o", "pipe"], 125),
        (&["learn", "-o", "p.toml", "--", "true"], 2),
        (&["learn", "-o", "out/p.toml", "--", "true"], 2),
        (&["man", "out/man"], 125),
        (&["bench", "decision", "--rounds", "1", "--keep", "kept"], 125),
        (&["bench", "decision", "--rounds", "1", "--keep", "out/kept"], 125),
        (&["bench", "run", "--rounds", "1", "--budget", "1", "--keep", "kept", "--", "true"], 125),
        (&["bench", "sample", "app"], 125),
        (&["bench", "sample", "out/app"], 125),
    ] {
        let said = home.say(args);
        assert_eq!(said.status, status, "{args:?}: {}", said.err);
        let why = ["it is a link", "is a link; name", "is no file by itself"];
        assert!(why.iter().any(|why| said.err.contains(why)), "{args:?}: {}", said.err);
    }
    assert_eq!(fs::read_to_string(home.path().join("notes.txt")).unwrap(), "notes");
    assert_eq!(fs::read_dir(home.path().join("elsewhere")).unwrap().count(), 0);
    assert_eq!(home.say(&["report", "-o", "plain.html"]).status, 0);
    assert!(fs::read_to_string(home.work().join("plain.html")).unwrap().starts_with("<!"));
    let said = home.say(&["run", "--no-daemon", "--audit", "plain.html", "--", "true"]);
    assert_eq!(said.status, 0, "{}", said.err);
    assert!(fs::read_to_string(home.work().join("plain.html")).unwrap().contains("\"granted\""));
}

#[test]
fn what_any_domain_of_a_run_could_have_written_is_not_believed() {
    let home = Home::new();
    fs::write(home.path().join("mine.toml"), "extends = 'workspace'\n").unwrap();
    let profile = "extends = 'workspace'\n[domains.sed]\nexec = ['/usr/bin/sed']\nfiles.write = ['${home}/mine.toml']\n";
    fs::write(home.path().join("p.toml"), profile).unwrap();
    home.say(&["run", "--no-daemon", "-p", "../p.toml", "--", "cat", "../notes.txt"]);
    let said = home.say(&["allow", "--all", "--write", "../mine.toml"]);
    assert!(
        said.status == 2 && said.err.contains("could have written"),
        "{}{}",
        said.out,
        said.err
    );
}

#[test]
fn a_projects_profile_is_no_pipe_and_extends_none() {
    let home = Home::new();
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    let pipe = home.work().join("base.toml");
    rustix::fs::mknodat(rustix::fs::CWD, pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    fs::write(home.work().join("dewar.toml"), "extends = './base.toml'\n").unwrap();
    // To open it would last for ever.
    for args in [&["run", "--", "true"][..], &["trust"]] {
        let said = home.say(args);
        let told = crate::in_a_line(&said.err);
        assert!(said.status == 2 && told.contains("it is no file"), "{args:?}: {}", said.err);
    }
}

#[test]
fn what_looks_like_a_secret_is_kept_wherever_it_lies() {
    let home = Home::new();
    fs::create_dir(home.path().join("secrets")).unwrap();
    fs::write(home.path().join("secrets/prod.json"), "in the home").unwrap();
    // Beside the home, where nobody else is.
    let other = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    fs::write(other.path().join("server.key"), "outside of it").unwrap();
    fs::write(other.path().join("plain"), "plain").unwrap();
    let place = other.path().display();
    let script = format!("cat ~/secrets/prod.json {place}/server.key {place}/plain");
    let said = home.say(&["learn", "--", "sh", "-c", &script]);
    assert!(
        said.out == "plain" || said.out.is_empty() && said.err.contains("not looked through"),
        "{}{}",
        said.out,
        said.err
    );
    let granted = [list(&home.profile(), "files", "read"), list(&home.profile(), "files", "list")];
    let is_secret = |path: &String| path.contains("secrets") || path.contains("server.key");
    assert!(!granted.concat().iter().any(is_secret), "{}", home.profile());
}
