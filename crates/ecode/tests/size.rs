//! Texts that would keep the compiler busy are refused soon.

use ecode::{Input, compile};
use std::time::{Duration, Instant};

/// A function of `statements`, compiled; its first error.
fn refusal(statements: &str) -> Option<String> {
    let text = format!("long handle(long n) {{\n{statements}return n; }}\n");
    let start = Instant::now();
    let compiled = compile(&Input::new("large.e", &text));
    // The slowest takes a second, most of which is spent on reading it; before, a chain took 40.
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    compiled.err().map(|errors| errors.messages[0].text().to_owned())
}

fn repeat(count: usize, statement: impl Fn(usize) -> String) -> String {
    (0..count).map(statement).collect()
}

#[test]
fn functions_with_too_many_branches_are_refused() {
    for text in [
        repeat(100_000, |_| "while (n > 9) n--;\n".to_owned()),
        repeat(100_000, |_| "if (n > 9) n--;\n".to_owned()),
        repeat(50_000, |i| format!("if (n == {i}) goto l{i};\n"))
            + &repeat(50_000, |i| format!("l{0}: n++;\n", 49_999 - i)),
    ] {
        let why = refusal(&text).unwrap();
        assert!(why.starts_with("this function is too large: it has "), "{why}");
        assert!(why.contains("branches and labels"), "{why}");
    }
}

#[test]
fn a_hundred_thousand_jumps_to_jumps_are_one() {
    let forwards = repeat(100_000, |i| format!("l{i}: goto l{};\n", i + 1));
    assert_eq!(refusal(&format!("goto l0; {forwards} l100000: ;")), None);
    let backwards = repeat(100_000, |i| format!("l{}: goto l{};\n", 100_000 - i, 99_999 - i));
    assert_eq!(refusal(&format!("goto l100000; {backwards} l0: ;")), None);
    let around = repeat(100_000, |i| format!("l{i}: goto l{};\n", (i + 1) % 100_000));
    assert_eq!(refusal(&format!("if (n) goto l5; {around}")), None);
}

#[test]
fn loops_that_lie_too_deep_in_each_other_are_refused() {
    let back =
        |count| repeat(count, |i| format!("l{i}: n++; if (n & {i}) goto l{};\n", i.max(1) - 1));
    assert_eq!(refusal(&back(120)), None);
    let why = refusal(&back(140)).unwrap();
    assert!(why.contains("deep, more than 128"), "{why}");
    assert!(refusal(&back(60_000)).is_some());
}

#[test]
fn functions_that_compute_too_much_are_refused() {
    let why = refusal(&repeat(50_000, |_| "n = n * 3 + 1;\n".to_owned())).unwrap();
    assert!(why.contains("values, more than 40000"), "{why}");
}

#[test]
fn an_expression_is_looked_at_once_however_deep_it_lies() {
    let deep = (0..32).fold("g".to_owned(), |inner, _| format!("1?g:*({inner})"));
    let text = format!(
        "static long g(void) {{ return 1; }}
         long handle(long n) {{ long (*p)(void) = {deep}; return p(); }}"
    );
    assert_eq!(refusal_of(&text), None);
}

#[test]
fn looking_for_a_field_ends() {
    let unions = |count: usize| {
        let next = |i: usize| format!("union u{} {{ union u{i}; union u{i}; }};\n", i + 1);
        let unions = repeat(count, next);
        format!(
            "union u0 {{ char a; }};\n{unions}struct t {{ union u{count}; int z; }};
             long handle(long n) {{ struct t x; x.z = 1; return x.z; }}"
        )
    };
    assert_eq!(refusal_of(&unions(10)), None);
    let why = refusal_of(&unions(60)).unwrap();
    assert_eq!(why, "checking this text takes more than 20000000 steps");
}

#[test]
fn a_value_without_braces_counts_for_each_type_that_it_lies_in() {
    let text = |item: &str, count: usize| {
        let next = |i: usize| format!("struct s{} {{ struct s{i} a; }};\n", i + 1);
        format!(
            "struct s0 {{ char a; }};\n{}static struct s180 x[] = {{ {} }};
             long handle(long n) {{ return sizeof x; }}",
            repeat(180, next),
            item.repeat(count)
        )
    };
    for item in ["1,", "[0].a=1,"] {
        assert_eq!(refusal_of(&text(item, 20_000)), None);
        let why = refusal_of(&text(item, 150_000)).unwrap();
        assert_eq!(why, "checking this text takes more than 20000000 steps");
    }
}

