//! `dewar daemon`, the runs that use it, its journal, and changes of their policies.

use std::{
    fs,
    os::{fd::OwnedFd, unix::fs::PermissionsExt as _},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

/// A boolean that lets the command read a file of its workspace.
pub(super) const GATE: &str = "(boolean gate true) (type gated_t) (roletype object_r gated_t)
    (allow main_t gated_t (file (getattr)))
    (booleanif gate (true (allow main_t gated_t (file (read open)))))";

/// A directory with a home, a workspace and room for the daemon.
pub(super) struct Stage {
    directory: tempfile::TempDir,
    daemon: Option<Child>,
}

impl Stage {
    pub(super) fn new() -> Self {
        // Not below `/tmp`, which a sandbox has for itself.
        let base = if Path::new("/home").is_dir() && is_root() {
            "/home"
        } else {
            env!("CARGO_TARGET_TMPDIR")
        };
        let directory = tempfile::tempdir_in(base).expect("a directory");
        for name in ["home/.ssh", "work", "run", "state"] {
            fs::create_dir_all(directory.path().join(name)).expect("created");
        }
        fs::write(directory.path().join("home/.ssh/id"), "secret").expect("written");
        let private = fs::Permissions::from_mode(0o700);
        fs::set_permissions(directory.path().join("run"), private).expect("set");
        Self { directory, daemon: None }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(super) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(test_support::dewar());
        command.args(words).current_dir(self.path("work"));
        command.env("HOME", self.path("home")).env("XDG_RUNTIME_DIR", self.path("run"));
        command.env("XDG_STATE_HOME", self.path("state")).env("NO_COLOR", "1");
        command
    }

    pub(super) fn say(&self, words: &[&str]) -> Said {
        self.command(words).output().expect("started").into()
    }

    /// Starts the daemon, and waits until it listens.
    pub(super) fn start(&mut self) {
        let command = &mut self.command(&["daemon"]);
        self.daemon = Some(command.stderr(Stdio::null()).spawn().expect("started"));
        wait_until("the daemon listens", || self.say(&["daemon", "--runs"]).status == Some(0));
    }

    fn kill(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            // One that has ended already is as good.
            let _ = (daemon.kill(), daemon.wait());
        }
    }

    fn journal(&self, words: &[&str]) -> Vec<serde_json::Value> {
        let words: Vec<_> = ["audit", "--json"].iter().chain(words).copied().collect();
        let said = self.say(&words);
        assert_eq!((said.status, said.err.as_str()), (Some(0), ""));
        said.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.kill();
    }
}

pub(super) struct Said {
    pub(super) status: Option<i32>,
    pub(super) out: String,
    pub(super) err: String,
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("Unicode");
        Self { status: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }
}

pub(super) fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

