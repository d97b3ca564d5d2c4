//! `dewar plugin`: replies on standard output, everything else on standard error, and the right exit status.

use crate::{Said, dewar_with};
use std::{
    fs,
    os::unix::{
        fs::{MetadataExt as _, PermissionsExt as _},
        process::CommandExt as _,
    },
    path::Path,
    process::Stdio,
};

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/plugins");
const ECHO: &str = "long handle(const char *in, long n, char *out, long room)
{ long i; for (i = 0; i < n; i++) out[i] = in[i]; return i; }";

fn plugin(dir: &Path, args: &[&str], input: &str) -> Said {
    dewar_with(dir, &[&["plugin"], args].concat(), input)
}

fn written(text: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("p.e"), text).expect("it can be written");
    dir
}

#[test]
fn every_example_passes_its_cases_on_every_target() {
    let dir = tempfile::tempdir().expect("a directory");
    let names = ["gray.e", "words.e", "visits.e", "cat.e", "rot13.wat"];
    let paths = names.map(|name| format!("{EXAMPLES}/{name}"));
    let args: Vec<&str> = ["test"].into_iter().chain(paths.iter().map(String::as_str)).collect();
    let said = plugin(dir.path(), &args, "");
    assert_eq!(said.status, 0, "{}{}", said.out, said.err);
    assert!(said.out.contains("ok      gray on native+stack"), "{}", said.out);
    assert!(said.out.contains("0 failed"), "{}", said.out);
}

#[test]
fn a_reply_goes_to_standard_output_and_a_second_run_uses_the_cache() {
    let dir = written(ECHO);
    for from_cache in [false, true] {
        let said = plugin(dir.path(), &["run", "p.e"], "hello");
        assert_eq!((said.status, said.out.as_str(), said.err.as_str()), (0, "hello", ""));
        let said = plugin(dir.path(), &["build", "p.e", "--json"], "");
        assert!(said.out.contains("\"from_cache\": true"), "{from_cache}: {}", said.out);
    }
    let said = plugin(dir.path(), &["list"], "");
    assert!(said.out.starts_with("1 plugins in ") && said.out.contains("p.e"), "{}", said.out);
    let said = plugin(dir.path(), &["run", "p.e", "--target", "all"], "hello");
    assert_eq!((said.status, said.out.as_str()), (0, "hello"), "{}", said.err);
    assert!(said.err.contains("native+stack"), "{}", said.err);
}

#[test]
fn mistakes_in_a_text_are_shown_with_their_places() {
    let dir =
        written("long handle(const char *in, long n, char *out, long room)\n{ return nn; }\n");
    for command in ["run", "build", "disasm"] {
        let said = plugin(dir.path(), &[command, "p.e"], "");
        assert_eq!(said.status, 2, "{command}: {}", said.err);
        assert!(
            said.err.contains("p.e:2:10") && said.err.contains("nn"),
            "{command}: {}",
            said.err
        );
        assert_eq!(said.out, "");
    }
    assert_eq!(plugin(dir.path(), &["run", "missing.e"], "").status, 2);
    assert_eq!(plugin(dir.path(), &["test", "p.e"], "").status, 2, "it has no cases");
}

#[test]
fn a_plugin_that_fails_gives_exit_status_1_and_says_why() {
    let text = "long handle(const char *in, long n, char *out, long room) { for (;;) ; }";
    let dir = written(text);
    let said = plugin(dir.path(), &["run", "p.e", "--time-ms", "50"], "");
    assert_eq!((said.status, said.out.as_str()), (1, ""));
    assert!(said.err.contains("used up its time"), "{}", said.err);
}

#[test]
fn a_case_that_fails_shows_the_first_difference() {
    let dir = written(ECHO);
    fs::write(dir.path().join("p.in"), "one\ntwo\n").expect("it can be written");
    fs::write(dir.path().join("p.out"), "one\ntoo\n").expect("it can be written");
    let said = plugin(dir.path(), &["test", "p.e", "--target", "isolated"], "");
    assert_eq!(said.status, 1);
    assert!(said.out.contains("line 2:\n  - `too`\n  + `two`"), "{}", said.out);
}

#[test]
fn what_is_denied_is_explained_and_added_rules_allow_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().canonicalize().expect("it is there");
    let note = path.join("note");
    fs::write(&note, "a note").expect("it can be written");
    let (cat, note) = (format!("{EXAMPLES}/cat.e"), note.to_str().expect("Unicode"));
    let said = plugin(&path, &["run", &cat], note);
    assert_eq!((said.status, said.out.as_str()), (0, ""));
    let rule = "(allow plugin_t object_t (file (read open)))";
    assert!(said.err.contains(&format!("would allow  {rule}")), "{}", said.err);
    fs::write(path.join("more.cil"), rule).expect("it can be written");
    let said = plugin(&path, &["run", &cat, "--policy", "more.cil"], note);
    assert_eq!((said.status, said.out.as_str(), said.err.as_str()), (0, "a note", ""));
}

