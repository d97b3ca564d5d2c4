//! Exit status, signals, streams, descriptors: as if the command ran alone.

use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::stage::{Stage, end_of, run, until};
use crate::user::program;
use crate::{Case, cases};

pub(crate) const CASES: &[Case] = cases![
    the_exit_status_is_the_commands,
    a_command_killed_by_a_signal_kills_dewar_by_it,
    a_missing_command_is_127_and_a_refused_one_126,
    a_script_without_an_interpreter_line_runs,
    the_path_of_the_new_environment_is_searched,
    a_closed_pipe_kills_the_writer,
    sigpipe_stays_ignored_if_it_was,
    ignored_and_blocked_signals_pass_through,
    ignored_ends_of_children_do_no_harm,
    only_inherited_descriptors_pass_through,
    a_pipe_ends_when_the_command_closes_it,
    a_signal_sent_to_dewar_reaches_the_command,
    the_environment_is_exactly_what_is_given,
    a_second_thread_is_refused,
];

fn with_and_without_namespaces() -> [Value; 3] {
    [json!({}), json!({"namespaces": "none"}), json!({"pid": false})]
}

fn the_exit_status_is_the_commands(stage: &Stage) {
    for plan in with_and_without_namespaces() {
        for status in [0, 1, 77, 255] {
            let ran = stage.run(&plan, &format!("exit {status}"));
            assert_eq!(ran.status.code(), Some(status), "{plan} {ran:?}");
            assert_eq!(ran.err, "", "{plan}");
        }
    }
}

fn a_command_killed_by_a_signal_kills_dewar_by_it(stage: &Stage) {
    for plan in with_and_without_namespaces() {
        for signal in [libc::SIGTERM, libc::SIGKILL, libc::SIGSEGV, libc::SIGINT] {
            let ran = stage.run(&plan, &format!("kill -{signal} $$"));
            assert_eq!(ran.status.signal(), Some(signal), "{plan} {ran:?}");
            assert!(!ran.status.core_dumped(), "a second core dump");
        }
    }
}

fn a_missing_command_is_127_and_a_refused_one_126(stage: &Stage) {
    let text = stage.file("text", "not a program");
    let table = [
        ("no-such-command", 127),
        ("/no/such/command", 127),
        ("", 127),
        ("/etc", 126),
        (text.to_str().expect("UTF-8"), 126),
    ];
    for (command, status) in table {
        let ran = run(stage.dewar(&json!({}), &[command]));
        assert_eq!(ran.status.code(), Some(status), "{command} {ran:?}");
        assert!(ran.err.contains("cannot execute"), "{ran:?}");
    }
}

fn a_script_without_an_interpreter_line_runs(stage: &Stage) {
    use std::os::unix::fs::PermissionsExt;
    let script = stage.file("script", "echo \"got $1\"\n");
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).expect("chmod");
    let ran = run(stage.dewar(&json!({}), &[script.to_str().expect("UTF-8"), "this"]));
    assert_eq!(ran.out, "got this\n", "{ran:?}");
}

fn the_path_of_the_new_environment_is_searched(stage: &Stage) {
    let mut command = stage.dewar(&json!({}), &["true"]);
    command.env("PATH", stage.path());
    assert_eq!(run(command).status.code(), Some(127));
}

fn a_closed_pipe_kills_the_writer(stage: &Stage) {
    for plan in with_and_without_namespaces() {
        let mut command = stage.dewar(&plan, &["yes"]);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("start");
        let mut stdout = child.stdout.take().expect("stdout");
        stdout.read_exact(&mut [0; 4]).expect("read");
        drop(stdout);
        assert_eq!(end_of(&mut child).signal(), Some(libc::SIGPIPE), "{plan}");
    }
}

fn sigpipe_stays_ignored_if_it_was(stage: &Stage) {
    let plan = json!({}).to_string();
    let script = "trap '' PIPE; exec \"$0\" --as-dewar \"$1\" grep SigIgn /proc/self/status";
    let mut command = stage.command("/bin/sh".as_ref());
    command.args(["-c", script]).arg(program()).arg(plan);
    let ran = run(command);
    assert!(ran.out.trim().ends_with("1000"), "{ran:?}");
    let ran = stage.run(&json!({}), "grep SigIgn /proc/self/status");
    assert!(ran.out.trim().ends_with("0000"), "{ran:?}");
}

fn ignored_and_blocked_signals_pass_through(stage: &Stage) {
    let plan = json!({}).to_string();
    let script =
        "trap '' HUP INT; exec \"$0\" --as-dewar \"$1\" grep -E 'Sig(Ign|Blk)' /proc/self/status";
    let mut command = stage.command("/bin/sh".as_ref());
    command.args(["-c", script]).arg(program()).arg(plan);
    let ran = run(command);
    let ignored = ran.out.lines().find_map(|line| line.strip_prefix("SigIgn:\t"));
    let ignored = u64::from_str_radix(ignored.expect("a mask"), 16).expect("a number");
    // Without the real-time signals, which whoever runs the tests may ignore.
    assert_eq!(ignored & 0x7fff_ffff, 3, "{ran:?}");
    assert!(ran.out.contains("SigBlk:\t0000000000000000\n"), "{ran:?}");
}

