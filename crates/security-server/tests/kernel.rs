//! What libsepol does not decide, or decides unlike the kernel: tables after Linux,
//! `security/selinux/ss/services.c`.

use flask::{Class, Question, SecurityServer, Sid};
use security_server::policy::{TypeRuleKind, XpermKind};
use security_server::{Engine, Server, cil};

const BASE: &str = "
    (class file (read write ioctl)) (class process (transition)) (class tcp_socket (create nlmsg))
    (classorder (file process tcp_socket)) (sid kernel) (sid unlabeled) (sidorder (kernel unlabeled))
    (user u) (role r) (userrole u r) (type a) (type b) (type c) (type d) (typeattribute ab)
    (typeattributeset ab (a b)) (roletype r ab) (roletype r c)
    (sidcontext kernel (u r a)) (sidcontext unlabeled (u object_r d))
";

fn text(rules: &str) -> String {
    format!("{BASE}{rules}")
}

fn engine(rules: &str) -> Engine {
    Engine::new(cil::compile(&[("test.cil", text(rules))]).unwrap_or_else(|e| panic!("{e}")))
}

fn server(rules: &str) -> Server {
    Server::from_cil(&[("test.cil", text(rules))]).unwrap_or_else(|e| panic!("{e}"))
}

fn question(server: &Server, source: &str, target: &str, tclass: Class) -> Question {
    let sid = |text: &str| server.context_to_sid(text).unwrap();
    Question { ssid: sid(source), tsid: sid(target), tclass }
}

fn granted(server: &Server, source: &str, target: &str) -> Vec<&'static str> {
    let q = question(server, source, target, Class::File);
    server.compute_av(q).unwrap().allowed.names(Class::File).collect()
}

#[test]
fn a_bounded_type_may_not_do_what_its_bound_may_not() {
    let rules = "(typebounds a b) (allow a c (file (read))) (allow b c (file (read write)))";
    let server = server(rules);
    assert_eq!(granted(&server, "u:r:b", "u:object_r:c"), ["read"]);
    let q = question(&server, "u:r:b", "u:object_r:c", Class::File);
    let explained = server.explain(q, flask::perm::file::WRITE).unwrap();
    assert!(explained.reason.contains("`a`, which bounds the source"), "{}", explained.reason);
}

#[test]
fn a_bounded_target_is_checked_against_its_own_bound() {
    let rules = "(typebounds a b) (typebounds c d) (allow a c (file (read))) (allow b d (file (read write)))";
    assert_eq!(granted(&server(rules), "u:r:b", "u:object_r:d"), ["read"]);
}

#[test]
fn a_permissive_domain_is_marked_in_its_decisions() {
    let server = server("(typepermissive b)");
    for (source, want) in [("u:r:a", false), ("u:r:b", true)] {
        let q = question(&server, source, "u:object_r:c", Class::File);
        assert_eq!(server.compute_av(q).unwrap().permissive, want, "{source}");
    }
}

#[test]
fn a_domain_that_is_never_audited_leaves_no_record() {
    let engine = engine("(typeneveraudit b) (auditallow ab c (file (read)))");
    let policy = engine.policy();
    let context = |text: &str| policy.parse_context(text).unwrap();
    for (source, want) in [("u:r:a", (1, u32::MAX)), ("u:r:b", (0, 0))] {
        let class = policy.class("file").unwrap();
        let av = engine.compute_av(&context(source), &context("u:object_r:c"), class);
        assert_eq!((av.auditallow, av.auditdeny), want, "{source}");
    }
}

#[test]
fn extended_permissions_limit_only_where_a_rule_names_any() {
    let engine = engine(
        "(allow ab c (file (ioctl)))
         (allowx ab c (ioctl file (0x8910 (range 0x8912 0x8914))))
         (allowx a c (ioctl file (range 0x1200 0x12ff)))
         (auditallowx b c (ioctl file (0x8910))) (dontauditx b d (ioctl file (0x1)))
         (allowx a d (nlmsg tcp_socket (0x10)))",
    );
    let sets = |source: &str, target: &str, class: &str| {
        let policy = engine.policy();
        let context = |text: &str| policy.parse_context(text).unwrap();
        engine.xperms(&context(source), &context(target), policy.class(class).unwrap())
    };
    let a_c = sets("u:r:a", "u:object_r:c", "file");
    assert!(a_c.limited);
    for (number, want) in
        [(0x8910, true), (0x8911, false), (0x8914, true), (0x1255, true), (0x1300, false)]
    {
        assert_eq!(a_c.allow.of(XpermKind::Ioctl).contains(number), want, "{number:#x}");
    }
    assert!(!sets("u:r:b", "u:object_r:c", "file").allow.ioctl.contains(0x1255));
    assert!(sets("u:r:b", "u:object_r:c", "file").auditallow.ioctl.contains(0x8910));
    // As in the kernel, any rule limits: this one leaves nothing granted.
    let b_d = sets("u:r:b", "u:object_r:d", "file");
    assert!(b_d.limited && b_d.allow.ioctl.is_empty() && b_d.dontaudit.ioctl.contains(1));
    assert!(sets("u:r:a", "u:object_r:d", "tcp_socket").allow.nlmsg.contains(0x10));
    assert!(!sets("u:r:a", "u:object_r:b", "file").limited);
}

