//! A daemon in a process of its own, which is this test program started again, so that it can be
//! killed.
#![allow(dead_code)]

use daemon::{
    Administration, Admits, Daemon, DaemonDirs, NewRun, Policy, Refusal, Registration, Settings,
    Writer, register,
};
use server_port::Patience;
use std::{
    env, fs,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

pub(crate) const POLICY: &str = r#"
    (mls true)
    (class file (read write)) (class dir (search)) (classorder (file dir))
    (sid kernel) (sidorder (kernel)) (sidcontext kernel (u r app_t ((s0) (s0))))
    (user u) (role r) (userrole u r) (sensitivity s0) (sensitivityorder (s0))
    (userlevel u (s0)) (userrange u ((s0) (s0 (range c0 c1023))))
    (type app_t) (type note_t) (type secret_t) (type gate_t)
    (roletype r app_t) (roletype r note_t) (roletype r secret_t) (roletype r gate_t)
    (allow app_t note_t (file (read)))
    (boolean open false) (booleanif open (true (allow app_t gate_t (file (read)))))
"#;

/// What a run says of its kernel side that can follow no change.
pub(crate) const UNFIT: &[u8] = b"unfit";

/// Says what this program is to be, if not the test itself.
const ROLE: &str = "DEWAR_TESTS_ROLE";
const PLACE: &str = "DEWAR_TESTS_PLACE";

pub(crate) fn place(directory: &Path) -> DaemonDirs {
    DaemonDirs { runtime: directory.join("run"), state: directory.join("state"), system: false }
}

pub(crate) fn policy() -> Policy {
    let categories: String = (0..1024).map(|n| format!("(category c{n})")).collect();
    let order: Vec<String> = (0..1024).map(|n| format!("c{n}")).collect();
    let order = order.join(" ");
    let levels =
        format!("{categories}(categoryorder ({order}))(sensitivitycategory s0 (range c0 c1023))");
    Policy { files: vec![("policy.cil".into(), format!("{POLICY}{levels}"))], ..Policy::default() }
}

/// What this program was started as, and where.
pub(crate) fn role() -> Option<(String, DaemonDirs)> {
    let place = place(Path::new(&env::var_os(PLACE)?));
    Some((env::var(ROLE).ok()?, place))
}

/// Starts this program again. It runs the test `role` of the program alone, which looks at
/// [`role`].
pub(crate) fn start(role: &str, directory: &Path) -> Child {
    start_as(role, directory).spawn().expect("this program starts again")
}

/// The command for it.
pub(crate) fn start_as(role: &str, directory: &Path) -> Command {
    let mut command = Command::new(env::current_exe().expect("this program"));
    command.args(["--exact", "role", "--nocapture", "--test-threads=1"]);
    command.env(ROLE, role).env(PLACE, directory).stdout(Stdio::null());
    command
}

/// Serves until it is killed.
pub(crate) fn keep(place: &DaemonDirs) {
    let [report, freeze, kill] = [100, 300, 1500].map(Duration::from_millis);
    let admits: Admits = |settled, _, _| match settled {
        UNFIT => Err(Refusal("it was told otherwise".into())),
        _ => Ok(()),
    };
    let patience = Patience { report, freeze, kill };
    let settings = Settings { patience, admits, ..Settings::default() };
    let daemon = loop {
        match Daemon::start(place, settings, None) {
            Ok(daemon) => break daemon,
            // The one that was killed holds its lock until it is buried.
            Err(daemon::StartError::Runs(_)) => thread::sleep(Duration::from_millis(1)),
            Err(error) => panic!("{error}"),
        }
    };
    daemon.serve().expect("served");
}

/// The daemon of a test, which ends with it.
pub(crate) struct DaemonProcess(Child);

impl DaemonProcess {
    pub(crate) fn start(directory: &Path) -> Self {
        Self::start_as("daemon", &place(directory), directory)
    }

    /// In that role, it listens at `place`.
    pub(crate) fn start_as(role: &str, place: &DaemonDirs, directory: &Path) -> Self {
        let daemon = Self(start(role, directory));
        drop(administration(place));
        daemon
    }

    /// Kills it, as `kill -9` does.
    pub(crate) fn kill(&mut self) {
        self.end();
    }

    /// The number of its process.
    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    /// How many threads it has.
    pub(crate) fn threads(&self) -> usize {
        fs::read_dir(format!("/proc/{}/task", self.pid())).expect("it lives").count()
    }

    fn end(&mut self) {
        // One that has ended already is as good.
        let _ = (self.0.kill(), self.0.wait());
    }
}

impl Drop for DaemonProcess {
    fn drop(&mut self) {
        self.end();
    }
}

pub(crate) fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !done() {
        assert!(begin.elapsed() < Duration::from_secs(30), "waited in vain: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

pub(crate) fn administration(place: &DaemonDirs) -> Administration {
    let mut found = None;
    wait_until("the daemon listens", || {
        found = Administration::connect(place).ok();
        found.is_some()
    });
    found.expect("found")
}

pub(crate) fn new_run(place: &DaemonDirs, id: &str) -> (Registration, Writer) {
    new_run_with(place, id, &policy())
}

pub(crate) fn new_run_with(
    place: &DaemonDirs,
    id: &str,
    policy: &Policy,
) -> (Registration, Writer) {
    let run = NewRun { id: id.into(), command: "make".into(), profile: "test".into(), name: None };
    register(place, &run, policy).unwrap_or_else(|error| panic!("{id}: {error}"))
}
