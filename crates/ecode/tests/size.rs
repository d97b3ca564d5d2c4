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
