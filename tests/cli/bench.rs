//! `dewar bench`: small runs, for what they say and keep. Their figures are nobody's business.

use super::dewar_in;
use std::fs;

#[test]
fn the_price_of_a_command_names_the_calls_and_the_places_that_it_comes_from() {
    let dir = tempfile::tempdir().expect("a directory");
    let command = "cat /usr/include/*.h > all; rm all";
    let words = [
        "bench", "run", "--rounds", "2", "--budget", "1", "--keep", "kept", "--", "sh", "-c",
        command,
    ];
    let said = dewar_in(dir.path(), &words);
    assert_eq!(said.status, 0, "{}", said.err);
    let text: String = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("% of the time in the monitor is `openat` of /usr/include."),
        "{}",
        said.out
    );
    assert!(text.contains("Starting Dewar is left out"), "{}", said.out);
    assert!(text.contains("Time in the monitor, by object manager and by call"), "{}", said.out);
    let section = fs::read_to_string(dir.path().join("kept/run-layers.json")).expect("it is kept");
    assert!(section.contains("openat"), "{section}");
}

#[test]
fn plugins_are_a_section_of_the_report_with_every_column_where_that_is_asked_for() {
    let dir = tempfile::tempdir().expect("a directory");
    let small =
        ["--rounds", "1", "--batch-ms", "1", "--no-peers", "--kernel", "gray", "--size", "9747"];
    let words = [&["bench", "plugin", "--wide", "--keep", "kept"][..], &small].concat();
    let said = dewar_in(dir.path(), &words);
    assert_eq!(said.status, 0, "{}", said.err);
    let heading = said.out.lines().find(|line| line.contains("operation (processor time)"));
    assert!(heading.is_some_and(|line| line.contains("max")), "{}", said.out);
    let report = dewar_in(dir.path(), &["bench", "report", "kept", "--as-is", "-o", "report.html"]);
    assert_eq!(report.status, 0, "{}", report.err);
    let page = fs::read_to_string(dir.path().join("report.html")).expect("a page");
    assert!(page.contains("Plugins, on every target") && page.contains("isolated ÷ native"));
}

#[test]
fn a_run_tells_what_deciding_took_by_object_manager() {
    let dir = tempfile::tempdir().expect("a directory");
    let said =
        dewar_in(dir.path(), &["run", "--no-daemon", "--stats", "--", "cat", "/etc/hostname"]);
    assert_eq!(said.status, 0, "{}", said.err);
    let heading = said.err.lines().find(|line| line.contains("object manager"));
    assert!(
        heading.is_some_and(|line| line.contains("calls") && line.contains("time")),
        "{}",
        said.err
    );
    // Folded at the width of the terminal.
    let words = said.err.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("of the time") && words.contains("of them were"), "{}", said.err);
}

#[test]
fn a_kernel_that_is_not_there_is_named() {
    let dir = tempfile::tempdir().expect("a directory");
    let said = dewar_in(
        dir.path(),
        &["bench", "kernel", "--rounds", "1", "--as-is", "--kernel", "vmlinuz-none"],
    );
    assert_ne!(said.status, 0);
    let all = said.out + &said.err;
    let is_named = all.contains("cannot find the kernel `vmlinuz-none`");
    // Where there is no emulator, that is what is missing first.
    assert!(is_named || all.contains("apt-get install qemu-system-x86"), "{all}");
}

#[test]
fn what_decisions_are_compared_with_does_what_runs_do() {
    let dir = tempfile::tempdir().expect("a directory");
    let server = "import socket
s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen()
socket.create_connection(s.getsockname()); print('connected')";
    for decides in ["on", "off"] {
        let words = ["run", "--enforce", decides, "--", "/usr/bin/python3", "-c", server];
        let said = dewar_in(dir.path(), &words);
        assert_eq!((said.status, &*said.out), (0, "connected\n"), "{decides}: {}", said.err);
    }
}

/// A run that goes on there, or the owner, could exchange what lies in the working directory.
#[test]
fn what_is_measured_natively_is_started_by_the_program_itself() {
    let dir = tempfile::tempdir().expect("a directory");
    let command = "readlink /proc/$PPID/exe >> exes";
    let words = ["bench", "run", "--rounds", "2", "--budget", "1", "--", "sh", "-c", command];
    let said = dewar_in(dir.path(), &words);
    assert_eq!(said.status, 0, "{}", said.err);
    let exes = fs::read_to_string(dir.path().join("exes")).expect("it was started");
    let itself = |line: &str| line.ends_with("/dewar-bench") && !line.contains("/.dewar-bench-");
    assert!(exes.lines().any(itself), "{exes}");
    if !rustix::process::geteuid().is_root() {
        return eprintln!("NOT TESTED: a directory of another user, as this is not root");
    }
    std::os::unix::fs::chown(dir.path(), Some(1), Some(1)).expect("give it away");
    let said = dewar_in(dir.path(), &words);
    assert_eq!(said.status, 125, "{}", said.err);
    assert!(said.err.contains("another user's"), "{}", said.err);
}
