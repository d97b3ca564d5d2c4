//! `dewar plugin`: replies on standard output, everything else on standard error, and the right
//! exit status.

use crate::{Said, dewar_with};
use std::{
    fs,
    os::unix::{
        fs::{MetadataExt as _, PermissionsExt as _},
        process::{CommandExt as _, ExitStatusExt as _},
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
    let words = ["test", "--target", "all"];
    let args: Vec<&str> = words.into_iter().chain(paths.iter().map(String::as_str)).collect();
    let said = plugin(dir.path(), &args, "");
    assert_eq!(said.status, 0, "{}{}", said.out, said.err);
    assert!(said.out.contains("ok      gray on native+stack"), "{}", said.out);
    assert!(said.out.contains("0 failed"), "{}", said.out);
}

/// What is tested is as strange as what is run.
#[test]
fn a_plugin_is_tested_isolated_unless_another_target_is_named() {
    let dir = written(ECHO);
    for case in ["p.in", "p.out"] {
        fs::write(dir.path().join(case), "hello").expect("it can be written");
    }
    let said = plugin(dir.path(), &["test", "p.e"], "");
    assert_eq!(said.out, "ok      p on isolated\n1 passed, 0 failed, 0 left out\n", "{}", said.err);
    let said = plugin(dir.path(), &["test", "p.e", "--target", "native"], "");
    assert!(said.out.starts_with("ok      p on native\n"), "{}{}", said.out, said.err);
}

#[test]
fn neither_a_plugin_nor_a_case_is_a_pipe_that_is_waited_for() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let dir = written(ECHO);
    fs::write(dir.path().join("p.out"), "hello").expect("it can be written");
    for pipe in ["pipe.e", "p.in"] {
        let mode = Mode::from_raw_mode(0o600);
        mknodat(CWD, dir.path().join(pipe), FileType::Fifo, mode, 0).expect("it can be made");
    }
    for args in [["test", "p.e"], ["test", "pipe.e"], ["run", "pipe.e"], ["build", "pipe.e"]] {
        let said = plugin(dir.path(), &args, "");
        assert_eq!(said.status, 2, "{args:?}: {}", said.err);
        assert!(said.err.contains("is no file by itself"), "{args:?}: {}", said.err);
    }
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
    let command = test_support::install(dir, &["dewar", "dewar-plugin"]);
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
        std::process::Command::new(test_support::dewar())
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

#[test]
fn sizes_are_written_as_in_profiles_and_impossible_ones_are_refused() {
    let dir = written(ECHO);
    let run = |option: &str, size: &str| plugin(dir.path(), &["run", "p.e", option, size], "hello");
    for size in ["1M", "64M", "1048576", "512KiB"] {
        assert_eq!(run("--memory-bytes", size).status, 0, "{size}");
    }
    for size in ["0", "1K", "65M", "1G", "8G", "M", "1X"] {
        let said = run("--memory-bytes", size);
        assert_eq!((said.status, said.out.as_str()), (2, ""), "{size}");
        assert!(said.err.contains("64M") || said.err.contains("such as 16M"), "{}", said.err);
    }
    assert_eq!(run("--output-bytes", "2K").out, "hello");
    assert!(run("--output-bytes", "2Q").err.contains("such as 16M"));
}

#[test]
fn what_is_no_plugin_is_refused_with_a_reason() {
    let dir = tempfile::tempdir().expect("a directory");
    let large = format!("long f(long n) {{ {} return n; }}", "if (n) n++;".repeat(100_000));
    for (name, bytes, why) in [
        ("binary.e", &b"\x7fELF\xff\xfe\x00"[..], "neither a text in UTF-8 nor a module"),
        ("zeros.e", &[0; 64], "error"),
        ("empty.e", b"", "does not export `handle`"),
        ("cut.wasm", b"\0asm\x01\0", "unexpected end"),
        ("large.e", large.as_bytes(), "this function is too large"),
        ("long.e", &[b' '; (4 << 20) + 1], "longer than 4 MiB"),
    ] {
        fs::write(dir.path().join(name), bytes).expect("it can be written");
        for command in ["run", "build"] {
            let said = plugin(dir.path(), &[command, name], "");
            assert_eq!((said.status, said.out.as_str()), (2, ""), "{command} {name}: {}", said.err);
            assert!(said.err.contains(why), "{command} {name}: {}", said.err);
            assert!(said.err.len() < 10_000, "{command} {name}: {} bytes", said.err.len());
        }
    }
    for path in [".", "missing.e", "/dev/zero"] {
        let said = plugin(dir.path(), &["run", path], "");
        assert_eq!((said.status, said.out.as_str()), (2, ""), "{path}: {}", said.err);
        assert!(said.err.contains(path), "{path}: {}", said.err);
    }
}

#[test]
fn an_interrupt_ends_a_plugin_that_does_not_end() {
    let dir = written("long handle(char *in, long n, char *out, long room) { for (;;) out[0]++; }");
    for target in ["isolated", "native"] {
        let mut child = std::process::Command::new(test_support::dewar())
            .args(["plugin", "run", "p.e", "--no-cache", "--time-ms", "100000", "--target", target])
            .current_dir(&dir)
            .stdin(Stdio::null())
            .spawn()
            .expect("it starts");
        // It is in the plugin once it has taken some processor time.
        let stat = format!("/proc/{}/stat", child.id());
        let ticks = || {
            let stat = fs::read_to_string(&stat).expect("it runs");
            let behind = stat.rsplit(')').next().and_then(|fields| fields.split(' ').nth(12));
            behind.and_then(|ticks| ticks.parse::<u64>().ok()).expect("a number")
        };
        while ticks() < 30 {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        let interrupted =
            std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        assert!(interrupted.expect("kill starts").success());
        let status = child.wait().expect("it ends");
        assert_eq!(status.signal(), Some(2), "{target}: {status}");
    }
}

#[test]
fn a_reader_that_has_gone_away_is_no_error() {
    let dir = written(ECHO);
    for args in ["run p.e", "build p.e", "build p.e --json", "list", "list --json", "disasm p.e"] {
        let command =
            format!("yes | head -c 300000 | $0 plugin {args} | true; exit ${{PIPESTATUS[2]}}");
        let said = std::process::Command::new("bash")
            .args(["-c", &command, &test_support::dewar().display().to_string()])
            .current_dir(&dir)
            .env("XDG_CACHE_HOME", dir.path().join("cache"))
            .output()
            .expect("bash starts");
        assert_eq!(
            said.status.code(),
            Some(0),
            "{args}: {}",
            String::from_utf8_lossy(&said.stderr)
        );
        assert!(said.stderr.is_empty(), "{args}: {}", String::from_utf8_lossy(&said.stderr));
    }
}

#[test]
fn what_stands_in_a_module_as_text_steers_no_terminal() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("p.wat"), "(module \u{1b}]0;x\u{7}\u{1b}[2J (foo))")
        .expect("written");
    for words in
        [&["run", "p.wat"][..], &["build", "p.wat"], &["disasm", "p.wat"], &["test", "p.wat"]]
    {
        let said = plugin(dir.path(), words, "x");
        assert_ne!(said.status, 0, "{words:?}");
        let text = said.out + &said.err;
        assert!(text.contains("u001b"), "{words:?}: {text:?}");
        assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{words:?}: {text:?}");
    }
}