/// Calls `dewar plugin run p.e --target kernel` as an ordinary user.
fn in_kernel_as_an_ordinary_user(dir: &Path, more: &[&str]) -> Said {
    // Root may: become nobody, who must be able to reach the command and the plugin.
    let is_root = fs::metadata("/proc/self").expect("there is /proc").uid() == 0;
    let command = dir.join("dewar");
    fs::copy(assert_cmd::cargo::cargo_bin("dewar"), &command).expect("there is room");
    fs::set_permissions(dir, fs::Permissions::from_mode(0o755)).expect("it is ours");
    let mut command = std::process::Command::new(command);
    command.args(["plugin", "run", "p.e", "--no-cache", "--target", "kernel"]).args(more);
    command.current_dir(dir).env("NO_COLOR", "1").stdin(Stdio::null());
    if is_root {
        command.uid(65534).gid(65534);
    }
    let output = command.output().expect("the command starts");
    Said {
        status: output.status.code().expect("no signal"),
        out: String::from_utf8(output.stdout).expect("Unicode"),
        err: String::from_utf8(output.stderr).expect("Unicode"),
    }
}

#[test]
fn an_ordinary_user_is_told_why_nothing_runs_in_the_kernel_and_gets_it_isolated_only_if_asked_for()
{
    let text =
        "long handle(const char *in, long n, char *out, long room) { out[0] = '!'; return 1; }";
    let dir = written(text);
    let said = in_kernel_as_an_ordinary_user(dir.path(), &[]);
    assert_eq!((said.status, said.out.as_str()), (2, ""), "{}", said.err);
    assert!(said.err.contains("CAP_BPF"), "{}", said.err);
    let said = in_kernel_as_an_ordinary_user(dir.path(), &["--or-isolated"]);
    assert_eq!((said.status, said.out.as_str()), (0, "!"), "{}", said.err);
    assert!(said.err.contains("CAP_BPF"), "{}", said.err);
    assert!(said.err.contains("it runs isolated instead"), "{}", said.err);
}

#[test]
fn what_a_plugin_says_cannot_steer_the_terminal() {
    let text = "long handle(const char *in, long n, char *out, long room)
        { host_log(\"a\\033[2Jb\", 6); host_open(\"/etc/\\033]0;x\", 10); return 0; }";
    let dir = written(text);
    let said = plugin(dir.path(), &["run", "p.e"], "");
    assert_eq!(said.status, 0, "{}", said.err);
    assert!(said.err.contains("a\\u001b[2Jb\n"), "{}", said.err);
    assert!(said.err.contains("may not read open on /etc/\\u001b]0;x\n"), "{}", said.err);
    assert!(!said.err.contains('\u{1b}'), "{}", said.err);
}

#[test]
fn a_full_disk_and_a_request_without_end_are_errors_that_say_so() {
    let dir = written(ECHO);
    let run = |stdin: &str, stdout: &str, stderr: Stdio| {
        let opened = |path: &str| fs::File::options().read(true).write(true).open(path);
        std::process::Command::new(env!("CARGO_BIN_EXE_dewar"))
            .args(["plugin", "run", "p.e", "--no-cache", "--memory-bytes", "600000"])
            .current_dir(&dir)
            .stdin(opened(stdin).expect("it opens"))
            .stdout(opened(stdout).expect("it opens"))
            .stderr(stderr)
            .output()
            .expect("it starts")
    };
    let err = |output: &std::process::Output| String::from_utf8_lossy(&output.stderr).into_owned();
    let full = run("/etc/passwd", "/dev/full", Stdio::piped());
    assert_eq!(full.status.code(), Some(125), "{}", err(&full));
    assert!(
        err(&full).contains("cannot write to standard output: No space left"),
        "{}",
        err(&full)
    );
    let endless = run("/dev/zero", "/dev/null", Stdio::piped());
    assert_eq!(endless.status.code(), Some(2), "{}", err(&endless));
    assert!(err(&endless).contains("--memory-bytes"), "{}", err(&endless));
    // Where nobody can be told, the exit status still tells.
    let deaf = fs::File::options().write(true).open("/dev/full").expect("it opens");
    assert_eq!(run("/dev/zero", "/dev/null", deaf.into()).status.code(), Some(2));
}
