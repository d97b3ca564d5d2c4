//! What the trait promises, asked of a server in this process and of the same one behind a port.

mod common;

use common::{Behind, POLICY, policy};
use flask::{
    AccessVector, Class, Decision, FileKind, InitialSid, LabelError, Question, SecurityServer,
    Seqno, Sid, Unreachable, perm,
};
use security_server::Server;
use std::time::{Duration, Instant};

/// Runs a test on a server itself, then on another one through a port, on both transports.
fn each(cil: &str, test: impl Fn(&Server, &dyn SecurityServer)) {
    let server = policy(cil);
    test(&server, &server);
    for transport in [ipc::Transport::Memory, ipc::Transport::Socket] {
        let behind = Behind::start(policy(cil), transport);
        test(&behind.policy, &behind.client());
    }
}

fn sid(server: &dyn SecurityServer, context: &str) -> Sid {
    server.context_to_sid(context).expect(context)
}

fn file(server: &dyn SecurityServer, source: &str, target: &str) -> Question {
    let (ssid, tsid) = (sid(server, source), sid(server, target));
    Question { ssid, tsid, tclass: Class::File }
}

#[test]
fn decisions_are_those_of_the_policy() {
    each(POLICY, |_, server| {
        for (target, want) in [
            ("u:r:note_t", perm::file::READ | perm::file::WRITE),
            ("u:r:secret_t", AccessVector::NONE),
            ("u:r:log_t", perm::file::APPEND),
        ] {
            let decision = server.compute_av(file(server, "u:r:app_t", target)).unwrap();
            assert_eq!((decision.allowed, decision.seqno), (want, Seqno(1)), "{target}");
            assert!(!decision.permissive);
        }
        let log = server.compute_av(file(server, "u:r:app_t", "u:r:log_t")).unwrap();
        assert_eq!(
            (log.auditallow, log.auditdeny.contains(perm::file::READ)),
            (perm::file::APPEND, false)
        );
        let loose = server.compute_av(file(server, "u:r:loose_t", "u:r:note_t")).unwrap();
        assert!(loose.permissive && loose.allowed.is_empty());
    });
}

#[test]
fn an_unknown_sid_is_allowed_nothing_and_has_no_context() {
    each(POLICY, |_, server| {
        let unknown = Sid::new(4_000_000_000).unwrap();
        let q = Question { ssid: unknown, tsid: unknown, tclass: Class::File };
        let denied = Decision { seqno: Seqno(1), ..Decision::DENY_ALL };
        assert_eq!(server.compute_av(q), Ok(denied));
        assert_eq!(server.sid_to_context(unknown), Err(LabelError::UnknownSid(unknown)));
        assert_eq!(server.compute_create(q, None), Err(LabelError::UnknownSid(unknown)));
    });
}

#[test]
fn labels_of_new_objects_follow_the_rules_also_those_that_name_a_file() {
    each(POLICY, |_, server| {
        let q = Question { ..file(server, "u:r:app_t", "u:r:dir_t") };
        let new = |name| server.compute_create(q, name).and_then(|sid| server.sid_to_context(sid));
        assert_eq!(new(None), Ok("u:object_r:made_t".into()));
        assert_eq!(new(Some("core")), Ok("u:object_r:dump_t".into()));
        let member = server.compute_member(q).and_then(|sid| server.sid_to_context(sid));
        assert_eq!(member, Ok("u:object_r:own_t".into()));
    });
}

#[test]
fn equal_contexts_have_equal_sids_and_wrong_ones_none() {
    each(POLICY, |itself, server| {
        let first = sid(server, "u:r:note_t");
        assert_eq!(sid(server, "u:r:note_t"), first);
        assert_eq!(itself.context_to_sid("u:r:note_t"), Ok(first));
        assert_eq!(server.sid_to_context(first), Ok("u:r:note_t".into()));
        let wrong = "u:r:nonsense_t".to_owned();
        assert_eq!(server.context_to_sid(&wrong), Err(LabelError::InvalidContext(wrong)));
        let kernel = server.sid_to_context(InitialSid::Kernel.into());
        assert_eq!(kernel, Ok("u:r:app_t".into()));
    });
}

#[test]
fn a_denial_is_explained_with_the_rule_that_would_allow_it() {
    each(POLICY, |itself, server| {
        let q = file(server, "u:r:app_t", "u:r:secret_t");
        let explained = server.explain(q, perm::file::READ).unwrap();
        assert!(
            explained.would_allow.as_ref().is_some_and(|rule| rule.contains("secret_t")),
            "{explained:?}"
        );
        assert_eq!(itself.explain(q, perm::file::READ), Ok(explained));
    });
}

#[test]
fn labelling_rules_arrive_whole_however_many() {
    let rules: String = (0..5000)
        .map(|n| format!("(filecon \"/srv/of/some/length/{n}(/.*)?\" any (u r note_t))\n"))
        .collect();
    each(&format!("{POLICY}{rules}"), |itself, server| {
        let found = server.label_rules().unwrap();
        assert_eq!(found.files.len(), 5001);
        assert_eq!(found.files[0].kind, FileKind::File);
        assert_eq!(Ok(found), itself.label_rules());
    });
}

#[test]
fn a_change_has_a_greater_number_and_what_was_before_can_be_asked() {
    each(POLICY, |itself, server| {
        let q = file(server, "u:r:app_t", "u:r:gate_t");
        assert_eq!(server.compute_av_before(q), Err(Unreachable));
        for (open, want) in [(true, perm::file::READ), (false, AccessVector::NONE)] {
            let before = server.compute_av(q).unwrap();
            let seqno = itself.set_booleans(&[("open", open)]).unwrap();
            assert_eq!(server.seqno(), Ok(seqno));
            let now = server.compute_av(q).unwrap();
            assert_eq!((now.allowed, now.seqno), (want, seqno));
            assert!(now.seqno > before.seqno);
            assert_eq!(server.compute_av_before(q), Ok(before));
        }
    });
}

#[test]
fn a_server_that_is_not_there_is_waited_for_once_then_unreachable() {
    let nowhere = server_port::RemoteServer::new(
        || Err(std::io::ErrorKind::NotFound.into()),
        Duration::from_millis(300),
    );
    let begin = Instant::now();
    assert_eq!(nowhere.seqno(), Err(Unreachable));
    assert!(begin.elapsed() >= Duration::from_millis(300), "it was waited for");
    let sid = InitialSid::Kernel.into();
    let q = Question { ssid: sid, tsid: sid, tclass: Class::File };
    for _ in 0..100 {
        assert_eq!(nowhere.compute_av(q), Err(Unreachable));
        assert_eq!(nowhere.context_to_sid("u:r:x"), Err(LabelError::Unreachable));
    }
    assert!(begin.elapsed() < Duration::from_secs(5), "but not again for every query");
}

#[test]
fn a_server_that_comes_back_is_found_again_by_queries_under_way() {
    let mut behind = Behind::start(policy(POLICY), ipc::Transport::Memory);
    let client = behind.client();
    let q = file(&client, "u:r:app_t", "u:r:note_t");
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            for _ in 0..2000 {
                let decision = client.compute_av(q).expect("waited for");
                assert_eq!(decision.allowed, perm::file::READ | perm::file::WRITE);
            }
        });
        while !asking.is_finished() {
            std::thread::sleep(Duration::from_millis(20));
            behind.restart();
        }
        asking.join().expect("every query was answered");
    });
}
