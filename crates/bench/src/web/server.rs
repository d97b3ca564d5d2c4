//! A server that runs: how it is started, asked what it has spent, and ended.

use super::{WebError, clock::ServiceClock};
use crate::sys;
use std::{
    fs,
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// A server that runs, until this is dropped.
#[derive(Debug)]
pub struct Server {
    /// What tables call it.
    pub name: String,
    /// What it is, in a sentence.
    pub description: String,
    pub(super) port: u16,
    /// It is also measured with files as they are.
    pub(super) serves_plain: bool,
    /// Where it tells its service times, if it does.
    pub(super) clock: Option<ServiceClock>,
    /// What it is started as; more than one where it works by several.
    children: Vec<Child>,
}

impl Server {
    /// Starts `command`; when this returns, it listens at `port`. What goes wrong is looked for in
    /// `own`, its directory.
    pub(super) fn start(
        (name, description): (&str, &str),
        mut command: Command,
        (port, serves_plain): (u16, bool),
        own: &Path,
    ) -> Result<Self, WebError> {
        let errors = fs::File::create(own.join("stderr"));
        let errors =
            errors.map_err(|error| WebError::system("cannot keep a server's errors", error))?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors);
        let child = command.spawn().map_err(|error| WebError::system(name, error))?;
        let (name, description) = (name.to_owned(), description.to_owned());
        let mut server =
            Self { name, description, port, serves_plain, clock: None, children: vec![child] };
        let end = Instant::now() + Duration::from_secs(60);
        while Instant::now() < end && server.runs() {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Ok(server);
            }
            thread::sleep(Duration::from_millis(20));
        }
        let said = ["stderr", "error.log"].map(|file| fs::read_to_string(own.join(file)));
        let said: String = said.map(Result::unwrap_or_default).join(" ");
        let what = format!("does not start: {}", said.trim());
        Err(WebError::Server { name: server.name.clone(), what })
    }

    /// This server, with another whose work is part of its own.
    pub(super) fn with(mut self, mut other: Self) -> Self {
        self.children.append(&mut other.children);
        self
    }

    /// This server, which tells its service times.
    pub(super) fn timed_by(mut self, clock: ServiceClock) -> Self {
        self.clock = Some(clock);
        self
    }

    fn runs(&mut self) -> bool {
        self.children.iter_mut().all(|child| matches!(child.try_wait(), Ok(None)))
    }

    /// Where it has an image, as it is or in gray.
    #[must_use]
    pub fn path(&self, image: &str, gray: bool) -> String {
        format!("{}/{image}.ppm", if gray { "/gray" } else { "" })
    }

    /// Processor time that its processes have spent.
    pub(super) fn cpu(&self) -> Duration {
        self.processes().into_iter().filter_map(sys::process_time).sum()
    }

    /// Memory that is its processes' own, in KiB.
    pub(super) fn resident_kib(&self) -> u64 {
        let of = |id: u32| {
            let text = fs::read_to_string(format!("/proc/{id}/smaps_rollup")).ok()?;
            let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
            line.trim().trim_end_matches(" kB").parse::<u64>().ok()
        };
        self.processes().into_iter().filter_map(of).sum()
    }

    /// Its processes and all that descend from them.
    fn processes(&self) -> Vec<u32> {
        let mut all: Vec<u32> = self.children.iter().map(Child::id).collect();
        let mut at = 0;
        while let Some(id) = all.get(at).copied() {
            at += 1;
            let tasks = fs::read_dir(format!("/proc/{id}/task"));
            for task in tasks.into_iter().flatten().flatten() {
                let children = fs::read_to_string(task.path().join("children"));
                let children = children.unwrap_or_default();
                all.extend(children.split_whitespace().filter_map(|it| it.parse::<u32>().ok()));
            }
        }
        all
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        for child in &mut self.children {
            let id = rustix::process::Pid::from_child(child);
            let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
            let end = Instant::now() + Duration::from_secs(5);
            while Instant::now() < end && matches!(child.try_wait(), Ok(None)) {
                thread::sleep(Duration::from_millis(10));
            }
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A port of this machine at which nobody listens.
pub(super) fn free_port() -> Result<u16, WebError> {
    let port = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr());
    port.map(|address| address.port()).map_err(|error| WebError::system("no port is free", error))
}

/// A directory below `scratch` for the files of the server called `name`.
pub(super) fn directory(scratch: &Path, name: &str) -> Result<PathBuf, WebError> {
    let path = scratch.join(name.replace([' ', '+', ','], "-"));
    fs::create_dir_all(&path)
        .map_err(|error| WebError::system(format!("cannot make `{}`", path.display()), error))?;
    Ok(path)
}

pub(super) fn write(path: &Path, text: &str) -> Result<(), WebError> {
    fs::write(path, text)
        .map_err(|error| WebError::system(format!("cannot write `{}`", path.display()), error))
}
