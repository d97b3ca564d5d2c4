//! Attacks on the terminal.

use crate::{
    Case, cases,
    dewar::Call,
    stage::{Stage, held},
};
use rustix::{
    process::Pid,
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
};
use std::{
    fs::File,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    os::fd::OwnedFd,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

pub(crate) const CASES: &[Case] = cases![
    typing_into_terminals_and_reading_others,
    opening_terminals_that_are_opened_later,
    reading_what_is_typed_while_it_is_stopped,
    having_a_terminal_signal_its_foreground,
    taking_the_terminal_in_the_background,
];

const PATIENCE: Duration = Duration::from_secs(60);

fn reading_what_is_typed_while_it_is_stopped(stage: &Stage) {
    type_for_the_shell(stage, &[]);
    // What is traced cannot be stopped as all else is.
    type_for_the_shell(stage, &["traced"]);
    // What it has made before it stands still is stopped as well.
    type_for_the_shell(stage, &["forks"]);
}

/// A terminal that `stage`'s user may open: its master, and its name.
fn terminal_of(stage: &Stage) -> (OwnedFd, String) {
    let master =
        openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
    grantpt(&master).expect("grant it");
    unlockpt(&master).expect("unlock it");
    let name = ptsname(&master, Vec::new()).expect("its name").into_string().expect("UTF-8");
    stage.give(name.as_ref());
    (master, name)
}

/// A shell on a terminal of its own, with the attack as its arguments; reading from the terminal's
/// master does not wait.
fn shell_on_a_terminal(stage: &Stage, script: &str, attack: &Command) -> (File, Child) {
    let (master, name) = terminal_of(stage);
    let mut shell = Command::new("setsid");
    shell.args(["--ctty", "bash", "-c", script, "bash"]);
    shell.arg(attack.get_program()).args(attack.get_args());
    let mut shell = stage.like(shell);
    let slave = || File::options().read(true).write(true).open(&name).expect("the terminal");
    shell.stdin(slave()).stdout(slave()).stderr(slave());
    let shell = shell.spawn().expect("start `bash`");
    rustix::io::ioctl_fionbio(&master, true).expect("a terminal that does not wait");
    (File::from(master), shell)
}

/// A shell with job control starts the attack, which is stopped from the keyboard; then the shell
/// reads ten lines itself.
fn type_for_the_shell(stage: &Stage, how: &[&str]) {
    let stolen = stage.file("work/stolen", "");
    let stolen_name = stolen.to_str().expect("UTF-8");
    let arguments = [&[stolen_name], how].concat();
    let attack = stage.command(stage.call("workspace"), "read_terminal", &arguments);
    let script = "set -m; \"$@\"; echo stopped:$?; for n in 1 2 3 4 5 6 7 8 9 10; do read -r line; echo \"got=$line\"; done; \
                  kill -KILL %1; echo over";
    let (mut master, mut shell) = shell_on_a_terminal(stage, script, &attack);
    let mut seen = String::new();
    let until = Instant::now() + PATIENCE;
    let mut wait = |master: &mut File, is: &dyn Fn(&str) -> bool| {
        while !is(&seen) {
            let mut bytes = [0; 4096];
            let count = master.read(&mut bytes).unwrap_or(0);
            seen.push_str(&String::from_utf8_lossy(&bytes[..count]));
            assert!(Instant::now() < until, "{seen}");
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    let read = || std::fs::read_to_string(&stolen).expect("what was read");
    wait(&mut master, &|_| read() == "ready:");
    master.write_all(b"\x1a").expect("a key");
    wait(&mut master, &|seen| seen.contains("stopped:"));
    for n in 1..=10 {
        master.write_all(format!("password {n}\n").as_bytes()).expect("keys");
        wait(&mut master, &|seen| {
            seen.contains(&format!("got=password {n}")) || read() != "ready:"
        });
        assert_eq!(read(), "ready:", "{how:?}: it read what was typed for the shell");
    }
    wait(&mut master, &|seen| seen.contains("over"));
    shell.wait().expect("the end of the shell");
    // All of the job was killed at once, the monitor among it.
    nothing_is_left_about(stolen_name);
}

/// Waits until no process has a name among its arguments.
fn nothing_is_left_about(name: &str) {
    let until = Instant::now() + PATIENCE;
    loop {
        let left = processes_about(name);
        if left.is_empty() {
            return;
        }
        assert!(Instant::now() < until, "{left:?} outlive the run");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The processes among whose arguments a name is.
fn processes_about(name: &str) -> Vec<Pid> {
    let processes = std::fs::read_dir("/proc").expect("processes").filter_map(Result::ok);
    let is_about = |it: &std::fs::DirEntry| {
        let line = std::fs::read_to_string(it.path().join("cmdline")).unwrap_or_default();
        line.split('\0').any(|word| word == name)
    };
    let pid = |it: std::fs::DirEntry| Pid::from_raw(it.file_name().to_str()?.parse().ok()?);
    processes.filter(is_about).filter_map(pid).collect()
}

fn typing_into_terminals_and_reading_others(stage: &Stage) {
    let (_other, name) = terminal_of(stage);
    held(
        &stage
            .command(stage.call("workspace"), "inject", &[&name])
            .output()
            .expect("start `dewar`"),
    );
}

/// Also one that has the number of one that was the run's.
fn opening_terminals_that_are_opened_later(stage: &Stage) {
    for fast in [false, true] {
        let how: &[&str] = if fast { &["fast"] } else { &[] };
        let call = Call { fast, ..stage.call("workspace") };
        let mut attack = stage.command(call, "later_terminals", how);
        attack.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut attack = attack.spawn().expect("start `dewar`");
        let mut said = String::new();
        BufReader::new(attack.stdout.as_mut().expect("a pipe"))
            .read_line(&mut said)
            .expect("a line");
        let were_its: Vec<String> =
            said.split_whitespace().map(|number| format!("/dev/pts/{number}")).collect();
        // The least free number is given out.
        let mut others: Vec<(OwnedFd, String)> = Vec::new();
        while !others.last().is_some_and(|(_, name)| were_its.contains(name)) {
            assert!(others.len() < 64, "none of {were_its:?} is given out again");
            others.push(terminal_of(stage));
        }
        others.push(terminal_of(stage));
        let mut input = attack.stdin.take().expect("a pipe");
        for (_, name) in &others[others.len() - 2..] {
            // One that got through is gone by then.
            let _ = writeln!(input, "{name}");
        }
        drop(input);
        held(&attack.wait_with_output().expect("the end of the attack"));
    }
}

fn having_a_terminal_signal_its_foreground(stage: &Stage) {
    let (_master, name) = terminal_of(stage);
    let domains = stage.profile("[domains.other]\nexec = [\"/usr/bin/true\"]\n");
    for profile in ["workspace", &domains] {
        let mut attack = stage.command(stage.call(profile), "terminal_signal", &[]);
        let slave = File::options().read(true).write(true).open(&name).expect("the terminal");
        held(&attack.stdin(slave).output().expect("start `dewar`"));
    }
}

/// A shell with job control starts the attack in the background; then it reads a line itself.
fn taking_the_terminal_in_the_background(stage: &Stage) {
    for fast in [false, true] {
        let attack = stage.command(Call { fast, ..stage.call("workspace") }, "take_terminal", &[]);
        let script = "set -m; \"$@\" & wait $!; echo ended=$?; read -r line; echo got=$line";
        let (mut master, mut shell) = shell_on_a_terminal(stage, script, &attack);
        let (mut seen, mut typed) = (String::new(), false);
        let until = Instant::now() + PATIENCE;
        while !seen.contains("got=this") && Instant::now() < until {
            let mut bytes = [0; 4096];
            let count = master.read(&mut bytes).unwrap_or(0);
            seen.push_str(&String::from_utf8_lossy(&bytes[..count]));
            if !typed && seen.contains("ended=") {
                typed = true;
                master.write_all(b"this\n").expect("keys");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = shell.kill();
        shell.wait().expect("the end of the shell");
        assert!(seen.contains("ended=0") && seen.contains("got=this"), "{seen}");
    }
}
