//! Mistakes in policies: each is found, with its place and a suggestion.

use security_server::cil;

#[test]
fn every_mistake_has_a_place_and_a_suggestion() {
    for (text, place, message, suggestion) in [
        ("(type a", "p.cil:1:1", "this list is not closed", "add a `)`"),
        ("(type a))", "p.cil:1:9", "no list is open here", "remove this `)`"),
        ("\n  (tpye a)", "p.cil:2:3", "`tpye` is not a statement", "did you mean `type`?"),
        (
            "(type alpha) (allow alpa alpha (file (read)))",
            "p.cil:1:21",
            "unknown type `alpa`",
            "did you mean `alpha`?",
        ),
        (
            "(class file (read)) (type a)\n(allow a a (file (raed)))",
            "p.cil:2:19",
            "class `file` has no permission `raed`",
            "did you mean `read`?",
        ),
        (
            "(type a) (type a)",
            "p.cil:1:16",
            "type `a` is declared twice",
            "it is already declared in line 1; remove one of them",
        ),
        (
            "(type é)",
            "p.cil:1:7",
            "this character has no meaning in CIL",
            "quote text that is not a name: \"…\"",
        ),
        (
            "(typebounds a)",
            "p.cil:1:1",
            "this is not the form of `typebounds`",
            "write `(typebounds parent child)`",
        ),
        (
            "(typeattribute a) (typeattribute b) (typeattributeset a (b)) (typeattributeset b (a))",
            "",
            "attributes contain one another",
            "break the cycle of attribute sets",
        ),
        (
            "(macro m () (call m)) (call m)",
            "",
            "this copies a container into itself",
            "break the cycle of `blockinherit` or `call`",
        ),
        (
            "(block b (blockinherit b))",
            "p.cil:1:10",
            "this copies a container into itself",
            "break the cycle of `blockinherit` or `call`",
        ),
        (
            "(boolean x true) (booleanif x (true (type a)))",
            "p.cil:1:37",
            "`type` cannot stand in a `booleanif`",
            "put it outside, or use `tunableif`",
        ),
        (
            "(sensitivity s0)",
            "p.cil:1:1",
            "sensitivity `s0` is in no `sensitivityorder`",
            "add it to a `sensitivityorder`",
        ),
    ] {
        let errors = cil::compile(&[("p.cil", text)]).expect_err(text);
        let error = &errors.errors()[0];
        assert_eq!(error.message(), message, "{text}");
        assert_eq!(error.suggestion(), Some(suggestion), "{text}");
        assert!(error.to_string().starts_with(place), "{error}");
    }
}

#[test]
fn several_mistakes_are_reported_at_once() {
    let errors =
        cil::compile(&[("a.cil", "(allow x y (file (read)))"), ("b.cil", "(roletype r t)")]);
    let errors = errors.unwrap_err();
    let places: Vec<String> = errors.errors().iter().map(ToString::to_string).collect();
    assert_eq!(places, ["b.cil:1:11: unknown role `r`", "a.cil:1:8: unknown type `x`"]);
}

#[test]
fn deep_nesting_is_refused_not_followed() {
    let text = "(".repeat(100_000);
    let errors = cil::compile(&[("deep.cil", text)]).unwrap_err();
    assert_eq!(errors.errors()[0].message(), "lists are nested deeper than 200 levels");
}

#[test]
fn copies_that_grow_without_measure_are_refused() {
    let mut text = String::from("(block b0 (type t))");
    for n in 1..40 {
        text += &format!(
            "(block b{n} (block x (blockinherit b{m})) (block y (blockinherit b{m})))",
            m = n - 1
        );
    }
    let errors = cil::compile(&[("bomb.cil", text)]).unwrap_err();
    assert!(errors.to_string().contains("grow without measure"), "{errors}");
}
