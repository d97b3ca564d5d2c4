//! What both transports do alike.

use crate::world::{TRANSPORTS, World, beside, echo};
use ipc::{Access, Call, CallError, ConnectError, MAX_MESSAGE, Port, Server, SessionError};
use proptest::prelude::*;
use std::{
    fs::{File, Permissions, set_permissions},
    io::{Read as _, Seek as _, Write as _},
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::fs::PermissionsExt as _,
    },
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::{Duration, Instant},
};

#[test]
fn every_length_comes_back_whole() {
    let world = World::new();
    world.with(echo, || {
        for transport in TRANSPORTS {
            let mut port = world.connect(transport);
            for len in [0, 1, 7, 8, 9, 47, 48, 49, 4095, 4096, 65_535, MAX_MESSAGE] {
                let body: Vec<u8> = (0..len).map(|n| (n * 7 + len) as u8).collect();
                assert!(port.call(&body).expect("a reply") == body, "{transport:?}: {len}");
            }
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn replies_are_those_of_their_requests(
        bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..3000), 1..20),
    ) {
        let world = World::new();
        let reversed = |request: ipc::Request<'_>| {
            let body: Vec<u8> = request.body().iter().rev().copied().collect();
            request.reply(&body).expect("the client is there");
        };
        world.with(reversed, || {
            for transport in TRANSPORTS {
                let mut port = world.connect(transport);
                for body in &bodies {
                    let want: Vec<u8> = body.iter().rev().copied().collect();
                    assert_eq!(port.call(body).expect("a reply"), want);
                }
            }
        });
    }
}

#[test]
fn a_value_is_asked_for_by_its_type() {
    let world = World::new();
    let double = |request: ipc::Request<'_>| {
        let number: u32 = request.read().expect("a number");
        request.reply(&(number * 2).to_ne_bytes()).expect("the client is there");
    };
    world.with(double, || {
        for transport in TRANSPORTS {
            let mut port = world.connect(transport);
            assert_eq!(port.ask::<u32, u32>(&21).expect("a number"), 42);
            assert!(matches!(port.ask::<u32, u64>(&21), Err(CallError::WrongType)));
        }
    });
}

#[test]
fn too_long_a_message_is_refused_at_its_sender_and_the_port_goes_on() {
    let world = World::new();
    let too_long = vec![0; MAX_MESSAGE + 1];
    let service = |request: ipc::Request<'_>| {
        if request.body() == b"long" {
            assert!(matches!(request.reply(&too_long), Err(SessionError::TooLong)));
        } else {
            echo(request);
        }
    };
    world.with(service, || {
        for transport in TRANSPORTS {
            let mut port = world.connect(transport);
            assert!(matches!(port.call(&too_long), Err(CallError::TooLong)));
            assert!(matches!(port.call(b"long"), Err(CallError::Unanswered)));
            assert_eq!(port.call(b"short").expect("a reply"), b"short");
        }
    });
}

#[test]
fn a_request_that_is_dropped_is_answered_as_such() {
    let world = World::new();
    world.with(
        |request| drop(request),
        || {
            for transport in TRANSPORTS {
                let answer = world.connect(transport).call(b"?").map(<[u8]>::to_vec);
                assert!(matches!(answer, Err(CallError::Unanswered)), "{answer:?}");
            }
        },
    );
}

#[test]
fn descriptors_travel_both_ways() {
    let world = World::new();
    // Reads the file it is given, and answers with another.
    let service = |mut request: ipc::Request<'_>| {
        let mut text = String::new();
        for fd in request.take_descriptors() {
            File::from(fd).read_to_string(&mut text).expect("it can be read");
        }
        let mut reply = tempfile::tempfile().expect("a file");
        write!(reply, "{text}!").and_then(|()| reply.rewind()).expect("it can be written");
        request.reply_with(b"", &[reply.as_fd()]).expect("the client is there");
    };
    world.with(service, || {
        for transport in TRANSPORTS {
            let mut port = world.connect(transport);
            for round in 0..20 {
                let mut file = tempfile::tempfile().expect("a file");
                write!(file, "{round}").and_then(|()| file.rewind()).expect("it can be written");
                // Some calls come when the other end already sleeps on its socket.
                thread::sleep(Duration::from_millis(if round % 5 == 0 { 30 } else { 0 }));
                let call = Call { descriptors: &[file.as_fd()], ..Call::default() };
                let [reply]: [OwnedFd; 1] =
                    port.send(call).expect("a reply").descriptors.try_into().expect("one");
                let mut text = String::new();
                File::from(reply).read_to_string(&mut text).expect("it can be read");
                assert_eq!(text, format!("{round}!"), "{transport:?}");
            }
        }
    });
}

#[test]
fn a_call_ends_at_its_timeout_and_a_late_reply_is_left_aside() {
    let world = World::new();
    let slow = |request: ipc::Request<'_>| {
        if request.body() == b"slow" {
            thread::sleep(Duration::from_millis(150));
        }
        // A reply that nobody waits for any more may or may not find its way.
        let _ = request.echo();
    };
    world.with(slow, || {
        for transport in TRANSPORTS {
            let mut port = world.connect(transport);
            port.set_timeout(Some(Duration::from_millis(50)));
            let begin = Instant::now();
            assert!(matches!(port.call(b"slow"), Err(CallError::TimedOut)));
            assert!(begin.elapsed() >= Duration::from_millis(50), "{transport:?}");
            port.set_timeout(Some(Duration::from_secs(5)));
            for body in [b"one", b"two"] {
                assert_eq!(port.call(body).expect("a reply"), body, "{transport:?}");
            }
        }
    });
}