pub(super) fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !done() {
        assert!(begin.elapsed() < Duration::from_secs(60), "waited in vain: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_run_ends_alike_with_and_without_a_daemon_and_is_in_its_journal_if_it_used_one() {
    let mut stage = Stage::new();
    let script = "echo out; cat ../home/.ssh/id; echo x > made; exit 7";
    let alone = stage.say(&["run", "--no-daemon", "--", "sh", "-c", script]);
    let absent = stage.say(&["run", "--daemon", "--", "true"]);
    assert!(absent.err.contains("no daemon listens at"), "{}", absent.err);
    assert_eq!(absent.status, Some(125));
    stage.start();
    let served = stage.say(&["run", "--daemon", "--", "sh", "-c", script]);
    assert_eq!((served.status, &served.out, &served.err), (Some(7), &alone.out, &alone.err));
    assert_eq!((alone.status, alone.out.as_str()), (Some(7), "out\n"));
    let denials = stage.journal(&["--run", "last", "--denied"]);
    let own = stage.say(&["explain", "--json"]);
    let own: serde_json::Value = serde_json::from_str(&own.out).expect("JSON");
    assert_eq!(denials.len(), own["denials"].as_array().expect("a list").len());
    assert_eq!(denials[0]["object"], own["denials"][0]["object"]);
    assert!(
        denials[0]["object"].as_str().is_some_and(|it| it.ends_with("/.ssh/id")),
        "{denials:?}"
    );
    assert_eq!(stage.journal(&["--object", "*/.ssh/*", "--since", "10m"]).len(), denials.len());
    assert!(stage.journal(&["--object", "/nowhere/*"]).is_empty());
    let shown = stage.say(&["audit"]);
    assert!(shown.out.contains(" denied cat[") && shown.out.contains("/.ssh/id"), "{}", shown.out);
    assert_eq!(stage.say(&["daemon", "--runs"]).out, "", "no run is left");
}

#[test]
fn every_decision_is_in_the_journal_on_demand_as_often_as_in_the_trail() {
    let mut stage = Stage::new();
    stage.start();
    let said = stage
        .say(&["run", "--record", "all", "--audit", "trail", "--stats", "--", "ls", "-l", "/etc"]);
    assert_eq!(said.status, Some(0), "{}", said.err);
    assert!(said.err.contains("security server reached by "), "{}", said.err);
    let trail = fs::read_to_string(stage.path("work/trail")).expect("a trail");
    let journal = stage.journal(&["--run", "last"]);
    assert!(journal.len() > 10, "{} records", journal.len());
    assert_eq!(journal.len(), trail.lines().count());
}

#[test]
fn a_second_daemon_says_who_runs_and_sigterm_ends_the_first() {
    let mut stage = Stage::new();
    stage.start();
    let mut first = stage.daemon.take().expect("started");
    let second = stage.say(&["daemon"]);
    assert!(
        second.err.contains(&format!("a daemon runs already: process {}", first.id())),
        "{}",
        second.err
    );
    assert_eq!(second.status, Some(125));
    let killed = Command::new("kill").arg(first.id().to_string()).status().expect("kill");
    assert!(killed.success());
    assert_eq!(first.wait().expect("ended").code(), Some(0));
}

#[test]
fn a_boolean_changes_what_a_running_command_may_do_also_after_the_daemon_was_killed() {
    let mut stage = Stage::new();
    fs::write(stage.path("work/gated"), "open sesame\n").expect("written");
    let gated = stage.path("work/gated");
    // The rule is a regular expression.
    let path = gated.display().to_string().replace('.', "\\.");
    let label = format!("(filecon \"{path}\" any (dewar_u object_r gated_t ((s0) (s0))))");
    let cil = stage.path("gate.cil").display().to_string();
    fs::write(&cil, format!("{GATE} {label}")).expect("written");
    stage.start();
    let script = format!(
        "while [ ! -e stop ]; do if cat {} >/dev/null 2>&1; then echo yes; else echo no; fi > now.new; mv now.new now; sleep 0.02; done",
        gated.display()
    );
    let mut run = stage
        .command(&["run", "--daemon", "--cil", &cil, "--", "sh", "-c", &script])
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    let file = stage.path("work/now");
    let now = |want: &str| {
        wait_until(want, || fs::read_to_string(&file).is_ok_and(|text| text.trim() == want));
    };
    now("yes");
    let off = stage.say(&["policy", "set", "last", "gate=off"]);
    let complete = off.out.contains("policy state 2: complete") && off.out.contains("applied");
    assert!(complete, "{}{}", off.out, off.err);
    assert_eq!(off.status, Some(0));
    now("no");
    assert!(stage.say(&["policy", "history", "last"]).out.contains("dewar policy set"));
    // Another policy, compiled from the profile and what was revoked: the boolean is not part of
    // either.
    let revoked = stage.say(&["revoke", "last", "--file", "${workspace}/nothing-there"]);
    assert_eq!(revoked.status, Some(0), "{}{}", revoked.out, revoked.err);
    now("no");
    stage.kill();
    stage.start();
    now("no");
    let on = stage.say(&["policy", "set", "--all", "gate=on"]);
    assert!(on.out.contains("policy state 4: complete"), "{}{}", on.out, on.err);
    now("yes");
    let wrong = stage.say(&["policy", "set", "last", "gate=off", "nonsense=on"]);
    assert!(wrong.err.contains("no boolean `nonsense`"), "{}", wrong.err);
    assert_eq!(wrong.status, Some(2), "{}", wrong.err);
    now("yes");
    fs::write(stage.path("work/stop"), "").expect("written");
    assert!(run.wait().expect("ended").success());
    assert!(
        stage
            .journal(&["--denied", "--run", "last"])
            .iter()
            .any(|it| it["object"] == gated.to_str().unwrap_or_default())
    );
}

#[test]
fn what_is_denied_for_want_of_the_daemon_is_said_to_be() {
    let mut stage = Stage::new();
    stage.start();
    let script = "> begun; while [ ! -e stop ]; do sleep 0.02; done; mkdir made";
    let mut run = stage
        .command(&["run", "--daemon", "--", "sh", "-c", script])
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    let begun = stage.path("work/begun");
    wait_until("the command runs", || begun.exists());
    stage.kill();
    fs::write(stage.path("work/stop"), "").expect("written");
    assert_eq!(run.wait().expect("ended").code(), Some(1));
    assert!(!stage.path("work/made").exists(), "nobody decided that");
    let told = stage.say(&["explain"]);
    assert!(told.out.contains("the daemon that decides for this run was away"), "{}", told.out);
}

#[test]
fn nothing_is_lost_when_daemon_and_run_are_killed() {
    let mut stage = Stage::new();
    stage.start();
    let script = "i=0; while [ $i -lt 20 ]; do cat ../home/.ssh/id; i=$((i+1)); echo $i > count; sleep 0.05; done 2>/dev/null; sleep 60";
    let mut run = stage
        .command(&["run", "--daemon", "--", "sh", "-c", script])
        .stderr(Stdio::null())
        .spawn()
        .expect("started");
    wait_until("something was denied", || {
        fs::read_to_string(stage.path("work/count"))
            .is_ok_and(|it| it.trim().parse().is_ok_and(|n: u32| n >= 5))
    });
    stage.kill();
    wait_until("all of it was", || {
        fs::read_to_string(stage.path("work/count")).is_ok_and(|it| it.trim() == "20")
    });
    run.kill().expect("killed");
    run.wait().expect("buried");
    let waiting = stage.say(&["audit"]);
    assert!(waiting.err.contains("no daemon runs"), "{}", waiting.err);
    stage.start();
    let denials = stage.journal(&["--object", "*/.ssh/id"]);
    assert_eq!(denials.len(), 20, "one for each try");
    assert!(denials.iter().all(|record| record["lost"].is_null()));
}

/// Starts the daemon as a service manager does: with a socket that it has bound as descriptor 3
/// (sd_listen_fds(3)).
fn activate(stage: &Stage, socket: &OwnedFd, environment: &str) -> Child {
    let script = format!("exec env {environment} \"$0\" daemon 3<&0 0</dev/null");
    let mut command = Command::new("sh");
    let like = stage.command(&[]);
    command.arg("-c").arg(script).arg(like.get_program());
    command.current_dir(stage.path("work"));
    command.envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let socket = socket.try_clone().expect("a descriptor");
    command.stdin(socket).stderr(Stdio::piped()).spawn().expect("started")
}

#[test]
fn a_daemon_serves_on_the_socket_that_a_service_manager_has_bound() {
    let mut stage = Stage::new();
    let path = stage.path("run/dewar/daemon");
    fs::create_dir_all(path.parent().expect("a directory")).expect("created");
    fs::set_permissions(stage.path("run/dewar"), fs::Permissions::from_mode(0o700)).expect("set");
    // Another test's run that inherited it would let it receive no descriptors.
    let flags = rustix::net::SocketFlags::CLOEXEC;
    let (family, kind) = (rustix::net::AddressFamily::UNIX, rustix::net::SocketType::SEQPACKET);
    let socket = rustix::net::socket_with(family, kind, flags, None).expect("a socket");
    let address = rustix::net::SocketAddrUnix::new(&path).expect("an address");
    rustix::net::bind(&socket, &address).expect("bound");
    // As `PassCredentials=yes` in the units: the kernel names no sender of what came before
    // somebody asked for it.
    rustix::net::sockopt::set_socket_passcred(&socket, true).expect("set");
    rustix::net::listen(&socket, 16).expect("it listens");
    // A client that comes first waits for the daemon.
    let early =
        stage.command(&["daemon", "--runs"]).stderr(Stdio::piped()).spawn().expect("started");
    stage.daemon = Some(activate(&stage, &socket, "LISTEN_PID=$$ LISTEN_FDS=1"));
    let early: Said = early.wait_with_output().expect("ended").into();
    assert_eq!((early.status, early.err.as_str()), (Some(0), ""));
    let run = stage.say(&["run", "--daemon", "--verbose", "--", "true"]);
    assert!(run.err.contains("is served by a daemon"), "{}", run.err);
    // The socket is the service manager's: it stays when the daemon ends, and the next one serves
    // at it.
    let mut daemon = stage.daemon.take().expect("started");
    let killed = Command::new("kill").arg(daemon.id().to_string()).status().expect("kill");
    assert!(killed.success() && daemon.wait().expect("ended").success());
    assert!(path.exists());
    stage.daemon = Some(activate(&stage, &socket, "LISTEN_PID=$$ LISTEN_FDS=1"));
    wait_until("the next one serves", || stage.say(&["daemon", "--runs"]).status == Some(0));
}

#[test]
fn what_a_service_manager_passes_and_is_no_socket_for_the_daemon_is_refused() {
    let stage = Stage::new();
    let stream = rustix::net::socket(
        rustix::net::AddressFamily::UNIX,
        rustix::net::SocketType::STREAM,
        None,
    );
    let stream = stream.expect("a socket");
    for (environment, want) in [
        ("LISTEN_PID=$$ LISTEN_FDS=1", "SOCK_SEQPACKET"),
        ("LISTEN_PID=$$ LISTEN_FDS=2", "exactly one socket"),
    ] {
        let said: Said =
            activate(&stage, &stream, environment).wait_with_output().expect("ended").into();
        assert!(said.err.contains(want), "{environment}: {}", said.err);
        assert_eq!(said.status, Some(125));
    }
}

#[test]
fn systemd_finds_nothing_wrong_with_the_units() {
    let directory = tempfile::tempdir().expect("a directory");
    let dewar = test_support::dewar().display().to_string();
    let packaging = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging");
    for entry in fs::read_dir(packaging).expect("units") {
        let entry = entry.expect("a unit");
        // Where it will be installed, nothing is yet.
        let text = fs::read_to_string(entry.path()).expect("text");
        let text = text.replace("/usr/local/bin/dewar", &dewar);
        assert!(!text.contains("/usr/local"), "{text}");
        assert!(!text.contains("[Socket]") || text.contains("\nPassCredentials=yes\n"), "{text}");
        fs::write(directory.path().join(entry.file_name()), text).expect("written");
    }
    for (scope, units) in [
        ("--user", ["dewar.socket", "dewar.service"]),
        ("--system", ["dewar-system.socket", "dewar-system.service"]),
    ] {
        let mut command = Command::new("systemd-analyze");
        command.args(["verify", "--man=no", scope]).args(units).current_dir(directory.path());
        let output = command.env("XDG_RUNTIME_DIR", directory.path()).output();
        let output = output.expect("systemd-analyze, of the package `systemd`, is installed");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && said.is_empty(), "{scope}: {said}");
    }
}