#[test]
fn values_that_are_kept_over_many_branches_are_bounded() {
    let text = |values: usize, loops: usize| {
        repeat(values, |i| format!("long v{i} = n + {i};"))
            + &repeat(loops, |i| format!("while (n > {i}) n--;\n"))
            + &repeat(values, |i| format!("n ^= v{i};"))
    };
    assert_eq!(refusal(&text(300, 500)), None);
    let why = refusal(&text(3_000, 1_500)).unwrap();
    assert!(why.contains("counted for each branch, more than 2000000"), "{why}");
}

#[test]
fn what_becomes_vectors_does_not_grow_without_end() {
    let loops = "for (int i = 0; i < 64; i++) A[i] += B[i];\n".repeat(900);
    let text =
        format!("static int A[64], B[64];\nlong handle(long n) {{ {loops} return A[3]; }}\n");
    let compiled = compile(&Input::new("vectors.e", &text)).unwrap();
    let module = compiled.module.with_vectors();
    let body = module.funcs.iter().find_map(|func| func.body.as_ref()).unwrap();
    let (blocks, regs) = (body.blocks.len(), body.regs.len());
    assert!(blocks * regs < 40_000_000, "{blocks} blocks, {regs} values");
}

/// The first error of a whole text.
fn refusal_of(text: &str) -> Option<String> {
    let start = Instant::now();
    let compiled = compile(&Input::new("large.e", text));
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    compiled.err().map(|errors| errors.messages[0].text().to_owned())
}

#[test]
fn types_that_lie_too_deep_in_each_other_are_refused_before_the_stack_ends() {
    let chain = |count: usize, next: fn(usize) -> String, last: &str| {
        let handle = format!("long handle(long n) {{ {last} return n; }}\n");
        refusal_of(&(repeat(count, next) + &handle))
    };
    let records = |i: usize| match i {
        0 => "struct s0 { int a; };\n".to_owned(),
        _ => format!("struct s{i} {{ struct s{} a; }};\n", i - 1),
    };
    let by_pointers = |i: usize| match i {
        0 => "struct s0 { int a; };\n".to_owned(),
        _ => format!("struct s{i} {{ struct s{} *a[2]; }};\n", i - 1),
    };
    let arrays = |i: usize| match i {
        0 => "typedef int t0;\n".to_owned(),
        _ => format!("typedef t{} t{i}[1];\n", i - 1),
    };
    let functions = |i: usize| match i {
        0 => "typedef int t0;\n".to_owned(),
        _ => format!("typedef t{} (*t{i})(void);\n", i - 1),
    };
    for next in [records, arrays, functions] {
        let why = chain(20_000, next, "").unwrap();
        assert_eq!(why, "types lie in each other more than 200 deep here");
    }
    assert_eq!(chain(150, records, "struct s149 x = {0}; n += sizeof x;"), None);
    assert_eq!(chain(150, arrays, "t149 x = {0}; n += sizeof x;"), None);
    // What lies behind a pointer is not in it.
    assert_eq!(chain(5_000, by_pointers, "struct s4999 x = {0}; n += sizeof x;"), None);
}

#[test]
fn what_there_may_be_many_of_is_bounded() {
    let handle = "long handle(long n) { return n; }\n";
    for (text, why) in [
        (
            format!("struct s {{ {} }};\n", repeat(300_000, |i| format!("int f{i};"))),
            "this type has more than 4000 members",
        ),
        (
            repeat(100_000, |i| format!("long a{i} = {i};\n")),
            "there are more than 20000 static objects and strings",
        ),
        (
            repeat(100_000, |i| format!("long f{i}(long n);\n")),
            "there are more than 20000 functions",
        ),
    ] {
        assert_eq!(refusal_of(&(text + handle)).as_deref(), Some(why));
    }
    // Each written over what the last one wrote.
    let addresses = repeat(300_000, |i| format!("[{}]=&b,", 300_000 - i));
    assert_eq!(refusal_of(&format!("int b; int *a[300001] = {{ {addresses} }};\n{handle}")), None);
}

#[test]
fn all_functions_together_are_not_too_large_either() {
    let branches = "if (n > 9) n--;".repeat(1_500);
    let functions =
        |count| repeat(count, |i| format!("long f{i}(long n) {{ {branches} return n; }}\n"));
    assert!(compile(&Input::new("large.e", &functions(8))).is_ok());
    let errors = compile(&Input::new("large.e", &functions(40))).unwrap_err();
    let first = &errors.messages[0];
    assert_eq!(first.text(), "all functions up to here have more than 40000 branches");
    assert!((10..20).contains(&first.line()), "{}", first.line());
}
