//! `dewar run --ask` on a terminal and without one, and `dewar ask` from elsewhere.

use crate::terminal::Terminal;
use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    path::PathBuf,
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// A home with files that the default profile does not grant. Not below `/tmp`, of which each run
/// has its own.
pub(crate) struct Home(TempDir);

impl Home {
    pub(crate) fn new() -> Self {
        let home = Self(TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap());
        for (path, text) in [
            ("notes.txt", "these are notes"),
            ("plans.txt", "these are plans"),
            ("my-passwords.txt", "this is secret"),
            (".ssh/key", "this is hidden"),
            ("work/input", "input"),
            ("p.toml", "extends = \"workspace\" # mine\n"),
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

    /// In a session of its own: without a controlling terminal, or with that on standard input.
    pub(crate) fn command(&self, setsid: &[&str], args: &[&str]) -> Command {
        let mut command = in_session();
        command.args(setsid).arg("--wait").arg(test_support::dewar()).args(args);
        command.current_dir(self.path().join("work")).env("HOME", self.path());
        command.env("XDG_STATE_HOME", self.path().join("state")).env("NO_COLOR", "1");
        command.env("TERM", "xterm");
        command.env_remove("XDG_RUNTIME_DIR").stdin(Stdio::null());
        command
    }

    pub(crate) fn say(&self, args: &[&str]) -> Output {
        self.command(&[], args).output().unwrap()
    }

    /// Waits until the run has begun, and says `args` to it.
    pub(crate) fn say_soon(&self, args: &[&str], part: &str) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let output = self.say(args);
            let said = text(&output.stdout) + &text(&output.stderr);
            if said.contains(part) {
                return said;
            }
            assert!(Instant::now() < until, "{args:?}: {said}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// What is kept of the last run.
    pub(crate) fn record(&self) -> serde_json::Value {
        serde_json::from_slice(&self.say(&["explain", "--json"]).stdout).unwrap()
    }

    pub(crate) fn answers(&self) -> Vec<String> {
        let record = self.record();
        let answers = record["answers"].as_array().unwrap().iter();
        answers.map(|it| it["answer"].as_str().unwrap().to_owned()).collect()
    }
}

/// What runs in a session of its own, and without descriptors that whoever tests has left open: a
/// pipe among them is a reason to ask elsewhere.
pub(crate) fn in_session() -> Command {
    let close =
        "for fd in /proc/self/fd/*; do fd=${fd##*/}; [ $fd -le 2 ] || eval \"exec $fd>&-\"; done
        exec setsid \"$@\"";
    let mut command = Command::new("bash");
    command.args(["-c", close, "bash"]);
    command
}

pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn once_is_for_one_call_and_a_no_holds() {
    let home = Home::new();
    let script = "cat ~/notes.txt; cat ~/notes.txt; cat ~/notes.txt; cat ~/.ssh/key";
    let mut terminal = Terminal::run(&home, &[], script);
    let asked = terminal.answer("o\n");
    assert!(asked.contains("files.read = [\"${home}/notes.txt\"]"), "{asked}");
    assert!(!asked.contains("SECRET"), "{asked}");
    assert!(terminal.answer("\n").contains("these are notes"));
    let (rest, status) = terminal.end();
    assert!(!rest.contains("these are") && !rest.contains("allow ["), "{rest}");
    assert_eq!((status, home.answers()), (1, vec!["once".to_owned(), "no".into()]));
}

#[test]
fn what_is_given_to_the_run_is_asked_about_once() {
    let home = Home::new();
    let mut terminal = Terminal::run(&home, &[], "cat ~/notes.txt; cat ~/notes.txt");
    terminal.answer("r\n");
    let (rest, status) = terminal.end();
    assert_eq!((rest.matches("these are notes").count(), status), (2, 0), "{rest}");
    assert_eq!(home.record()["changes"].as_array().unwrap().len(), 1);
    assert_eq!(home.record()["denials"].as_array().unwrap().len(), 0);
}

#[test]
fn what_goes_into_the_profile_holds_in_the_next_run_and_can_be_taken_back() {
    let home = Home::new();
    let profile = home.path().join("p.toml").display().to_string();
    let mut terminal = Terminal::run(&home, &["-p", &profile], "cat ~/notes.txt");
    terminal.answer("p\n");
    let (rest, status) = terminal.end();
    assert!(rest.contains("these are notes") && status == 0, "{rest}");
    let written = fs::read_to_string(&profile).unwrap();
    assert!(written.contains("${home}/notes.txt") && written.contains("# mine"), "{written}");
    let again = home.say(&["run", "--no-daemon", "-p", &profile, "--", "cat", "../notes.txt"]);
    assert_eq!(text(&again.stdout), "these are notes", "{}", text(&again.stderr));
    home.say(&["allow", "--undo"]);
    assert_eq!(fs::read_to_string(&profile).unwrap(), "extends = \"workspace\" # mine\n");
}

#[test]
fn a_secret_is_granted_to_nobody_who_does_not_write_its_name() {
    let home = Home::new();
    let mut terminal = Terminal::run(&home, &[], "cat ~/my-passwords.txt; cat ~/my-passwords.txt");
    assert!(terminal.answer("o\n").contains("SECRET"));
    assert!(terminal.answer("o /else\n").contains("name it in full"));
    let name = home.path().join("my-passwords.txt");
    terminal.answer(&format!("o {}\n", name.display()));
    assert!(terminal.answer("n\n").contains("this is secret"));
    let (rest, status) = terminal.end();
    assert!(!rest.contains("this is secret") && status == 1, "{rest}");
}

#[test]
fn what_is_being_typed_when_a_question_comes_is_no_answer_to_it() {
    let home = Home::new();
    let mut terminal = Terminal::run(&home, &[], "cat ~/notes.txt");
    // Who types `npm run` for a program that reads a line, which asks after the first word.
    terminal.expect("may not read");
    terminal.master.write_all(b"run\nru").unwrap();
    terminal.answer("n\n");
    let (rest, status) = terminal.end();
    assert!(!rest.contains("these are notes") && status == 1, "{rest}");
    assert_eq!(home.answers(), ["no"]);
}

#[test]
fn what_a_program_leaves_on_the_terminal_neither_hides_nor_swallows_a_question() {
    let home = Home::new();
    let script = r"printf 'left\033[8m\033(0\033[2;3r\033]0;'; cat ~/notes.txt";
    let mut terminal = Terminal::run(&home, &[], script);
    terminal.expect("left");
    let before = terminal.expect("dewar: ");
    let (_, plain) = before.split_once("\x1b]0;").unwrap();
    let ends = plain.find("\x18").unwrap();
    for shown in ["\x1b[4i", "\x1b[?64h", "\x1b[!p", "\x1b[0m", "\x1b(B", "\x1b[J"] {
        assert!(plain.find(shown).is_some_and(|at| at > ends), "{shown:?} in {plain:?}");
    }
    terminal.answer("n\n");
    terminal.end();
}

#[test]
fn a_question_whose_time_is_over_is_a_denial() {
    let home = Home::new();
    let mut terminal = Terminal::run(&home, &["--ask-timeout", "4s"], "cat ~/notes.txt");
    terminal.expect("[N]o? ");
    let (rest, status) = terminal.end();
    assert!(rest.contains("Permission denied") && status == 1, "{rest}");
    assert_eq!(home.answers(), ["time-out"]);
}

#[test]
fn an_interrupt_ends_a_program_that_waits_for_an_answer() {
    let home = Home::new();
    let mut terminal = Terminal::run(&home, &[], "cat ~/notes.txt; echo went on");
    terminal.answer("\x03");
    let (rest, status) = terminal.end();
    assert!(!rest.contains("went on") && !rest.contains("these are"), "{rest}");
    assert_ne!(status, 0);
}

#[test]
fn a_program_that_is_killed_meanwhile_withdraws_its_question() {
    let home = Home::new();
    let script = "while [ ! -e go ]; do sleep 0.1; done; cat ~/notes.txt & pid=$!
        while [ ! -e kill ]; do sleep 0.1; done; kill -9 $pid; wait $pid; echo status $?
        while [ ! -e end ]; do sleep 0.1; done";
    let run = ["run", "--no-daemon", "--ask", "--name", "it", "--", "sh", "-c", script];
    let mut run = home.command(&[], &run).stdout(Stdio::piped()).spawn().unwrap();
    home.say_soon(&["ask", "it", "--list"], "no question");
    let mut events =
        home.command(&[], &["ask", "it", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(events.stdout.take().unwrap());
    // From then on, somebody hears.
    lines.read_line(&mut String::new()).unwrap();
    fs::write(home.path().join("work/go"), "").unwrap();
    home.say_soon(&["ask", "it", "--list"], "notes.txt");
    fs::write(home.path().join("work/kill"), "").unwrap();
    let mut said = String::new();
    lines.read_line(&mut said).unwrap();
    lines.read_line(&mut said).unwrap();
    assert!(said.contains("\"withdrawn\""), "{said}");
    fs::write(home.path().join("work/end"), "").unwrap();
    let mut out = String::new();
    run.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    assert_eq!(out, "status 137\n");
    run.wait().unwrap();
    events.wait().unwrap();
}

#[test]
fn more_questions_than_a_person_can_read_are_denied_unasked_and_said() {
    let home = Home::new();
    let mut terminal =
        Terminal::run(&home, &["--ask-rate", "1"], "cat ~/notes.txt; cat ~/plans.txt");
    terminal.answer("o\n");
    let (rest, _) = terminal.end();
    assert!(rest.contains("more than 1 questions") && !rest.contains("these are plans"), "{rest}");
}

#[test]
fn two_questions_are_open_at_once_and_answered_in_any_order() {
    let home = Home::new();
    let script = "while [ ! -e go ]; do sleep 0.1; done; cat ~/notes.txt & cat ~/plans.txt & wait";
    let run = ["run", "--no-daemon", "--ask", "--name", "it", "--", "sh", "-c", script];
    let run =
        home.command(&[], &run).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    home.say_soon(&["ask", "it", "--list"], "no question");
    let mut events =
        home.command(&[], &["ask", "it", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    // Until it is connected, nobody would hear.
    let mut lines = BufReader::new(events.stdout.take().unwrap());
    lines.read_line(&mut String::new()).unwrap();
    fs::write(home.path().join("work/go"), "").unwrap();
    let mut said = String::new();
    lines.read_line(&mut said).unwrap();
    lines.read_line(&mut said).unwrap();
    assert!(said.contains("notes.txt") && said.contains("plans.txt"), "{said}");
    let second = home.say(&["ask", "it", "--answer", "2=once"]);
    assert!(second.status.success(), "{}", text(&second.stderr));
    assert!(home.say(&["ask", "it", "--answer", "1=run"]).status.success());
    let output = run.wait_with_output().unwrap();
    let out = text(&output.stdout);
    assert!(out.contains("these are notes") && out.contains("these are plans"), "{out}");
    assert!(text(&output.stderr).contains("no terminal to ask on"), "{}", text(&output.stderr));
    events.wait().unwrap();
    let by = home.record()["answers"][0]["by"].as_str().unwrap().to_owned();
    assert!(by.contains("dewar"), "{by}");
}

#[test]
fn without_a_terminal_or_anybody_else_a_denial_comes_at_once() {
    let home = Home::new();
    let said = home.say(&["run", "--no-daemon", "--ask", "--", "cat", "../notes.txt"]);
    assert_eq!((said.status.code(), text(&said.stdout).as_str()), (Some(1), ""));
    assert!(text(&said.stderr).contains("denied at once"), "{}", text(&said.stderr));
    assert_eq!(home.answers(), [""; 0]);
}

#[test]
fn a_program_that_has_the_terminal_to_itself_is_not_disturbed() {
    let home = Home::new();
    let script = "stty -icanon -echo; cat ~/notes.txt; stty icanon echo";
    let mut terminal = Terminal::run(&home, &["--name", "it"], script);
    home.say_soon(&["ask", "it", "--list"], "notes.txt");
    assert!(home.say(&["ask", "it", "--answer", "1=once"]).status.success());
    let seen = terminal.expect("these are notes");
    assert!(!seen.contains("allow"), "{seen}");
    terminal.end();
}

#[test]
fn nothing_inside_answers_its_own_question() {
    let home = Home::new();
    let profile = home.path().join("open.toml");
    fs::write(
        &profile,
        "extends = \"workspace\"\n[files]\nwrite = [\"${home}\"]\n[network]\nconnect = [\"unix:/\"]\n",
    )
    .unwrap();
    let script = "import glob, os, socket
paths = glob.glob(os.environ['STATE'] + '/dewar/ask/*.sock')
print(paths)
for path in [os.environ['STATE'] + '/dewar/ask/' + os.environ['ID'] + '.sock'] + paths:
    try:
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(5)
        s.connect(path)
        print('HEARD', s.recv(100)) if s.recv(1) else print('closed')
    except OSError as error:
        print(error)";
    let run = [
        "run",
        "--no-daemon",
        "--ask",
        "--name",
        "it",
        "-p",
        profile.to_str().unwrap(),
        "--",
        "sh",
        "-c",
        "while [ ! -e go ]; do sleep 0.1; done; . ./go; export ID STATE; exec python3 -c \"$0\"",
        script,
    ];
    let run = home.command(&[], &run).stdout(Stdio::piped()).spawn().unwrap();
    home.say_soon(&["ask", "it", "--list"], "no question");
    let state = home.path().join("state");
    let sockets = fs::read_dir(state.join("dewar/ask")).unwrap();
    let socket = sockets.flatten().next().unwrap().path();
    let id = socket.file_stem().unwrap().to_str().unwrap().to_owned();
    fs::write(home.path().join("go.new"), format!("ID={id}\nSTATE={}\n", state.display())).unwrap();
    fs::rename(home.path().join("go.new"), home.path().join("work/go")).unwrap();
    let out = text(&run.wait_with_output().unwrap().stdout);
    assert!(!out.contains("HEARD") && !out.is_empty(), "{out}");
}
