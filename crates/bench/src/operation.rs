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

/// Does something once.
type Operation = Box<dyn FnMut() -> io::Result<()>>;

/// Every operation by its name, with what it needs.
pub(crate) struct Operations(Vec<(&'static str, Operation)>);

/// The names of the operations, in the order of tables.
pub(crate) const NAMES: [&str; 13] = [
    OPEN_SYSTEM,
    OPEN_TO_READ,
    OPEN_TO_WRITE,
    "stat, system file",
    "stat, workspace file",
    "a new process: fork+wait",
    "a new process: fork+exec+wait, /bin/true",
    "connect+accept, unix socket in the workspace",
    "connect+accept, tcp on this machine",
    "a new file: create+close+unlink",
    "a new directory: mkdir+rmdir",
    "a new socket: socket+close, tcp",
    "a new socket with a name: socket+bind+close+unlink, unix",
];

impl Operations {
    /// Prepares all of them in `workspace`.
    ///
    /// # Errors
    ///
    /// When the workspace cannot be written. An operation that is refused says so when it is performed.
    pub(crate) fn prepare(workspace: &Path) -> io::Result<Self> {
        let file = workspace.join(FILE);
        fs::write(&file, "a line of text\n")?;
        let opening = |path: &Path, flags: OFlags| {
            let path = path.to_owned();
            Box::new(move || open(&path, flags)) as Operation
        };
        let looking = |path: &Path| {
            let path = path.to_owned();
            Box::new(move || stat(&path)) as Operation
        };
        let system = Path::new(SYSTEM_FILE);
        let mut all = vec![
            opening(system, OFlags::RDONLY),
            opening(&file, OFlags::RDONLY),
            opening(&file, OFlags::WRONLY),
            looking(system),
            looking(&file),
            Box::new(fork),
            Box::new(execute),
        ];
        all.extend(connections(workspace));
        all.extend(creations(workspace.join(NEW_FILE)));
        Ok(Self(NAMES.into_iter().zip(all).collect()))
    }

    /// One of them.
    pub(crate) fn by_name(&mut self, name: &str) -> Option<&mut Operation> {
        self.0.iter_mut().find(|(known, _)| *known == name).map(|(_, operation)| operation)
    }
}

/// The operations that connect.
fn connections(workspace: &Path) -> [Operation; 2] {
    let unix = with(unix_listener(workspace), |(path, listener)| {
        UnixStream::connect(path)?;
        listener.accept().map(drop)
    });
    let tcp = with(TcpListener::bind("127.0.0.1:0"), |listener| {
        let _client = TcpStream::connect(listener.local_addr()?)?;
        listener.accept().map(drop)
    });
    [unix, tcp]
}

/// The operations that make something, all but sockets without a name at `new`, and remove it again.
fn creations(new: PathBuf) -> [Operation; 4] {
    let (file, directory, name) = (new.clone(), new.clone(), new);
    [
        Box::new(move || {
            open(&file, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)?;
            fs::remove_file(&file)
        }),
        Box::new(move || {
            fs::create_dir(&directory)?;
            fs::remove_dir(&directory)
        }),
        Box::new(|| {
            socket(AddressFamily::INET, SocketType::STREAM, None).map(drop).map_err(Into::into)
        }),
        Box::new(move || {
            UnixListener::bind(&name)?;
            fs::remove_file(&name)
        }),
    ]
}

/// An operation on something that may itself be refused.
fn with<T: 'static>(
    subject: io::Result<T>,
    operation: impl Fn(&T) -> io::Result<()> + 'static,
) -> Operation {
    Box::new(move || match &subject {
        Ok(subject) => operation(subject),
        Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
    })
}

/// Measures every operation, in the workspace where it needs one.
///
/// # Errors
///
/// When the workspace cannot be written. An operation that is refused is a timing that says so.
pub(crate) fn measure_all(workspace: &Path) -> io::Result<Vec<Timing>> {
    let Operations(all) = Operations::prepare(workspace)?;
    Ok(all.into_iter().map(|(name, operation)| Timing::of(name, operation)).collect())
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
