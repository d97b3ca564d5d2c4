//! The socket for editors, agents and `dewar ask`: JSON lines, for processes of the user outside.
//! docs/ask.md describes the lines.

use super::{case::Choice, error::AskError, queue::QuestionQueue};
use anyhow::Context as _;
use ipc::Peer;
use learn::Answer;
use monitor::visible;
use proc::Proc;
use rustix::{
    io::Errno,
    net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType},
};
use serde_json::json;
use std::{
    fs,
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    os::{
        fd::{AsFd as _, AsRawFd as _},
        unix::{
            fs::{FileTypeExt as _, MetadataExt as _},
            net::{UnixListener, UnixStream},
        },
    },
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::Duration,
};

/// The version of the lines.
pub(crate) const VERSION: u32 = 1;
/// Connections at once.
const MOST: usize = 16;
/// What the name of a socket begins with that is not listened at yet.
const MAKING: &str = ".";
/// One that is older than this was left by a run that was killed.
const STALE: Duration = Duration::from_secs(10);
/// The longest line that is read.
const MOST_BYTES: u64 = 64 << 10;

/// A socket in the directory of questions, while it is listened at.
pub(crate) struct Listener {
    listener: UnixListener,
    path: PathBuf,
}

/// Where the sockets lie: `$XDG_STATE_HOME/dewar/ask`, of the user's own: no sandbox looks there.
pub(crate) fn directory() -> anyhow::Result<PathBuf> {
    Ok(runs::state_directory()?.join("dewar/ask"))
}

/// The socket of the run `id`.
pub(crate) fn path(id: &str) -> anyhow::Result<PathBuf> {
    Ok(directory()?.join(format!("{id}.sock")))
}

/// Connects to `path`, however long it is.
pub(crate) fn connect(path: &Path) -> io::Result<UnixStream> {
    let (_parent, short) = shortened(path)?;
    UnixStream::connect(short)
}

/// A short name for `path`, while the descriptor is open.
fn shortened(path: &Path) -> io::Result<(fs::File, String)> {
    let parent = fs::File::open(path.parent().unwrap_or(Path::new("/")))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let short = format!("/proc/self/fd/{}/{name}", parent.as_raw_fd());
    Ok((parent, short))
}

/// Whether nobody listens at `path`. Who listens and accepts nothing is not waited for.
fn is_left(path: &Path) -> io::Result<bool> {
    let (_parent, short) = shortened(path)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    Ok(net::connect(&socket, &SocketAddrUnix::new(short)?) == Err(Errno::CONNREFUSED))
}

/// Binds `path`, however long it is.
pub(crate) fn bind(path: &Path) -> anyhow::Result<UnixListener> {
    let parent = path.parent().context("no directory")?;
    runs::make_private(parent)?;
    let directory = fs::File::open(parent)?;
    let status = directory.metadata()?;
    let own = rustix::process::geteuid().as_raw();
    anyhow::ensure!(
        status.uid() == own && status.mode() & 0o077 == 0,
        "`{}` must be yours alone (mode 0700)",
        parent.display()
    );
    let name = path.file_name().context("no name")?.to_string_lossy();
    let at = |name: &str| format!("/proc/self/fd/{}/{name}", directory.as_raw_fd());
    // It has its name once it is listened at: what has one and is not, was left.
    let making = at(&format!("{MAKING}{name}"));
    let listener = UnixListener::bind(&making)?;
    fs::rename(making, at(&name))?;
    Ok(listener)
}

impl Listener {
    /// Listens for the run `id`.
    pub(crate) fn bind(id: &str) -> anyhow::Result<Self> {
        remove_stale(&directory()?);
        let path = path(id)?;
        let listener =
            bind(&path).with_context(|| format!("cannot listen at `{}`", path.display()))?;
        Ok(Self { listener, path })
    }

    /// Serves for ever.
    pub(crate) fn serve(&self, queue: &Arc<QuestionQueue>) {
        let open = Arc::new(());
        for (who, stream) in (1..).zip(self.listener.incoming()) {
            let Ok(stream) = stream else { continue };
            let Some(by) = outsider(queue.setup.monitor, &stream) else { continue };
            if Arc::strong_count(&open) > MOST {
                continue;
            }
            let (queue, open) = (Arc::clone(queue), Arc::clone(&open));
            // Without a thread it is not served.
            let _ = thread::Builder::new().name("client".into()).spawn(move || {
                let _ = talk(&queue, stream, who, &by);
                queue.leave(who);
                drop(open);
            });
        }
    }

