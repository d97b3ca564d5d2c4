//! A file system that answers nothing any more while a file on it is taken.

use super::{Running, stage_says};
use crate::{Case, cases, process::until, stage::Stage};
use std::{
    io::{BufRead as _, BufReader},
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};
use test_support::Variant;

/// The cases of this part.
pub(super) const CASES: &[Case] =
    cases![a_file_system_that_is_silent_holds_up_neither_a_change_nor_what_is_asked_meanwhile];

/// A file system, mounted until this is dropped.
struct Silent {
    server: Child,
    at: PathBuf,
}

impl Silent {
    fn mount(stage: &Stage) -> Self {
        let (program, at) = (stage.home().join("silent"), stage.work().join("mounted"));
        std::fs::create_dir(&at).expect("create a directory");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src/changes/silent.c");
        let cc = Command::new("cc").args(["-o".as_ref(), program.as_os_str()]).arg(source).status();
        assert!(cc.expect("start `cc`").success(), "it does not compile");
        let mut server = Command::new(program);
        server.args([&at, &stage.work().join("silence")]).stdout(Stdio::piped());
        let mut server = server.spawn().expect("start the server");
        let said = BufReader::new(server.stdout.take().expect("a pipe")).lines().next();
        let silent = Self { server, at };
        assert_eq!(said.expect("a line").expect("text"), "mounted");
        silent
    }
}

impl Drop for Silent {
    fn drop(&mut self) {
        // Whoever waits for it hears that it is gone.
        let _ = self.server.kill();
        let _ = self.server.wait();
        let _ = Command::new("umount").arg("-l").arg(&self.at).status();
    }
}

fn a_file_system_that_is_silent_holds_up_neither_a_change_nor_what_is_asked_meanwhile(
    stage: &Stage,
) {
    if stage.variant != Variant::Root {
        eprintln!("note: a file system for others is root's to mount");
        return;
    }
    let silent = Silent::mount(stage);
    let script = "exec 9< mounted/file; echo > opened; sleep 60 9<&-";
    let mut running = Running::start(stage, stage.call(), script);
    let opened = stage.work().join("opened");
    until(|| opened.exists().then_some(())).expect("the file is opened");
    stage.file(&stage.work().join("silence"), "");
    let begun = Instant::now();
    let took = std::thread::scope(|scope| {
        let revoke = || stage_says(stage, &["revoke", "--file", "mounted/file"]);
        let revoked = scope.spawn(move || (revoke(), begun.elapsed()));
        while !revoked.is_finished() {
            let asked = Instant::now();
            let said = stage_says(stage, &["ps"]).out();
            assert!(said.contains('['), "{said}");
            assert!(asked.elapsed() < Duration::from_secs(4), "{:?}", asked.elapsed());
            std::thread::sleep(Duration::from_millis(100));
        }
        let (ran, took) = revoked.join().expect("a receipt");
        // Whoever has it open is killed, and is still about to close it.
        assert_eq!(ran.code(), 1, "{}{}", ran.out(), ran.err());
        assert!(
            ran.out().contains("killed") && ran.out().contains("NOT COMPLETE"),
            "{}",
            ran.out()
        );
        took
    });
    assert!(took < Duration::from_secs(30), "{took:?}");
    drop(silent);
    running.wait();
}
