//! A control socket whose owner wants to keep whoever asks there waiting.

use runs::{Unknown, client};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, accept, bind,
    connect, listen, recv, send, socket_with,
};
use std::{
    env, fs,
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::{fs::DirBuilderExt as _, process::ExitStatusExt as _},
    },
    path::{Path, PathBuf},
    process::{self, Command},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::Duration,
};

/// More than are tried.
const SOCKETS: usize = 6;

/// Time between two packets of such a socket, and how many it sends: ten times the patience of
/// whoever asks.
const PAUSE: Duration = Duration::from_millis(50);
const PACKETS: usize = 200;

fn socket() -> OwnedFd {
    let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
    socket_with(family, kind, SocketFlags::CLOEXEC, None).expect("a socket")
}

fn listener(path: &Path) -> OwnedFd {
    let listener = socket();
    bind(&listener, &SocketAddrUnix::new(path).expect("an address")).expect("bound");
    listen(&listener, 8).expect("listening");
    listener
}

/// This process is both: the monitor that has made the connection, and the service that asks it.
fn ask_a_monitor_that_says_something_now_and_then(runtime: &Path) {
    let runs = runtime.join("dewar/runs");
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&runs).expect("a directory");
    let (connections, packets) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let service = listener(&runtime.join("service"));
    let (own, theirs) = (format!("dewar/{}", process::id()), runtime.join("service"));
    let connection = socket();
    bind(&connection, &SocketAddrUnix::new_abstract_name(own.as_bytes()).expect("a name"))
        .expect("bound");
    connect(&connection, &SocketAddrUnix::new(theirs).expect("an address")).expect("connected");
    let accepted = accept(&service).expect("a client");
    let paths: Vec<PathBuf> =
        (0..SOCKETS).map(|it| runs.join(format!("run{it}.{}", process::id()))).collect();
    thread::scope(|scope| {
        for control in paths.iter().map(|path| listener(path)) {
            let (connections, packets) = (&connections, &packets);
            scope.spawn(move || {
                let asked = accept(&control).expect("a client");
                if recv(&asked, &mut [0; 64], RecvFlags::empty()).is_ok_and(|it| it.1 == 0) {
                    return;
                }
                connections.fetch_add(1, Ordering::AcqRel);
                // Whole, and an answer to another question.
                let packet = [7, 0, 0, 0].map(u32::to_ne_bytes).concat();
                while send(&asked, &packet, SendFlags::NOSIGNAL).is_ok()
                    && packets.fetch_add(1, Ordering::AcqRel) < PACKETS
                {
                    thread::sleep(PAUSE);
                }
            });
        }
        let answer = client(accepted.as_fd());
        let packets = packets.load(Ordering::Acquire);
        // Those who were not asked still wait; nothing comes from here.
        for path in &paths {
            let _ = connect(socket(), &SocketAddrUnix::new(path).expect("an address"));
        }
        assert!(matches!(answer, Err(Unknown::NoRun(..))), "{answer:?}");
        assert!(packets < PACKETS, "it waits for as long as something comes");
    });
    // The first takes all of the patience there is.
    assert_eq!(connections.into_inner(), 1, "it has patience with each of them");
}

#[test]
fn all_sockets_of_a_run_together_get_a_second_whatever_they_say() {
    if let Some(runtime) = env::var_os("DEWAR_TEST_RUNTIME") {
        return ask_a_monitor_that_says_something_now_and_then(Path::new(&runtime));
    }
    // In a process of its own, for which the directory of runs is another.
    let directory = tempfile::tempdir().expect("a directory");
    let test = "all_sockets_of_a_run_together_get_a_second_whatever_they_say";
    let status = Command::new(env::current_exe().expect("this program"))
        .args(["--exact", test])
        .env("XDG_RUNTIME_DIR", directory.path())
        .env("DEWAR_TEST_RUNTIME", directory.path())
        .status();
    assert_eq!(status.expect("started").into_raw(), 0);
}
