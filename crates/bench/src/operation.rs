//! Single operations and what each takes, as seen by the program that performs them.

use crate::sys;
use rustix::{
    fs::{AtFlags, CWD, Mode, OFlags, openat, statat},
    net::{AddressFamily, SocketType, socket},
    process::{WaitOptions, waitpid},
};
use std::{
    fs, io,
    net::{TcpListener, TcpStream},
    os::unix::net::{UnixListener, UnixStream},
    path::{Path, PathBuf},
    process::Command,
};

/// A file that every system has and every sandbox lets read.
const SYSTEM_FILE: &str = "/etc/passwd";

const FILE: &str = "file";
const NEW_FILE: &str = "new";
const SOCKET: &str = "socket";

const OPEN_SYSTEM: &str = "open+close, system file";
const OPEN_TO_READ: &str = "open+close, workspace file, to read";
const OPEN_TO_WRITE: &str = "open+close, workspace file, to write";

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
    /// When the workspace cannot be written. An operation that is refused says so when it is
    /// performed.
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

/// The operations that make something, all but sockets without a name at `new`, and remove it
/// again.
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

fn open(path: &Path, flags: OFlags) -> io::Result<()> {
    openat(CWD, path, flags | OFlags::CLOEXEC, Mode::RUSR | Mode::WUSR)?;
    Ok(())
}

fn stat(path: &Path) -> io::Result<()> {
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
    // Of a runner before this one in the same place.
    let _ = fs::remove_file(&path);
    UnixListener::bind(&path).map(|listener| (path, listener))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_can_be_performed_here_and_says_why_if_not() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        let mut operations = Operations::prepare(directory.path())?;
        for name in NAMES {
            let operation = operations.by_name(name).expect("it is known");
            operation()?;
            operation()?;
        }
        assert!(operations.by_name("no such operation").is_none());
        std::fs::remove_file(directory.path().join(FILE))?;
        let missing = operations.by_name(OPEN_TO_READ).expect("it is known")();
        assert_eq!(missing.expect_err("it is gone").kind(), io::ErrorKind::NotFound);
        Ok(())
    }
}
