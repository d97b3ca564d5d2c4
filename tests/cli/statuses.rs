//! Exit statuses, of every command and of every program, as their help texts say: wrong use is 2
//! everywhere, and said in the same way.

use super::{Said, account::Account, dewar_in, help};
use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Command, Stdio},
};

/// The programs that carry out commands, and the words that lead to them.
const PROGRAMS: [(&str, &[&str]); 7] = [
    ("dewar-plugin", &["bench", "plugin"]),
    ("dewar-plugin", &["plugin"]),
    ("dewar-bench", &["bench"]),
    ("dewar-daemon", &["daemon"]),
    ("dewar-daemon", &["audit"]),
    ("dewar-selftest", &["selftest"]),
    ("dewar-serve", &["serve"]),
];

/// Calls a program that lies beside `dewar` with these words.
fn call(program: &Path, words: &[&str]) -> Said {
    let mut command = Command::new(program);
    command.args(words).current_dir("/").env("NO_COLOR", "1").env_remove("COLUMNS");
    let output = command.stdin(Stdio::null()).output().expect("it starts");
    Said {
        status: output.status.code().expect("no signal"),
        out: String::from_utf8(output.stdout).expect("Unicode"),
        err: String::from_utf8(output.stderr).expect("Unicode"),
    }
}

#[test]
fn wrong_use_is_2_of_every_command_and_of_the_program_that_carries_it_out() {
    const WRONG: &str = "--no-such-flag";
    let dewar = test_support::dewar();
    let (mut faults, mut tried) = (Vec::new(), 0);
    let mut check = |program: &Path, words: &[&str]| {
        let said = call(program, words);
        let is_said = said.err.starts_with("dewar: ") && said.err.contains(WRONG);
        if said.status != 2 || !said.out.is_empty() || !is_said {
            let name = program.file_name().unwrap_or_default().display();
            faults.push(format!(
                "{name} {}: {} {}{}",
                words.join(" "),
                said.status,
                said.out,
                said.err
            ));
        }
        tried += 1;
    };
    for command in help::commands() {
        let mut words: Vec<&str> = command.iter().map(String::as_str).collect();
        words.push(WRONG);
        check(dewar, &words);
        let helper = PROGRAMS.iter().find(|(_, prefix)| words.starts_with(prefix));
        if let Some((helper, _)) = helper {
            check(&dewar.with_file_name(helper), &words);
        }
    }
    for (program, _) in PROGRAMS {
        check(&dewar.with_file_name(program), &[WRONG]);
    }
    assert!(faults.is_empty(), "{} of {tried}:\n{}", faults.len(), faults.join("\n"));
    assert!(tried > 100, "only {tried}");
    let said = call(&test_support::mcp(), &["one", "two"]);
    assert_eq!(said.status, 2, "{}", said.err);
}

/// What a help text says of exit statuses: the last thing that it says.
fn statuses(help: &str) -> Option<&str> {
    help.rfind("\nExit status:").and_then(|at| help.get(at..))
}

#[test]
fn every_help_ends_with_the_exit_statuses_of_its_command() {
    let (mut faults, mut tried) = (Vec::new(), 0);
    for command in help::commands() {
        let text = help::help(&command, "100");
        let said = statuses(&text).unwrap_or_default();
        // The first is that of success, and wrong use has one everywhere.
        let success = ["that of the command", "the command's", "0"];
        let begins = said.trim_start().strip_prefix("Exit status:").unwrap_or_default();
        let is_said = success.iter().any(|it| begins.trim_start().starts_with(it));
        if !is_said || !said.contains(" 2 ") || said.trim().contains("\n\n") {
            faults.push(format!("dewar {}: {said:?}", command.join(" ")));
        }
        tried += 1;
    }
    assert!(faults.is_empty(), "{} of {tried}:\n{}", faults.len(), faults.join("\n"));
    assert!(tried > 60, "only {tried}");
}

#[test]
fn what_goes_well_is_0_and_what_does_not_is_as_the_help_says() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let place = directory.path();
    std::fs::write(place.join("plain.txt"), "").expect("written");
    for (status, words) in [
        (0, "ps"),
        (0, "runs"),
        (0, "doctor"),
        (0, "policy list"),
        (0, "policy check workspace"),
        (0, "policy env"),
        (0, "top --once"),
        (0, "selftest list"),
        (0, "plugin list"),
        (0, "run --quiet --no-daemon -- true"),
        (1, "run --quiet --no-daemon -- false"),
        (127, "run --quiet --no-daemon -- no-such-program"),
        (126, "run --quiet --no-daemon -- ./plain.txt"),
        (0, "explain"),
        (0, "report"),
        (0, "runs"),
        (2, "allow 1"),
        (2, "policy av -f workspace u:r:t u:r:t file"),
        (125, "audit"),
        (125, "policy set last x=on"),
        (2, "revoke last --all"),
    ] {
        let said = dewar_in(place, &words.split(' ').collect::<Vec<&str>>());
        assert_eq!(said.status, status, "{words}: {}", said.err);
    }
}

#[test]
fn a_journal_that_one_may_not_look_for_is_not_said_to_be_missing() {
    let account = Account::new(rustix::process::geteuid().is_root().then_some(61_235));
    account.bring("dewar-daemon");
    let audit = || account.dewar(&["audit"]);
    assert!(audit().err.contains("there is no journal"), "{}", audit().err);
    let state = account.path(".local/state/dewar/daemon");
    fs::create_dir_all(&state).unwrap();
    account.give();
    let mode = |mode| fs::set_permissions(&state, fs::Permissions::from_mode(mode)).unwrap();
    mode(0o000);
    let came = audit();
    mode(0o700);
    assert!(came.status == 125 && came.err.contains("Permission denied"), "{}", came.err);
    assert!(!came.err.contains("there is no journal"), "{}", came.err);
}
