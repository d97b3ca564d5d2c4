//! A program that runs while its policy changes, and what changes it.

use crate::{
    dewar::Call,
    process::{Ran, run, until},
    stage::{Stage, bash},
};
use std::process::{Child, Stdio};

/// A loop that notes each attempt in `log` until there is a file `stop`.
pub(super) const LOOP: &str = "while [ ! -e stop ]; do
    if { ATTEMPT; } >/dev/null 2>&1; then echo yes; else echo no; fi >> log
    sleep 0.02
done";

/// A run in the background. Ended when dropped.
pub(super) struct Running<'a> {
    pub(super) stage: &'a Stage,
    pub(super) child: Option<Child>,
}

impl<'a> Running<'a> {
    pub(super) fn start(stage: &'a Stage, call: Call<'_>, script: &str) -> Self {
        let mut command = stage.dewar(call, &bash(script));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let running = Self { stage, child: Some(command.spawn().expect("start `dewar`")) };
        let runs = || stage_says(stage, &["ps"]).out().contains('[').then_some(());
        until(runs).expect("the run begins");
        running
    }

    /// In the background, again and again: what `attempt` comes to goes to `log`.
    pub(super) fn trying(stage: &'a Stage, call: Call<'_>, attempt: &str) -> Self {
        Self::start(stage, call, &LOOP.replace("ATTEMPT", attempt))
    }

    /// Lets the loop end; what the run said.
    pub(super) fn stop(mut self) -> Ran {
        self.stage.file(&self.stage.work().join("stop"), "");
        self.wait()
    }

    pub(super) fn wait(&mut self) -> Ran {
        let mut child = self.child.take().expect("it was not waited for");
        let ended = until(|| child.try_wait().expect("wait"));
        if ended.is_none() {
            let _ = child.kill();
        }
        let output = child.wait_with_output().expect("wait");
        assert!(ended.is_some(), "still running: {}", String::from_utf8_lossy(&output.stderr));
        Ran { status: output.status, out: output.stdout, err: output.stderr, warned: false }
    }

    /// Waits until the next attempt that begins from now on has ended; what it came to.
    pub(super) fn attempt(&self) -> String {
        let count = || {
            std::fs::read_to_string(self.stage.work().join("log"))
                .unwrap_or_default()
                .lines()
                .count()
        };
        // The one under way may have been decided before.
        let (before, mut log) = (count(), String::new());
        until(|| {
            log = std::fs::read_to_string(self.stage.work().join("log")).unwrap_or_default();
            (log.lines().count() >= before + 2).then_some(())
        })
        .expect("the loop goes on");
        log.lines().last().unwrap_or_default().to_owned()
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

pub(super) fn stage_says(stage: &Stage, arguments: &[&str]) -> Ran {
    run(stage.control(arguments), b"")
}

/// Calls another subcommand, which must succeed.
pub(super) fn done(stage: &Stage, arguments: &[&str]) -> String {
    let ran = stage_says(stage, arguments);
    assert_eq!(ran.code(), 0, "{arguments:?}: {}{}", ran.out(), ran.err());
    ran.out()
}

/// Calls another subcommand, which must fail so and say that.
pub(super) fn refused(stage: &Stage, arguments: &[&str], code: i32, part: &str) {
    let ran = stage_says(stage, arguments);
    assert_eq!(ran.code(), code, "{arguments:?}: {}{}", ran.out(), ran.err());
    assert!(ran.err().contains(part), "{arguments:?}: {}", ran.err());
}

pub(super) fn data(stage: &Stage) {
    for name in ["data", "other"] {
        stage.file(&stage.work().join(name), "data\n");
    }
}

pub(super) fn profile(stage: &Stage, rules: &str) -> String {
    let path = stage.home().join("profile.toml");
    stage.file(&path, &format!("extends = \"workspace\"\n{rules}"));
    path.to_str().expect("UTF-8").to_owned()
}
