//! The library for programs with objects of their own: the same key-value server (`examples/kv`) in
//! each language, asked from outside and from a sandbox; and C, compiled against what is installed
//! and nothing else.

mod installed;
mod stage;

use stage::{Server, Stage};

/// The server in each language that is here.
fn each(test: impl Fn(&str)) {
    for language in stage::languages() {
        test(language);
    }
}

/// Requests and the answers to them, in order.
fn converse(server: &Server, lines: &[(&str, &str)]) {
    let mut client = server.client();
    for (request, want) in lines {
        let got = client.ask(request);
        assert_eq!(got.trim_end(), *want, "{}: {request}", server.language);
    }
}

#[test]
fn an_officer_keeps_secrets_and_publishes_them_in_every_language() {
    each(|language| {
        let server = Stage::new().serve(language, "officer", false);
        let bad = "`u:r:x` is not a valid security context in this policy";
        converse(
            &server,
            &[
                ("get plan", "none"),
                ("put plan attack at dawn", "ok"),
                ("label plan", "label dewar_u:object_r:secret_t"),
                ("get plan", "value attack at dawn"),
                ("relabel plan u:r:x", bad),
                (
                    "relabel plan dewar_u:object_r:store_t",
                    "denied officer_t may not relabelto store_t (entry)",
                ),
                ("relabel plan dewar_u:object_r:public_t", "ok"),
                ("label plan", "label dewar_u:object_r:public_t"),
                ("put plan wait", "ok"),
                ("get plan", "value wait"),
                ("burn plan", "error no request `burn`"),
                ("delete plan", "ok"),
                ("get plan", "none"),
            ],
        );
        let said = server.said();
        assert!(said.contains("relabelto"), "auditallow: {said}");
    });
}

#[test]
fn a_reader_and_whoever_is_nobody_change_nothing_in_any_language() {
    each(|language| {
        let server = Stage::new().serve(language, "reader", false);
        converse(
            &server,
            &[
                ("put plan x", "denied reader_t may not create store_t (entry)"),
                ("get plan", "none"),
            ],
        );
        drop(server);
        let server = Stage::new().serve(language, "nobody", false);
        let answer = server.client().ask("put plan x");
        assert!(answer.starts_with("refused"), "{language}: {answer}");
    });
}

#[test]
fn a_process_in_a_sandbox_is_who_its_run_says_and_what_it_is_denied_is_in_the_journal() {
    each(|language| {
        let mut stage = Stage::new();
        stage.start();
        let server = stage.serve(language, "writer", true);
        converse(
            &server,
            &[("put plan x", "ok"), ("label plan", "label dewar_u:object_r:public_t")],
        );
        let inside = |request| server.ask_inside(request);
        assert_eq!(inside("get plan"), "value x", "{language}");
        assert_eq!(
            inside("put plan y"),
            "denied reader_t may not put public_t (entry)",
            "{language}"
        );

        let run = server.run.clone().expect("it says its run");
        let records = server.stage.journal(&["--run", &run, "--denied"]);
        let [record] = &records[..] else { panic!("{language}: {records:?}") };
        let fields = ["tclass", "object", "call"].map(|name| record[name].as_str().unwrap());
        assert_eq!(fields, ["entry", "plan", "put"]);
        assert_eq!(record["missing"][0], "put");
        assert_eq!(record["would_allow"], "(allow reader_t public_t (entry (put)))");

        let set = server.stage.say(&["policy", "set", &run, "published=off"]);
        assert!(set.status.success(), "{language}: {set:?}");
        assert_eq!(
            inside("get plan"),
            "denied reader_t may not get public_t (entry)",
            "{language}"
        );
        converse(&server, &[("get plan", "value x")]);
        assert!(server.stage.say(&["policy", "set", &run, "published=on"]).status.success());
        assert_eq!(inside("get plan"), "value x", "{language}");
    });
}

#[test]
fn a_subscription_ends_with_the_right_to_read() {
    let mut stage = Stage::new();
    stage.start();
    let server = stage.serve("rust", "writer", true);
    converse(&server, &[("put plan x", "ok")]);
    let mut inside = server.inside(&["watch plan"]);
    assert_eq!(inside.line(), "ok");
    converse(&server, &[("put plan y", "ok")]);
    assert_eq!(inside.line(), "changed y");
    let run = server.run.clone().expect("it says its run");
    let set = server.stage.say(&["policy", "set", &run, "published=off"]);
    assert!(set.status.success(), "{set:?}");
    assert_eq!(inside.line(), "revoked");
    converse(&server, &[("put plan z", "ok")]);
    assert_eq!(inside.rest(), "", "it is told nothing more");
}
