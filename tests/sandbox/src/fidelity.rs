//! Status, streams, environment and working directory are the command's own.

use crate::{
    Case, cases,
    process::run,
    stage::{Stage, bash},
};
use std::{os::unix::process::ExitStatusExt as _, process::Stdio};

/// The cases of this part.
pub(crate) const CASES: &[&[Case]] = &[cases![
    exit_statuses_pass,
    two_runs_share_a_workspace,
    a_full_disk_loses_no_status,
    old_records_are_thrown_away,
    a_state_that_cannot_be_written_stops_no_run,
    a_workspace_that_holds_the_home_is_warned_of,
    a_workspace_that_nobody_means_is_refused,
    a_limit_on_the_length_of_files_does_not_end_dewar,
    a_time_limit_says_that_it_struck,
    deaths_by_signal_pass,
    commands_that_cannot_run_answer_126_and_127,
    a_command_that_is_denied_is_told_by_dewar,
    streams_pass_bytes_unchanged,
    closed_streams_are_no_hindrance,
    a_message_that_nobody_reads_changes_no_status,
    the_environment_passes_but_for_secrets,
    the_working_directory_is_kept,
    words_after_the_dashes_are_the_commands,
    every_decision_is_written_on_demand,
    fast_mode_gives_the_same_results,
    odd_arguments_are_answered_as_by_the_kernel,
]];

fn words(words: &[&str]) -> Vec<std::ffi::OsString> {
    words.iter().map(Into::into).collect()
}

fn exit_statuses_pass(stage: &Stage) {
    for status in (0..=255).step_by(if stage.variant.is_root() { 1 } else { 15 }) {
        let ran = run(stage.dewar(stage.call(), &bash(&format!("exit {status}"))), b"");
        assert_eq!(ran.status.code(), Some(status), "{}", ran.err());
        assert_eq!(stage.record().status, status);
    }
}

fn two_runs_share_a_workspace(stage: &Stage) {
    let script = |name| {
        format!(
            "for i in $(seq 100); do echo {name}$i >> log; mkdir -p d/$i; echo $i > {name}; mv {name} d/$i/{name}; done; touch {name}-done; for i in $(seq 600); do [ -e a-done -a -e b-done ] && break; sleep 0.1; done; ls d/*/{name} | wc -l"
        )
    };
    let runs = ["a", "b"].map(|name| stage.dewar(stage.call(), &bash(&script(name))));
    let runs = runs.map(|command| std::thread::spawn(|| run(command, b"")));
    for ran in runs.map(|run| run.join().expect("a run")) {
        assert_eq!((ran.out().as_str(), ran.code()), ("100\n", 0), "{}", ran.err());
    }
    let log = std::fs::read_to_string(stage.work().join("log")).expect("the log");
    assert_eq!(log.lines().count(), 200);
}

/// Also when neither the command's output nor the record of the run nor the audit trail can be
/// written.
fn a_full_disk_loses_no_status(stage: &Stage) {
    let audit = std::path::Path::new("/dev/full");
    // The policy cannot be handed to a daemon in a file of no size.
    let call = crate::dewar::Call { audit: Some(audit), daemon: false, ..stage.call() };
    let limited = stage.dewar(call, &bash("echo x > /dev/full || cat $OUTSIDE/file; exit 3"));
    let mut line: Vec<std::ffi::OsString> =
        // No file of Dewar's, the record neither, can be written any more.
        ["bash", "-c", "trap '' XFSZ; ulimit -f 0; \"$@\"", "bash"].map(Into::into).into();
    line.push(limited.get_program().to_owned());
    line.extend(limited.get_args().map(ToOwned::to_owned));
    let ran = run(stage.command(&line), b"");
    assert_eq!(ran.code(), 3, "{}", ran.err());
    assert!(ran.err().contains("cannot keep the record of this run"), "{}", ran.err());
    let told = "missing from the audit trail, which could not be written: No space left on device";
    assert!(ran.err().contains(told), "{}", ran.err());
}

