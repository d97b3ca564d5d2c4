//! Terminals and job control: an interactive shell on a terminal, and Dewar run from it.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::{Value, json};

use crate::stage::{PATIENCE, Stage, processes, say, until};
use crate::user::program;
use crate::{Case, cases};

pub(crate) const CASES: &[Case] = cases![
    interrupt_is_the_commands_to_handle,
    a_stopped_command_stops_dewar_and_continues_with_it,
    a_command_alone_continues_when_dewar_is,
    an_interactive_shell_has_job_control,
    a_suspended_shell_comes_back,
    the_terminal_returns_after_a_shell,
    a_pager_reads_its_keys,
    an_editor_edits,
    nothing_outlives_the_terminal,
    a_suspended_shell_does_not_outlive_the_terminal,
];

const INTERRUPT: &str = "\x03";
const SUSPEND: &str = "\x1a";

/// Makes the terminal named by the first argument this process's own, and becomes the rest.
pub(crate) fn on_terminal(mut arguments: impl Iterator<Item = OsString>) -> ! {
    let name = arguments.next().expect("a terminal");
    rustix::process::setsid().expect("a new session");
    // The leader of a session without a terminal gets the first one that it opens.
    let terminal = File::options().read(true).write(true).open(name).expect("open the terminal");
    rustix::stdio::dup2_stdin(&terminal).expect("stdin");
    rustix::stdio::dup2_stdout(&terminal).expect("stdout");
    rustix::stdio::dup2_stderr(&terminal).expect("stderr");
    drop(terminal);
    let mut command = Command::new(arguments.next().expect("a program"));
    panic!("{}", command.args(arguments).exec())
}

/// A terminal with an interactive shell on it, seen from the keyboard.
struct Keyboard {
    master: File,
    shell: Child,
    seen: String,
}

