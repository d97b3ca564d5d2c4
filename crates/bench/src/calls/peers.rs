//! Other ways to call another process, made by a program of their own (`peers/` in the sources):
//! their libraries are no part of this one.

use super::{
    measure::Caller,
    placement::{Pinned, Placement},
    ways::BARE,
};
use std::{
    io::{self, BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
    time::Duration,
};

/// The word for each on that program's command line, and what tables call it.
const WAYS: [(&str, &str); 3] = [
    ("dbus", "D-Bus, dbus-daemon"),
    ("grpc", "gRPC, unix socket"),
    ("iceoryx2", "iceoryx2, polling"),
];

/// The pairs of processes; they are killed when dropped.
pub(super) struct Peers(Vec<Child>);

impl Peers {
    /// Starts both ends of each way, on the processors of `placement`, with their meeting places in
    /// `directory`.
    pub(super) fn start(
        program: &Path,
        directory: &Path,
        placement: &Placement,
    ) -> io::Result<(Self, Vec<Caller>)> {
        let (mut peers, mut callers) = (Self(Vec::new()), Vec::new());
        for (word, name) in WAYS {
            let meeting = directory.join(word);
            let mut start = |role: &str, cpu| {
                let _pinned = Pinned::to(cpu)?;
                let mut command = Command::new(program);
                command.args([word, role]).arg(&meeting);
                let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
                let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
                peers.0.push(child);
                let (Some(stdin), Some(stdout)) = (stdin, stdout) else {
                    return Err(io::Error::other("a pipe is missing"));
                };
                let mut answers = BufReader::new(stdout);
                match line(&mut answers)?.as_str() {
                    "ready" => Ok((stdin, answers)),
                    other => Err(io::Error::other(format!("{name} says `{other}`"))),
                }
            };
            // The other end of its pipe is kept by the process itself.
            let _server = start("serve", placement.server_cpu)?;
            let (mut questions, mut answers) = start("call", placement.client_cpu)?;
            callers.push(Caller {
                way: name.to_owned(),
                variant: BARE,
                batch: Box::new(move |bytes, count| {
                    writeln!(questions, "{bytes} {count}")?;
                    let nanoseconds = line(&mut answers)?.parse();
                    nanoseconds.map(Duration::from_nanos).map_err(io::Error::other)
                }),
            });
        }
        Ok((peers, callers))
    }
}

fn line(from: &mut BufReader<ChildStdout>) -> io::Result<String> {
    let mut line = String::new();
    from.read_line(&mut line)?;
    Ok(line.trim_end().to_owned())
}

impl Drop for Peers {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