fn ignored_ends_of_children_do_no_harm(stage: &Stage) {
    for plan in with_and_without_namespaces() {
        let ignoring = |words: &[&str]| {
            let mut command = stage.command("/usr/bin/env".as_ref());
            command.arg("--ignore-signal=CHLD").arg(program());
            command.arg("--as-dewar").arg(plan.to_string()).args(words);
            run(command)
        };
        assert_eq!(ignoring(&["sh", "-c", "exit 7"]).status.code(), Some(7), "{plan}");
        let ran = ignoring(&["grep", "SigIgn", "/proc/self/status"]);
        // Bit 16 is SIGCHLD.
        assert!(ran.out.trim().ends_with("10000"), "{plan} {ran:?}");
    }
}

fn only_inherited_descriptors_pass_through(stage: &Stage) {
    stage.file("open", "from outside");
    for plan in with_and_without_namespaces() {
        let script = "exec 7<open 3>&- 4>&- 5>&-; exec \"$0\" --as-dewar \"$1\" sh -c 'cat <&7; cd /proc/$$/fd; echo; echo *'";
        let mut command = stage.command("/bin/sh".as_ref());
        command.args(["-c", script]).arg(program()).arg(plan.to_string());
        let ran = run(command);
        let (content, listed) = ran.out.split_once('\n').expect("two lines");
        assert_eq!(content, "from outside", "{ran:?}");
        let numbers: Vec<&str> = listed.split_whitespace().collect();
        // The shell's own descriptor on the directory comes and goes.
        assert!(["0", "1", "2", "7"].iter().all(|fd| numbers.contains(fd)), "{ran:?}");
        let own = std::fs::read_dir("/proc/self/fd").expect("descriptors").flatten();
        let inherited: Vec<String> =
            own.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        let strange = numbers.iter().filter(|fd| !["0", "1", "2", "3", "7"].contains(fd));
        for fd in strange {
            assert!(inherited.iter().any(|known| known == fd), "descriptor {fd}: {ran:?}");
        }
    }
}

fn a_pipe_ends_when_the_command_closes_it(stage: &Stage) {
    for plan in with_and_without_namespaces() {
        let script = "echo said; exec >&- 2>&-; sleep 60";
        let mut command = stage.dewar(&plan, &["sh", "-c", script]);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("start");
        let mut text = String::new();
        child.stdout.take().expect("stdout").read_to_string(&mut text).expect("read");
        assert_eq!(text, "said\n");
        assert!(child.try_wait().expect("wait").is_none(), "{plan}: ended too early");
        child.kill().expect("kill");
        end_of(&mut child);
    }
}

fn a_signal_sent_to_dewar_reaches_the_command(stage: &Stage) {
    for plan in with_and_without_namespaces() {
        for signal in [libc::SIGTERM, libc::SIGHUP, libc::SIGUSR1, libc::SIGINT] {
            let script = format!(
                "trap 'echo got; exit 9' {signal}; echo ready; while :; do sleep 0.05; done"
            );
            let mut command = stage.dewar(&plan, &["sh", "-c", &script]);
            let mut child =
                command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("start");
            let mut stdout = child.stdout.take().expect("stdout");
            let mut ready = [0; 6];
            stdout.read_exact(&mut ready).expect("read");
            let dewar = rustix::process::Pid::from_child(&child);
            let signal = rustix::process::Signal::from_named_raw(signal).expect("a signal");
            rustix::process::kill_process(dewar, signal).expect("kill");
            assert_eq!(end_of(&mut child).code(), Some(9), "{plan} {signal:?}");
            let mut text = String::new();
            until(|| stdout.read_to_string(&mut text).ok());
            assert_eq!(text, "got\n");
        }
    }
}

fn the_environment_is_exactly_what_is_given(stage: &Stage) {
    let mut command = stage.dewar(&json!({}), &["env"]);
    command.env_clear().env("PATH", "/usr/bin:/bin").env("ODD", "a=b c");
    assert_eq!(run(command).out, "ODD=a=b c\nPATH=/usr/bin:/bin\n");
}

fn a_second_thread_is_refused(stage: &Stage) {
    let ran = stage.run(&json!({"threads": true, "namespaces": "none"}), "echo started");
    assert_eq!(ran.status.code(), Some(125), "{ran:?}");
    assert!(ran.err.contains("single thread"), "{ran:?}");
    assert_eq!(ran.out, "");
}