/// Although the view of most runs leaves out where they lie.
fn old_records_are_thrown_away(stage: &Stage) {
    let runs = stage.home().join("state/dewar/runs");
    stage.prepare("mkdir -p $XDG_STATE_HOME/dewar/runs; cd $XDG_STATE_HOME/dewar/runs; seq -f %020.0f-1.json 250 | xargs touch");
    let ran = run(stage.dewar(stage.call(), &words(&["true"])), b"");
    assert_eq!(ran.code(), 0, "{}", ran.err());
    assert_eq!(std::fs::read_dir(&runs).expect("the records").count(), 200);
    assert!(!runs.join(format!("{:020}-1.json", 51)).exists(), "an old one was kept");
    assert_eq!(stage.record().status, 0);
}

fn a_state_that_cannot_be_written_stops_no_run(stage: &Stage) {
    // The daemon is not found there, either.
    let call = crate::dewar::Call { daemon: false, ..stage.call() };
    let mut command = stage.dewar(call, &bash("cat $OUTSIDE/file; exit 3"));
    command.env("XDG_STATE_HOME", "/proc/none");
    let ran = run(command, b"");
    assert_eq!(ran.code(), 3, "{}", ran.err());
    assert!(ran.err().contains("cannot keep the record of this run"), "{}", ran.err());
    assert!(ran.err().contains("may not"), "the denial is told: {}", ran.err());
}

fn a_workspace_that_holds_the_home_is_warned_of(stage: &Stage) {
    for (directory, warned) in
        [(stage.home(), true), (&stage.home().join(".."), true), (&stage.work(), false)]
    {
        let mut command =
            stage.dewar(stage.call(), &bash("cat $HOME/.ssh/id_ed25519; ls -d $HOME"));
        command.current_dir(directory);
        let ran = run(command, b"");
        let shown = directory.display();
        assert_eq!(ran.err().contains("holds your whole home"), warned, "{shown}: {}", ran.err());
        assert!(
            !ran.out().contains("secret") && ran.code() == 0,
            "{shown}: {} {}",
            ran.out(),
            ran.err()
        );
    }
}

/// Cron starts commands in the root directory; what a run has for itself would be empty.
fn a_workspace_that_nobody_means_is_refused(stage: &Stage) {
    let mut refused = vec!["/"];
    if stage.variant.has_namespaces() {
        refused.extend(["/tmp", "/var/tmp"]);
    }
    for directory in refused {
        let mut command = stage.dewar(stage.call(), &words(&["true"]));
        command.current_dir(directory);
        let ran = run(command, b"");
        assert_eq!(ran.code(), 2, "{directory}: {}", ran.err());
        assert!(ran.err().contains("--workspace"), "{directory}: {}", ran.err());
    }
    let mut words = stage.under_dewar(stage.call(), &words(&["true"]));
    words.splice(2..2, ["--workspace", "/"].map(Into::into));
    let ran = run(stage.command(&words), b"");
    assert_eq!(ran.code(), 0, "{}", ran.err());
}

fn a_limit_on_the_length_of_files_does_not_end_dewar(stage: &Stage) {
    // In the shell's default, a program that writes more is ended by a signal, natively and under
    // Dewar.
    let inner = "trap 'exit 9' XFSZ; head -c 3000 /dev/zero > f; wc -c < f; exit 4";
    let limited = stage.dewar(stage.call(), &bash(inner));
    let mut line = words(&["bash", "-c", "ulimit -f 1; \"$@\"", "bash"]);
    line.push(limited.get_program().to_owned());
    line.extend(limited.get_args().map(ToOwned::to_owned));
    let ran = run(stage.command(&line), b"");
    assert!(
        ran.code() == 4 && ran.out().contains("1024"),
        "{:?}: {}{}",
        ran.status,
        ran.out(),
        ran.err()
    );
}

fn a_time_limit_says_that_it_struck(stage: &Stage) {
    let profile = stage.home().join("limited.toml");
    stage.file(&profile, "extends = \"workspace\"\n[limits]\ntime = \"1s\"\n");
    let call = crate::dewar::Call { profile: profile.to_str(), ..stage.call() };
    let ran = run(stage.dewar(call, &words(&["sleep", "30"])), b"");
    assert_eq!(ran.code(), 124, "{}", ran.err());
    assert!(ran.err().contains("time limit of 1s"), "{}", ran.err());
}

