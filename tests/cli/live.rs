//! What is given to, asked by and taken from a sandbox while it runs.

use crate::{
    account::{Account, accounts},
    ask::{Home, text},
};
use std::{
    fs,
    io::Read as _,
    path::Path,
    process::{Child, Stdio},
    time::{Duration, Instant},
};

const PATIENCE: Duration = Duration::from_secs(60);

/// Runs a script with nobody at a terminal, called `it`.
fn run(home: &Home, options: &[&str], script: &str) -> Child {
    let named = ["run", "--no-daemon", "--name", "it"];
    let args = [&named[..], options, &["--", "sh", "-c", script]].concat();
    home.command(&[], &args).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

/// What it has printed when it has ended, which it does.
fn end(mut run: Child) -> String {
    let until = Instant::now() + PATIENCE;
    while run.try_wait().unwrap().is_none() {
        assert!(Instant::now() < until, "the run does not end");
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut out = String::new();
    run.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    out
}

#[test]
fn what_is_allowed_once_is_given_to_the_running_sandbox_alone() {
    let home = Home::new();
    let script = "until cat ~/notes.txt 2>/dev/null; do sleep 0.1; done; echo; cat ~/plans.txt";
    let run = run(&home, &["--ask"], script);
    let notes = home.path().join("notes.txt").display().to_string();
    let given = home.say_soon(&["allow", "it", &notes, "--once"], "complete after");
    assert!(given.contains("${home}/notes.txt"), "{given}");
    assert_eq!(end(run), "these are notes\n");
    let again = home.say(&["run", "--no-daemon", "--", "cat", "../notes.txt"]);
    assert_eq!(again.status.code(), Some(1), "{}", text(&again.stdout));
    let gone = home.say(&["allow", "it", &notes, "--once"]);
    assert_ne!(gone.status.code(), Some(0), "there is no such run any more");
}

#[test]
fn what_a_running_sandbox_cannot_be_given_is_said_with_what_to_do() {
    let home = Home::new();
    let script = "while [ ! -e end ]; do cat ~/notes.txt 2>/dev/null; sleep 0.1; done";
    let run = run(&home, &[], script);
    let notes = home.path().join("notes.txt").display().to_string();
    let told = home.say_soon(&["allow", "it", &notes, "--once"], "OUT OF REACH");
    assert!(told.contains("`dewar run --ask`"), "{told}");
    // However often it is asked for.
    for again in [&["allow", "it", &notes, "--once"][..], &["grant", "it", "--file", &notes]] {
        let said = home.say(again);
        let out = text(&said.stdout);
        assert_eq!(said.status.code(), Some(1), "{again:?}: {out}");
        assert!(
            out.contains("OUT OF REACH") && !out.contains("complete after"),
            "{again:?}: {out}"
        );
    }
    let said = home.say(&["grant", "it", "--file", &notes, "--json"]);
    let receipt: serde_json::Value = serde_json::from_slice(&said.stdout).unwrap();
    let beyond = &receipt["receipt"]["out_of_reach"][0];
    assert_eq!(
        (said.status.code(), beyond["path"].as_str()),
        (Some(1), Some(&*notes)),
        "{receipt}"
    );
    assert!(beyond["why"].as_str().is_some_and(|why| why.contains("dewar run --ask")), "{receipt}");
    let explained = text(&home.say(&["explain", "it"]).stdout);
    assert!(explained.contains("this run cannot be given it any more"), "{explained}");
    assert!(!explained.contains("--once"), "{explained}");
    // What is something else is not blamed for it.
    let said = home.say(&["revoke", "it", "--file", "/usr/share"]);
    assert!(!text(&said.stdout).contains("OUT OF REACH"), "{}", text(&said.stdout));
    fs::write(home.path().join("work/end"), "").unwrap();
    assert_eq!(end(run), "");
}

/// A run with a question about `~/notes.txt` open, and somebody who hears it.
fn asking(home: &Home, script: &str) -> (Child, Child) {
    let run = run(home, &["--ask"], &format!("while [ ! -e go ]; do sleep 0.1; done; {script}"));
    home.say_soon(&["ask", "it", "--list"], "no question");
    let mut listens = home.command(&[], &["ask", "it", "--json"]);
    let mut listener = listens.stdout(Stdio::piped()).spawn().unwrap();
    // Without anybody who hears, it would be denied at once. A byte of the first line is enough.
    listener.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    fs::write(home.path().join("work/go"), "").unwrap();
    home.say_soon(&["ask", "it", "--list"], "notes.txt");
    (run, listener)
}

#[test]
fn a_revocation_denies_the_call_that_is_asked_about_and_closes_the_question() {
    let home = Home::new();
    let script = "cat ~/notes.txt; echo status $?; while [ ! -e end ]; do sleep 0.1; done";
    let (run, listener) = asking(&home, script);
    let notes = home.path().join("notes.txt").display().to_string();
    let revoked = home.say(&["revoke", "it", "--file", &notes]);
    assert!(revoked.status.success(), "{}", text(&revoked.stderr));
    home.say_soon(&["ask", "it", "--list"], "no question");
    fs::write(home.path().join("work/end"), "").unwrap();
    assert_eq!(end(run), "status 1\n");
    let heard = text(&listener.wait_with_output().unwrap().stdout);
    assert!(heard.contains("\"answer\":\"withdrawn\""), "{heard}");
}

#[test]
fn taking_everything_ends_a_run_that_is_asked_about() {
    let home = Home::new();
    let (run, listener) = asking(&home, "cat ~/notes.txt; echo went on");
    let revoked = home.say(&["revoke", "it", "--all"]);
    assert!(revoked.status.success(), "{}", text(&revoked.stderr));
    assert_eq!(end(run), "");
    let heard = text(&listener.wait_with_output().unwrap().stdout);
    assert!(heard.contains("\"answer\":\"withdrawn\""), "{heard}");
    let asked = home.say(&["ask", "it", "--list"]);
    assert_ne!(asked.status.code(), Some(0), "{}", text(&asked.stdout));
}

#[test]
fn an_answer_that_comes_after_a_revocation_gives_nothing() {
    let home = Home::new();
    let script = "cat ~/notes.txt; echo status $?; while [ ! -e end ]; do sleep 0.1; done";
    let (run, listener) = asking(&home, script);
    let notes = home.path().join("notes.txt").display().to_string();
    assert!(home.say(&["revoke", "it", "--file", &notes]).status.success());
    home.say_soon(&["ask", "it", "--list"], "no question");
    let late = home.say(&["ask", "it", "--answer", "1=run"]);
    assert_eq!(late.status.code(), Some(1), "{}", text(&late.stdout));
    assert!(text(&late.stderr).contains("no open question 1"), "{}", text(&late.stderr));
    fs::write(home.path().join("work/end"), "").unwrap();
    assert_eq!(end(run), "status 1\n");
    listener.wait_with_output().unwrap();
}

/// Says `args` until `part` comes back.
fn say_soon(account: &Account, args: &[&str], part: &str) -> String {
    let until = Instant::now() + PATIENCE;
    loop {
        let came = account.dewar(args);
        let said = came.out + &came.err;
        if said.contains(part) {
            return said;
        }
        assert!(Instant::now() < until, "{args:?}: {said}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn root_and_ordinary_users_are_asked_by_their_own_runs_with_a_daemon_and_without() {
    accounts(|mut account| {
        let directory = |name: &str| account.path(name).display().to_string();
        let (runtime, state) = (directory("runtime"), directory("state"));
        account.set("XDG_RUNTIME_DIR", &runtime);
        account.set("XDG_STATE_HOME", &state);
        // Not below `/var/tmp`, as the account is: each run has a `/var/tmp` of its own.
        let base = match Path::new("/home").is_dir() && rustix::process::geteuid().is_root() {
            true => "/home",
            false => env!("CARGO_TARGET_TMPDIR"),
        };
        let elsewhere = tempfile::tempdir_in(base).unwrap();
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(elsewhere.path(), open).unwrap();
        let notes = elsewhere.path().join("notes.txt").display().to_string();
        fs::write(&notes, "these are notes\n").unwrap();
        fs::create_dir(account.path("runtime")).unwrap();
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        fs::set_permissions(account.path("runtime"), private).unwrap();
        account.give();
        account.bring("dewar-daemon");
        for with in ["--no-daemon", "--daemon"] {
            let daemon =
                (with == "--daemon").then(|| account.command(&["daemon"]).spawn().unwrap());
            while daemon.is_some() && account.dewar(&["daemon", "--runs"]).status != 0 {
                std::thread::sleep(Duration::from_millis(100));
            }
            // Until somebody listens, it is denied at once.
            let script = format!("until cat {notes} 2>/dev/null; do sleep 0.2; done");
            let run = ["run", with, "--ask", "--name", "it", "--", "sh", "-c", &script];
            let mut run = account.alone(&run);
            let run = run.stdout(Stdio::piped()).spawn().unwrap();
            // Who looks at the list listens, and may be asked already.
            while account.dewar(&["ask", "it", "--list"]).status != 0 {
                std::thread::sleep(Duration::from_millis(100));
            }
            let mut listens = account.command(&["ask", "it", "--json"]);
            let mut listener = listens.stdout(Stdio::null()).spawn().unwrap();
            say_soon(&account, &["ask", "it", "--list"], "notes.txt");
            say_soon(&account, &["ask", "it", "--answer", "1=run"], "question 1: run");
            assert_eq!(end(run), "these are notes\n", "{with}");
            listener.wait().unwrap();
            if let Some(mut daemon) = daemon {
                let _ = (daemon.kill(), daemon.wait());
            }
        }
    });
}

/// Waits until the run has made `file` in its workspace.
fn await_file(home: &Home, file: &str) {
    let until = Instant::now() + PATIENCE;
    while !home.path().join("work").join(file).exists() {
        assert!(Instant::now() < until, "the run does not make {file}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A label belongs to the file: editors and `logrotate` rename what is denied, and a pattern that
/// takes something else may name where it lies then.
#[test]
fn taking_something_of_a_name_gives_nothing_of_what_was_renamed_to_it() {
    for takes in ["--write", "--exec"] {
        for links in ["true", "ln data alias"] {
            let home = Home::new();
            let script = format!(
                "echo secret > data; {links}; cat data alias 2>/dev/null; touch ready; \
                 while [ ! -e end ]; do sleep 0.05; done; cat data.1 alias; echo status $?"
            );
            let run = run(&home, &["--mode", "all"], &script);
            await_file(&home, "ready");
            let path = |name: &str| home.path().join("work").join(name);
            let revoke = |option: &[&str], name: &str| {
                let pattern = path(name).display().to_string();
                let args = [&["revoke", "it"], option, &[pattern.as_str()][..]].concat();
                let said = home.say(&args);
                assert!(said.status.success(), "{args:?}: {}", text(&said.stderr));
            };
            revoke(&["--file"], "data");
            fs::rename(path("data"), path("data.1")).unwrap();
            match takes {
                "--write" => revoke(&["--write", "--file"], "data*"),
                _ => revoke(&["--exec"], "data*"),
            }
            fs::write(path("end"), "").unwrap();
            let before = if links == "true" { "secret\n" } else { "secret\nsecret\n" };
            assert_eq!(end(run), format!("{before}status 1\n"), "{takes} {links}");
        }
    }
}

/// Who gives a file by its name means what lies there.
#[test]
fn what_is_given_by_a_name_is_what_was_renamed_to_it() {
    let home = Home::new();
    let script = "echo text > data; cat data; touch ready; \
                  while [ ! -e end ]; do sleep 0.05; done; cat data.1";
    let run = run(&home, &["--mode", "all"], script);
    await_file(&home, "ready");
    let path = |name: &str| home.path().join("work").join(name);
    let say = |verb: &str, name: &str| {
        let said = home.say(&[verb, "it", "--file", &path(name).display().to_string()]);
        assert!(said.status.success(), "{verb} {name}: {}", text(&said.stderr));
    };
    say("revoke", "data");
    fs::rename(path("data"), path("data.1")).unwrap();
    say("revoke", "data.1");
    say("grant", "data.1");
    fs::write(path("end"), "").unwrap();
    assert_eq!(end(run), "text\ntext\n");
}

/// A file has other names, and gets new ones; another change is about none of them.
#[test]
fn what_is_taken_stays_taken_by_every_name_whatever_changes_next() {
    let home = Home::new();
    let script = "echo secret | tee f g h > i; mkdir d b; ln f d/f; cat f d/f g h; touch b/e ready; \
                  while [ ! -e end ]; do sleep 0.05; done; \
                  for name in f d/f d/g h d/h; do cat $name && echo $name; echo x >> $name; done";
    // What lies there has another label.
    let profile = "extends = 'workspace'\nfiles.write = ['${workspace}/d']\n";
    fs::write(home.path().join("p.toml"), profile).unwrap();
    let run = run(&home, &["--mode", "all", "-p", "../p.toml"], script);
    await_file(&home, "ready");
    let path = |name: &str| home.path().join("work").join(name);
    let revoke = |name: &str| {
        let said = home.say(&["revoke", "it", "--file", &path(name).display().to_string()]);
        assert!(said.status.success(), "{name}: {}", text(&said.stderr));
    };
    for name in ["d/f", "d/g", "h"] {
        revoke(name);
    }
    // As an editor saves, to a name that is taken; and aside.
    fs::rename(path("g"), path("d/g")).unwrap();
    fs::rename(path("h"), path("d/h")).unwrap();
    revoke("b/e");
    let given = home.say(&["grant", "it", "--file", &path("b/e").display().to_string()]);
    assert!(given.status.success(), "{}", text(&given.stderr));
    fs::write(path("end"), "").unwrap();
    assert_eq!(end(run), "secret\nsecret\nsecret\nsecret\n");
    for name in ["f", "d/f", "d/g", "d/h"] {
        assert_eq!(fs::read_to_string(path(name)).unwrap(), "secret\n", "{name}");
    }
}

/// The run inside meets the file first by the name that it has by then; the run around does not.
#[test]
fn what_has_got_a_denied_name_stays_denied_to_runs_inside() {
    let home = Home::new();
    let work = |name: &str| home.path().join("work").join(name);
    test_support::install(&work(""), &["dewar"]);
    let profile = "extends = 'workspace'\nfiles.deny = ['${workspace}/.env']\n";
    fs::write(home.path().join("p.toml"), profile).unwrap();
    fs::write(work("new"), "secret\n").unwrap();
    let script = "cat new; touch ready; while [ -e new ]; do sleep 0.05; done; cat .env; \
                  ./dewar run -p workspace -- cat .env; \
                  ./dewar run -p workspace -- sh -c 'echo x >> .env'; echo status $?";
    let run = run(&home, &["--mode", "all", "-p", "../p.toml"], script);
    await_file(&home, "ready");
    fs::rename(work("new"), work(".env")).unwrap();
    let out = end(run);
    assert!(out.starts_with("secret\nstatus ") && !out.ends_with("status 0\n"), "{out}");
    assert_eq!(fs::read_to_string(work(".env")).unwrap(), "secret\n");
}

#[test]
fn a_run_that_goes_on_is_explained_with_the_numbers_that_allow_takes() {
    let home = Home::new();
    // The second one is denied more often.
    let script = "cat ~/notes.txt; for i in 1 2 3; do cat ~/plans.txt; done; touch ready; \
                  while [ ! -e end ]; do sleep 0.05; done";
    home.say(&["run", "--no-daemon", "--", "echo", "before"]);
    let run = run(&home, &["--ask"], script);
    await_file(&home, "ready");
    let said = text(&home.say(&["explain", "it"]).stdout);
    let shows = |said: &str| {
        let at = |part: &str| said.find(part).unwrap_or_else(|| panic!("{part}: {said}"));
        assert!(at("[2] cat") < at("plans.txt, 3 times") && at("plans.txt") < at("[1] cat"));
    };
    shows(&said);
    assert!(said.contains("it goes on"), "{said}");
    assert!(said.contains("`dewar allow it N --once`"), "{said}");
    let json = home.say(&["explain", "it", "--json"]).stdout;
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!((&json["goes_on"], &json["ended_at"]), (&true.into(), &serde_json::Value::Null));
    assert_eq!(json["denials"][1]["count"], 3);
    let given = text(&home.say(&["allow", "it", "2", "--once"]).stdout);
    assert!(given.contains("plans.txt") && given.contains("complete after"), "{given}");
    let said = text(&home.say(&["allow", "it", "2", "--dry-run"]).stdout);
    assert!(said.contains("plans.txt"), "{said}");
    // Without a name it is the last one that has ended, and that there is a newer one is said.
    let said = text(&home.say(&["explain"]).stdout);
    assert!(said.starts_with("run ") && said.contains("`dewar explain it` tells"), "{said}");
    assert!(said.contains("`echo before` under"), "{said}");
    fs::write(home.path().join("work/end"), "").unwrap();
    end(run);
    let said = text(&home.say(&["explain"]).stdout);
    assert!(said.starts_with("`sh -c"), "{said}");
    // The numbers are the same when it has ended.
    shows(&said);
}

/// A run can put a link in the place of what is to be taken from it, and others have links there.
#[test]
fn what_a_link_leads_to_is_taken_with_it_and_given_back() {
    let home = Home::new();
    let script = "mkdir keys; echo text > keys/k; mv keys .k; ln -s .k keys; exec 3< keys/k; touch ready; \
                  while [ ! -e taken ]; do sleep 0.05; done; cat <&3; cat keys/k .k/k; touch tried; \
                  while [ ! -e given ]; do sleep 0.05; done; cat .k/k";
    let run = run(&home, &["--mode", "all"], script);
    await_file(&home, "ready");
    let work = |name: &str| home.path().join("work").join(name);
    let keys = work("keys").display().to_string();
    let said = home.say(&["revoke", "it", "--file", &keys]);
    assert!(said.status.success(), "{}", text(&said.stderr));
    assert!(text(&said.stdout).contains("/.k, where "), "{}", text(&said.stdout));
    fs::write(work("taken"), "").unwrap();
    await_file(&home, "tried");
    let said = home.say(&["grant", "it", "--file", &keys]);
    assert!(said.status.success(), "{}", text(&said.stderr));
    // What was taken by no link is given by none.
    std::os::unix::fs::symlink(home.path().join("notes.txt"), work("notes")).unwrap();
    let said = home.say(&["grant", "it", "--file", &work("notes").display().to_string()]);
    assert!(!said.status.success() && text(&said.stderr).contains("leads by symbolic links"));
    fs::write(work("given"), "").unwrap();
    assert_eq!(end(run), "text\n");
}