#[test]
fn a_service_waits_no_longer_than_it_says_and_goes_on() {
    let world = World::new();
    world.label(std::process::id(), "build");
    let server = Server::bind(&world.path(), Access::Checked(world.guard())).expect("a server");
    for transport in TRANSPORTS {
        thread::scope(|scope| {
            let client = scope.spawn(|| {
                let mut port = world.connect(transport);
                thread::sleep(Duration::from_millis(500));
                port.call(b"late").expect("a reply").to_vec()
            });
            let mut session = server.accept().expect("a client");
            let early = session.recv(Some(Duration::from_millis(10))).map(drop);
            assert!(matches!(early, Err(SessionError::TimedOut)), "{early:?}");
            echo(session.recv(Some(Duration::from_secs(5))).expect("a request"));
            assert_eq!(client.join().expect("no panic"), b"late");
        });
    }
}

#[test]
fn a_service_can_tell_that_nobody_waits_any_more() {
    let world = World::new();
    let noticed = AtomicU32::new(0);
    let patient = |request: ipc::Request<'_>| {
        for _ in 0..500 {
            if request.is_given_up() {
                noticed.fetch_add(1, Ordering::SeqCst);
                return;
            }
            thread::sleep(Duration::from_millis(5));
        }
    };
    world.with(patient, || {
        for transport in TRANSPORTS {
            let mut port = world.connect(transport);
            port.set_timeout(Some(Duration::from_millis(50)));
            assert!(port.call(b"?").is_err());
        }
    });
    assert_eq!(noticed.load(Ordering::SeqCst), 2);
}

#[test]
fn sixty_four_clients_are_served_at_once() {
    let world = World::new();
    let calls = AtomicU32::new(0);
    let service = |request: ipc::Request<'_>| {
        calls.fetch_add(1, Ordering::Relaxed);
        echo(request);
    };
    let client = |number: u32| {
        let mut port = world.connect(TRANSPORTS[number as usize % 2]);
        port.set_timeout(None);
        for call in 0..50 {
            let asked = number * 1000 + call;
            assert_eq!(port.ask::<u32, u32>(&asked).expect("a reply"), asked);
        }
    };
    world.with(service, || {
        thread::scope(|scope| {
            for number in 0..64 {
                scope.spawn(move || client(number));
            }
        });
    });
    assert_eq!(calls.load(Ordering::Relaxed), 64 * 50);
}

#[test]
fn who_comes_when_all_sessions_are_taken_is_told_so() {
    let world = World::new();
    world.label(std::process::id(), "build");
    let server = Server::bind(&world.path(), Access::Checked(world.guard()));
    let server = server.expect("a server").with_max_sessions(2);
    beside(&server, echo, || {
        let ports: Vec<Port> = TRANSPORTS.into_iter().map(|t| world.connect(t)).collect();
        let third = Port::connect(&world.path(), TRANSPORTS[0]).map(drop);
        assert!(matches!(third, Err(ConnectError::Busy)), "{third:?}");
        drop(ports);
        // The sessions end when their threads notice.
        let again = (0..100).any(|_| {
            thread::sleep(Duration::from_millis(10));
            Port::connect(&world.path(), TRANSPORTS[0]).is_ok()
        });
        assert!(again);
    });
}

#[test]
fn one_user_does_not_take_the_place_of_others() {
    let world = World::new();
    let server = Server::bind(&world.path(), Access::Unchecked).expect("a server");
    let server = server.with_max_sessions_of_user(2);
    beside(&server, echo, || {
        let connect = || Port::connect(&world.path(), TRANSPORTS[0]);
        if !rustix::process::geteuid().is_root() {
            println!("not tested with two users: only root can be another");
            let _ports = [connect(), connect()].map(|port| port.expect("a port"));
            assert!(matches!(connect(), Err(ConnectError::Busy)));
            return;
        }
        set_permissions(world.path(), Permissions::from_mode(0o777)).expect("for everybody");
        set_permissions(world.path().parent().expect("a directory"), Permissions::from_mode(0o711))
            .expect("for everybody");
        thread::scope(|scope| {
            scope.spawn(|| {
                // Of this thread alone.
                let other = rustix::process::Uid::from_raw(54_321);
                rustix::thread::set_thread_res_uid(other, other, other).expect("another user");
                let _ports = [connect(), connect()].map(|port| port.expect("a port"));
                assert!(matches!(connect(), Err(ConnectError::Busy)));
            });
        });
        let _ports = [connect(), connect(), connect()].map(|port| port.expect("root's"));
    });
}

#[test]
fn a_service_that_stops_leaves_no_client_waiting_and_no_file() {
    let world = World::new();
    for transport in TRANSPORTS {
        let mut port = None;
        world.with(echo, || {
            let connected = port.insert(world.connect(transport));
            assert!(connected.call(b"1").is_ok());
        });
        let begin = Instant::now();
        let answer = port.take().expect("a port").call(b"2").map(<[u8]>::to_vec);
        assert!(matches!(answer, Err(CallError::Gone)), "{transport:?}: {answer:?}");
        assert!(begin.elapsed() < Duration::from_secs(15));
        assert!(!world.path().exists());
    }
}
