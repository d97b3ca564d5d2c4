//! Processes that end at every step: whoever is left learns it soon, and goes on.

use crate::world::{TRANSPORTS, World, beside, echo};
use ipc::{Access, CallError, Guard, Port, Server, Transport};
use std::{
    env,
    io::{BufRead as _, BufReader},
    os::unix::process::parent_id,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// The variable that makes this program the other process of a test: what it does, and where.
const ROLE: &str = "DEWAR_PORT_TEST_ROLE";

/// This program again, as the other process.
struct Other(Child);

impl Other {
    fn start(role: &str, transport: Transport, path: &Path) -> Self {
        let program = env::current_exe().expect("this program");
        let child = Command::new(program)
            .args(["--exact", "death::the_other_process", "--ignored", "--nocapture"])
            .env(ROLE, format!("{role} {transport:?} {}", path.display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        Self(child.expect("another process"))
    }

    /// Waits until it says that it has done its first step.
    fn ready(&mut self) {
        let output = self.0.stdout.as_mut().expect("a pipe");
        let mut lines = BufReader::new(output).lines();
        assert!(lines.any(|line| line.is_ok_and(|line| line.contains("ready"))), "it failed");
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
#[ignore = "run by the other tests, as another process"]
fn the_other_process() {
    let role = env::var(ROLE).expect("the other tests say what to do");
    let [role, transport, path] =
        role.splitn(3, ' ').collect::<Vec<_>>().try_into().expect("three");
    let transport = if transport == "Memory" { Transport::Memory } else { Transport::Socket };
    let path = Path::new(path);
    // Labelled by the other side once it is running: until then, it is nobody.
    let connect = || loop {
        match Port::connect(path, transport) {
            Ok(port) => break port,
            Err(_) => thread::sleep(Duration::from_millis(5)),
        }
    };
    match role {
        "connect" => {
            let _port = connect();
            println!("ready");
            thread::sleep(Duration::from_secs(60));
        }
        "call" => {
            let mut port = connect();
            port.set_timeout(None);
            println!("ready");
            let _ = port.call(b"never answered").map(<[u8]>::len);
        }
        "serve" => {
            let world = World::new();
            world.labels.set(parent_id() as i32, Some(world.sid("build"))).expect("a process");
            let access = Access::Checked(Guard::new(
                world.avc.clone(),
                world.labels.clone(),
                world.sid("service"),
            ));
            let server = Server::bind(path, access).expect("a server");
            println!("ready");
            let slow = |request: ipc::Request<'_>| match request.body() {
                b"hang" => thread::sleep(Duration::from_secs(60)),
                _ => echo(request),
            };
            server.serve(slow).expect("it serves");
        }
        role => panic!("`{role}` is no role"),
    }
}

#[test]
fn a_client_that_dies_leaves_its_session_and_no_other() {
    for transport in TRANSPORTS {
        for role in ["connect", "call"] {
            let world = World::new();
            world.label(std::process::id(), "build");
            let server = Server::bind(&world.path(), Access::Checked(world.guard()));
            let server = server.expect("a server").with_max_sessions(2);
            let service = |request: ipc::Request<'_>| match request.body() {
                b"never answered" => {
                    let begin = Instant::now();
                    while !request.is_given_up() {
                        thread::sleep(Duration::from_millis(5));
                        assert!(begin.elapsed() < Duration::from_secs(10), "nobody noticed");
                    }
                }
                _ => echo(request),
            };
            beside(&server, service, || {
                let mut honest = world.connect(transport);
                let mut other = Other::start(role, transport, &world.path());
                world.label(other.0.id(), "build");
                other.ready();
                drop(other);
                assert_eq!(honest.call(b"still here").expect("a reply"), b"still here");
                // Its place becomes free.
                let free = (0..200).any(|_| {
                    thread::sleep(Duration::from_millis(10));
                    Port::connect(&world.path(), transport).is_ok()
                });
                assert!(free, "{transport:?}, {role}");
            });
        }
    }
}

#[test]
fn a_server_that_dies_ends_the_calls_that_wait_for_it() {
    for transport in TRANSPORTS {
        let world = World::new();
        let mut other = Other::start("serve", transport, &world.path());
        other.ready();
        let mut port = world.connect(transport);
        let mut idle = world.connect(transport);
        assert_eq!(port.call(b"1").expect("a reply"), b"1");
        assert_eq!(idle.call(b"2").expect("a reply"), b"2");
        port.set_timeout(Some(Duration::from_secs(20)));
        let begin = Instant::now();
        thread::scope(|scope| {
            let waiting = scope.spawn(|| port.call(b"hang").map(<[u8]>::to_vec));
            thread::sleep(Duration::from_millis(100));
            drop(other);
            let answer = waiting.join().expect("no panic");
            assert!(matches!(answer, Err(CallError::Gone)), "{transport:?}: {answer:?}");
        });
        assert!(begin.elapsed() < Duration::from_secs(15), "{transport:?}: {:?}", begin.elapsed());
        let answer = idle.call(b"2").map(<[u8]>::to_vec);
        assert!(matches!(answer, Err(CallError::Gone)), "{transport:?}: {answer:?}");
    }
}
