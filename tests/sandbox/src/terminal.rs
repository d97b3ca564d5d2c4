//! On a terminal: an interactive shell outside, and `dewar run` typed into it.

mod keyboard;

use crate::{
    Case, cases,
    dewar::Call,
    process::{run, until},
    stage::{Stage, bash},
};
use keyboard::{INTERRUPT, Keyboard, line, line_of};
use rustix::termios::{Winsize, tcsetwinsize};
use std::{ffi::OsString, time::Duration};

/// The cases of this part.
pub(crate) const CASES: &[&[Case]] = &[cases![
    an_interactive_shell_stops_continues_and_suspends,
    a_shell_in_the_background_waits_until_it_is_brought_to_the_foreground,
    who_asks_for_the_terminal_in_the_background_is_stopped_until_it_has_it,
    a_command_that_controls_jobs_has_the_terminal_and_gives_it_back,
    a_job_of_one_command_is_stopped_continued_and_interrupted_as_a_whole,
    who_shares_a_job_with_a_run_keeps_the_terminal_and_its_keys,
    a_run_that_nobody_could_continue_is_not_left_stopped,
    a_run_that_ends_hangs_up_nothing_that_is_stopped_beside_it,
    the_controlling_terminal_is_read_and_written,
    the_controlling_terminal_is_written_by_whom_its_own_name_lets,
    an_interrupt_at_any_moment_ends_the_run,
    top_follows_the_terminal_and_leaves_it_as_it_was,
]];

const SUSPEND: &str = "\x1a";

fn an_interactive_shell_stops_continues_and_suspends(stage: &Stage) {
    let mut keyboard = Keyboard::new(stage);
    keyboard.dewar(stage, "PS1='in''ner> ' exec bash --norc --noprofile -i");
    let greeting = keyboard.expect("inner> ");
    assert!(!greeting.contains("no job control"), "{greeting}");
    keyboard.keys("sh -c 'echo be\"\"gun; exec sleep 100'\n");
    keyboard.expect("begun");
    keyboard.keys(SUSPEND);
    keyboard.expect("Stopped");
    keyboard.expect("inner> ");
    keyboard.keys("fg\n");
    keyboard.expect("sleep 100");
    keyboard.interrupt_until("inner> ");
    keyboard.keys("echo sta''tus $?.\n");
    keyboard.expect("status 130.");
    keyboard.expect("inner> ");
    for _ in 0..2 {
        keyboard.keys("suspend\n");
        keyboard.expect("Stopped");
        keyboard.expect("outer> ");
        keyboard.keys("fg\n");
        keyboard.expect("inner> ");
    }
    keyboard.keys("exit 3\n");
    assert_eq!(keyboard.status(), 3);
}

fn a_shell_in_the_background_waits_until_it_is_brought_to_the_foreground(stage: &Stage) {
    let mut keyboard = Keyboard::new(stage);
    keyboard.in_background(stage, "PS1='in''ner> ' exec bash --norc --noprofile -i");
    keyboard.keys("fg\n");
    let greeting = keyboard.expect("inner> ");
    assert!(!greeting.contains("no job control"), "{greeting}");
    keyboard.keys("sh -c 'echo be\"\"gun; exec sleep 100'\n");
    keyboard.expect("begun");
    keyboard.keys(INTERRUPT);
    keyboard.expect("inner> ");
    keyboard.keys("suspend\n");
    keyboard.expect("Stopped");
    keyboard.expect("outer> ");
    keyboard.keys("fg\n");
    keyboard.expect("inner> ");
    keyboard.keys("exit 3\n");
    assert_eq!(keyboard.status(), 3);
    // With PIDs of its own it cannot know that it is in the background, and asks.
    let denials = stage.record().denials;
    assert!(denials.is_empty() || stage.variant.has_namespaces(), "{denials:?}");
}

fn who_asks_for_the_terminal_in_the_background_is_stopped_until_it_has_it(stage: &Stage) {
    let mut keyboard = Keyboard::new(stage);
    let script = "import os; os.setpgid(0, 0); os.tcsetpgrp(0, os.getpgrp()); print('has' + ' it'); \
                  print('got', input())";
    keyboard.in_background(stage, &format!("exec /usr/bin/python3 -c \"{script}\""));
    keyboard.keys("fg\n");
    keyboard.expect("has it");
    keyboard.keys("this\n");
    keyboard.expect("got this");
    assert_eq!(keyboard.status(), 0);
    let denials = stage.record().denials;
    assert!(denials.is_empty(), "{denials:?}");
}