#[test]
fn sockets_are_labelled_after_their_creator() {
    let engine = engine("(typetransition b c tcp_socket d)");
    let policy = engine.policy();
    let context = |text: &str| policy.parse_context(text).unwrap();
    let class = policy.class("tcp_socket").unwrap();
    for kind in [TypeRuleKind::Transition, TypeRuleKind::Member, TypeRuleKind::Change] {
        let (source, target) = (context("u:r:a"), context("u:object_r:c"));
        let label = engine.compute_label(kind, &source, &target, class, None).unwrap();
        assert_eq!(policy.format_context(&label), "u:r:a", "{kind:?}");
    }
}

#[test]
fn booleans_change_together_or_not_at_all() {
    let server = server(
        "(boolean x false) (boolean y false) (booleanif (and x y) (true (allow a c (file (read)))))",
    );
    let before = server.seqno().unwrap();
    server.set_booleans(&[("x", true), ("none", true)]).unwrap_err();
    assert_eq!(server.seqno().unwrap(), before);
    server.set_booleans(&[("x", true), ("y", true)]).unwrap();
    assert_eq!(granted(&server, "u:r:a", "u:object_r:c"), ["read"]);
    assert!(server.seqno().unwrap() > before);
    server.set_booleans(&[("y", false)]).unwrap();
    let q = question(&server, "u:r:a", "u:object_r:c", Class::File);
    let explained = server.explain(q, flask::perm::file::READ).unwrap();
    assert!(explained.reason.contains("only while (and x y) is true"), "{}", explained.reason);
}

#[test]
fn sids_survive_a_reload_and_lost_contexts_are_unlabeled_until_they_come_back() {
    let server = server("(type late) (allow a late (file (read)))");
    let q = question(&server, "u:r:a", "u:object_r:late", Class::File);
    let with =
        || cil::compile(&[("p.cil", text("(type late) (type more) (allow a late (file (read)))"))]);
    let without = cil::compile(&[("p.cil", text("(allow a d (file (write)))"))]).unwrap();
    let allowed = |q| server.compute_av(q).unwrap().allowed.names(Class::File).collect::<Vec<_>>();
    assert_eq!(allowed(q), ["read"]);

    server.reload(without).unwrap();
    assert!(!server.is_valid(q.tsid));
    assert_eq!(allowed(q), ["write"], "a lost context is treated as `unlabeled`");
    assert_eq!(server.sid_to_context(q.tsid).unwrap(), "u:object_r:late");
    server.context_to_sid("u:object_r:late").unwrap_err();

    server.reload(with().unwrap()).unwrap();
    assert_eq!(server.context_to_sid("u:object_r:late").unwrap(), q.tsid);
    assert_eq!(allowed(q), ["read"]);
}

#[test]
fn a_sid_that_was_never_given_out_may_do_nothing() {
    let server = server("(allow ab ab (file (read)))");
    let stranger = Sid::new(4_000_000).unwrap();
    let q = Question { ssid: stranger, tsid: stranger, tclass: Class::File };
    assert!(server.compute_av(q).unwrap().allowed.is_empty());
    server.compute_create(q, None).unwrap_err();
}

#[test]
fn deny_takes_away_from_every_allow_whatever_attribute_grants_it() {
    let server = server(
        "(allow ab ab (file (read write))) (deny a b (file (write))) (deny b self (file (read)))",
    );
    for (source, target, want) in [
        ("u:r:a", "u:object_r:a", vec!["read", "write"]),
        ("u:r:a", "u:object_r:b", vec!["read"]),
        ("u:r:b", "u:object_r:b", vec!["write"]),
        ("u:r:b", "u:object_r:a", vec!["read", "write"]),
    ] {
        assert_eq!(granted(&server, source, target), want, "{source} {target}");
    }
}

#[test]
fn notself_and_other_leave_the_subject_s_own_type_out() {
    let server = server("(allow ab notself (file (read))) (allow ab other (file (write)))");
    for (source, target, want) in [
        ("u:r:a", "u:object_r:a", vec![]),
        ("u:r:a", "u:object_r:b", vec!["read", "write"]),
        ("u:r:a", "u:object_r:c", vec!["read"]),
    ] {
        assert_eq!(granted(&server, source, target), want, "{source} {target}");
    }
}