#[test]
fn wrong_use_is_explained() {
    let stage = Stage::new();
    for (words, want) in [
        (&["policy", "set", "gate=on"][..], "name the run first"),
        (&["policy", "set", "last"], "name a boolean"),
        (&["policy", "set", "last", "gate"], "NAME=on or NAME=off"),
        (&["policy", "set", "last", "gate=on"], "no daemon listens at"),
        (&["daemon", "--runs"], "start one with `dewar daemon`"),
        (&["daemon", "--freeze-after", "20"], "order the times"),
        (&["audit"], "there is no journal"),
        (&["audit", "--since", "yesterday"], "write how long ago"),
        (&["run", "--daemon", "--no-daemon", "true"], "cannot be used with"),
    ] {
        let said = stage.say(words);
        assert!(said.err.contains(want), "{words:?}: {}", said.err);
        assert_ne!(said.status, Some(0), "{words:?}");
    }
}

#[test]
fn no_run_is_called_as_another_is_numbered() {
    let mut stage = Stage::new();
    stage.start();
    stage.say(&["run", "--daemon", "--", "cat", "../home/.ssh/id"]);
    let id = stage.journal(&["--run", "last"])[0]["run"].as_str().expect("an id").to_owned();
    let decoy = stage.say(&["run", "--daemon", "--name", &id, "--", "true"]);
    assert!(decoy.err.contains("look like the id of a run"), "{:?} {}", decoy.status, decoy.err);
    assert!(!stage.journal(&["--run", &id]).is_empty());
}