impl Keyboard {
    fn new(stage: &Stage) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags).expect("a terminal");
        grantpt(&master).expect("grant");
        unlockpt(&master).expect("unlock");
        let name = ptsname(&master, Vec::new()).expect("its name").into_string().expect("UTF-8");
        stage.user.give(name.as_ref());
        let mut command = stage.command(program());
        command.args(["--on-terminal", &name, "bash", "--norc", "--noprofile", "-i"]);
        command.env("PS1", "outer> ").env("TERM", "vt100").env("HISTFILE", "").env("HOME", "/");
        let shell = command.spawn().expect("start a shell");
        let mut keyboard = Self { master: master.into(), shell, seen: String::new() };
        keyboard.expect("outer> ");
        keyboard
    }

    /// Types `text`.
    fn keys(&mut self, text: &str) {
        say(&self.master, text);
    }

    /// Types a line that starts Dewar.
    fn dewar(&mut self, plan: &Value, command: &str) {
        self.keys(&format!("{} --as-dewar '{plan}' {command}\n", program().display()));
    }

    /// Waits until `text` has come out, and forgets everything up to it.
    fn expect(&mut self, text: &str) -> String {
        let start = Instant::now();
        loop {
            if let Some(at) = self.seen.find(text) {
                let rest = self.seen.split_off(at + text.len());
                return std::mem::replace(&mut self.seen, rest);
            }
            assert!(start.elapsed() < PATIENCE, "no {text:?} in {:?}", self.seen);
            self.read();
        }
    }

    fn read(&mut self) {
        let mut events = [PollFd::new(&self.master, PollFlags::IN)];
        let short = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
        if poll(&mut events, Some(&short)).expect("poll") == 0 {
            return;
        }
        let mut bytes = [0; 4096];
        // An error means that nobody has the other side open any more.
        let count = self.master.read(&mut bytes).unwrap_or(0);
        self.seen.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }

    /// What the shell says about the last command.
    fn expect_status(&mut self, status: i32) {
        self.expect("outer> ");
        self.keys("echo sta''tus $?.\n");
        self.expect(&format!("status {status}."));
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

/// A word that no other process of these tests has, as a number.
fn mark(stage: &Stage, number: usize) -> String {
    let user = u32::from(stage.user.name() == "root");
    format!("8{}{number}", std::process::id() * 10 + user)
}

fn is_stopped(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T'))
}

fn plans() -> [Value; 2] {
    [json!({}), json!({"namespaces": "none"})]
}

fn interrupt_is_the_commands_to_handle(stage: &Stage) {
    for plan in plans() {
        let mut keyboard = Keyboard::new(stage);
        keyboard.dewar(&plan, "sh -c 'echo be\"\"gun; exec sleep 100'");
        keyboard.expect("begun");
        keyboard.keys(INTERRUPT);
        keyboard.expect_status(130);
        let script =
            "trap \"echo cau\"\"\"\"ght; exit 7\" INT; echo be\"\"gun; while :; do sleep 0.1; done";
        keyboard.dewar(&plan, &format!("bash -c '{script}'"));
        keyboard.expect("begun");
        keyboard.keys(INTERRUPT);
        keyboard.expect("caught");
        keyboard.expect_status(7);
    }
}

fn a_stopped_command_stops_dewar_and_continues_with_it(stage: &Stage) {
    for plan in plans() {
        let mut keyboard = Keyboard::new(stage);
        let mark = mark(stage, 0);
        let script = "echo be\"\"gun; read x; echo got $x; exit 5";
        keyboard.dewar(&plan, &format!("sh -c '{script}' {mark}"));
        keyboard.expect("begun");
        for _ in 0..3 {
            keyboard.keys(SUSPEND);
            keyboard.expect("Stopped");
            keyboard.expect("outer> ");
            keyboard.keys("fg\n");
            keyboard.expect("--as-dewar");
            // The shell gives the terminal on a moment after it says so.
            until(|| processes(&mark).iter().all(|&pid| !is_stopped(pid)).then_some(()));
        }
        keyboard.keys("this\n");
        keyboard.expect("got this");
        keyboard.expect_status(5);
    }
}

fn a_command_alone_continues_when_dewar_is(stage: &Stage) {
    for plan in plans() {
        let mut keyboard = Keyboard::new(stage);
        keyboard.dewar(&plan, "sh -c 'kill -STOP $$; echo be\"\"gun; exit 6'");
        keyboard.expect("Stopped");
        keyboard.expect("outer> ");
        keyboard.keys("kill -CONT $(jobs -p)\n");
        keyboard.expect("begun");
        keyboard.keys("sleep 0.3\n");
        keyboard.expect("Exit 6");
    }
}

fn an_interactive_shell_has_job_control(stage: &Stage) {
    for plan in plans() {
        let mut keyboard = Keyboard::new(stage);
        keyboard.dewar(&plan, "bash --norc --noprofile -i");
        keyboard.keys("PS1='in''ner> '\n");
        let greeting = keyboard.expect("inner> ");
        assert!(!greeting.contains("no job control"), "{greeting}");
        keyboard.keys("sh -c 'echo be\"\"gun; exec sleep 100'\n");
        keyboard.expect("begun");
        keyboard.keys(SUSPEND);
        keyboard.expect("Stopped");
        keyboard.expect("inner> ");
        keyboard.keys("jobs | wc -l; fg\n");
        keyboard.expect("sleep 100");
        std::thread::sleep(std::time::Duration::from_millis(200));
        keyboard.keys(INTERRUPT);
        keyboard.expect("inner> ");
        keyboard.keys("echo sta''tus $?.\n");
        keyboard.expect("status 130.");
        keyboard.keys("exit 3\n");
        keyboard.expect_status(3);
    }
}

fn a_suspended_shell_comes_back(stage: &Stage) {
    for plan in plans() {
        let mut keyboard = Keyboard::new(stage);
        keyboard.dewar(&plan, "bash --norc --noprofile -i");
        keyboard.keys("PS1='in''ner> '\n");
        keyboard.expect("inner> ");
        for _ in 0..2 {
            keyboard.keys("suspend\n");
            keyboard.expect("Stopped");
            keyboard.expect("outer> ");
            keyboard.keys("fg\n");
            keyboard.expect("inner> ");
        }
        keyboard.keys("echo a''live\n");
        keyboard.expect("alive");
        keyboard.keys("exit 0\n");
        keyboard.expect_status(0);
    }
}

fn the_terminal_returns_after_a_shell(stage: &Stage) {
    let mut keyboard = Keyboard::new(stage);
    // A shell without job control does not take the terminal by itself.
    let inner = "bash --norc --noprofile -ic \"exit 0\"";
    let plan = json!({});
    let line = format!("{} --as-dewar '\"'\"'{plan}'\"'\"' {inner}", program().display());
    keyboard.keys(&format!("sh -c '{line}; read x; echo got $x'\nthis\n"));
    keyboard.expect("got this");
}

fn a_pager_reads_its_keys(stage: &Stage) {
    for plan in plans() {
        let mut keyboard = Keyboard::new(stage);
        keyboard.keys(&format!("seq 1000 | {} --as-dewar '{plan}' less -X\n", program().display()));
        keyboard.expect("22\r\n");
        keyboard.keys("G");
        keyboard.expect("1000");
        keyboard.keys("q");
        keyboard.expect_status(0);
        keyboard
            .keys(&format!("{} --as-dewar '{plan}' seq 100000 | less -X\n", program().display()));
        keyboard.expect("22\r\n");
        keyboard.keys("q");
        keyboard.expect_status(0);
    }
}

fn an_editor_edits(stage: &Stage) {
    for plan in plans() {
        let mut keyboard = Keyboard::new(stage);
        keyboard.dewar(&plan, "vi text");
        std::thread::sleep(std::time::Duration::from_millis(500));
        keyboard.keys("ihello\x1b");
        std::thread::sleep(std::time::Duration::from_millis(200));
        keyboard.keys(SUSPEND);
        keyboard.expect("Stopped");
        keyboard.expect("outer> ");
        keyboard.keys("fg\n");
        std::thread::sleep(std::time::Duration::from_millis(200));
        keyboard.keys(":wq\r");
        keyboard.expect_status(0);
        let path = stage.path().join("text");
        assert_eq!(std::fs::read_to_string(&path).expect("text"), "hello\n", "{plan}");
        std::fs::remove_file(path).expect("remove it");
    }
}

fn nothing_outlives_the_terminal(stage: &Stage) {
    for (number, plan) in plans().iter().enumerate() {
        let mark = mark(stage, 1 + number);
        let mut keyboard = Keyboard::new(stage);
        keyboard.dewar(
            plan,
            &format!("sh -c 'sleep {mark} & setsid sleep {mark} & echo be\"\"gun; sleep {mark}'"),
        );
        keyboard.expect("begun");
        drop(std::mem::replace(&mut keyboard.master, File::open("/dev/null").expect("null")));
        let gone = until(|| processes(&mark).is_empty().then_some(()));
        assert!(gone.is_some(), "{plan}: {:?} survive", processes(&mark));
    }
}

fn a_suspended_shell_does_not_outlive_the_terminal(stage: &Stage) {
    for (number, plan) in plans().iter().enumerate() {
        let mark = mark(stage, 10 + number);
        let mut keyboard = Keyboard::new(stage);
        keyboard.dewar(plan, "bash --norc --noprofile -i");
        keyboard.keys(&format!("PS1='in''ner> '; sleep {mark} & suspend\n"));
        keyboard.expect("Stopped");
        keyboard.expect("outer> ");
        drop(std::mem::replace(&mut keyboard.master, File::open("/dev/null").expect("null")));
        let gone = until(|| processes(&mark).is_empty().then_some(()));
        assert!(gone.is_some(), "{plan}: {:?} survive", processes(&mark));
    }
}
