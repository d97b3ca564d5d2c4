//! Memory and names that change while they are decided.

use crate::{
    case::{Case, Judge, Severity},
    outside::{look::came_out, witness::reached},
    scene::{RACE, Scene, loot},
    sys::{self, Shared},
};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::{
    fs::{self, File},
    io::{self, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    os::{
        fd::AsFd as _,
        unix::{ffi::OsStrExt as _, fs::symlink},
    },
    sync::atomic::{AtomicBool, Ordering},
    time::Instant,
};

/// Goes on with `other` in a thread, and with `main` here, until `main` is done or the time is
/// over.
fn race(
    other: impl Fn() + Send + Sync,
    mut main: impl FnMut() -> io::Result<bool>,
) -> io::Result<()> {
    let over = AtomicBool::new(false);
    let begun = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                other();
            }
        });
        let mut last = io::Error::other("the race was not won");
        let mut won = false;
        while !won && begun.elapsed() < RACE {
            match main() {
                Ok(true) => won = true,
                Ok(false) => {}
                Err(error) => last = error,
            }
        }
        over.store(true, Ordering::Relaxed);
        if won { Ok(()) } else { Err(last) }
    })
}

/// Reads all of a file; whether it is not the harmless one.
fn found(file: io::Result<File>) -> io::Result<bool> {
    let mut all = Vec::new();
    file?.read_to_end(&mut all)?;
    let is_other = all != b"harmless\n";
    if is_other {
        loot(&all);
    }
    Ok(is_other)
}

fn harmless() -> io::Result<()> {
    fs::write("harmless", "harmless\n")
}

pub(super) const CASES: &[Case] = &[
    Case {
        name: "race-of-a-path",
        severity: Severity::High,
        claim: "Reads a secret by changing the path in memory while it is checked.",
        source: "seccomp_unotify(2), \"time-of-check, time-of-use\"",
        outside: |stage| Ok(came_out(stage.secret()?, "the race was won: the key was read")),
        attack: |scene| {
            harmless()?;
            let secret = scene.path("secret");
            let secret = secret.as_os_str().as_bytes();
            let path = Shared::new(b"harmless", secret.len());
            let change = || {
                for name in [secret, b"harmless"] {
                    path.put(name);
                    // Else it is half of each for most of the time, which names nothing.
                    (0..100).for_each(|_| std::hint::spin_loop());
                }
            };
            race(change, || found(path.open().map(File::from)))
        },
    },
    Case {
        name: "race-of-a-link",
        severity: Severity::High,
        claim: "Reads a secret by a link that leads elsewhere while it is checked.",
        source: "CVE-2021-30465 (runc, links exchanged)",
        outside: |stage| Ok(came_out(stage.secret()?, "the race was won: the key was read")),
        attack: |scene| {
            harmless()?;
            symlink("harmless", "one")?;
            symlink(scene.path("secret"), "two")?;
            let change = || {
                let _ = renameat_with(CWD, "one", CWD, "two", RenameFlags::EXCHANGE);
            };
            race(change, || found(File::open("one")))
        },
    },
    Case {
        name: "race-of-a-directory",
        severity: Severity::High,
        claim: "Reads a secret by a directory that is exchanged for a link while it is walked.",
        source: "CVE-2018-15664 (docker cp, links exchanged)",
        outside: |stage| Ok(came_out(stage.secret()?, "the race was won: the key was read")),
        attack: |scene| {
            let secret = scene.path("secret");
            let place = secret.parent().ok_or_else(|| io::Error::other("no directory"))?;
            fs::create_dir_all("place")?;
            fs::write("place/id_ed25519", "harmless\n")?;
            symlink(place, "other")?;
            let change = || {
                let _ = renameat_with(CWD, "place", CWD, "other", RenameFlags::EXCHANGE);
            };
            race(change, || found(File::open("place/id_ed25519")))
        },
    },
    Case {
        name: "race-of-a-write",
        severity: Severity::Critical,
        claim: "Changes a file of the home by a link that changes while it is checked.",
        source: "CVE-2024-21626 (runc); symlink(7)",
        outside: |stage| {
            let path = stage.file(".profile", "# mine\n")?;
            let mark = stage.mark();
            stage.tell("target", path.display());
            Ok(Judge::after(move |_| {
                crate::outside::look::has(&path, &mark).then(|| ".profile is changed".to_owned())
            }))
        },
        attack: |scene| {
            harmless()?;
            symlink("harmless", "one")?;
            symlink(scene.path("target"), "two")?;
            let change = || {
                let _ = renameat_with(CWD, "one", CWD, "two", RenameFlags::EXCHANGE);
            };
            let mark = scene.mark();
            race(change, || {
                File::options().write(true).open("one")?.write_all(mark)?;
                Ok(false)
            })
        },
    },
    Case {
        name: "race-of-an-address",
        severity: Severity::High,
        claim: "Connects to a port that nothing names by changing the address while it is checked.",
        source: "seccomp_unotify(2), \"time-of-check, time-of-use\"",
        outside: |stage| {
            let granted = TcpListener::bind("127.0.0.1:0")?;
            let other = TcpListener::bind("127.0.0.1:0")?;
            let port = granted.local_addr()?.port();
            stage.rules = format!("[network]\nconnect = [\"127.0.0.1:{port}\"]\n");
            stage.tell("granted", port);
            // Connections that nobody accepts would hold up the race.
            std::thread::spawn(move || granted.incoming().flatten().for_each(drop));
            stage.tell("port", other.local_addr()?.port());
            let mark = stage.mark();
            Ok(Judge::after(move |_| {
                reached(&other, &mark).then(|| "the race was won: a connection arrived".to_owned())
            }))
        },
        attack: race_of_an_address,
    },
];

fn race_of_an_address(scene: &Scene) -> io::Result<()> {
    let granted = u16::try_from(scene.number("granted")).unwrap_or(0);
    let harmless = super::network::v4(libc::AF_INET, granted);
    let other = super::network::v4(libc::AF_INET, scene.port());
    let address = Shared::new(&harmless, harmless.len());
    let pause = || (0..64).for_each(|_| std::hint::spin_loop());
    let change = || {
        address.put(&other);
        pause();
        address.put(&harmless);
        pause();
    };
    race(change, || {
        let socket = sys::socket(libc::AF_INET, libc::SOCK_STREAM, 0)?;
        address.connect(socket.as_fd(), harmless.len())?;
        let mut stream = TcpStream::from(socket);
        let is_other = stream.peer_addr()?.port() == scene.port();
        if is_other {
            stream.write_all(scene.mark())?;
        }
        Ok(is_other)
    })
}
