//! Runs that a daemon decides for, as the user of the case has them.

use crate::{
    Case, cases,
    dewar::Call,
    process::{Ran, run, until},
    stage::{Stage, bash},
    tree::{Tree, tree},
};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    fs::File,
    path::{Path, PathBuf},
    process::{Child, Stdio},
    thread,
    time::{Duration, Instant},
};

/// The cases of this part.
pub(crate) const CASES: &[&[Case]] = &[cases![
    the_sample_application_is_built_alike_natively_and_with_and_without_a_daemon,
    a_run_that_is_stopped_is_frozen_and_killed_and_another_is_not_held_up,
    what_the_kernel_would_not_follow_changes_nothing,
]];

/// Where a [`Daemon`] writes what it has to say.
const SAID: &str = "daemon.said";

/// A daemon of the stage's user. Killed when dropped.
pub(crate) struct Daemon(Child);

impl Daemon {
    /// Starts one, and waits until it listens.
    pub(crate) fn start(stage: &Stage, options: &[&str]) -> Self {
        let said = File::create(stage.home().join(SAID)).expect("a file");
        let words: Vec<&str> = ["daemon"].iter().chain(options).copied().collect();
        let mut command = stage.control(&words);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said);
        let daemon = Self(command.spawn().expect("start a daemon"));
        let listens =
            || run(stage.control(&["daemon", "--runs"]), b"").status.success().then_some(());
        until(listens).expect("the daemon listens");
        daemon
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What the workspace holds after the sample application was built there, and what was said.
fn built(stage: &Stage, daemon: Option<&str>) -> (Ran, Tree) {
    let work = stage.work();
    stage.prepare("find . -mindepth 1 -delete");
    bench::sample::write(&work).expect("the sample application");
    for file in std::fs::read_dir(&work).expect("files") {
        stage.give(&file.expect("a file").path());
    }
    let script = bash("make -j2 2>&1 | sort && ./sample");
    let words = match daemon {
        None => script,
        Some(option) => {
            let call = Call { daemon: false, ..stage.call() };
            let mut words = stage.under_dewar(call, &script);
            words.insert(2, option.into());
            words
        }
    };
    let ran = run(stage.command(&words), b"");
    (ran, tree(&work, &|_| false))
}

fn the_sample_application_is_built_alike_natively_and_with_and_without_a_daemon(stage: &Stage) {
    let _daemon = (!stage.has_daemon()).then(|| Daemon::start(stage, &[]));
    let (native, wanted) = built(stage, None);
    assert!(native.out().ends_with(bench::sample::OUTPUT), "{}{}", native.out(), native.err());
    for option in ["--no-daemon", "--daemon"] {
        let (ran, found) = built(stage, Some(option));
        assert_eq!(
            (ran.out(), ran.err(), ran.code()),
            (native.out(), String::new(), 0),
            "{option}"
        );
        assert!(found == wanted, "{option}: the workspace differs");
        assert!(stage.record().denials.is_empty(), "{option}");
    }
}

/// A run in the background that notes again and again whether it may read a file. Killed when
/// dropped.
struct Loop {
    child: Child,
    log: PathBuf,
}

impl Loop {
    fn start(stage: &Stage, name: &str, cil: &Path) -> Self {
        let script = format!(
            "while [ ! -e stop ]; do if cat gated >/dev/null 2>&1; then echo yes; else echo no; fi; sleep 0.02; done > log.{name}"
        );
        let offline = stage.without_loopback();
        let call = Call { daemon: true, profile: Some(&offline), ..stage.call() };
        let mut words = stage.under_dewar(call, &bash(&script));
        let options = ["--name", name, "--cil", cil.to_str().expect("UTF-8")];
        words.splice(2..2, options.map(Into::into));
        let mut command = stage.command(&words);
        let child = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().expect("a run");
        let this = Self { child, log: stage.work().join(format!("log.{name}")) };
        this.says("yes");
        this
    }