fn deaths_by_signal_pass(stage: &Stage) {
    for (name, number) in
        [("TERM", 15), ("KILL", 9), ("SEGV", 11), ("INT", 2), ("PIPE", 13), ("HUP", 1)]
    {
        let ran = run(
            stage.dewar(stage.call(), &bash(&format!("ulimit -c 0; kill -{name} $$; sleep 5"))),
            b"",
        );
        assert_eq!(ran.status.signal(), Some(number), "{name}: {:?} {}", ran.status, ran.err());
    }
}

fn commands_that_cannot_run_answer_126_and_127(stage: &Stage) {
    stage.prepare("echo text > text; mkdir directory");
    for (command, status) in [
        ("no-such-command", 127),
        ("./none", 127),
        ("./text", 126),
        ("./directory", 126),
        ("text/x", 126),
    ] {
        let ran = run(stage.dewar(stage.call(), &words(&[command])), b"");
        assert_eq!(ran.status.code(), Some(status), "{command}: {}", ran.err());
        assert!(ran.err().contains(command), "{command} is not named: {}", ran.err());
    }
}

fn a_command_that_is_denied_is_told_by_dewar(stage: &Stage) {
    stage.prepare("cp /bin/true $OUTSIDE/program");
    let program = stage.outside().join("program");
    let ran = run(stage.dewar(stage.call(), &[program.into()]), b"");
    assert_eq!(ran.code(), 126, "{}", ran.err());
    assert!(ran.err().contains("denied once: dewar may not execute"), "{}", ran.err());
}

fn streams_pass_bytes_unchanged(stage: &Stage) {
    let bytes: Vec<u8> = (0..300_000_u32).map(|n| ((n * 7919) >> 5) as u8).collect();
    let ran = run(stage.dewar(stage.call(), &bash("tee copy; cat copy >&2")), &bytes);
    assert!(ran.out == bytes && ran.err == bytes, "{:?}", ran.status);
}

fn closed_streams_are_no_hindrance(stage: &Stage) {
    for redirection in ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"] {
        let script = "cat > copy; echo out; echo err >&2; touch done";
        stage.prepare("rm -f done");
        let inner = stage.dewar(stage.call(), &bash(script));
        let mut line =
            vec!["bash".into(), "-c".into(), format!("\"$@\" {redirection}").into(), "bash".into()];
        line.push(inner.get_program().to_owned());
        line.extend(inner.get_args().map(ToOwned::to_owned));
        let ran = run(stage.command(&line), b"");
        assert!(
            stage.work().join("done").exists(),
            "{redirection}: {:?} {}",
            ran.status,
            ran.err()
        );
    }
}

fn a_message_that_nobody_reads_changes_no_status(stage: &Stage) {
    for redirection in ["2> /dev/full", "2> >(:)", "2>&-"] {
        let script = "sleep 0.2; exec 2> /dev/null; cat $OUTSIDE/file; exit 3";
        let inner = stage.dewar(stage.call(), &bash(script));
        let mut line = words(&["bash", "-c", &format!("\"$@\" {redirection}"), "bash"]);
        line.push(inner.get_program().to_owned());
        line.extend(inner.get_args().map(ToOwned::to_owned));
        let ran = run(stage.command(&line), b"");
        assert_eq!(ran.code(), 3, "{redirection}: {}", ran.err());
    }
}

