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
            "(block b (type t)) (block b (type s))",
            "p.cil:1:20",
            "block `b` is declared twice",
            "use `(in block …)` to add to a block",
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

/// Each of a chain of attributes names the next inside of many parentheses.
#[test]
fn sets_that_name_each_other_are_not_followed_without_measure() {
    const CHAIN: usize = 90;
    let (open, close) = ("(not ".repeat(150), ")".repeat(150));
    let mut text = String::from("(type t)");
    for n in 0..CHAIN {
        let next = if n + 1 == CHAIN { "t".to_owned() } else { format!("a{}", n + 1) };
        text += &format!("(typeattribute a{n})(typeattributeset a{n} {open}{next}{close})");
    }
    let errors = cil::compile(&[("deep.cil", text)]).unwrap_err();
    let message = errors.errors()[0].message();
    assert!(message.starts_with("sets are nested too deep"), "{message}");
    // Category sets, too.
    let mut text = String::from("(mls true)(category c0)(categoryorder (c0))");
    for n in 0..60 {
        let next = if n == 59 { "c0".to_owned() } else { format!("s{}", n + 1) };
        text += &format!("(categoryset s{n} {open}{next}{close})");
    }
    let errors = cil::compile(&[("deep.cil", text)]).unwrap_err();
    assert!(errors.errors().iter().any(|it| it.message().starts_with("sets are nested too deep")));
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

/// Declarations of many types, and an attribute of all of them.
fn many_types(count: usize) -> String {
    let types: String = (0..count).map(|n| format!("(type t{n})")).collect();
    format!(
        "(class file (read)) (classorder (file)) {types} (typeattribute x) (typeattributeset x (all))"
    )
}

#[test]
fn a_few_lines_cannot_stand_for_more_than_memory_holds() {
    let rules = |rule: &str| many_types(4000) + &rule.repeat(8);
    let attributes: String = (0..4000)
        .map(|n| format!("(typeattribute a{n})(typeattributeset a{n} (not t{n}))"))
        .collect();
    for text in [
        rules("(typetransition x x file t0)"),
        rules("(typemember x x file t0)"),
        rules("(allow x notself (file (read)))"),
        rules("(allow x other (file (read)))"),
        rules("(allowx x notself (ioctl file (0x1)))"),
        many_types(4000) + "(allow x x (file (read))) (deny t0 x (file (read)))",
        rules("(rangetransition x x file ((s0) (s0)))") + "(sensitivity s0)(sensitivityorder (s0))",
        many_types(4000) + &attributes,
    ] {
        let before = std::time::Instant::now();
        let errors = cil::compile(&[("hostile.cil", &text)]).expect_err("refused");
        let messages: Vec<&str> = errors.errors().iter().map(|error| error.message()).collect();
        // Told once: each further statement would take as long to find the same.
        let refused = messages.iter().filter(|message| message.contains("more memory than"));
        assert_eq!(refused.count(), 1, "{messages:?} {}", &text[text.len() - 60..]);
        assert!(before.elapsed().as_secs() < 20);
    }
}

#[test]
fn mistakes_in_generated_text_point_into_its_source() {
    let text = "(class file (read)) (classorder (file)) (type a)\n;;* lms 12 web.te\n(allow a a (file (read)))\n\
                (allow a b (file (read)))\n;;* lme\n";
    let errors = cil::compile(&[("web.cil", text)]).expect_err("refused");
    assert_eq!(errors.errors()[0].origin(), Some(("web.te", 13)));
    assert_eq!(errors.to_string(), "web.te:13: web.cil:4:10: unknown type `b`");
    let policy = cil::compile(&[("web.cil", text.replace("a b", "a a"))]).unwrap();
    assert_eq!(policy.format_place(policy.av_rules[0].place).trim(), "web.te:12");
    let errors = cil::compile(&[("bad.cil", ";;* lmq\n")]).expect_err("refused");
    assert!(errors.to_string().contains("not a line mark"), "{errors}");
}

#[test]
fn levels_in_the_wrong_order_are_told_from_other_mistakes() {
    let base = "(class file (read)) (classorder (file)) (mls true) (sensitivity s0) (sensitivityorder (s0))\n";
    for (expression, help) in [
        ("(dom l2 l1)", "write `(domby l1 l2)`"),
        ("(eq h2 l1)", "write `(eq l1 h2)`"),
        ("(dom l1 l1)", "compare l1 or h1 with l2 or h2, l1 with h1, or l2 with h2"),
    ] {
        let text = format!("{base}(mlsconstrain (file (read)) {expression})");
        let errors = cil::compile(&[("levels.cil", text)]).expect_err("refused");
        assert_eq!(errors.errors()[0].suggestion(), Some(help), "{errors}");
    }
}

#[test]
fn text_that_could_steer_a_terminal_is_refused_and_not_repeated() {
    let errors =
        cil::compile(&[("x.cil", "(filecon \"/\u{1b}[2J\" any ())")]).expect_err("refused");
    assert!(errors.to_string().contains("cannot be shown"), "{errors}");
    let errors =
        cil::compile(&[("x.cil", "(allow a b c) ; \u{1b}[2J\u{202e}")]).expect_err("refused");
    let mut shown = String::new();
    miette::NarratableReportHandler::new().render_report(&mut shown, &errors).unwrap();
    assert!(shown.contains("(allow a b c)"), "{shown}");
    assert!(!shown.contains(['\u{1b}', '\u{202e}']), "{shown:?}");
}

#[test]
fn names_cannot_stand_for_more_than_memory_holds() {
    let names = |kind: &str, count: usize| {
        (0..count).map(|n| format!("({kind} x{n:x})")).collect::<String>()
    };
    let order = |kind: &str, count: usize| {
        let names: Vec<String> = (0..count).map(|n| format!("x{n:x}")).collect();
        format!("({kind} ({}))", names.join(" "))
    };
    let last = |count: usize| format!("x{:x}", count - 1);
    // Each has few members, and the last of many names among them.
    let sets: String = (0..20_000)
        .map(|n| format!("(typeattribute a{n})(typeattributeset a{n} ({}))", last(20_000)))
        .collect();
    let users: String = (0..20_000)
        .map(|n| format!("(user u{n})(userlevel u{n} (s0 ({})))", last(60_000)))
        .collect();
    let levels = names("category", 60_000)
        + &order("categoryorder", 60_000)
        + "(sensitivity s0)(sensitivityorder (s0))(sensitivitycategory s0 (all))";
    for text in [
        names("type", 150_000),
        names("role", 150_000),
        names("type", 20_000) + &sets,
        levels + &users,
    ] {
        let errors = cil::compile(&[("hostile.cil", &text)]).expect_err("refused");
        let messages: Vec<&str> = errors.errors().iter().map(|error| error.message()).collect();
        let refused = messages.iter().filter(|message| message.contains("more memory than"));
        assert_eq!(refused.count(), 1, "{messages:?}");
    }
}

/// Names of blocks so long, so many levels deep, around `text`.
fn nested(levels: usize, len: usize, text: &str) -> String {
    let opened: String = (0..levels).map(|n| format!("(block b{n}{}", "x".repeat(len))).collect();
    opened + text + &")".repeat(levels)
}

/// What a policy may take in these tests.
const MOST: usize = 32 << 20;

#[test]
fn names_count_with_the_blocks_around_them() {
    let types = |count| (0..count).map(|n| format!("(type t{n})\n")).collect::<String>();
    let compile = |text: &str| cil::compile_within(&[("names.cil", text)], MOST);
    let error = compile(&nested(20, 2000, &types(3))).expect_err("refused");
    assert!(error.to_string().starts_with("names.cil:1:"), "{error}");
    assert!(error.to_string().contains("longer than 4096 bytes"), "{error}");
    let error = compile(&nested(180, 15, &types(20_000))).expect_err("refused");
    assert!(error.to_string().contains("more memory than"), "{error}");
    let policy = compile(&nested(180, 15, &types(1000))).expect("it is small");
    assert!(policy.bytes() > 1000 * 2 * 180 * 15, "{}", policy.bytes());
}

#[test]
fn what_macros_and_blocks_copy_counts() {
    let calls =
        |count: usize, body: &str| format!("(macro m () {body})") + &"(call m)".repeat(count);
    let long = "x".repeat(30_000);
    let path = calls(4000, &format!("(filecon \"/{long}\" any ())"));
    let device = format!("(genfscon \"{long}\" / c)");
    let device = SMALL.to_owned() + "(context c (u r t))" + &calls(4000, &device);
    let test = "(and ".repeat(150) + "(eq t1 t)" + &" (eq t2 t))".repeat(150);
    let constraint = calls(3000, &format!("(constrain (file (read)) {test})"));
    let permissions: String = (0..30).map(|n| format!(" p{n}{}", "x".repeat(2000))).collect();
    let classes: String =
        (0..2000).map(|n| format!("(class c{n} ())(classcommon c{n} k)")).collect();
    let order: String = (0..2000).map(|n| format!(" c{n}")).collect();
    let common = format!("(common k ({permissions})){classes}(classorder (file{order}))");
    for text in [path, device, SMALL.to_owned() + &constraint, SMALL.to_owned() + &common] {
        let error = cil::compile_within(&[("copies.cil", &text)], MOST).expect_err("refused");
        assert!(error.to_string().contains("more memory than"), "{error}");
    }
    // What is in a container of its own takes memory before anything is built of it.
    let blocks = "(optional o (optional p))".repeat(2000);
    let text = calls(2000, &blocks);
    let error = cil::compile_within(&[("copies.cil", &text)], MOST).expect_err("refused");
    assert!(error.to_string().contains("grow without measure"), "{error}");
}

/// Optionals that are dropped one after the other: each names what the next declares.
fn chained(count: usize) -> String {
    let last = "(optional last (allow t nobody (file (read))) (type t0))".to_owned();
    (1..count).fold(SMALL.to_owned() + &last, |text, n| {
        text + &format!("(optional o{n} (allow t t{} (file (read))) (type t{n}))", n - 1)
    })
}

#[test]
fn optionals_that_are_dropped_one_by_one_take_bounded_time() {
    // Few are resolved, however often.
    cil::compile(&[("few.cil", &chained(200))]).expect("it is small");
    let error = cil::compile(&[("many.cil", &chained(20_000))]).expect_err("refused");
    assert!(error.to_string().starts_with("many.cil:2:"), "{error}");
    assert!(error.to_string().contains("one by one"), "{error}");
}

const SMALL: &str = "(class file (read)) (classorder (file)) (user u) (role r) (userrole u r)
    (type t) (roletype r t)";

#[test]
fn a_constraint_of_many_classes_is_kept_once() {
    let names: Vec<String> = (0..500).map(|n| format!("k{n}")).collect();
    let classes: String = names.iter().map(|name| format!("(class {name} (p))")).collect();
    let mapped: String =
        names.iter().map(|name| format!("(classmapping m x ({name} (p)))")).collect();
    let half = |depth: usize| "(or (eq t1 t) ".repeat(depth) + "(eq t2 t)" + &")".repeat(depth);
    let test = format!("(and {} {})", half(60), half(60));
    let text = format!(
        "{SMALL} {classes}(classorder (unordered {}))(classmap m (x)){mapped}
         (constrain (m (x)) {test})",
        names.join(" ")
    );
    let policy = cil::compile_within(&[("constraint.cil", &text)], MOST).unwrap();
    let programs = policy.classes.values().flat_map(|class| &class.constraints);
    let steps: std::collections::BTreeSet<_> =
        programs.map(|it| it.program.steps().as_ptr()).collect();
    assert_eq!(steps.len(), 1);
    assert!(policy.bytes() > 120 * 96, "{}", policy.bytes());
}
