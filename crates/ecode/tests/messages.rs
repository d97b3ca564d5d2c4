//! Errors and warnings.

use ecode::{CompileErrors, Input, compile};
use miette::{GraphicalReportHandler, GraphicalTheme};

fn errors(text: &str) -> CompileErrors {
    compile(&Input::new("plugin.e", text)).err().unwrap_or_else(|| panic!("accepted: {text}"))
}

#[test]
fn every_error_has_its_place_and_several_come_at_once() {
    let text = "int f(int n) {\n  return n + coutn;\n}\nlong g(void) {\n  int count = \"x\" * 2;\n  cuont = 1;\n  return 0\n}\n";
    let found = errors(text);
    let places: Vec<_> = found.messages.iter().map(|m| (m.line(), m.column(), m.text())).collect();
    assert_eq!(
        places,
        [
            (2, 14, "`coutn` is not declared"),
            (5, 15, "this operator does not work on `char *` and `int`"),
            (6, 3, "`cuont` is not declared"),
            (7, 10, "expected `;`, found `}`"),
        ]
    );
    assert_eq!(
        found.to_string().lines().next(),
        Some("plugin.e:2:14: error: `coutn` is not declared")
    );
}

#[test]
fn an_error_shows_the_line_and_a_hint() {
    let found = errors("long proc(void) {\n  int count = 1;\n  return cuont;\n}\n");
    let mut shown = String::new();
    let handler = GraphicalReportHandler::new_themed(GraphicalTheme::none());
    handler.render_report(&mut shown, &found.messages[0]).unwrap();
    for part in ["plugin.e:3:10", "return cuont;", "did you mean `count`?"] {
        assert!(shown.contains(part), "{part} in\n{shown}");
    }
}

#[test]
fn a_message_about_a_line_that_nobody_can_read_shows_its_place_alone() {
    let long = format!("long f(long n) {{ {} return nn; }}", "n++; ".repeat(1000));
    for (text, place) in [
        (long.clone(), "plugin.e:1:5026"),
        (format!("{long}\nlong g(void) {{ return nn; }}\n"), "plugin.e:2:23"),
    ] {
        let found = errors(&text);
        let mut shown = String::new();
        let handler = GraphicalReportHandler::new_themed(GraphicalTheme::none());
        handler.render_report(&mut shown, found.messages.last().unwrap()).unwrap();
        assert!(shown.contains(place) && shown.contains("`nn` is not declared"), "{shown}");
        assert!(shown.len() < 300, "{shown}");
    }
}

#[test]
fn what_is_outside_of_the_language_is_refused_with_a_reason() {
    for (text, want) in [
        ("struct s { int a : 3; };", "bit fields do not exist in E-code"),
        ("#define X 1\n", "E-code has no preprocessor"),
        ("int f(int n, ...) { return n; }", "only host functions take `...`"),
        ("int f(void) { return g(1); }", "`g` is not declared"),
        ("int f(int n) { return f(); }", "this function takes 1 argument, not 0"),
        ("int f(void) { break; }", "there is no loop or `switch` around this"),
        ("int f(void) { goto x; }", "there is no label `x`"),
        ("int f(void) { 1 = 2; return 0; }", "this is a value, not a place that can be assigned"),
        ("const int c = 1; int f(void) { c = 2; return 0; }", "this is `const`"),
        ("int f(void) { switch (1) { case 1: case 1: ; } return 0; }", "case 1 stands twice"),
        ("struct s; struct s v;", "`struct s` has no known size"),
        ("int n = 1; int a[n];", "this is not a constant"),
        ("int a[1 << 30][1 << 30];", "this array is too large, or has less than no elements"),
        ("int f(void) { struct { int x; } s; return s.y; }", "`struct` has no field `y`"),
        ("int f(int *p) { return p.x; }", "`int *` has no fields"),
        ("_Static_assert(sizeof(long) == 4);", "this assertion does not hold"),
        ("int x = 08;", "this is not a number"),
        ("int f(void) { return \"a; }", "this string has no end"),
        ("/* no end", "this comment has no end"),
        ("int f(void) { return 1; } int f(void) { return 2; }", "function `f` has two bodies"),
    ] {
        let found = errors(text);
        assert!(found.messages.iter().any(|m| m.text() == want), "{text}\n{found}");
    }
}

