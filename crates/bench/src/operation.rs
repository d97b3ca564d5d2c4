//! Single operations and what each takes, as seen by the program that performs them.

use crate::{statistics::median_of, sys};
use rustix::{
    fs::{AtFlags, CWD, Mode, OFlags, openat, statat},
    net::{AddressFamily, SocketType, socket},
    process::{WaitOptions, waitpid},
};
use serde::{Deserialize, Serialize};
use std::{
    fs, io,
    net::{TcpListener, TcpStream},
    os::unix::net::{UnixListener, UnixStream},
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

/// A file that every system has and every sandbox lets read.
pub(crate) const SYSTEM_FILE: &str = "/etc/passwd";

/// The command that removes from a workspace what the operations leave there.
pub(crate) const REMOVE: [&str; 5] = ["rm", "-f", FILE, NEW_FILE, SOCKET];
const FILE: &str = "file";
const NEW_FILE: &str = "new";
const SOCKET: &str = "socket";

pub(crate) const OPEN_SYSTEM: &str = "open+close, system file";
pub(crate) const OPEN_TO_READ: &str = "open+close, workspace file, to read";
pub(crate) const OPEN_TO_WRITE: &str = "open+close, workspace file, to write";

/// How long one batch of an operation is to last, and how many there are.
const BATCH: Duration = Duration::from_millis(20);
const BATCHES: usize = 9;

/// What one operation takes, or why it cannot be had.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Timing {
    /// The operation.
    pub(crate) name: String,
    /// Median over batches, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ns: Option<f64>,
    /// The error of its first attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

impl Timing {
    /// Tries `operation` once, then measures it.
    pub(crate) fn of(name: &str, mut operation: impl FnMut() -> io::Result<()>) -> Self {
        let measured = operation().and_then(|()| nanoseconds(&mut operation));
        let (ns, error) = match measured {
            Ok(ns) => (Some(ns), None),
            Err(error) => (None, Some(error.to_string())),
        };
        Self { name: name.to_owned(), ns, error }
    }
}

/// The median of some batches, each long enough for the clock.
fn nanoseconds(operation: &mut dyn FnMut() -> io::Result<()>) -> io::Result<f64> {
    let mut batch = |count: u32| -> io::Result<Duration> {
        let begin = Instant::now();
        (0..count).try_for_each(|_| operation())?;
        Ok(begin.elapsed())
    };
    let mut count = 1;
    loop {
        let took = batch(count)?;
        if took * 4 >= BATCH {
            count = (f64::from(count) * BATCH.as_secs_f64() / took.as_secs_f64()).ceil() as u32;
            break;
        }
        count *= 2;
    }
    let batches = (0..BATCHES)
        .map(|_| Ok(batch(count)?.as_secs_f64() * 1e9 / f64::from(count)))
        .collect::<io::Result<Vec<f64>>>()?;
    Ok(median_of(&batches).unwrap_or_default())
}

/// Measures every operation, in the workspace where it needs one.
///
/// # Errors
///
/// When the workspace cannot be written. An operation that is refused is a timing that says so.
pub(crate) fn measure_all(workspace: &Path) -> io::Result<Vec<Timing>> {
    let file = workspace.join(FILE);
    let new = workspace.join(NEW_FILE);
    fs::write(&file, "a line of text\n")?;
    let system = Path::new(SYSTEM_FILE);
    Ok(vec![
        Timing::of(OPEN_SYSTEM, || open(system, OFlags::RDONLY)),
        Timing::of(OPEN_TO_READ, || open(&file, OFlags::RDONLY)),
        Timing::of(OPEN_TO_WRITE, || open(&file, OFlags::WRONLY)),
        Timing::of("stat, system file", || stat(system)),
        Timing::of("stat, workspace file", || stat(&file)),
        Timing::of("a new process: fork+wait", fork),
        Timing::of("a new process: fork+exec+wait, /bin/true", execute),
        with(
            unix_listener(workspace),
            "connect+accept, unix socket in the workspace",
            |(path, l)| {
                UnixStream::connect(path)?;
                l.accept().map(drop)
            },
        ),
        with(TcpListener::bind("127.0.0.1:0"), "connect+accept, tcp on this machine", |listener| {
            let _client = TcpStream::connect(listener.local_addr()?)?;
            listener.accept().map(drop)
        }),
        Timing::of("a new file: create+close+unlink", || {
            open(&new, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)?;
            fs::remove_file(&new)
        }),
        Timing::of("a new directory: mkdir+rmdir", || {
            fs::create_dir(&new)?;
            fs::remove_dir(&new)
        }),
        Timing::of("a new socket: socket+close, tcp", || {
            socket(AddressFamily::INET, SocketType::STREAM, None).map(drop).map_err(Into::into)
        }),
        Timing::of("a new socket with a name: socket+bind+close+unlink, unix", || {
            UnixListener::bind(&new)?;
            fs::remove_file(&new)
        }),
    ])
}

/// An operation on something that may itself be refused.
fn with<T>(subject: io::Result<T>, name: &str, operation: impl Fn(&T) -> io::Result<()>) -> Timing {
    match subject {
        Ok(subject) => Timing::of(name, || operation(&subject)),
        Err(error) => Timing { name: name.to_owned(), ns: None, error: Some(error.to_string()) },
    }
}

pub(crate) fn open(path: &Path, flags: OFlags) -> io::Result<()> {
    openat(CWD, path, flags | OFlags::CLOEXEC, Mode::RUSR | Mode::WUSR)?;
    Ok(())
}

pub(crate) fn stat(path: &Path) -> io::Result<()> {
    statat(CWD, path, AtFlags::empty())?;
    Ok(())
}

fn fork() -> io::Result<()> {
    let child = sys::fork(|| 0)?;
    waitpid(Some(child), WaitOptions::empty())?;
    Ok(())
}

fn execute() -> io::Result<()> {
    let status = Command::new("/bin/true").status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(status.to_string())) }
}

fn unix_listener(workspace: &Path) -> io::Result<(PathBuf, UnixListener)> {
    let path = workspace.join(SOCKET);
    UnixListener::bind(&path).map(|listener| (path, listener))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_that_sleeps_is_seen_to_take_that_long() {
        let timing = Timing::of("sleep", || {
            std::thread::sleep(Duration::from_millis(1));
            Ok(())
        });
        assert!(timing.ns.is_some_and(|ns| (1e6..1e7).contains(&ns)), "{timing:?}");
    }

    #[test]
    fn an_operation_that_is_refused_says_why() {
        let missing = Timing::of("open", || open(Path::new("/no/such/file"), OFlags::RDONLY));
        assert_eq!(missing.ns, None);
        assert!(missing.error.is_some_and(|why| why.contains("No such file")));
    }
}