    /// The socket goes.
    pub(crate) fn remove(&self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// What runs that were killed have left in a directory.
pub(crate) fn remove_stale(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let is_made = !entry.file_name().as_encoded_bytes().starts_with(MAKING.as_bytes());
        let age = entry.metadata().and_then(|it| it.modified()).map(|it| it.elapsed());
        let is_old = matches!(age, Ok(Ok(age)) if age > STALE);
        let is_socket = entry.file_type().is_ok_and(|kind| kind.is_socket());
        if is_socket && (is_made || is_old) && is_left(&entry.path()).unwrap_or(false) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Who a process outside of every sandbox is; `None` for all others. A process in a sandbox does
/// not connect itself: its monitor does, by a socket with a name.
fn outsider(monitor: u32, stream: &UnixStream) -> Option<String> {
    let peer = Peer::of(stream.as_fd()).ok()?;
    let is_user = peer.uid() == rustix::process::geteuid().as_raw() || peer.uid() == 0;
    let pid = peer.pid().cast_unsigned();
    let proc = Proc::open().ok()?;
    let is_inside = proc.is_at_or_below(pid, monitor);
    let outside = matches!(runs::client(stream.as_fd()), Ok(None));
    let comm = proc.identity(pid).ok()?.comm;
    // Held by its descriptor: while it lives, the number is its own.
    (is_user && outside && !is_inside && peer.is_alive())
        .then(|| format!("{} [{pid}], user {}", visible(&comm), peer.uid()))
}

/// Tells events and takes answers until the other side goes.
fn talk(queue: &Arc<QuestionQueue>, stream: UnixStream, who: u64, by: &str) -> anyhow::Result<()> {
    let mut writer = stream.try_clone()?;
    // Who does not read is not waited for.
    writer.set_write_timeout(Some(Duration::from_secs(5)))?;
    let setup = &queue.setup;
    let hello = json!({
        "dewar": "ask", "version": VERSION, "run": setup.id, "name": setup.name,
        "command": setup.command, "profile": setup.argument,
    });
    // Whoever has read who it is hears everything from then on.
    let events = queue.listen(who);
    writeln!(writer, "{hello}")?;
    let tell = move || {
        while let Ok(event) = events.recv() {
            if writeln!(writer, "{event}").is_err() {
                break;
            }
        }
        let _ = writer.shutdown(std::net::Shutdown::Both);
    };
    thread::Builder::new().name("events".into()).spawn(tell)?;
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = String::new();
        let count = reader.by_ref().take(MOST_BYTES).read_line(&mut line)?;
        if count == 0 || !line.ends_with('\n') {
            return Ok(());
        }
        let event = match learn::answer(line.as_bytes()) {
            Ok(answer) => hear(queue, &answer, by),
            Err(error) => json!({ "error": { "why": format!("no such request: {error}") } }),
        };
        queue.tell(who, &event);
    }
}

fn hear(queue: &QuestionQueue, said: &Answer, by: &str) -> serde_json::Value {
    let done = match Choice::of(&said.answer) {
        Some(choice) => queue.answer(said.id, choice, said.named.as_deref(), by),
        None => Err(AskError::NoAnswer(visible(&said.answer))),
    };
    match done {
        Ok(()) => json!({ "done": { "id": said.id } }),
        Err(why) => json!({ "error": { "id": said.id, "why": why.to_string() } }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{bind, connect, listen, socket};
    use std::os::unix::{fs::PermissionsExt as _, process::CommandExt as _};

    /// Nobody's number.
    const NO_RUN: u32 = u32::MAX / 2;

    #[test]
    fn a_socket_that_nobody_listens_at_any_more_goes_with_the_next_start() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join("ask").join(name);
        let left = super::bind(&at("left.sock")).unwrap();
        drop(left);
        let _other = super::bind(&at("other.sock")).unwrap();
        // Another start is about to listen there.
        drop(UnixListener::bind(at(".begun.sock")).unwrap());
        fs::write(at("no-socket"), "").unwrap();
        remove_stale(&place.path().join("ask"));
        let is_there = |name: &str| at(name).symlink_metadata().is_ok();
        let there =
            ["left.sock", "other.sock", ".begun.sock", ".other.sock", "no-socket"].map(is_there);
        assert_eq!(there, [false, true, true, false, true]);
        assert!(super::connect(&at("other.sock")).is_ok());
    }

    #[test]
    fn a_listener_that_accepts_nothing_holds_up_no_start_and_keeps_its_socket() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("full.sock");
        let full = socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
        let address = SocketAddrUnix::new(&path).unwrap();
        bind(&full, &address).unwrap();
        listen(&full, 0).unwrap();
        let _waits = UnixStream::connect(&path).unwrap();
        let (done, is_done) = std::sync::mpsc::channel();
        let directory = place.path().to_owned();
        thread::spawn(move || {
            remove_stale(&directory);
            done.send(()).unwrap();
        });
        is_done.recv_timeout(Duration::from_secs(5)).expect("it waits for who accepts nothing");
        assert!(path.symlink_metadata().is_ok());
    }

    #[test]
    fn only_who_is_outside_of_every_run_and_the_users_or_root_is_heard() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("it.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let heard = |monitor| {
            let stream = listener.accept().unwrap().0;
            outsider(monitor, &stream)
        };
        let own = std::process::id();
        let _plain = UnixStream::connect(&path).unwrap();
        assert!(heard(NO_RUN).expect("heard").contains(&format!("[{own}]")));

        // The monitor of this run, and its children.
        let _plain = UnixStream::connect(&path).unwrap();
        assert_eq!(heard(own), None);
        let _plain = UnixStream::connect(&path).unwrap();
        assert_eq!(heard(std::os::unix::process::parent_id()), None);

        // What a monitor of any run does for a process bears a name.
        for name in [&b"dewar/abcd2345/1"[..], b"something else"] {
            let named = socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
            bind(&named, &SocketAddrUnix::new_abstract_name(name).unwrap()).unwrap();
            connect(&named, &SocketAddrUnix::new(&path).unwrap()).unwrap();
            assert_eq!(heard(NO_RUN), None);
        }

        if !rustix::process::geteuid().is_root() {
            eprintln!("note: not run by root, so no other user is tried");
            return;
        }
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        let script = "import socket, sys\ns = socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])\ns.recv(1)";
        let mut other = std::process::Command::new("/usr/bin/python3");
        let mut other =
            other.args(["-c", script]).arg(&path).uid(65534).gid(65534).spawn().unwrap();
        assert_eq!(heard(NO_RUN), None);
        assert!(other.wait().unwrap().success());
    }
}