fn a_command_that_controls_jobs_has_the_terminal_and_gives_it_back(stage: &Stage) {
    let mut keyboard = Keyboard::new(stage);
    keyboard.dewar(stage, "exec sh -mc 'sleep 0.1; read x; echo got $x'");
    keyboard.keys("this\n");
    keyboard.expect("got this");
    assert_eq!(keyboard.status(), 0);
    // As a debugger does: it hands the terminal on to what it starts, and takes it again.
    let script = "import os, signal; own = os.tcgetpgrp(0); signal.signal(signal.SIGTTOU, signal.SIG_IGN); \
                  child = os.spawnlp(os.P_NOWAIT, 'sleep', 'sleep', '0.1'); os.setpgid(child, child); \
                  os.tcsetpgrp(0, child); os.waitpid(child, 0); os.tcsetpgrp(0, own); \
                  print('has' + ' it again', own == os.getpgrp()); print('got', input())";
    keyboard.dewar(stage, &format!("exec /usr/bin/python3 -c \"{script}\""));
    keyboard.expect("has it again True");
    keyboard.keys("that\n");
    keyboard.expect("got that");
    assert_eq!(keyboard.status(), 0);
    let denials = stage.record().denials;
    assert!(denials.is_empty(), "{denials:?}");
    // The outer shell reads on, also where the run was killed while it had the terminal.
    keyboard.dewar(stage, "echo rea''dy; exec sleep 100");
    keyboard.expect("ready");
    keyboard.keys(SUSPEND);
    keyboard.expect("Stopped");
    keyboard.keys("kill -KILL %1; fg\n");
    keyboard.expect("Killed");
    keyboard.keys("echo out''side\n");
    keyboard.expect("outside");
}

fn a_job_of_one_command_is_stopped_continued_and_interrupted_as_a_whole(stage: &Stage) {
    let mut keyboard = Keyboard::new(stage);
    // Two processes: the keys and `kill` reach both.
    let script = "/usr/bin/python3 -c 'import time\nwhile 1: print(\"t\" + \"ick\", flush=True); time.sleep(0.05)'; echo on";
    keyboard.dewar(stage, script);
    for stop in [SUSPEND, "kill"] {
        keyboard.expect("tick");
        if stop == "kill" {
            keyboard.keys(SUSPEND);
            keyboard.expect("Stopped");
            keyboard.keys("bg\n");
            keyboard.expect("tick");
            keyboard.keys("kill -TSTP %1; sleep 0.3\n");
        } else {
            keyboard.keys(SUSPEND);
        }
        keyboard.expect("Stopped");
        keyboard.keys("echo qui''et\n");
        keyboard.expect("quiet");
        std::thread::sleep(Duration::from_millis(200));
        keyboard.keys("echo sti''ll\n");
        let meanwhile = keyboard.expect("still");
        assert!(!meanwhile.contains("tick"), "{stop:?}: {meanwhile}");
        keyboard.keys("fg\n");
    }
    keyboard.expect("tick");
    // In the background it goes on, and what is typed is the shell's.
    keyboard.keys(SUSPEND);
    keyboard.expect("Stopped");
    keyboard.keys("bg\n");
    keyboard.expect("tick");
    keyboard.keys("echo out''side\n");
    keyboard.expect("outside");
    // A shell continues no job that runs, so nobody says that it has the terminal now.
    keyboard.keys("fg\n");
    keyboard.expect("tick");
    std::thread::sleep(Duration::from_millis(200));
    keyboard.keys(INTERRUPT);
    assert_eq!(keyboard.status(), 130);
}

fn who_shares_a_job_with_a_run_keeps_the_terminal_and_its_keys(stage: &Stage) {
    let mut keyboard = Keyboard::new(stage);
    // As a pager does, it reads keys from the terminal.
    keyboard.dewar_and(
        stage,
        "echo line; sleep 1",
        "| /usr/bin/python3 -c \"import sys; print('lin' + 'es', len(list(sys.stdin))); \
         print('got', open('/dev/tty').readline())\"",
    );
    keyboard.expect("lines 1");
    keyboard.keys("this\n");
    keyboard.expect("got this");
    assert_eq!(keyboard.status(), 0);
    // A script ends with the run that a key has ended.
    let run = line(stage, "echo beg''un; exec sleep 50");
    std::fs::write(stage.work().join("script"), format!("{run}\necho went on\n"))
        .expect("a script");
    keyboard.expect("outer> ");
    keyboard.keys("bash script\n");
    keyboard.expect("begun");
    keyboard.keys(INTERRUPT);
    keyboard.expect("outer> ");
    keyboard.keys("echo sta''tus $?.\n");
    let said = keyboard.expect("status 130.");
    assert!(!said.contains("went on"), "{said}");
}

/// A run that leads its session, as a terminal's window starts it: natively, the key stops nothing.
fn a_run_that_nobody_could_continue_is_not_left_stopped(stage: &Stage) {
    let mut keyboard = Keyboard::new(stage);
    let run = line(stage, "echo rea''dy; read x; echo got $x");
    keyboard.keys(&format!("exec {run}\n"));
    keyboard.expect("ready");
    keyboard.keys(SUSPEND);
    std::thread::sleep(Duration::from_millis(200));
    keyboard.keys("this\n");
    keyboard.expect("got this");
}

