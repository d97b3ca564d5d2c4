//! Decisions of a program about objects of its own, with the security server in this process.

use object_manager::{About, AccessVector, Hint, Manager, OpenError, Question, Record, Sid, Stats};
use std::{
    fs,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    thread,
};

const POLICY: &str = "
    (class thing (x)) (class entry (delete get put)) (classorder (thing entry))
    (user u) (role r) (userrole u r)
    (type reader_t) (type writer_t) (type open_t) (type shut_t)
    (roletype r reader_t) (roletype r writer_t) (roletype object_r open_t) (roletype object_r shut_t)
    (boolean published true)
    (booleanif published (true (allow reader_t open_t (entry (get)))))
    (allow writer_t open_t (entry (get put)))
    (auditallow writer_t open_t (entry (put)))
    (dontaudit reader_t shut_t (entry (get)))
    (typetransition writer_t open_t entry \"key\" shut_t)
    (allow writer_t shut_t (entry (get)))
";

type Records = Arc<Mutex<Vec<Record>>>;

fn open(policy: &str) -> (Manager, Records) {
    let records = Records::default();
    let kept = Arc::clone(&records);
    let manager = Manager::builder("test")
        .policy_text("test.cil", policy)
        .class("entry", ["put", "get", "delete"])
        .on_audit(move |record| kept.lock().unwrap().push(record.clone()))
        .open()
        .unwrap();
    (manager, records)
}

fn question(manager: &Manager, source: &str, target: &str) -> Question {
    let sid = |context: String| manager.sid(&context).unwrap();
    let (ssid, tsid) = (sid(format!("u:r:{source}")), sid(format!("u:object_r:{target}")));
    Question { ssid, tsid, tclass: manager.class("entry").unwrap() }
}

fn about<'a>() -> About<'a> {
    About::object("the entry").operation("test")
}

fn granted(manager: &Manager, source: &str, target: &str, permission: &str) -> bool {
    let question = question(manager, source, target);
    let requested = manager.permission(question.tclass, permission).unwrap();
    manager.check(question, requested, &Hint::default(), about).is_ok()
}

#[test]
fn the_program_s_numbers_are_asked_and_the_policy_s_names_decide() {
    let (manager, _) = open(POLICY);
    for (source, target, permission, want) in [
        ("reader_t", "open_t", "get", true),
        ("reader_t", "open_t", "put", false),
        ("reader_t", "open_t", "delete", false),
        ("reader_t", "shut_t", "get", false),
        ("writer_t", "open_t", "put", true),
        ("writer_t", "open_t", "delete", false),
    ] {
        assert_eq!(granted(&manager, source, target, permission), want, "{source} {permission}");
        let contexts = (&*format!("u:r:{source}"), &*format!("u:object_r:{target}"));
        let by_name = manager.check_by_name(contexts, ("entry", permission), about);
        assert_eq!(by_name.is_ok(), want, "{source} {permission}");
    }
    let q = question(&manager, "writer_t", "open_t");
    let made = manager.create(q, Some("key")).unwrap();
    assert_eq!(manager.context(made).unwrap(), "u:object_r:shut_t");
}

#[test]
fn what_policy_wants_on_record_is_told_before_the_answer_and_nothing_else_is() {
    let (manager, records) = open(POLICY);
    assert!(granted(&manager, "writer_t", "open_t", "get"));
    assert!(!granted(&manager, "reader_t", "shut_t", "get"));
    assert!(records.lock().unwrap().is_empty(), "a plain grant, and a denial by dontaudit");
    assert!(granted(&manager, "writer_t", "open_t", "put"));
    assert!(!granted(&manager, "reader_t", "open_t", "put"));
    let records = records.lock().unwrap();
    let [grant, denial] = &records[..] else { panic!("{records:?}") };
    assert!(grant.granted && grant.missing.is_empty() && grant.requested == ["put"]);
    assert_eq!((denial.granted, &denial.missing[..]), (false, &["put".to_owned()][..]));
    assert_eq!((&*denial.object, &*denial.call), ("the entry", "test"));
    assert_eq!(denial.pid, std::process::id());
    assert_eq!(denial.would_allow.as_deref(), Some("(allow reader_t open_t (entry (put)))"));
    let json: serde_json::Value = serde_json::from_str(&denial.to_json()).unwrap();
    assert_eq!(json["tclass"], "entry");
    assert!(denial.to_string().starts_with("avc: denied { put } for pid="), "{denial}");
}

#[test]
fn a_change_of_policy_reaches_hint_and_cache_at_once_and_the_program_is_told() {
    let told = Arc::new(AtomicU32::new(0));
    let heard = Arc::clone(&told);
    let manager = Manager::builder("test")
        .policy_text("test.cil", POLICY)
        .class("entry", ["put", "get"])
        .on_change(move |seqno| heard.store(seqno.0, Ordering::Release))
        .open()
        .unwrap();
    let q = question(&manager, "reader_t", "open_t");
    let get = manager.permission(q.tclass, "get").unwrap();
    let hint = Hint::default();
    let ask = || manager.check(q, get, &hint, about).is_ok();
    assert!(ask() && ask());
    let before = (manager.status().sequence(), manager.status().policyload());
    let seqno = manager.set_booleans(&[("published", false)]).unwrap();
    assert_eq!((told.load(Ordering::Acquire), manager.seqno()), (seqno.0, seqno));
    assert!(!ask());
    assert!(manager.status().sequence() > before.0 && manager.status().policyload() == before.1);
    manager.load_text(&[("new.cil", &format!("{POLICY}(handleunknown allow)"))]).unwrap();
    assert!(ask(), "a new policy sets its booleans");
    assert_eq!(manager.status().policyload(), before.1 + 1);
    assert!(!manager.status().deny_unknown());
    assert!(manager.set_booleans(&[("none", true)]).is_err());
    assert!(manager.load_text(&[("bad.cil", "(allow")]).is_err());
    assert!(ask(), "what failed changed nothing");
}

#[test]
fn of_policies_that_are_loaded_at_once_the_last_is_told() {
    let (manager, _) = open(POLICY);
    let load = |word: &str| {
        let text = format!("{POLICY}(handleunknown {word})");
        manager.load_text(&[("new.cil", &text)]).unwrap()
    };
    for _ in 0..50 {
        let (allow, deny) = std::thread::scope(|scope| {
            let allow = scope.spawn(|| load("allow"));
            let deny = load("deny");
            (allow.join().unwrap(), deny)
        });
        assert_eq!(manager.status().deny_unknown(), deny > allow);
    }
}

#[test]
fn whatever_is_not_an_answer_is_a_denial() {
    let (manager, _) = open(POLICY);
    let q = question(&manager, "writer_t", "open_t");
    let hint = Hint::default();
    let check = |q, requested| manager.check(q, requested, &hint, about);
    assert!(check(q, AccessVector::NONE).is_err(), "asked for nothing");
    assert!(check(q, AccessVector(1 << 20)).is_err(), "a bit that the class does not have");
    let unknown = Question { ssid: Sid::new(9999).unwrap(), ..q };
    assert!(check(unknown, AccessVector(1)).is_err(), "a SID that nobody gave out");
    let names = [
        ("u:r:nobody_t", "entry", "get"),
        ("u:r:writer_t", "no", "get"),
        ("u:r:writer_t", "entry", "no"),
    ];
    for (subject, class, permission) in names {
        let asked =
            manager.check_by_name((subject, "u:object_r:open_t"), (class, permission), about);
        assert!(asked.is_err(), "{subject} {class} {permission}");
    }
}

#[test]
fn permissive_puts_on_record_what_it_would_have_denied_and_grants_it() {
    let (manager, records) = open(POLICY);
    manager.set_enforcing(false);
    assert!(granted(&manager, "reader_t", "open_t", "put"));
    assert!(!manager.status().enforcing());
    let record = records.lock().unwrap().pop().unwrap();
    assert!(record.granted && record.missing == ["put"]);
    manager.set_enforcing(true);
    assert!(!granted(&manager, "reader_t", "open_t", "put"));
}

#[test]
fn what_the_policy_lacks_is_named_and_handled_as_it_says() {
    let open = |policy: &str| {
        Manager::builder("test")
            .policy_text("test.cil", policy)
            .class("entry", ["get", "shred"])
            .class("log", ["append"])
            .open()
    };
    let manager = open(POLICY).unwrap();
    let names = [("entry", "shred"), ("log", "append")].map(|(c, p)| (c.to_owned(), p.to_owned()));
    assert_eq!(manager.lacking(), names);
    assert!(!granted(&manager, "writer_t", "open_t", "shred"));
    assert!(granted(
        &open(&format!("{POLICY}(handleunknown allow)")).unwrap(),
        "writer_t",
        "open_t",
        "shred"
    ));
    let rejected = open(&format!("{POLICY}(handleunknown reject)")).unwrap_err().to_string();
    assert!(rejected.contains("rejects what it does not know"), "{rejected}");
}

#[test]
fn a_policy_that_cannot_be_used_says_where_it_is_wrong() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = directory.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    };
    let good = file("good.cil", POLICY.as_bytes());
    let open = |paths: &[&std::path::Path]| {
        let builder = Manager::builder("test").class("entry", ["get"]);
        paths.iter().fold(builder, |builder, path| builder.policy_file(path)).open()
    };
    assert!(open(&[&good]).is_ok());
    for (path, want) in [
        (file("bad.cil", b"(allow a b (c (d)))\n"), "bad.cil"),
        (file("binary", b"\x8c\xff\x7c\xf9rubbish"), "binary"),
        (file("latin", b"(type \xe9)"), "neither CIL"),
        (directory.path().join("absent"), "cannot read the policy"),
    ] {
        let said = open(&[&path]).unwrap_err().to_string();
        assert!(said.contains(want), "{said}");
    }
    assert!(matches!(open(&[]), Err(OpenError::Policy(_))));
}

#[test]
fn threads_that_ask_while_policies_change_get_no_answer_that_is_over() {
    let (manager, _) = open(POLICY);
    let (q, hint, stop) =
        (question(&manager, "reader_t", "open_t"), Hint::default(), AtomicBool::new(false));
    let get = manager.permission(q.tclass, "get").unwrap();
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !stop.load(Ordering::Acquire) {
                    let verdict = manager.has_perm(q, get, &hint).unwrap();
                    // The boolean is on in states of an odd number.
                    assert_eq!(verdict.granted(), verdict.seqno.0 % 2 == 1, "{verdict:?}");
                }
            });
        }
        for n in 0..200 {
            manager.set_booleans(&[("published", n % 2 == 1)]).unwrap();
            assert_eq!(manager.check(q, get, &Hint::default(), about).is_ok(), n % 2 == 1);
        }
        stop.store(true, Ordering::Release);
    });
    assert_ne!(manager.stats(), Stats::default());
}