fn the_environment_passes_but_for_secrets(stage: &Stage) {
    let mut command = stage.dewar(stage.call(), &words(&["env", "-0"]));
    command
        .env("PLAIN", "kept\nwith lines")
        .env("AWS_SECRET_ACCESS_KEY", "s")
        .env("GITHUB_TOKEN", "s")
        .env("npm_token", "s")
        .env("GIT_CONFIG_COUNT", "0")
        .env("PROXY", "http://me:hunter2@proxy.example.org:3128")
        .env("PLAIN_NAME", format!("ghp_{}", "aB3".repeat(12)))
        .env("EMPTY", "");
    let out = run(command, b"").out();
    let names: Vec<&str> =
        out.split('\0').filter_map(|entry| Some(entry.split_once('=')?.0)).collect();
    assert!(out.contains("PLAIN=kept\nwith lines\0") && out.contains("EMPTY=\0"), "{out}");
    assert!(
        ["HOME", "PATH", "LANG", "TMPDIR"].iter().all(|name| names.contains(name)),
        "{names:?}"
    );
    let secrets = [
        "AWS_SECRET_ACCESS_KEY",
        "GITHUB_TOKEN",
        "npm_token",
        "GIT_CONFIG_COUNT",
        "PROXY",
        "PLAIN_NAME",
    ];
    assert!(!secrets.iter().any(|name| names.contains(name)), "{names:?}");
}

fn the_working_directory_is_kept(stage: &Stage) {
    stage.prepare("mkdir -p 'a b/c'");
    let mut command = stage.dewar(stage.call(), &words(&["pwd", "-P"]));
    command.current_dir(stage.work().join("a b/c"));
    let ran = run(command, b"");
    assert_eq!(ran.out().trim_end(), stage.work().join("a b/c").to_string_lossy());
}

fn words_after_the_dashes_are_the_commands(stage: &Stage) {
    let ran = run(
        stage.dewar(
            stage.call(),
            &words(&["echo", "--stats", "-p", "x", "--", "", "a b", "--help"]),
        ),
        b"",
    );
    assert_eq!(ran.out(), "--stats -p x --  a b --help\n");
    let mut quiet = stage.dewar(stage.call(), &words(&["true"]));
    let status = quiet.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    assert_eq!(status.expect("start").code(), Some(0));
}

fn every_decision_is_written_on_demand(stage: &Stage) {
    let audit = stage.home().join("audit.jsonl");
    let call = crate::dewar::Call { audit: Some(&audit), ..stage.call() };
    let ran = run(stage.dewar(call, &bash("cat $OUTSIDE/file 2> err; echo x > new")), b"");
    let text = std::fs::read_to_string(&audit).expect("the audit trail");
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect();
    let granted = |object: &str, granted: bool| {
        lines.iter().any(|line| {
            line["object"].as_str().is_some_and(|it| it.ends_with(object))
                && line["granted"] == granted
        })
    };
    assert!(granted("/work/new", true) && granted("/file", false), "{}{text}", ran.err());
}

fn fast_mode_gives_the_same_results(stage: &Stage) {
    let script = "seq 100 | while read -r n; do echo $n > f$n; done; cat f* | sort -n | tail -1; ls | wc -l; cat $OUTSIDE/file; cat $HOME/.ssh/id_ed25519; echo $?";
    let call = crate::dewar::Call { fast: true, ..stage.call() };
    let all = run(stage.dewar(stage.call(), &bash(script)), b"");
    let fast = run(stage.dewar(call, &bash(script)), b"");
    assert_eq!((all.out(), all.code()), (fast.out(), fast.code()), "{}", fast.err());
    assert!(!fast.out().contains("secret") && !fast.out().contains("outside"), "{}", fast.out());
}

/// Found by random programs (`tests/compatibility`).
fn odd_arguments_are_answered_as_by_the_kernel(stage: &Stage) {
    let script = r#"python3 - <<'END'
import array, ctypes, errno, os, signal, socket, struct, threading
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *arguments):
    ctypes.set_errno(0)
    arguments = [ctypes.c_long(it) if isinstance(it, int) else it for it in arguments]
    answer = getattr(libc, name)(*arguments)
    print(name, answer, errno.errorcode.get(ctypes.get_errno(), ""), flush=True)
