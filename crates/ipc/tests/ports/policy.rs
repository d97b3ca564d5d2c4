//! What policy decides about calls, on both transports.

use crate::world::{TRANSPORTS, World, beside, echo};
use flask::{Class, Sid, perm};
use ipc::{
    Access, CallError, ConnectError, Guard, PeerTable, Port, Record, Request, Server, Transport,
};
use std::{
    path::Path,
    process,
    sync::{Arc, Mutex},
};

/// Answers with the numbers of the two SIDs that the service sees: client and caller.
fn who(request: Request<'_>) {
    let sids = [request.client().get(), request.caller().get()];
    request.reply(&sids.map(u32::to_ne_bytes).concat()).expect("the client is there");
}

fn seen(answer: Result<&[u8], CallError>) -> Result<(Sid, Sid), CallError> {
    let number = |bytes: &[u8]| {
        Sid::new(u32::from_ne_bytes(bytes.try_into().expect("four bytes"))).expect("a SID")
    };
    answer.map(|bytes| (number(&bytes[..4]), number(&bytes[4..])))
}

#[test]
fn a_service_learns_its_client_s_label_on_every_call() {
    let world = World::new();
    world.with(who, || {
        for transport in TRANSPORTS {
            let mut port = world.connect(transport);
            for domain in ["build", "deputy", "build"] {
                world.label(process::id(), domain);
                let sid = world.sid(domain);
                assert_eq!(seen(port.call(b"")).expect("a reply"), (sid, sid), "{transport:?}");
            }
        }
    });
}

#[test]
fn who_policy_does_not_let_connect_gets_no_connection() {
    let world = World::new();
    world.with(who, || {
        for transport in TRANSPORTS {
            for domain in ["test", "stranger", "service"] {
                world.label(process::id(), domain);
                let refused = Port::connect(&world.path(), transport).map(drop);
                assert!(matches!(refused, Err(ConnectError::Denied)), "{domain}: {refused:?}");
            }
            world.labels.set(process::id() as i32, None).expect("a process");
            let refused = Port::connect(&world.path(), transport).map(drop);
            assert!(matches!(refused, Err(ConnectError::Denied)), "unknown: {refused:?}");
            world.label(process::id(), "build");
        }
    });
}

#[test]
fn a_permission_that_policy_takes_back_is_gone_with_the_next_call() {
    let world = World::new();
    world.with(who, || {
        for transport in TRANSPORTS {
            let change = |on| {
                let seqno = world.policy.set_booleans(&[("tested", on)]).expect("a boolean");
                world.avc.reset(seqno);
            };
            change(true);
            world.label(process::id(), "test");
            let mut port = world.connect(transport);
            for on in [true, false, true] {
                change(on);
                let answer = seen(port.call(b""));
                assert_eq!(answer.is_ok(), on, "{transport:?}: {answer:?}");
                assert!(on || matches!(answer, Err(CallError::Denied)));
            }
            world.label(process::id(), "build");
        }
    });
}

#[test]
fn a_process_whose_label_is_gone_is_denied_on_the_connection_it_has() {
    let world = World::new();
    world.with(who, || {
        for transport in TRANSPORTS {
            let mut port = world.connect(transport);
            world.labels.set(process::id() as i32, None).expect("a process");
            assert!(matches!(port.call(b"").map(drop), Err(CallError::Denied)));
            world.label(process::id(), "build");
            assert!(port.call(b"").is_ok());
        }
    });
}

#[test]
fn another_s_name_is_taken_only_where_policy_grants_it() {
    let world = World::new();
    world.with(who, || {
        let (build, test, deputy) = (world.sid("build"), world.sid("test"), world.sid("deputy"));
        for transport in TRANSPORTS {
            let mut port = world.connect(transport);
            let denied =
                |answer: Result<&[u8], CallError>| matches!(answer, Err(CallError::DeniedName));
            // `build` may not name anybody, not even those with equal rights, nor a SID that nobody
            // gave out.
            assert!(denied(port.call_as(deputy, b"")));
            assert!(denied(port.call_as(Sid::new(77_777).expect("a SID"), b"")));
            world.label(process::id(), "deputy");
            assert_eq!(seen(port.call_as(build, b"")).expect("a reply"), (build, deputy));
            // `deputy` may name `test`, but `test` may not connect.
            assert!(denied(port.call_as(test, b"")));
            assert_eq!(seen(port.call(b"")).expect("a reply"), (deputy, deputy));
            world.label(process::id(), "build");
        }
    });
}

