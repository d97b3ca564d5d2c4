//! An exec that somebody else holds up.

use proc::ProcessTree;
use rustix::fs::{Mode, OFlags};
use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};
use supervisor::{
    Execs,
    ptrace::{self, Event, Seized},
};

/// A process with two threads, whose second is traced by its parent, which does not let it end. The
/// first says its number, and executes another program once there is input.
const HOLDS_UP: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>
static int told[2];
static void *other(void *unused) {
    int tid = syscall(SYS_gettid);
    write(told[1], &tid, sizeof tid);
    for (;;)
        pause();
}
int main(void) {
    int tid;
    char c;
    pipe(told);
    pid_t child = fork();
    if (child == 0) {
        pthread_t thread;
        pthread_create(&thread, 0, other, 0);
        while (read(0, &c, 1) != 1)
            ;
        execl("/bin/sleep", "sleep", "60", (char *)0);
        _exit(1);
    }
    read(told[0], &tid, sizeof tid);
    ptrace(PTRACE_SEIZE, tid, 0, PTRACE_O_TRACEEXIT);
    printf("%d\n", child);
    fflush(stdout);
    for (;;)
        pause();
}
"#;

/// Ends with the test.
struct Tracer(Child);

impl Drop for Tracer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn an_exec_that_somebody_else_holds_up_is_not_waited_for_and_its_process_ends() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("holds_up");
    std::fs::write(directory.path().join("holds_up.c"), HOLDS_UP).unwrap();
    let mut cc = Command::new("cc");
    cc.args(["-w", "-pthread", "-o"]).arg(&program).arg(directory.path().join("holds_up.c"));
    assert!(cc.status().expect("start `cc`").success());
    let mut tracer = Command::new(&program);
    let tracer = tracer.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut tracer = Tracer(tracer);
    let mut said = String::new();
    BufReader::new(tracer.0.stdout.take().unwrap()).read_line(&mut said).unwrap();
    let pid: u32 = said.trim().parse().unwrap();
    let proc = rustix::fs::open("/proc", OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).unwrap();
    let tree = ProcessTree::new(proc, tracer.0.id(), None).unwrap();
    let (execs, is_done) = (Execs::default(), AtomicBool::new(false));

    let begun = Instant::now();
    let awaited = execs.wait(pid, pid);
    let is_over = || awaited.is_ended();
    let seized = Seized::new(pid, pid, is_over).unwrap();
    assert!(matches!(seized.wait(is_over), Ok(Some(Event::Stopped { .. }))));
    ptrace::go_on(pid).unwrap();
    tracer.0.stdin.as_mut().unwrap().write_all(b"x").unwrap();
    let ended = thread::scope(|scope| {
        scope.spawn(|| {
            // As the monitor looks, which would wait for ever otherwise.
            while !is_done.load(Ordering::Acquire) && begun.elapsed() < Duration::from_secs(20) {
                thread::sleep(Duration::from_millis(20));
                supervisor::end_held_up_execs(&execs, &tree);
            }
        });
        let ended = seized.wait(is_over);
        is_done.store(true, Ordering::Release);
        ended
    });
    assert_eq!(ended, Ok(None));
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    let states = tree.proc.threads(pid).unwrap_or_default().into_iter().filter_map(|tid| {
        let stat = tree.proc.stat(tid).ok()?;
        Some(stat.state)
    });
    let states: String = states.collect();
    assert!(!states.contains(['R', 'S', 'D']), "it goes on: {states}");
}
