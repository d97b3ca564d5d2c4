//! One micro-policy per kind of rule, asked through the trait that object managers use.

use flask::{Class, InitialSid, Question, SecurityServer, Sid};
use security_server::{LabelBudget, LoadError, Server};
use std::sync::Arc;

const BASE: &str = "
    (class file (read write append open execute entrypoint ioctl))
    (class dir (search add_name)) (class process (fork transition signal))
    (class endpoint (name_connect)) (class tcp_socket (create connect))
    (classorder (file dir process endpoint tcp_socket))
    (sid kernel) (sid unlabeled) (sid file) (sidorder (kernel unlabeled file))
    (user u) (role r) (role q) (userrole u r) (userrole u q)
    (type a) (type b) (type c) (type x)
    (typeattribute ab) (typeattributeset ab (a b))
    (roletype r ab) (roletype r c) (roletype q c) (roletype r x)
    (sidcontext kernel (u r a)) (sidcontext unlabeled (u object_r x))
    (sidcontext file (u object_r x))
";

fn server(rules: &str) -> Server {
    Server::from_cil(&[("base.cil", BASE), ("test.cil", rules)]).unwrap_or_else(|errors| {
        panic!("{:#?}", errors.errors().iter().map(ToString::to_string).collect::<Vec<_>>())
    })
}

fn sid(server: &Server, context: &str) -> Sid {
    server.context_to_sid(context).unwrap()
}

fn allowed(server: &Server, source: &str, target: &str, class: Class) -> Vec<&'static str> {
    let q = Question { ssid: sid(server, source), tsid: sid(server, target), tclass: class };
    server.compute_av(q).unwrap().allowed.names(class).collect()
}

fn created(
    server: &Server,
    source: &str,
    target: &str,
    class: Class,
    name: Option<&str>,
) -> String {
    let q = Question { ssid: sid(server, source), tsid: sid(server, target), tclass: class };
    let label = server.compute_create(q, name).unwrap();
    server.sid_to_context(label).unwrap()
}

#[test]
fn a_rule_on_an_attribute_holds_for_its_types_only() {
    let server = server("(allow ab ab (file (read))) (allow a self (file (write)))");
    for (source, target, want) in [
        ("u:r:a", "u:object_r:a", vec!["read", "write"]),
        ("u:r:a", "u:object_r:b", vec!["read"]),
        ("u:r:b", "u:object_r:b", vec!["read"]),
        ("u:r:a", "u:object_r:c", vec![]),
        ("u:r:c", "u:object_r:a", vec![]),
    ] {
        assert_eq!(allowed(&server, source, target, Class::File), want, "{source} {target}");
    }
}

#[test]
fn audit_rules_change_what_is_recorded_not_what_is_granted() {
    let server = server("(auditallow a b (file (read))) (dontaudit a b (file (write)))");
    let q = Question {
        ssid: sid(&server, "u:r:a"),
        tsid: sid(&server, "u:object_r:b"),
        tclass: Class::File,
    };
    let decision = server.compute_av(q).unwrap();
    assert!(decision.allowed.is_empty());
    assert_eq!(decision.auditallow.names(Class::File).collect::<Vec<_>>(), ["read"]);
    let recorded: Vec<_> = decision.auditdeny.names(Class::File).collect();
    assert!(recorded.contains(&"read") && !recorded.contains(&"write"));
}

#[test]
fn permissions_are_found_by_name_and_unknown_ones_are_denied() {
    let server = server("(allow a b (dir (all)))");
    // The policy numbers `search` 0; the object managers number it otherwise and know more
    // permissions.
    assert_eq!(allowed(&server, "u:r:a", "u:object_r:b", Class::Dir), ["search", "add_name"]);
    assert!(allowed(&server, "u:r:a", "u:object_r:b", Class::LnkFile).is_empty());
}

#[test]
fn unknown_permissions_are_allowed_when_the_policy_says_so() {
    let server = server("(handleunknown allow)");
    assert!(allowed(&server, "u:r:a", "u:object_r:b", Class::Dir).contains(&"rmdir"));
    assert!(!allowed(&server, "u:r:a", "u:object_r:b", Class::Dir).contains(&"search"));
    assert_eq!(allowed(&server, "u:r:a", "u:object_r:b", Class::Capability).len(), 32);
}

#[test]
fn a_policy_that_rejects_unknown_permissions_is_not_loaded() {
    let error = Server::from_cil(&[("p.cil", "(handleunknown reject)")]).unwrap_err();
    assert!(error.to_string().contains("rejects what it does not know"), "{error}");
}

