//! `DEWAR_DENIALS`: what programs inside read of their denials, and what they propose.

use std::{
    fs::{self, DirBuilder},
    io::{BufRead as _, BufReader, Read as _},
    os::unix::fs::DirBuilderExt as _,
    path::PathBuf,
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// A home with a profile, a bound, and files in it and outside of it.
pub(crate) struct Home(TempDir);

/// Says lines to the socket and prints what comes back; `ask(LINE)`, `propose(TOML)`.
pub(crate) const CLIENT: &str = "
import json, os, socket, sys
sock = socket.socket(socket.AF_UNIX); sock.settimeout(60); sock.connect(os.environ['DEWAR_DENIALS'])
lines = sock.makefile()
def ask(line):
    sock.sendall(line.encode() + b'\\n')
    return lines.readline().strip()
def propose(text):
    return ask(json.dumps({'propose': text}))
def denials():
    sock.sendall(b'{\"denials\": true}\\n')
    while 'end' not in (line := lines.readline()): print(line.strip())
    print(line.strip())
def cat(name):
    try: print(open(os.path.expanduser(name)).read())
    except OSError as error: print(error)
";

impl Home {
    pub(crate) fn new() -> Self {
        let home = Self(TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap());
        for (path, text) in [
            ("pub/notes.txt", "these are notes"),
            ("pub/my-passwords.txt", "this is secret"),
            ("plans.txt", "these are plans"),
            (".ssh/key", "this is hidden"),
            ("work/input", "input"),
            ("p.toml", "extends = \"workspace\"\npropose.within = \"bound.toml\"\n"),
            (
                "bound.toml",
                "extends = \"workspace\"\nfiles.read = ['${home}/pub/notes.txt', '${home}/open']\n",
            ),
        ] {
            let path = home.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        home
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.0.path().canonicalize().unwrap()
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(test_support::dewar());
        command.args(args).current_dir(self.path().join("work")).env("HOME", self.path());
        command.env("XDG_STATE_HOME", self.path().join("state")).env("NO_COLOR", "1");
        command.env_remove("XDG_RUNTIME_DIR").stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, script: &str) -> String {
        let script = format!("{CLIENT}{script}");
        said(&self.command(&self.args(&script)).output().unwrap())
    }

    /// What a command says once there is `part` in it.
    pub(crate) fn say_soon(&self, args: &[&str], part: &str) -> String {
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            let said = said(&self.command(args).output().unwrap());
            if said.contains(part) {
                return said;
            }
            assert!(Instant::now() < until, "{said}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    pub(crate) fn args<'a>(&self, script: &'a str) -> Vec<&'a str> {
        vec![
            "run",
            "--no-daemon",
            "--name",
            "it",
            "-p",
            "../p.toml",
            "--",
            "/usr/bin/python3",
            "-c",
            script,
        ]
    }
}

pub(crate) fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn a_program_reads_its_denials_without_names_that_it_may_not_know() {
    let home = Home::new();
    let out = home.run(
        "cat('~/plans.txt')
os.symlink(os.path.expanduser('~/.ssh/key'), 'link'); cat('link'); cat('~/pub/my-passwords.txt')
denials()",
    );
    assert!(out.contains("plans.txt\"") && out.contains("\"lines\":[\"files.read"), "{out}");
    for line in out.lines().filter(|line| line.starts_with("{\"")) {
        assert!(!line.contains(".ssh") && !line.contains("password"), "{line}");
        assert!(!line.contains("hide") && !line.contains("reason"), "{line}");
    }
}

#[test]
fn what_lies_within_the_bound_is_granted_and_nothing_else() {
    let home = Home::new();
    let out = home.run(
        "cat('~/pub/notes.txt')
print(propose(\"files.read = ['${home}/pub/notes.txt']\"))
cat('~/pub/notes.txt')
for text in [\"files.write = ['${home}/pub/notes.txt']\", \"files.read = ['${home}/plans.txt']\"]:
    print(propose(text))
cat('~/plans.txt')",
    );
    assert!(out.contains("{\"granted\":") && out.contains("these are notes"), "{out}");
    assert_eq!(out.matches("nobody is there to be asked").count(), 2, "{out}");
    assert!(!out.contains("these are plans"), "{out}");
    let record = home.command(&["explain", "--json"]).output().unwrap();
    assert!(said(&record).contains("the bound of the profile"), "{}", said(&record));
}

#[test]
fn what_the_bound_takes_out_is_not_granted_with_what_lies_around_it() {
    let home = Home::new();
    let bound = "extends = \"workspace\"
files.read = ['${home}/open', '${home}/pub', '${home}/all']
files.write = ['${home}/all']
files.deny = ['${home}/open/private', '${home}/pub/**/*.md']
";
    fs::write(home.path().join("bound.toml"), bound).unwrap();
    for name in ["open/a", "open/private/b", "pub/c/d.md", "all/p.toml"] {
        let path = home.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "content of it").unwrap();
    }
    fs::remove_file(home.path().join("pub/my-passwords.txt")).unwrap();
    let proposals = |wanted: &[(&str, &str)]| {
        let script: String =
            wanted.iter().map(|(text, _)| format!("print(propose(\"{text}\"))\n")).collect();
        let out = home.run(&script);
        for (line, (text, want)) in out.lines().zip(wanted) {
            assert!(line.contains(want), "{text}: {line}");
        }
        assert!(out.lines().count() >= wanted.len(), "{out}");
    };
    proposals(&[
        ("files.read = ['${home}/open']", "nobody is there"),
        ("files.read = ['${home}/open/private/b']", "nobody is there"),
        ("files.read = ['${home}/open/a']", "granted"),
        ("files.read = ['${home}/pub']", "nobody is there"),
        ("files.read = ['${home}/pub/notes.txt']", "nobody is there"),
        ("files.write = ['${home}/open/a']", "nobody is there"),
        ("files.read = ['${home}/all/x']", "granted"),
        ("files.write = ['${home}/all/x']", "granted"),
        ("files.read = ['${home}/open/a', '${home}/plans.txt']", "nobody is there"),
    ]);
    // What the profile itself takes out just so is no reason against the rest.
    let profile = "extends = \"workspace\"\npropose.within = \"bound.toml\"
files.deny = ['${home}/open/private', '${home}/pub/**/*.md']
";
    fs::write(home.path().join("p.toml"), profile).unwrap();
    proposals(&[
        ("files.read = ['${home}/open', '${home}/pub']", "granted"),
        ("files.read = ['${home}/open/private/b']", "cannot be proposed"),
    ]);
    let out = home.run(
        "print(propose(\"files.read = ['${home}/open', '${home}/pub']\"))
cat('~/open/a'); cat('~/open/private/b'); cat('~/pub/c/d.md'); cat('~/pub/notes.txt')",
    );
    assert_eq!(out.matches("content of it").count(), 1, "{out}");
    assert!(out.contains("these are notes"), "{out}");
}

#[test]
fn neither_profile_nor_bound_nor_what_others_trust_can_be_proposed() {
    let home = Home::new();
    let bound = "extends = \"workspace\"\nfiles.write = ['${home}']\n";
    fs::write(home.path().join("bound.toml"), bound).unwrap();
    let kept = home.path().join("state/dewar");
    let out = home.run(&format!(
        "for name in ['${{home}}/bound.toml', '${{home}}/p.toml', '${{home}}/lib/.git/hooks/x',
             '${{home}}/lib/.vscode/tasks.json', '{0}', '{0}/trust/x']:
    print(propose(f\"files.write = ['{{name}}']\"))",
        kept.display()
    ));
    assert_eq!(out.matches("cannot be proposed").count(), 6, "{out}");
}

#[test]
fn a_mistake_in_a_bound_is_said_before_anything_runs() {
    let home = Home::new();
    for (bound, why) in [
        (None, "bound.toml"),
        (Some("files.reed = ['/x']"), "reed"),
        (Some("files.read = ['x']"), "nothing was run"),
    ] {
        let file = home.path().join("bound.toml");
        let _ = fs::remove_file(&file);
        if let Some(text) = bound {
            fs::write(&file, text).unwrap();
        }
        let out = home.run("print('it has begun')");
        assert!(out.contains(why) && !out.contains("it has begun"), "{out}");
    }
}

#[test]
fn a_bound_is_trusted_with_the_profile_of_the_project() {
    let home = Home::new();
    let (profile, bound) =
        (home.path().join("work/dewar.toml"), home.path().join("work/bound.toml"));
    fs::write(profile, "propose.within = \"bound.toml\"\nextends = \"workspace\"\n").unwrap();
    fs::write(&bound, "extends = \"workspace\"\nfiles.read = ['${home}/open']\n").unwrap();
    let dewar = |args: &[&str]| said(&home.command(args).output().unwrap());
    let trusted = dewar(&["trust", "--yes"]);
    assert!(trusted.contains("may also read ~/open"), "{trusted}");
    let run = ["run", "--no-daemon", "--", "echo", "it has begun"];
    assert!(dewar(&run).contains("it has begun"));
    fs::write(&bound, "extends = \"workspace\"\nfiles.read = ['${home}']\n").unwrap();
    let out = dewar(&run);
    assert!(out.contains("was changed since") && !out.contains("it has begun"), "{out}");
}

#[test]
fn hostile_proposals_are_refused_and_harm_nothing() {
    let home = Home::new();
    let out = home.run(
        "os.symlink(os.path.expanduser('~/.ssh'), 'dir')
for text in ['', '= 7', 'files.read = [' + '[' * 9000, '\\x00', \"files.exec = ['/x']\",
             \"files.read = ['/']\", \"files.read = ['${home}']\", \"files.read = ['/../etc']\",
             \"files.read = ['${home}/pub/../.ssh']\", \"files.read = ['${home}/.ssh/key']\",
             \"files.read = ['${home}/pub']\", \"files.read = ['${home}/${home}']\",
             \"files.read = ['${home}/pub/my-passwords.txt']\", \"files.read = ['${HOME}/x']\",
             \"files.read = ['/home', '/root']\", \"network.connect = ['*:*']\",
             \"network.connect = ['unix:/']\", \"extends = 'agent'\", 'x' * 20000]:
    answer = propose(text)
    assert 'refused' in answer, (text, answer)
print(propose(\"files.read = ['${workspace}/dir']\"))
cat('dir/key')
for line in ['[' * 60000, '{\"propose\": 7}', '{\"x\": 1}', 'no json']:
    assert 'refused' in ask(line), line
answers = [propose('x') for _ in range(200)]
print('too many' if any('too many' in answer for answer in answers) else 'all heard')
other = socket.socket(socket.AF_UNIX); other.settimeout(60); other.connect(os.environ['DEWAR_DENIALS'])
try: other.sendall(b'x' * 1000000)
except OSError: pass
print('alive')",
    );
    assert!(out.contains("too many") && out.contains("alive"), "{out}");
    assert!(!out.contains("this is") && !out.contains("AssertionError"), "{out}");
}

#[test]
fn what_lies_beyond_the_bound_is_put_to_a_person() {
    let home = Home::new();
    let script = format!(
        "{CLIENT}
import time
while not os.path.exists('go'): time.sleep(0.1)
print(propose(\"files.read = ['${{home}}/plans.txt']\")); print(lines.readline()); cat('~/plans.txt')"
    );
    let run = home.command(&home.args(&script)).stdout(Stdio::piped()).spawn().unwrap();
    let wait = |args: &[&str], part: &str| home.say_soon(args, part);
    wait(&["ask", "it", "--list"], "no question");
    let mut events = home.command(&["ask", "it", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    // Once it has said who it is, somebody hears.
    events.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    fs::write(home.path().join("work/go"), "").unwrap();
    let asked = wait(&["ask", "it", "--list"], "plans.txt");
    assert!(asked.contains("proposes") && !asked.contains("once"), "{asked}");
    wait(&["ask", "it", "--answer", "1=run"], "question 1: run");
    let out = said(&run.wait_with_output().unwrap());
    assert!(out.contains("\"answer\":\"run\"") && out.contains("these are plans"), "{out}");
    events.wait().unwrap();
}

#[test]
fn without_the_key_there_is_no_socket() {
    let home = Home::new();
    let script = "import os; print(os.environ.get('DEWAR_DENIALS'))";
    let run = ["run", "--no-daemon", "--", "/usr/bin/python3", "-c", script];
    assert_eq!(said(&home.command(&run).env("DEWAR_DENIALS", "/x").output().unwrap()), "None\n");
}

#[test]
fn what_nobody_waits_for_any_more_is_withdrawn_and_no_answer_grants_it() {
    let home = Home::new();
    let script = format!(
        "{CLIENT}
import signal, time
while not os.path.exists('go'): time.sleep(0.1)
pid = os.fork()
if pid == 0:
    sock.close()
    sock = socket.socket(socket.AF_UNIX); sock.connect(os.environ['DEWAR_DENIALS']); lines = sock.makefile()
    print(propose(\"files.read = ['${{home}}/plans.txt']\"), flush=True)
    time.sleep(600)
while not os.path.exists('kill'): time.sleep(0.1)
os.kill(pid, signal.SIGKILL); os.wait()
while not os.path.exists('end'): time.sleep(0.1)
cat('~/plans.txt')"
    );
    let run = home.command(&home.args(&script)).stdout(Stdio::piped()).spawn().unwrap();
    let wait = |args: &[&str], part: &str| home.say_soon(args, part);
    wait(&["ask", "it", "--list"], "no question");
    let mut events = home.command(&["ask", "it", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(events.stdout.take().unwrap());
    let mut heard = String::new();
    lines.read_line(&mut heard).unwrap();
    fs::write(home.path().join("work/go"), "").unwrap();
    wait(&["ask", "it", "--list"], "plans.txt");
    fs::write(home.path().join("work/kill"), "").unwrap();
    lines.read_line(&mut heard).unwrap();
    lines.read_line(&mut heard).unwrap();
    assert!(heard.contains("\"closed\"") && heard.contains("\"withdrawn\""), "{heard}");
    let late = said(&home.command(&["ask", "it", "--answer", "1=run"]).output().unwrap());
    assert!(late.contains("no open question"), "{late}");
    fs::write(home.path().join("work/end"), "").unwrap();
    let out = said(&run.wait_with_output().unwrap());
    assert!(!out.contains("these are plans") && out.contains("\"asked\""), "{out}");
    events.wait().unwrap();
}

#[test]
fn where_programs_propose_is_dewars_own_whatever_a_profile_grants() {
    let script = "
import os
at = os.path.expanduser('~/state/dewar-propose')
def attempt(what, *with_):
    try: what(*with_); print('done', with_)
    except OSError as error: print('refused by', error.errno)
attempt(open, at + '/made.sock', 'w')
attempt(os.unlink, at + '/other.sock')
attempt(os.rename, at + '/other.sock', at + '/moved.sock')
attempt(os.rename, at, at + '-moved')
print('CAN LIST' if 'DEWAR_DENIALS' not in os.environ and os.access(at, os.R_OK) else '')
";
    for propose in ["", "propose.within = \"bound.toml\"\n"] {
        let home = Home::new();
        let profile =
            format!("extends = \"workspace\"\n{propose}files.write = ['${{home}}/state']\n");
        fs::write(home.path().join("p.toml"), profile).unwrap();
        let directory = home.path().join("state/dewar-propose");
        DirBuilder::new().recursive(true).mode(0o700).create(&directory).unwrap();
        fs::write(directory.join("other.sock"), "").unwrap();
        let out = said(&home.command(&home.args(script)).output().unwrap());
        assert!(
            out.matches("refused by").count() == 4 && !out.contains("done"),
            "{propose}: {out}"
        );
        assert!(!out.contains("CAN LIST"), "{out}");
        assert!(directory.join("other.sock").exists());
    }
}

/// A proposal is a change of policy; and an editor saves by another name.
#[test]
fn what_is_proposed_opens_nothing_that_has_got_a_denied_name() {
    let home = Home::new();
    let profile = "extends = 'workspace'\npropose.within = 'bound.toml'\nfiles.deny = ['${workspace}/.env']\n";
    fs::write(home.path().join("p.toml"), profile).unwrap();
    let work = |name: &str| home.path().join("work").join(name);
    fs::write(work("new"), "a secret").unwrap();
    let script = CLIENT.to_owned()
        + "import time
cat('new'); open('ready', 'w').close()
while os.path.exists('new'): time.sleep(0.05)
cat('.env'); print(propose(\"files.read = ['${home}/pub/notes.txt']\")); cat('.env'); cat('.env')";
    let run = home.command(&home.args(&script)).stdout(Stdio::piped()).spawn().unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    while !work("ready").exists() {
        assert!(Instant::now() < until, "the run does not begin");
        std::thread::sleep(Duration::from_millis(20));
    }
    fs::rename(work("new"), work(".env")).unwrap();
    let out = said(&run.wait_with_output().unwrap());
    assert!(out.contains("{\"granted\":"), "{out}");
    assert_eq!(out.matches("a secret").count(), 1, "{out}");
}