/// The kernel hangs up a process group that a process leaves as an orphan, if one in it is stopped.
fn a_run_that_ends_hangs_up_nothing_that_is_stopped_beside_it(stage: &Stage) {
    let script = "sleep 100 & kill -STOP $!; \"$@\"; echo ended $?; kill -KILL $!";
    let mut words = ["setsid", "--wait", "bash", "-c", script, "bash"].map(OsString::from).to_vec();
    words.extend(stage.under_dewar(stage.call(), &bash("exit 3")));
    let ran = run(stage.command(&words), b"");
    assert_eq!(ran.out(), "ended 3\n", "{ran:?}");
}

fn the_controlling_terminal_is_read_and_written(stage: &Stage) {
    let mut keyboard = Keyboard::new(stage);
    keyboard.dewar(
        stage,
        "echo to the ter\"\"minal > /dev/tty; read -r x < /dev/tty 2>&1; echo got $x; stty -a < /dev/tty | head -1; test -t 0 -a -t 1; exit 4",
    );
    keyboard.expect("to the terminal");
    keyboard.keys("this\n");
    keyboard.expect("got this");
    keyboard.expect("speed");
    assert_eq!(keyboard.status(), 4);
    let denials = stage.record().denials;
    assert!(denials.is_empty(), "{denials:?}");
}

fn the_controlling_terminal_is_written_by_whom_its_own_name_lets(stage: &Stage) {
    let profile = stage.profile("extends = 'workspace'\nfiles.readonly = ['/dev/pts']\n");
    let script =
        "echo x 2>/dev/null > /dev/tty; echo wr\"\"itten $?; : < /dev/tty; echo re\"\"ad $?";
    let call = Call { profile: Some(&profile), ..stage.call() };
    let mut keyboard = Keyboard::new(stage);
    keyboard.keys(&format!("{}\n", line_of(&stage.dewar(call, &bash(script)))));
    keyboard.expect("written 1");
    keyboard.expect("read 0");
}

/// Also while it is being set up, when the key reaches Dewar alone.
fn an_interrupt_at_any_moment_ends_the_run(stage: &Stage) {
    let mut keyboard = Keyboard::new(stage);
    for delay_ms in [0, 1, 2, 3, 5, 8, 12, 16, 20, 25, 30, 40, 60, 100] {
        keyboard.dewar(stage, "exec sleep 50");
        until(|| runs(stage, "dewar").then_some(())).expect("Dewar runs");
        std::thread::sleep(Duration::from_millis(delay_ms));
        keyboard.keys(INTERRUPT);
        assert_eq!(keyboard.status(), 130, "after {delay_ms} ms");
        keyboard.expect("outer> ");
    }
    assert!(
        until(|| (!runs(stage, "sleep")).then_some(())).is_some(),
        "a command outlives its run"
    );
}

fn top_follows_the_terminal_and_leaves_it_as_it_was(stage: &Stage) {
    let mut keyboard = Keyboard::new(stage);
    let top = stage.control(&["top", "--interval", "0.1"]);
    let words = std::iter::once(top.get_program()).chain(top.get_args());
    let line: String = words.map(|word| format!("{} ", word.to_string_lossy())).collect();
    let modes = |keyboard: &mut Keyboard| {
        keyboard.keys("echo mo''des $(stty -g).\n");
        keyboard.expect("modes ");
        keyboard.expect(".")
    };
    let before = modes(&mut keyboard);
    for leave in ["q", INTERRUPT, SUSPEND] {
        keyboard.expect("outer> ");
        keyboard.keys(&format!("{line}\n"));
        keyboard.expect("\x1b[?1049h");
        keyboard.expect("nothing runs");
        // What is drawn fits whatever the size is; the last row says how to leave.
        let size = |ws_row| Winsize { ws_row, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&keyboard.master, size(1)).expect("another size");
        keyboard.expect("r revokes, 1 lines more");
        tcsetwinsize(&keyboard.master, size(24)).expect("another size");
        keyboard.expect("nothing runs");
        keyboard.keys(leave);
        keyboard.expect("\x1b[?25h\x1b[?1049l");
        if leave == SUSPEND {
            keyboard.expect("Stopped");
            assert_eq!(modes(&mut keyboard), before, "suspended");
            keyboard.expect("outer> ");
            keyboard.keys("fg\n");
            keyboard.expect("\x1b[?1049h");
            keyboard.expect("nothing runs");
            keyboard.keys("q");
            keyboard.expect("\x1b[?1049l");
        }
        assert_eq!(keyboard.status(), 0, "{leave:?}");
        assert_eq!(modes(&mut keyboard), before, "{leave:?}");
    }
}

/// Whether a process of this name has its working directory in the stage's.
fn runs(stage: &Stage, name: &str) -> bool {
    let is_it = |process: &std::path::Path| {
        let comm = std::fs::read_to_string(process.join("comm")).unwrap_or_default();
        let cwd = std::fs::read_link(process.join("cwd")).unwrap_or_default();
        comm.trim_end() == name && cwd == stage.work()
    };
    std::fs::read_dir("/proc").expect("read /proc").flatten().any(|entry| is_it(&entry.path()))
}