#[test]
fn new_objects_take_their_label_from_rules_else_from_their_parent() {
    let server = server(
        "(typetransition a b file c) (typetransition a b process c)
         (typetransition a b file \"passwd\" x) (typetransition a b endpoint x)
         (typemember a b dir x)",
    );
    for (class, name, want) in [
        (Class::File, None, "u:object_r:c"),
        (Class::File, Some("passwd"), "u:object_r:x"),
        (Class::File, Some("other"), "u:object_r:c"),
        (Class::Dir, None, "u:object_r:b"),
        (Class::Process, None, "u:r:c"),
        (Class::TcpSocket, None, "u:r:a"),
        (Class::Endpoint, None, "u:object_r:x"),
    ] {
        assert_eq!(
            created(&server, "u:r:a", "u:object_r:b", class, name),
            want,
            "{class} {name:?}"
        );
    }
    let q = |tclass| Question {
        ssid: sid(&server, "u:r:a"),
        tsid: sid(&server, "u:object_r:b"),
        tclass,
    };
    let member = server.compute_member(q(Class::Dir)).unwrap();
    assert_eq!(server.sid_to_context(member).unwrap(), "u:object_r:x");
}

#[test]
fn a_process_whose_computed_context_is_invalid_gets_none() {
    let server = server("(type loose) (typetransition a b process loose)");
    let q = Question {
        ssid: sid(&server, "u:r:a"),
        tsid: sid(&server, "u:object_r:b"),
        tclass: Class::Process,
    };
    let error = server.compute_create(q, None).unwrap_err();
    assert_eq!(error.to_string(), "`u:r:loose` is not a valid security context in this policy");
}

#[test]
fn a_role_changes_only_where_a_rule_lets_it() {
    let rules = "(allow a c (process (transition fork)))";
    for (extra, want) in [("", vec!["fork"]), ("(roleallow r q)", vec!["fork", "transition"])] {
        let server = server(&format!("{rules} {extra}"));
        assert_eq!(allowed(&server, "u:r:a", "u:q:c", Class::Process), want, "{extra}");
    }
}

#[test]
fn initial_sids_have_the_context_of_their_name() {
    let server = server("");
    let context = |initial: InitialSid| server.sid_to_context(initial.into()).unwrap();
    assert_eq!(context(InitialSid::Kernel), "u:r:a");
    assert_eq!(context(InitialSid::File), "u:object_r:x");
    // One that the policy does not know is treated as unlabeled.
    assert_eq!(context(InitialSid::Port), "u:object_r:x");
}

#[test]
fn labelling_rules_come_out_as_written() {
    let server = server(
        "(filecon \"/etc(/.*)?\" any (u object_r b)) (filecon \"/none\" file ())
         (portcon tcp (8000 8080) (u object_r c))
         (nodecon (10.0.0.0) (255.0.0.0) (u object_r x))",
    );
    let rules = server.label_rules().unwrap();
    assert_eq!(rules.files[0].path, "/etc(/.*)?");
    assert_eq!(rules.files[0].sid, Some(sid(&server, "u:object_r:b")));
    assert_eq!(rules.files[1].sid, None);
    assert_eq!((rules.ports[0].low, rules.ports[0].high), (8000, 8080));
    assert_eq!(rules.nodes[0].mask.to_string(), "255.0.0.0");
}

#[test]
fn a_denial_is_explained_by_the_rule_that_is_missing() {
    let server = server("(allow a b (file (read)))");
    let q = Question {
        ssid: sid(&server, "u:r:a"),
        tsid: sid(&server, "u:object_r:b"),
        tclass: Class::File,
    };
    let explanation = server.explain(q, flask::perm::file::WRITE).unwrap();
    assert_eq!(explanation.would_allow.as_deref(), Some("(allow a b (file (write)))"));
    assert_eq!(explanation.reason, "no rule grants (write)");
    let explanation = server.explain(q, flask::perm::file::READ).unwrap();
    assert_eq!(explanation.rules, ["(allow a b (file (read)))    test.cil:1"]);
}

#[test]
fn an_explanation_is_short_whatever_the_policy_says() {
    let sets: String =
        (0..100).map(|n| format!("(typeattribute x{n})(typeattributeset x{n} (a b))")).collect();
    let rules: String =
        (0..10_000).map(|n| format!("(allow x{} x{} (file (read)))", n / 100, n % 100)).collect();
    let test = (0..150).fold("(eq t2 c)".to_owned(), |test, n| {
        format!("({} {test} (neq t2 (b {})))", ["and", "or"][n % 2], "c ".repeat(20))
    });
    let types: String = (0..2000).map(|n| format!("(type long_{n})")).collect();
    let many: String = (0..2000).map(|n| format!(" long_{n}")).collect();
    let constraint = format!("(constrain (file (read)) (and {test} (eq t2 ({many}))))");
    let server = server(&(sets + &rules + &types + &constraint));
    let q = Question {
        ssid: sid(&server, "u:r:a"),
        tsid: sid(&server, "u:object_r:b"),
        tclass: Class::File,
    };
    let explained = server.explain(q, flask::perm::file::READ).unwrap();
    assert_eq!(explained.rules.len(), 17);
    assert_eq!(explained.rules[0], "(allow x0 x0 (file (read)))    test.cil:1");
    assert_eq!(explained.rules[16], "; and 9984 more");
    assert!(
        explained
            .reason
            .contains("a constraint does not hold: (constrain (file (read)) (and (or (and ")
    );
    assert!(explained.reason.len() < 1100, "{}", explained.reason.len());
}

/// A server with a boolean, some SIDs, and a policy state that is not the first.
fn used_server() -> Server {
    let server = server("(boolean open false) (booleanif open (true (allow a b (file (read)))))");
    for context in ["u:object_r:c", "u:r:a", "u:object_r:b"] {
        sid(&server, context);
    }
    server.set_booleans(&[("open", true)]).unwrap();
    server
}

#[test]
fn a_restored_server_knows_the_same_sids_booleans_and_policy_state() {
    let old = used_server();
    let policy = old.engine().policy().clone();
    let new = Server::restore(policy, &old.save()).unwrap();
    assert_eq!(new.seqno(), old.seqno());
    assert_eq!(new.save(), old.save());
    assert_eq!(allowed(&new, "u:r:a", "u:object_r:b", Class::File), ["read"]);
    for context in ["u:object_r:b", "u:r:a", "u:object_r:c"] {
        assert_eq!(sid(&new, context), sid(&old, context));
    }
    assert_eq!(sid(&new, "u:object_r:x"), sid(&old, "u:object_r:x"), "the next one, too");
}

#[test]
fn contexts_that_a_restored_policy_does_not_know_keep_their_sids() {
    let mut saved = used_server().save();
    let first = saved.contexts.len();
    saved.contexts.extend(["u:object_r:gone_t".into(), "u:object_r:x".into()]);
    let new = Server::restore(used_server().engine().policy().clone(), &saved).unwrap();
    let gone = Sid::new(InitialSid::COUNT + first as u32 + 1).unwrap();
    assert_eq!(new.sid_to_context(gone).as_deref(), Ok("u:object_r:gone_t"));
    assert!(!new.is_valid(gone));
    assert_eq!(new.contexts_after(gone.get()), ["u:object_r:x"]);
}

#[test]
fn a_fork_changes_apart_from_its_origin() {
    let old = used_server();
    let fork = old.fork();
    assert_eq!(fork.save(), old.save());
    fork.set_booleans(&[("open", false)]).unwrap();
    assert_eq!(allowed(&fork, "u:r:a", "u:object_r:b", Class::File), [""; 0]);
    assert_eq!(allowed(&old, "u:r:a", "u:object_r:b", Class::File), ["read"]);
    let next = sid(&fork, "u:r:b");
    assert_eq!(old.sid_to_context(next), Err(flask::LabelError::UnknownSid(next)));
}

/// A policy with 6,400 categories, each a bit, and `labels` contexts of it with about 1.6 KB each.
fn many_categories(labels: usize) -> (String, Vec<String>) {
    let names: Vec<String> = (0..6_400).map(|n| format!("c{n}")).collect();
    let declared: String = names.iter().map(|name| format!("(category {name})")).collect();
    let policy = format!(
        "(mls true) (class file (read)) (classorder (file)) (user u) (role r) (userrole u r)
         (type a) (roletype r a) (sensitivity s0) (sensitivityorder (s0)) {declared}
         (categoryorder ({})) (sensitivitycategory s0 (range c0 c6399))
         (userlevel u (s0)) (userrange u ((s0) (s0 (range c0 c6399))))
         (filecon \"/a\" any (u r a ((s0 (c6398)) (s0 (c6398)))))
         (filecon \"/b\" any (u r a ((s0 (c6399)) (s0 (c6399)))))",
        names.join(" ")
    );
    (policy, (0..labels).map(|n| format!("u:r:a:s0:c{n},c6398-s0:c0.c6398")).collect())
}

#[test]
fn labels_are_counted_by_their_size_also_after_a_fork_and_a_reload() {
    let (text, contexts) = many_categories(100);
    let policy = || security_server::cil::compile(&[("t", &text)]).unwrap();
    let budget = Arc::new(LabelBudget::new(100 << 10));
    let server = Server::new(policy()).unwrap().within(&budget).unwrap();
    let given = |server: &Server| {
        contexts.iter().take_while(|context| server.context_to_sid(context).is_ok()).count()
    };
    let had = given(&server);
    assert!((30..60).contains(&had), "{had} labels of 1.9 KB within 100 KB");
    assert!(server.context_to_sid(&contexts[0]).is_ok(), "one that is there is found");
    assert_eq!(server.label_rules().err(), Some(flask::Unreachable), "none is left out");
    // A copy that is used for a moment is not counted; one that is kept is.
    assert!(server.fork().context_to_sid(&contexts[had]).is_err());
    assert_eq!(server.fork().within(&budget).err(), Some(LoadError::Labels));
    assert_eq!(server.reload(policy()), Err(LoadError::Labels));
    assert_eq!(given(&server), had);
    drop(server);
    let again = Server::new(policy()).unwrap().within(&budget).unwrap();
    assert_eq!(given(&again), had, "what is gone does not count");
}

const TABLES: &str = "
    (class file (read write)) (class table (drop insert select)) (classorder (file table))
    (user u) (role r) (userrole u r) (roletype object_r row_t) (type row_t)
    (type clerk_t) (roletype r clerk_t)
    (allow clerk_t row_t (table (select)))
    (auditallow clerk_t row_t (table (select)))
";

/// What a program with two classes of its own is told about `u:r:clerk_t`, in its own numbers.
fn clerk(policy: &str) -> impl Fn(&str) -> flask::Decision + use<> {
    let classes =
        flask::Classes::new([("table", vec!["select", "drop", "grow"]), ("view", vec!["open"])]);
    let classes = classes.unwrap();
    let server = Server::from_cil_with(&[("t", policy)], classes.clone()).unwrap();
    let ssid = server.context_to_sid("u:r:clerk_t").unwrap();
    let tsid = server.context_to_sid("u:object_r:row_t").unwrap();
    move |class| {
        let tclass = classes.class(class).unwrap();
        server.compute_av(Question { ssid, tsid, tclass }).unwrap()
    }
}

#[test]
fn a_program_s_own_classes_are_found_by_name_and_answered_in_its_numbers() {
    let decision = clerk(TABLES)("table");
    let bits = (decision.allowed.0, decision.auditallow.0, decision.auditdeny.0);
    assert_eq!(bits, (1, 1, u32::MAX), "select is bit 0 here, and bit 2 in the policy");
}

#[test]
fn what_the_policy_lacks_of_a_program_s_classes_is_as_handleunknown_says() {
    let (deny, allow) = (clerk(TABLES), clerk(&format!("{TABLES} (handleunknown allow)")));
    for (class, denied, allowed) in [("table", 1, 0b101), ("view", 0, u32::MAX)] {
        assert_eq!(deny(class).allowed.0, denied, "{class}");
        assert_eq!(allow(class).allowed.0, allowed, "{class}");
    }
    let reject = format!("{TABLES} (handleunknown reject)");
    let classes = flask::Classes::new([("view", ["open"])]).unwrap();
    assert!(Server::from_cil_with(&[("t", reject)], classes).is_err());
}

#[test]
fn a_program_s_classes_keep_their_numbers_when_the_policy_orders_them_otherwise() {
    let classes = flask::Classes::new([("table", ["select", "drop"])]).unwrap();
    let table = classes.class("table").unwrap();
    let server = Server::from_cil_with(&[("t", TABLES)], classes).unwrap();
    assert_eq!(server.lacking_own(), []);
    let [ssid, tsid] =
        ["u:r:clerk_t", "u:object_r:row_t"].map(|text| server.context_to_sid(text).unwrap());
    let turned = TABLES.replace("(drop insert select)", "(select insert drop)");
    server.reload(security_server::cil::compile(&[("t", turned)]).unwrap()).unwrap();
    let decision = server.compute_av(Question { ssid, tsid, tclass: table }).unwrap();
    assert_eq!(decision.allowed.0, 1);
    let explained = server.explain(Question { ssid, tsid, tclass: table }, flask::AccessVector(2));
    assert_eq!(
        explained.unwrap().would_allow.as_deref(),
        Some("(allow clerk_t row_t (table (drop)))")
    );
}