    fn lines(&self) -> Vec<String> {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Waits until it has noted that.
    fn says(&self, what: &str) {
        let last = || self.lines().last().is_some_and(|line| line == what).then_some(());
        until(last).unwrap_or_else(|| panic!("it never says {what}"));
    }

    /// Every process that the monitor has started, and those have.
    fn descendants(&self) -> Vec<u32> {
        let (mut found, mut todo) = (Vec::new(), vec![self.child.id()]);
        while let Some(pid) = todo.pop() {
            let path = format!("/proc/{pid}/task/{pid}/children");
            let children = std::fs::read_to_string(path).unwrap_or_default();
            let children = children.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok());
            for child in children {
                found.push(child);
                todo.push(child);
            }
        }
        found
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("signalled");
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Booleans that would give what nobody decides, and take what the kernel grants by itself.
fn what_the_kernel_would_not_follow_changes_nothing(stage: &Stage) {
    let _daemon = (!stage.has_daemon()).then(|| Daemon::start(stage, &[]));
    let gated = stage.work().join("gated");
    stage.file(&gated, "open sesame\n");
    let cil = stage.home().join("settled.cil");
    stage.file(
        &cil,
        "(boolean udp false) (booleanif udp (true (allow main_t self (udp_socket (create)))))
        (boolean tcp false) (booleanif tcp (true (allow main_t self (tcp_socket (create listen)))))
        (boolean owner true) (booleanif owner (true (allow main_t self (capability (chown)))))",
    );
    let mut running = Loop::start(stage, "settled", &cil);
    for (word, part) in [
        ("udp=on", "cannot be given while it runs: datagram sockets"),
        ("tcp=on", "cannot be given while it runs: TCP sockets"),
        ("owner=off", "cannot be taken back while it runs: capability chown"),
    ] {
        let ran = run(stage.control(&["policy", "set", "last", word]), b"");
        assert_eq!(ran.code(), 1, "{word}: {}{}", ran.out(), ran.err());
        assert!(ran.err().contains(part), "{word}: {}", ran.err());
    }
    let runs = run(stage.control(&["daemon", "--runs"]), b"").out();
    for boolean in ["udp=off", "tcp=off", "owner=on"] {
        assert!(runs.contains(boolean), "{boolean}: {runs}");
    }
    stage.file(&stage.work().join("stop"), "");
    assert!(running.child.wait().expect("ended").success());
}

/// The letter of proc_pid_stat(5); `None` for a process that is gone.
fn state(pid: u32) -> Option<char> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    text.rsplit_once(") ")?.1.chars().next()
}

fn a_run_that_is_stopped_is_frozen_and_killed_and_another_is_not_held_up(stage: &Stage) {
    // This case has a daemon of its own, with less patience.
    stage.stop_daemon();
    let patience = ["--report-after", "0.2", "--freeze-after", "0.8", "--kill-after", "4"];
    let _daemon = Daemon::start(stage, &patience);
    let gated = stage.work().join("gated");
    stage.file(&gated, "open sesame\n");
    let cil = stage.home().join("gate.cil");
    let path = gated.display().to_string().replace('.', "\\.");
    stage.file(
        &cil,
        &format!(
            "(boolean gate true) (type gated_t) (roletype object_r gated_t)
            (allow main_t gated_t (file (getattr)))
            (booleanif gate (true (allow main_t gated_t (file (read open)))))
            (filecon \"{path}\" any (dewar_u object_r gated_t ((s0) (s0))))"
        ),
    );
    let mut stopped = Loop::start(stage, "stopped", &cil);
    let mut other = Loop::start(stage, "other", &cil);
    let sandbox = stopped.descendants();
    assert!(sandbox.len() >= 2, "init and a shell: {sandbox:?}");
    stopped.signal(Signal::STOP);
    let begin = Instant::now();
    thread::scope(|scope| {
        let change =
            scope.spawn(|| run(stage.control(&["policy", "set", "--all", "gate=off"]), b""));
        other.says("no");
        assert!(!change.is_finished(), "the other run was held up until this one was killed");
        let before = other.lines().len();
        let goes_on = until(|| (other.lines().len() > before + 1).then_some(()));
        assert!(goes_on.is_some(), "the other run stands still");
        let mut states = Vec::new();
        let frozen = until(|| {
            let now = |pid| Some((pid, state(pid)?));
            let found: Vec<_> = stopped.descendants().into_iter().filter_map(now).collect();
            // Once they are killed, there is nothing to show.
            states = if found.is_empty() { return None } else { found };
            // One that had just ended stays dead: nobody runs who could bury it. One that waits for
            // the monitor's answer to a call goes on waiting, and stops before it is back. One
            // whose exec the monitor was looking at stands in its tracer's stop.
            let all = states.iter().all(|(_, state)| matches!(state, 'T' | 't' | 'Z' | 'D'));
            (all && states.iter().any(|(_, state)| *state == 'T')).then_some(())
        });
        assert!(frozen.is_some(), "the sandbox is not frozen: {states:?}");
        assert!(!change.is_finished(), "the change was complete before the run was killed");
        let changed = change.join().expect("a change");
        let (out, took) = (changed.out(), begin.elapsed());
        assert!(took > Duration::from_millis(3900), "it was killed after {took:?}");
        assert!(out.contains(" killed after ") && out.contains(" applied after "), "{out}");
        assert_eq!(changed.code(), 0, "{out}{}", changed.err());
    });
    use std::os::unix::process::ExitStatusExt as _;
    assert_eq!(stopped.child.wait().expect("ended").signal(), Some(9));
    let gone = |pid: &u32| !Path::new(&format!("/proc/{pid}")).exists();
    until(|| sandbox.iter().all(gone).then_some(())).expect("its sandbox ends with it");
    let said = std::fs::read_to_string(stage.home().join(SAID)).expect("what the daemon said");
    for word in ["reported", "frozen", "killed"] {
        assert!(said.contains(word), "{word}: {said}");
    }
    stage.file(&stage.work().join("stop"), "");
    assert!(other.child.wait().expect("ended").success());
    assert!(!other.lines().iter().skip_while(|line| *line != "no").any(|line| line == "yes"));
}