/// The deputy may use the service, and anybody the deputy; `test` may not use the service. Each
/// port has its own record of labels, so that this one process can be all three.
#[test]
fn a_deputy_that_passes_its_client_on_is_not_confused() {
    let world = World::new();
    let port_of = |peer, port, path: &Path| {
        let labels = Arc::new(PeerTable::default());
        labels.set(process::id() as i32, Some(world.sid(peer))).expect("a process");
        let guard = Guard::new(world.avc.clone(), labels, world.sid(port));
        Server::bind(path, Access::Checked(guard)).expect("a server")
    };
    let path = world.path().with_extension("deputy");
    let deputy = |request: Request<'_>| {
        let mut service = world.connect(Transport::Socket);
        let answer = service.call_as(request.client(), b"token");
        request.reply(answer.unwrap_or(b"refused")).expect("the client is there");
    };
    for (client, want) in [("build", "token"), ("test", "refused")] {
        let service = port_of("deputy", "service", &world.path());
        let front = port_of(client, "deputy", &path);
        beside(&service, echo, || {
            beside(&front, deputy, || {
                let mut port = Port::connect(&path, Transport::Memory).expect("a connection");
                assert_eq!(port.call(b"").expect("a reply"), want.as_bytes(), "{client}");
            });
        });
    }
}

/// A guard that tells of its decisions, and what it has told.
fn recorded(guard: Guard) -> (Guard, Arc<Mutex<Vec<Record>>>) {
    let records = Arc::new(Mutex::new(Vec::new()));
    let sink = records.clone();
    (guard.with_audit(move |record| sink.lock().expect("a list").push(record)), records)
}

#[test]
fn a_denial_is_on_record_with_who_asked_for_what() {
    let world = World::new();
    let (guard, records) = recorded(world.guard());
    let server = Server::bind(&world.path(), Access::Checked(guard)).expect("a server");
    world.label(process::id(), "test");
    beside(&server, who, || {
        assert!(Port::connect(&world.path(), Transport::Socket).is_err());
    });
    let records = records.lock().expect("a list");
    let [record] = records.as_slice() else { panic!("{records:?}") };
    assert_eq!(record.question.ssid, world.sid("test"));
    assert_eq!((record.question.tsid, record.question.tclass), (world.sid("service"), Class::Port));
    assert_eq!((record.requested, record.granted), (perm::port::CONNECT, false));
    assert_eq!(record.pid, process::id() as i32);
}

#[test]
fn a_security_server_that_does_not_answer_denies_on_record() {
    struct Silent(Arc<security_server::Server>);
    impl flask::SecurityServer for Silent {
        fn seqno(&self) -> Result<flask::Seqno, flask::Unreachable> {
            Err(flask::Unreachable)
        }
        fn compute_av(&self, _: flask::Question) -> Result<flask::Decision, flask::Unreachable> {
            Err(flask::Unreachable)
        }
        fn compute_create(
            &self,
            q: flask::Question,
            name: Option<&str>,
        ) -> Result<Sid, flask::LabelError> {
            self.0.compute_create(q, name)
        }
        fn compute_member(&self, q: flask::Question) -> Result<Sid, flask::LabelError> {
            self.0.compute_member(q)
        }
        fn context_to_sid(&self, context: &str) -> Result<Sid, flask::LabelError> {
            self.0.context_to_sid(context)
        }
        fn sid_to_context(&self, sid: Sid) -> Result<String, flask::LabelError> {
            self.0.sid_to_context(sid)
        }
        fn label_rules(&self) -> Result<flask::LabelRules, flask::Unreachable> {
            Err(flask::Unreachable)
        }
        fn explain(
            &self,
            _: flask::Question,
            _: flask::AccessVector,
        ) -> Result<flask::Explanation, flask::Unreachable> {
            Err(flask::Unreachable)
        }
    }
    let world = World::new();
    let avc = Arc::new(avc::Avc::new(Arc::new(Silent(world.policy.clone()))));
    let guard = Guard::new(avc, world.labels.clone(), world.sid("service"));
    let (guard, records) = recorded(guard);
    let server = Server::bind(&world.path(), Access::Checked(guard)).expect("a server");
    world.label(process::id(), "build");
    beside(&server, echo, || {
        let refused = Port::connect(&world.path(), Transport::Memory).map(drop);
        assert!(matches!(refused, Err(ConnectError::Denied)), "{refused:?}");
    });
    let records = records.lock().expect("a list");
    let [record] = records.as_slice() else { panic!("{records:?}") };
    assert_eq!(record.question.ssid, world.sid("build"));
    assert_eq!((record.requested, record.granted), (perm::port::CONNECT, false));
}
