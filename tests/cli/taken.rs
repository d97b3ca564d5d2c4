//! What was taken back from a run is given back by nothing that the run proposes; nor is what it
//! wrote by a grant anybody's word.

use crate::{
    daemon::Stage,
    propose::{CLIENT, Home, said},
};
use std::{
    fs,
    process::{Child, Stdio},
    time::{Duration, Instant},
};

/// A run that waits for `name` in its workspace, as steps of a script.
fn wait(name: &str) -> String {
    format!(
        "import time\nopen('{name}-soon', 'w').close()\nwhile not os.path.exists('{name}'): time.sleep(0.05)\n"
    )
}

fn begin(home: &Home, script: &str) -> Child {
    let script = format!("{CLIENT}{script}");
    home.command(&home.args(&script)).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn until_there(home: &Home, name: &str) {
    let until = Instant::now() + Duration::from_secs(60);
    while !home.path().join("work").join(name).exists() {
        assert!(Instant::now() < until, "{name} does not come");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn go(home: &Home, name: &str) {
    fs::write(home.path().join("work").join(name), "").unwrap();
}

fn write(home: &Home, name: &str, text: &str) {
    let path = home.path().join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// What a run under a profile within its own bound says, of which something is taken by `dewar`
/// with these words before it goes on.
fn after(bound: &str, taking: &[&str], script: &str) -> (Home, String) {
    let home = Home::new();
    write(&home, "bound.toml", bound);
    write(&home, "p.toml", "extends = 'bound.toml'\npropose.within = 'bound.toml'\n");
    write(&home, "narrow.toml", "extends = 'workspace'\n");
    write(&home, "data/sub/deep.txt", "deep content");
    write(&home, "data/one.txt", "first content");
    let run = begin(&home, &(wait("taken") + script));
    until_there(&home, "taken-soon");
    let file = home.path().join("data").display().to_string();
    let words: Vec<String> = taking.iter().map(|word| word.replace("DATA", &file)).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let taken = home.command(&words).output().unwrap();
    assert!(taken.status.success(), "{words:?}: {}", said(&taken));
    go(&home, "taken");
    let out = said(&run.wait_with_output().unwrap());
    (home, out)
}

const DATA: &str = "extends = 'workspace'\nfiles.read = ['${home}/data']\n";

#[test]
fn what_was_taken_back_while_a_run_went_on_no_proposal_gives_back() {
    let reads = "
for name in ['data', 'data/one.txt', 'data/sub']: print(propose(f\"files.read = ['${{home}}/{name}']\"))
print(propose(\"files.write = ['${home}/data/one.txt']\"))
cat('~/data/one.txt'); cat('~/data/sub/deep.txt'); print('end')";
    for (taking, left) in [
        (&["revoke", "--file", "DATA"][..], 0),
        (&["revoke", "--file", "DATA", "--domain", "main"], 0),
        (&["policy", "load", "it", "../narrow.toml"], 0),
        (&["revoke", "--file", "DATA/sub"], 1),
        (&["revoke", "--file", "DATA/*/deep.txt"], 1),
    ] {
        let (_, out) = after(DATA, taking, reads);
        assert!(out.contains("end"), "{taking:?}: {out}");
        assert!(!out.contains("deep content"), "{taking:?}: {out}");
        assert_eq!(out.matches("first content").count(), left, "{taking:?}: {out}");
        assert!(out.contains("nobody is there to be asked"), "{taking:?}: {out}");
        if left == 0 {
            assert!(!out.contains("{\"granted\":"), "{taking:?}: {out}");
        }
    }
}

#[test]
fn an_endpoint_that_was_taken_back_no_proposal_gives_back() {
    let bound = "extends = 'workspace'\nnetwork.connect = ['192.0.2.1:443', '192.0.2.2:443', '192.0.2.1:80']\n";
    let script = "
for end in ['192.0.2.1:443', '192.0.2.2:443', '192.0.2.1:80']: print(propose(f\"network.connect = ['{end}']\"))";
    for taken in ["192.0.2.1:443", "192.0.2.1:443/tcp"] {
        let (_, out) = after(bound, &["revoke", "--net", taken], script);
        let lines: Vec<&str> = out.lines().filter(|line| line.starts_with('{')).collect();
        assert!(lines[0].contains("nobody is there"), "{out}");
        assert!(lines[1].contains("granted") && lines[2].contains("granted"), "{out}");
    }
}

#[test]
fn a_person_who_is_asked_reads_that_it_was_taken_and_the_record_says_who_proposed_it() {
    let home = Home::new();
    write(&home, "p.toml", "extends = 'workspace'\nfiles.read = ['${home}/pub']\n[propose]\n");
    fs::remove_file(home.path().join("pub/my-passwords.txt")).unwrap();
    let script = wait("taken")
        + "print(propose(\"files.read = ['${home}/pub/notes.txt']\")); print(lines.readline()); cat('~/pub/notes.txt')";
    let run = begin(&home, &script);
    until_there(&home, "taken-soon");
    let pub_ = home.path().join("pub").display().to_string();
    let taken = home.command(&["revoke", "--file", &pub_]).output().unwrap();
    assert!(taken.status.success(), "{}", said(&taken));
    let mut events = home.command(&["ask", "it", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    std::io::Read::read_exact(events.stdout.as_mut().unwrap(), &mut [0]).unwrap();
    go(&home, "taken");
    let asked = home.say_soon(&["ask", "it", "--list"], "notes.txt");
    assert!(asked.contains("TAKEN while it ran: revoked by `dewar revoke --file"), "{asked}");
    // Of what is taken once more while it is open, nobody was told.
    let again = home.command(&["revoke", "--file", &format!("{pub_}/notes.txt")]).output().unwrap();
    assert!(again.status.success(), "{}", said(&again));
    let late = said(&home.command(&["ask", "it", "--answer", "1=run"]).output().unwrap());
    assert!(late.contains("what was taken while it ran"), "{late}");
    let back = home.command(&["grant", "--file", &format!("{pub_}/notes.txt")]).output().unwrap();
    assert!(back.status.success(), "{}", said(&back));
    let taken = home.command(&["revoke", "--file", &pub_]).output().unwrap();
    assert!(taken.status.success(), "{}", said(&taken));
    home.command(&["ask", "it", "--answer", "1=no"]).output().unwrap();
    let out = said(&run.wait_with_output().unwrap());
    assert!(out.contains("\"answer\":\"no\"") && !out.contains("these are notes"), "{out}");
    let _ = events.wait();
}

#[test]
fn a_grant_is_on_record_with_who_proposed_it() {
    let home = Home::new();
    let out = home.run("print(propose(\"files.read = ['${home}/pub/notes.txt']\"))");
    assert!(out.contains("granted"), "{out}");
    let record = said(&home.command(&["explain", "--json"]).output().unwrap());
    assert!(
        record.contains("proposed by [") && record.contains("granted by its bound"),
        "{record}"
    );
}

#[test]
fn what_a_run_could_write_by_a_grant_is_no_profile_to_be_taken_over() {
    let forges = "
try: open(os.path.expanduser('~/conf/mine.toml'), 'w').write(\"extends = 'workspace'\\nnetwork.connect = ['*:*']\\n\")
except OSError as error: print(error)
cat('~/plans.txt')";
    let proposes = format!("print(propose(\"files.write = ['${{home}}/conf']\"))\n{forges}");
    let waits = wait("given") + forges;
    let opens = "extends = 'workspace'\nfiles.list = ['${home}']\nfiles.read = ['${home}/conf']\n[propose]\n";
    let proposing = "extends = 'workspace'\npropose.within = 'bound.toml'\n";
    let give = ["grant", "it", "--file", "CONF", "--write"];
    let load = ["policy", "load", "it", "../bound.toml"];
    let take = ["revoke", "it", "--file", "CONF", "--write"];
    for (profile, script, changes) in [
        (proposing, proposes.as_str(), &[][..]),
        (opens, &waits, &[&give[..]][..]),
        (opens, &waits, &[&give[..], &take[..]]),
        (opens, &waits, &[&load[..]]),
    ] {
        let home = Home::new();
        write(&home, "p.toml", profile);
        write(&home, "bound.toml", "extends = 'workspace'\nfiles.write = ['${home}/conf']\n");
        write(&home, "conf/other", "");
        let mine = home.path().join("conf/mine.toml");
        let conf = home.path().join("conf").display().to_string();
        let run = begin(&home, script);
        for words in changes {
            until_there(&home, "given-soon");
            let words: Vec<&str> =
                words.iter().map(|it| if *it == "CONF" { &conf } else { *it }).collect();
            let done = home.command(&words).output().unwrap();
            assert!(done.status.success(), "{words:?}: {}", said(&done));
        }
        if changes.len() == 2 {
            // As if it had written it between the two.
            fs::write(&mine, "extends = 'workspace'\nnetwork.connect = ['*:*']\n").unwrap();
        }
        go(&home, "given");
        let out = said(&run.wait_with_output().unwrap());
        assert!(mine.exists(), "{out}");
        let before = fs::read_to_string(&mine).unwrap();
        let plans = home.path().join("plans.txt").display().to_string();
        let words = ["allow", &plans, "--write", mine.to_str().unwrap()];
        let allowed = home.command(&words).output().unwrap();
        let told = said(&allowed);
        assert!(
            !allowed.status.success() && told.contains("could have written"),
            "{changes:?}: {told}"
        );
        assert_eq!(fs::read_to_string(&mine).unwrap(), before);
    }
}

/// The machine's own files in `/tmp`, `/var/tmp` and `/dev/shm`, named by a profile to be read.
#[test]
fn a_bound_that_gives_the_runs_own_temporary_files_gives_none_of_the_machines() {
    for place in ["/tmp", "/var/tmp", "/dev/shm"] {
        let outside = tempfile::tempdir_in(place).unwrap();
        let file = outside.path().join("f");
        fs::write(&file, "the machine's").unwrap();
        let home = Home::new();
        write(&home, "bound.toml", "extends = 'workspace'\n");
        let named = outside.path().display();
        for profile in [format!("files.read = ['{named}']\n"), String::new()] {
            let profile =
                format!("extends = 'workspace'\n{profile}propose.within = 'bound.toml'\n");
            write(&home, "p.toml", &profile);
            let script = format!(
                "for key in ['read', 'write']:
    for name in ['{named}', '{named}/f']: print(propose(f\"files.{{key}} = ['{{name}}']\"))
try: open('{named}/f', 'w').write('forged')
except OSError as error: print(error)"
            );
            let views: [&[&str]; 2] =
                [&[], &["--without", "user", "--without", "mount", "--allow-degraded"]];
            for view in views {
                let script = format!("{CLIENT}{script}");
                let args = home.args(&script);
                let words = [&args[..1], view, &args[1..]].concat();
                let out = said(&home.command(&words).output().unwrap());
                assert!(!out.contains("{\"granted\":"), "{view:?}: {out}");
                assert!(out.contains("nobody is there"), "{view:?}: {out}");
                assert_eq!(fs::read_to_string(&file).unwrap(), "the machine's", "{out}");
            }
        }
    }
}

#[test]
fn a_grant_takes_nothing_of_what_the_caller_handed_in() {
    let mut stage = Stage::new();
    stage.start();
    fs::create_dir(stage.path("home/data")).unwrap();
    let profile = "extends = 'workspace'\nfiles.read = ['${home}/data']\n";
    fs::write(stage.path("work/p.toml"), profile).unwrap();
    let data = stage.path("home/data").display().to_string();
    for daemon in ["--daemon", "--no-daemon"] {
        let out = stage.path("outside");
        let script = "while ! test -e end; do echo x || exit 1; sleep 0.1; done; echo whole";
        let words =
            ["run", daemon, "-q", "--name", "it", "-p", "./p.toml", "--", "sh", "-c", script];
        let mut command = stage.command(&words);
        command.stdout(fs::File::create(&out).unwrap());
        let mut run = command.spawn().unwrap();
        crate::daemon::wait_until("it runs", || fs::read_to_string(&out).unwrap().contains('x'));
        for verb in ["revoke", "grant", "revoke", "grant"] {
            let done = stage.say(&[verb, "it", "--file", &data]);
            assert!(done.out.contains("complete") || done.status == Some(0), "{}", done.err);
            assert!(!done.out.contains("outside"), "{daemon} {verb}: {}", done.out);
        }
        fs::write(stage.path("work/end"), "").unwrap();
        assert!(run.wait().unwrap().success(), "{daemon}");
        assert!(fs::read_to_string(&out).unwrap().ends_with("whole\n"), "{daemon}");
        fs::remove_file(stage.path("work/end")).unwrap();
    }
}
