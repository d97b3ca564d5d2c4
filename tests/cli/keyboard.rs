//! Answers to `dewar run --ask` on a terminal with odd modes, or one that two runs share.

use crate::{
    ask::{Home, PATIENCE, in_session},
    terminal::Terminal,
};
use rustix::termios::{OptionalActions, SpecialCodeIndex, tcgetattr, tcsetattr};
use std::{
    fs,
    io::{Read as _, Write as _},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

#[test]
fn a_typed_no_is_a_no_whatever_the_keys_of_the_terminal_are() {
    for modes in ["erase n", "kill n -echok", "lnext n", "start n ixon", "iuclc"] {
        let home = Home::new();
        let script = format!("stty {modes}; cat ~/notes.txt; stty -a >modes");
        let mut terminal = Terminal::run(&home, &[], &script);
        terminal.answer("no\n");
        let (rest, _) = terminal.end();
        assert!(!rest.contains("these are notes"), "{modes}: {rest}");
        assert_eq!(home.answers(), ["no"], "{modes}");
    }
}

#[test]
fn enter_answers_where_a_program_has_turned_it_into_another_key() {
    let home = Home::new();
    let mut terminal = Terminal::run(&home, &[], "stty -icrnl inlcr; cat ~/notes.txt; stty sane");
    terminal.answer("o\r");
    assert!(terminal.end().0.contains("these are notes"));
}

#[test]
fn a_program_has_its_modes_of_the_terminal_back_after_a_question() {
    let home = Home::new();
    let script = "stty erase n eol x -onlcr; stty -g >before; cat ~/notes.txt; stty -g >answered
        cat ~/plans.txt; stty -g >late";
    let mut terminal = Terminal::run(&home, &["--ask-timeout", "4s"], script);
    terminal.answer("o\n");
    terminal.expect("[N]o? ");
    terminal.end();
    assert_eq!(home.answers(), ["once", "time-out"]);
    let read = |name: &str| fs::read_to_string(home.path().join("work").join(name)).unwrap();
    for name in ["answered", "late"] {
        assert_eq!(read(name), read("before"), "{name}");
    }
}

#[test]
fn an_interrupt_at_a_question_leaves_the_modes_of_the_terminal_as_they_were() {
    let home = Home::new();
    let mut terminal = Terminal::run(&home, &[], "stty erase n; touch set; cat ~/notes.txt");
    let erase = |terminal: &Terminal| {
        tcgetattr(&terminal.master).unwrap().special_codes[SpecialCodeIndex::VERASE]
    };
    terminal.expect("[N]o? ");
    assert_eq!(erase(&terminal), 0x7f);
    terminal.master.write_all(b"\x03").unwrap();
    let until = Instant::now() + PATIENCE;
    while erase(&terminal) != b'n' {
        assert!(Instant::now() < until, "erase is {}", erase(&terminal));
        std::thread::sleep(Duration::from_millis(10));
    }
    terminal.end();
}

#[test]
fn an_answer_is_not_counted_if_somebody_outside_has_changed_the_terminal() {
    let home = Home::new();
    let mut terminal = Terminal::run(&home, &["--ask-timeout", "20s"], "cat ~/notes.txt");
    terminal.expect("[N]o? ");
    let mut modes = tcgetattr(&terminal.master).unwrap();
    modes.special_codes[SpecialCodeIndex::VERASE] = b'n';
    tcsetattr(&terminal.master, OptionalActions::Now, &modes).unwrap();
    terminal.master.write_all(b"no\n").unwrap();
    terminal.expect("has been changed meanwhile");
    terminal.answer("n\n");
    let (rest, _) = terminal.end();
    assert!(!rest.contains("these are notes"), "{rest}");
    assert_eq!(home.answers(), ["no"]);
}

#[test]
fn what_is_typed_before_the_terminal_has_shown_a_question_is_no_answer_to_it() {
    let home = Home::new();
    let profile = home.path().join("p.toml").display().to_string();
    let script = "printf 'there is one: [p]ut it there, or [n]ot? \\033[6n'; cat ~/notes.txt";
    let mut terminal = Terminal::run(&home, &["-p", &profile], script);
    // A slow line: nothing has reached the screen when the person answers the program, and the
    // terminal still answers what the program has asked it.
    std::thread::sleep(Duration::from_secs(8));
    for typed in ["p\n", "\x1b[1;1R".repeat(99).as_str()] {
        terminal.master.write_all(typed.as_bytes()).unwrap();
    }
    std::thread::sleep(Duration::from_secs(1));
    assert!(terminal.answer("n\n").contains("may not read"));
    let (rest, _) = terminal.end();
    assert!(!rest.contains("these are notes"), "{rest}");
    assert_eq!(home.answers(), ["no"]);
}

#[test]
fn a_terminal_that_never_says_what_it_has_shown_is_not_asked_on() {
    let home = Home::new();
    let mut terminal = Terminal::run(&home, &["--name", "it"], "cat ~/notes.txt");
    terminal.rows = 0;
    terminal.expect("does not say what it has shown");
    terminal.master.write_all(b"o\n").unwrap();
    home.say_soon(&["ask", "it", "--list"], "notes.txt");
    assert!(home.say(&["ask", "it", "--answer", "1=run"]).status.success());
    terminal.end();
    assert_eq!(home.answers(), ["run"]);
}

#[test]
fn a_question_that_is_longer_than_the_screen_is_shown_in_parts() {
    let home = Home::new();
    let mut terminal = Terminal::run(&home, &[], "printf '\\033[?1049h'; cat ~/notes.txt");
    terminal.rows = 4;
    let leaves = terminal.expect("dewar: ").rfind("\x1b[?1049l");
    assert!(leaves.is_some(), "the alternate screen keeps nothing that leaves it");
    for (part, next) in [("may not read", "/notes.txt"), ("/notes.txt", "files.read")] {
        let shown = terminal.expect("Enter shows the rest: ");
        assert!(shown.contains(part) && !shown.contains(next), "{shown}");
        terminal.master.write_all(b"o\n").unwrap();
    }
    assert!(terminal.answer("n\n").contains("files.read"));
    let (rest, _) = terminal.end();
    assert!(!rest.contains("these are notes"), "{rest}");
}

/// A shell with a terminal of its own; `$DEWAR` is what is tested.
fn shell(home: &Home, script: &str) -> Command {
    let mut command = in_session();
    command.args(["--ctty", "--wait", "sh", "-c", script]).env("DEWAR", test_support::dewar());
    command.current_dir(home.path().join("work"));
    for (name, value) in home.command(&[], &[]).get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

#[test]
fn who_reads_from_a_pipe_of_a_run_does_not_write_over_its_question() {
    let home = Home::new();
    let run = "\"$DEWAR\" run --no-daemon --ask --name it -- cat ../notes.txt";
    for (script, why) in [
        (format!("{run} | cat"), "standard output is a pipe"),
        (format!("{run} 2>&1 | cat"), "standard output is a pipe"),
        (format!("exec 4>&1; {run} 3>&1 >&4 | cat"), "descriptor 3 is a pipe"),
    ] {
        let mut terminal = Terminal::start(shell(&home, &script));
        terminal.expect(why);
        terminal.expect("dewar ask ");
        home.say_soon(&["ask", "it", "--list"], "notes.txt");
        std::thread::sleep(Duration::from_secs(2));
        assert!(home.say(&["ask", "it", "--answer", "1=once"]).status.success(), "{script}");
        let seen = terminal.expect("these are notes");
        assert!(!seen.contains("may not read"), "{script}: {seen}");
        terminal.end();
    }
}

#[test]
fn where_output_goes_to_a_file_a_question_is_on_the_terminal() {
    let home = Home::new();
    let run =
        "exec 3>&1; \"$DEWAR\" run --no-daemon --ask -- cat ../notes.txt >out 2>&3 </dev/null";
    let mut terminal = Terminal::start(shell(&home, run));
    terminal.answer("o\n");
    terminal.end();
    assert_eq!(fs::read_to_string(home.path().join("work/out")).unwrap(), "these are notes");
}

#[test]
fn two_runs_on_one_terminal_ask_one_after_the_other() {
    let home = Home::new();
    let script = "run() { \"$DEWAR\" run --no-daemon --ask -- cat \"$1\"; }
        run ../notes.txt & sleep 2; run ../plans.txt; wait";
    let mut terminal = Terminal::start(shell(&home, script));
    let asked = terminal.expect("[N]o? ");
    let (first, second) =
        if asked.contains("notes.txt") { ("notes", "plans") } else { ("plans", "notes") };
    assert!(!asked.contains(second), "{asked}");
    // Longer than the other run needs to have its question.
    std::thread::sleep(Duration::from_secs(6));
    terminal.master.write_all(b"o\n").unwrap();
    let answered = terminal.expect(&format!("these are {first}"));
    assert!(!answered.contains(second), "{answered}");
    assert!(terminal.answer("n\n").contains(second));
    let (rest, _) = terminal.end();
    assert!(!rest.contains(&format!("these are {second}")), "{rest}");
}

#[test]
fn what_is_typed_for_a_question_elsewhere_is_read_by_usual_keys_and_not_before_it_is_there() {
    let home = Home::new();
    let script = "while [ ! -e go ]; do sleep 0.1; done; cat ~/notes.txt";
    let run = ["run", "--no-daemon", "--ask", "--name", "it", "--", "sh", "-c", script];
    let mut run = home.command(&[], &run).stdout(Stdio::piped()).spawn().unwrap();
    home.say_soon(&["ask", "it", "--list"], "no question");
    let mut terminal = Terminal::start(home.command(&["--ctty"], &["ask", "it"]));
    terminal.expect("waiting for questions");
    let mut modes = tcgetattr(&terminal.master).unwrap();
    modes.special_codes[SpecialCodeIndex::VERASE] = b'n';
    tcsetattr(&terminal.master, OptionalActions::Now, &modes).unwrap();
    // An answer to the question before, typed twice.
    terminal.master.write_all(b"once\n").unwrap();
    fs::write(home.path().join("work/go"), "").unwrap();
    terminal.expect("notes.txt");
    terminal.master.write_all(b"once\n").unwrap();
    terminal.expect("means no): ");
    terminal.master.write_all(b"no\n").unwrap();
    let mut out = String::new();
    run.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    assert_eq!((out.as_str(), run.wait().unwrap().code()), ("", Some(1)));
    terminal.end();
    assert_eq!(home.answers(), ["no"]);
}