#[test]
fn usual_mistakes_are_warned_about() {
    for (text, want) in [
        ("int f(int a) { if (a = 1) return 2; return 3; }", "this condition is an assignment"),
        ("int f(int a) { int unused = a; return a; }", "variable `unused` is never used"),
        ("int f(int a) { if (a) return 2; }", "`f` may end without `return`"),
        ("int f(int a) { a == 3; return a; }", "this comparison has no effect"),
        ("int f(int a) { if (a); return a; }", "this `if` governs nothing"),
        ("int f(int a) { return a << 40; }", "this shifts by more bits than there are"),
        ("int f(void) { char c = 1000; return c; }", "1000 does not fit: its high bits are lost"),
        ("int f(long a) { int *p = a; return *p; }", "an integer becomes a pointer"),
        ("int f(int a) { return a / 0; }", "this divides by zero: the call will end here"),
    ] {
        let compiled = compile(&Input::new("plugin.e", text)).unwrap();
        assert!(
            compiled.warnings.iter().any(|m| m.text() == want),
            "{text}: {:?}",
            compiled.warnings
        );
    }
    let clean = "int f(int a) { for (int i = 0; i < 3; i++) a += i; return a; }";
    assert!(compile(&Input::new("plugin.e", clean)).unwrap().warnings.is_empty());
}

#[test]
fn no_text_makes_the_compiler_panic_or_run_away() {
    let deep = |open: &str, close: &str| {
        format!("long f() {{ return {}1{}; }}", open.repeat(5000), close.repeat(5000))
    };
    let mut texts = vec![
        deep("(", ")"),
        deep("-", ""),
        deep("1+", ""),
        deep("f(", ")"),
        format!("long f() {{ {} }}", "{".repeat(5000)),
        format!("int {}x;", "*".repeat(5000)),
        format!("int x{};", "[1]".repeat(5000)),
        format!("int {}x{};", "(".repeat(5000), ")".repeat(5000)),
        format!("long f(int a) {{ {} ; }}", "if (a) ; else ".repeat(5000)),
        format!("int a[] = {}1{};", "{".repeat(5000), "}".repeat(5000)),
        "int a[] = { [1 << 29] = 1 };".to_owned(),
        "char a[] = { [(1 << 30) - 2] = 1 };".to_owned(),
        format!("long g() {{ return 1; }} long f() {{ return ({}g)(); }}", "*".repeat(190)),
        format!("long f() {{ return {}1{}; }}", "sizeof(".repeat(60), ")".repeat(60)),
        {
            let open = "g((struct s){ 1, ".repeat(40);
            let close = " })".repeat(40);
            let head = "struct i { int x; }; struct s { int n; struct i x; }; struct i g(struct s a) { return a.x; }";
            format!("{head} struct i f(struct i v) {{ return {open} v {close}; }}")
        },
        "struct s { struct s x; };".to_owned(),
        "int a[2] = { [0 ... 1] = 1 };".to_owned(),
        "typedef typedef int x; x x x;".to_owned(),
        "int \u{e4} = '\u{20ac}';".to_owned(),
        "\"\\".to_owned(),
        "'\\x'".to_owned(),
    ];
    // Every prefix of a program that uses most of the language.
    let whole = "enum e { A = 3 }; struct s { int x; union { char c[4]; float f; }; } v = { .x = 1, .c = \"ab\" };
        typedef int (*fn)(int, struct s *); static fn t[2];
        long f(int n, struct s *p) { switch (n) { case A ... 5: return p->x; default: goto l; }
        l: do { n -= (unsigned char)p->c[n & 3] ? sizeof(*p) : _Generic(n, int: 1, default: 2); } while (n > 0 && t[0]);
        return (struct s){ .x = n }.x + \"abc\"[1] + *&n; }";
    texts.extend((0..whole.len()).map(|end| whole[..end].to_owned()));
    for text in texts {
        if let Ok(compiled) = compile(&Input::new("x", &text)) {
            compiled.module.verify().unwrap();
            let _ = ecode::wasm::emit(&compiled.module, &Default::default());
        }
    }
}