def of_thread():
    for name in (b"/proc/thread-self/cwd/made", b"/proc/thread-self/cwd/no/made", b"/proc/thread-self/task/made"):
        call("mkdir", name, 0o700)
    fd = os.open("file", os.O_RDWR | os.O_CREAT)
    call("chmod", b"/proc/thread-self/fd/%d" % fd, 0o640)
    call("chmod", b"/proc/self/task/%d/fd/%d" % (threading.get_native_id(), fd), 0o600)
    call("chmod", b"/proc/self/task/1000000/fd/%d" % fd, 0o600)
    call("rename", b"/proc/self/fd/%d" % fd, b"/proc/thread-self/fd/%d" % fd)
    call("rename", b"/proc/self/fd/%d" % fd, b"/proc/self/fd/%d" % fd)
    call("rename", b"/proc/self/fd/%d" % fd, b"/proc/self/fd")
    call("rename", b"/proc/self/fd/%d" % fd, b"/proc/self/fd/")
    call("renameat2", -100, b"/proc/self/fd/%d" % fd, -100, b"/proc/self/fd", 2)
    os.close(fd); os.rmdir("made")
of_thread()
thread = threading.Thread(target=of_thread); thread.start(); thread.join()
def of_parent(parent):
    os.chdir("/proc/%d/fd" % parent)
    for name in (b"b", b".", b"/proc/self/comm"): call("rename", b"c", name)
    call("renameat", home, b"file", -100, b"a")
    call("renameat", -100, b"0", home, b"a")
    call("mkdir", b"a", 0o700)
    call("rmdir", b"../a")
    call("link", b"a", b"b")
    call("symlink", b"a", b"../b")
home, parent = os.open(".", os.O_RDONLY), os.getpid()
if os.fork() == 0:
    of_parent(parent); os._exit(0)
os.wait()
child = os.fork()
if child == 0: signal.pause()
ended = os.open("/proc/%d/fd" % child, os.O_RDONLY)
os.kill(child, signal.SIGKILL); os.wait()
call("fchownat", ended, b"s", 1, 0, 0)
call("fchmodat", ended, b"s", 0o700, 0)
os.chdir("/proc/self/fd")
call("syscall", 437, -100, b"d/../a", struct.pack("QQQ", 0, 0, 0x12), 24)
os.fchdir(home)
omit = struct.pack("qqqq", 1, (1 << 30) - 2, 1, (1 << 30) - 2)
odd = struct.pack("qqqq", 1, -1, 1, 5)
call("syscall", 280, -100, b"nothing", omit, 0)
call("syscall", 280, -100, None, odd, 0x800)
call("syscall", 280, -100, None, odd, 0)
call("syscall", 280, -100, b"/dev/null", odd, 0)
call("syscall", 307, -1, None, 0, 0)
call("truncate", b"/proc/self/fd/%d" % libc.epoll_create(1), 1)
call("inotify_add_watch", os.open(".", os.O_PATH), b".", 0xfff)
inet = struct.pack("HH4s8x", socket.AF_INET, 0, bytes([127, 0, 0, 1]))
local = struct.pack("H4s", socket.AF_UNIX, b"a/s\0")
for family in (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6):
    for address in (inet, local):
        with socket.socket(family) as it:
            if (family, address) not in ((socket.AF_INET, inet), (socket.AF_UNIX, local)):
                call("bind", it.fileno(), address, len(address))
                call("connect", it.fileno(), address, len(address))
                call("sendto", it.fileno(), b"x", 1, socket.MSG_NOSIGNAL, address, len(address))
with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW) as it:
    try: it.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0]))])
    except OSError as error: print(error)
for flags in (4, 5, 6):
    for names in ((b"nothing", b"other"), (b"file", b"no/other"), (b"file", b"."), (b".", b"file")):
        call("renameat2", -100, names[0], -100, names[1], flags)
with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as it:
    it.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0]))])
    call("sendto", it.fileno(), b"y", 1, 0, local, len(local))
    call("connect", it.fileno(), local, len(local))
    call("connect", server.fileno(), local, len(local))
    print(server.accept()[0].recv(9))
END"#;
    let profile = stage.profile(
        "extends = 'workspace'\n[network]\nconnect = ['127.0.0.1:*', '127.0.0.1:*/udp']\nbind = ['127.0.0.1:0', '[::1]:0']\n",
    );
    stage.same(script).profile(&profile).check();
}
