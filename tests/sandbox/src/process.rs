//! Running a process to its end, with a limit on patience.

use std::{
    io::{Read, Write},
    os::unix::process::{CommandExt as _, ExitStatusExt as _},
    process::{Child, Command, ExitStatus, Stdio},
    thread::JoinHandle,
    time::{Duration, Instant},
};

/// Longer than any sound run takes, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// How Dewar begins to tell what is lost without a layer; without a view.
const WARNING: &[u8] = b"dewar: without `";
const WITHOUT_VIEW: &[u8] = b"dewar: without `mount` ";

/// How a run ended, and what it said.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) status: ExitStatus,
    pub(crate) out: Vec<u8>,
    pub(crate) err: Vec<u8>,
    /// What Dewar says first where there is no view, taken from `err`.
    pub(crate) warned: bool,
}

impl Ran {
    pub(crate) fn out(&self) -> String {
        String::from_utf8_lossy(&self.out).into_owned()
    }

    pub(crate) fn err(&self) -> String {
        String::from_utf8_lossy(&self.err).into_owned()
    }

    /// What a shell shows as `$?`.
    pub(crate) fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| 128 + self.status.signal().unwrap_or(0))
    }
}

/// Runs `command` with `input` to its end.
pub(crate) fn run(mut command: Command, input: &[u8]) -> Ran {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn().expect("start a process");
    let out = reader(child.stdout.take().expect("stdout"));
    let err = reader(child.stderr.take().expect("stderr"));
    // A process that does not read its input closes it.
    let _ = child.stdin.take().expect("stdin").write_all(input);
    let status = end_of(&mut child);
    let ran = |stream: JoinHandle<Vec<u8>>| stream.join().expect("read");
    let Some(status) = status else {
        let group = rustix::process::Pid::from_child(&child);
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        let _ = child.wait();
        panic!("still running after {PATIENCE:?}: {command:?}")
    };
    let (out, mut err) = (ran(out), ran(err));
    let mut warned = false;
    while err.starts_with(WARNING) {
        warned |= err.starts_with(WITHOUT_VIEW);
        let end = err.iter().position(|byte| *byte == b'\n').map_or(err.len(), |end| end + 1);
        err.drain(..end);
    }
    Ran { status, out, err, warned }
}

fn reader(mut stream: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).expect("read");
        bytes
    })
}

fn end_of(child: &mut Child) -> Option<ExitStatus> {
    until(|| child.try_wait().expect("wait"))
}

/// What `probe` finds as soon as it finds something; `None` if it never does.
pub(crate) fn until<T>(mut probe: impl FnMut() -> Option<T>) -> Option<T> {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        if let Some(found) = probe() {
            return Some(found);
        }
        std::thread::sleep(Duration::from_millis(3));
    }
    None
}
