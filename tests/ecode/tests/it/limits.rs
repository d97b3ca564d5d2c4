//! What a hostile program can do: end its own call.

use crate::{
    common::{TARGETS, TRAPS, Target, engine, module, run},
    sys,
};
use ecode::{CallError, Host, Memory, NoHost, Value, ir::TrapCode};
use ecode_kernel::{KernelCode, KernelError, KernelOptions};
use std::time::{Duration, Instant};

fn isolated(text: &str, millis: u64) -> Result<Option<Value>, CallError> {
    let code = engine().compile(&module(text, "")).unwrap();
    let mut instance = code.instantiate(Box::new(NoHost)).unwrap();
    instance.call("proc", &[], Duration::from_millis(millis))
}

#[test]
fn reads_and_writes_outside_of_memory_end_the_call() {
    for text in [
        "long proc() { return *(char *)0x7fffffff; }",
        "long proc() { *(long *)0xfffffff0u = 1; return 0; }",
        "char a[4]; long proc() { long i, s = 0; for (i = 0; ; i += 4096) s += a[i]; return s; }",
        "char a[4]; long proc() { long i; for (i = 0; ; i++) a[i] = 1; return 0; }",
        "struct b { char c[1 << 20]; }; long proc() { *(struct b *)0x7ff00000 = *(struct b *)0; return 0; }",
    ] {
        assert_eq!(isolated(text, 2000), Err(CallError::OutOfBounds), "{text}");
    }
}

#[test]
fn a_program_never_reaches_memory_of_another() {
    let text = "long proc() { unsigned a; long s = 0; for (a = 0; a < 0x10000; a++) s += *(char *)a; return s; }";
    let writer = "char a[64]; long proc() { for (int i = 0; i < 64; i++) a[i] = 1; return 0; }";
    let code = engine().compile(&module(writer, "")).unwrap();
    let mut other = code.instantiate(Box::new(NoHost)).unwrap();
    assert_eq!(other.call("proc", &[], Duration::from_secs(2)), Ok(Some(Value::I64(0))));
    assert_eq!(isolated(text, 2000), Ok(Some(Value::I64(0))));
}

#[test]
fn endless_loops_end_at_the_deadline() {
    for text in [
        "long proc() { for (;;) ; }",
        "long proc() { int i; for (i = 0; i >= 0; i ^= 1) ; return 0; }",
        "long proc() { a: goto b; b: goto a; }",
        "long f(long n) { return n < 1 ? 1 : f(n - 1) + f(n - 1); } long proc() { return f(60); }",
        "long proc() { int i = 0; if (i) goto in; for (;;) { i++; in: i--; } }",
        "struct b { char c[1 << 20]; } x, y; long proc() { for (;;) x = y; }",
    ] {
        let start = Instant::now();
        assert_eq!(isolated(text, 50), Err(CallError::Timeout), "{text}");
        assert!(start.elapsed() < Duration::from_secs(20), "{text}: {:?}", start.elapsed());
    }
}

#[test]
fn iterations_that_take_long_end_at_the_deadline_too() {
    let copies = "x = y;".repeat(2000);
    let calls = "f();".repeat(30_000);
    let data = "struct b { char c[1 << 16]; } x, y; long n;";
    for text in [
        format!("{data} long proc() {{ for (;;) {{ {copies} }} }}"),
        format!("{data} long proc() {{ a: {copies} if (n) goto in; b: n ^= 1; in: goto a; }}"),
        format!(
            "{data} void g() {{ {copies} }} void f() {{ g(); }} long proc() {{ {calls} return 0; }}"
        ),
        // The fuel counter does not wrap.
        format!(
            "{data} void f() {{ for (int i = 0; i < 2000; i++) n ^= i; }} void g() {{ {calls} }} \
             long proc() {{ g(); g(); g(); for (;;) x = y; }}"
        ),
    ] {
        let start = Instant::now();
        let code = engine().compile(&module(&text, "")).unwrap();
        let compiled = start.elapsed();
        let mut instance = code.instantiate(Box::new(NoHost)).unwrap();
        let got = instance.call("proc", &[], Duration::from_millis(50));
        let took = start.elapsed() - compiled;
        let end = text.char_indices().nth(120).map_or(text.len(), |(at, _)| at);
        assert_eq!(got, Err(CallError::Timeout), "{}", &text[..end]);
        assert!(took < Duration::from_secs(20), "{}: {took:?}", &text[..end]);
    }
}

#[test]
fn a_function_of_many_loops_is_compiled_soon_and_ends_at_the_deadline() {
    // Nearly as many as a function may have.
    const LOOPS: usize = 1900;
    let many = |loops: usize, last: &str| {
        let loops = "for (i = 0; i < n; i++) h ^= a[i];".repeat(loops);
        format!("char a[9]; long n = 3; long proc() {{ long h = 0, i; {loops} {last} return h; }}")
    };
    let start = Instant::now();
    let bytes = ecode::wasm::emit(&module(&many(LOOPS, ""), ""), &Default::default()).unwrap();
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    assert!(bytes.len() < 4 << 20);
    let values = "h = h * n + i;".repeat(5_000);
    let kernel = KernelCode::compile(&module(&many(LOOPS, &values), ""), KernelOptions::default());
    assert!(matches!(kernel, Err(KernelError::TooLarge(name)) if name == "proc"));
    let fixed = "for (i = 0; i < 16; i++) b[i] = a[i];".repeat(LOOPS);
    let text = format!("char a[16], b[16]; long proc() {{ long i; {fixed} return 0; }}");
    let _ = module(&text, "").with_vectors();
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    assert_eq!(isolated(&many(1000, ""), 1000), Ok(Some(Value::I64(0))));
    assert_eq!(isolated(&many(1000, "while (n) h++;"), 50), Err(CallError::Timeout));
}

#[test]
fn endless_recursion_uses_up_its_own_stack_on_every_target() {
    for text in [
        "long f(long n) { return f(n + 1) + 1; } long proc() { return f(0); }",
        "long f(char *p) { char b[1000]; b[0] = *p; return f(b) + b[0]; } long proc() { char c = 1; return f(&c); }",
        "long g(long n); long f(long n) { return g(n) + 1; } long g(long n) { return f(n) + 1; } long proc() { return f(0); }",
    ] {
        let module = module(text, "");
        for target in TARGETS {
            let got = run(&module, target, Box::new(NoHost), "proc", &[]);
            let spent = CallError::Trap(TrapCode::StackOverflow);
            assert_eq!(got, Err(spent), "{target:?}: {text}");
        }
    }
}

#[test]
fn division_by_zero_and_bad_calls_end_the_call_on_every_target() {
    for (text, code) in TRAPS {
        let module = module(text, "");
        for target in TARGETS {
            let got = run(&module, target, Box::new(NoHost), "proc", &[]);
            assert_eq!(got, Err(CallError::Trap(*code)), "{target:?}: {text}");
        }
    }
}

#[test]
fn what_c_leaves_undefined_has_one_result_on_every_target() {
    for (text, want) in [
        ("int m = -2147483647 - 1; int n = -1; long proc() { return m / n; }", i64::from(i32::MIN)),
        ("int m = -2147483647 - 1; int n = -1; long proc() { return m % n; }", 0),
        ("int m = 2147483647; long proc() { return m + 1; }", i64::from(i32::MIN)),
        ("int s = 33; long proc() { return 1 << s; }", 2),
        ("long s = 65; long proc() { return -8L >> s; }", -4),
        ("double d = 1e30; long proc() { return (int)d; }", i64::from(i32::MAX)),
        ("double d = -1; long proc() { return (unsigned long)d; }", 0),
        ("double z; long proc() { return (long)(z / z); }", 0),
        ("long proc() { int x; return x; }", 0),
        ("int f() { } long proc() { return f(); }", 0),
    ] {
        let module = module(text, "");
        for target in TARGETS {
            let got = run(&module, target, Box::new(NoHost), "proc", &[]);
            assert_eq!(got, Ok(Some(Value::I64(want))), "{target:?}: {text}");
        }
    }
}

#[test]
fn a_smashed_stack_is_caught_on_return_and_names_the_function() {
    let text =
        "long fill(long n) { char b[16]; for (long i = 0; i < n; i++) b[i] = 'x'; return b[0]; }
                long proc(long n) { return fill(n); }";
    let module = module(text, "");
    let call = |n| run(&module, Target::NativeStack, Box::new(NoHost), "proc", &[Value::I64(n)]);
    assert_eq!(call(16), Ok(Some(Value::I64(i64::from(b'x')))));
    assert_eq!(call(17), Err(CallError::Smashed("fill".into())));
    assert_eq!(call(24), Err(CallError::Smashed("fill".into())));
    // The host goes on.
    assert_eq!(call(8), Ok(Some(Value::I64(i64::from(b'x')))));
}

#[test]
fn an_overflow_changes_no_other_variable_and_no_pointer_argument() {
    let text = "long f(long *out, long n) { char b[16]; long kept = 7; long *k = &kept; b[15] = 0;
                  for (long i = 16; i < n; i++) b[i] = 'x';
                  *out = *k; return b[15]; }
                long seen; long proc(long n) { return f(&seen, n); }
                long look() { return seen; }";
    let module = module(text, "");
    let code = ecode_native::NativeCode::compile(&module, ecode_native::Protection::Stack).unwrap();
    // The program writes one guard and no more beyond its array.
    let mut instance = sys::native(&code, Box::new(NoHost));
    assert_eq!(instance.call("proc", &[Value::I64(20)]), Err(CallError::Smashed("f".into())));
    assert_eq!(instance.call("look", &[]), Ok(Some(Value::I64(7))));
}

#[test]
fn an_overflow_changes_no_pointer_argument_that_has_no_register() {
    // More numbers than there are registers, all used in each iteration; the pointer only behind
    // it.
    let names: Vec<String> = (0..24).map(|i| format!("a{i}")).collect();
    let [mut start, mut iteration, sum] = [String::new(), String::new(), names.join(" ^ ")];
    for (i, name) in names.iter().enumerate() {
        start += &format!("long {name} = n * {};", 2 * i + 3);
        iteration += &format!("{name} += {} ^ i;", names[(i + 7) % 24]);
    }
    let text = format!(
        "long f(long *out, long n) {{ char b[16]; b[15] = 0; {start}
           for (long i = 0; i < n; i++) {{ b[i] = 'x'; {iteration} }}
           *out = 7; return b[15] + ({sum}); }}
         long seen; long proc(long n) {{ return f(&seen, n); }}
         long look() {{ return seen; }}"
    );
    let module = module(&text, "");
    let code = ecode_native::NativeCode::compile(&module, ecode_native::Protection::Stack).unwrap();
    // Guard, its padding, and some of what lies above; returns go by what lies behind all of that.
    for n in [17, 32, 64, 96, 128, 160] {
        // The program writes its own frame only, which has more than so many bytes above the array.
        let mut instance = sys::native(&code, Box::new(NoHost));
        assert_eq!(instance.call("proc", &[Value::I64(n)]), Err(CallError::Smashed("f".into())));
        assert_eq!(instance.call("look", &[]), Ok(Some(Value::I64(7))), "{n}");
    }
}

struct Echo;

impl Host for Echo {
    fn call(&mut self, name: &str, args: &[Value], memory: &mut dyn Memory) -> Result<u64, String> {
        match (name, args) {
            ("twice", [Value::I32(n)]) => Ok(2 * *n as u64),
            ("measure", [Value::Ptr(text)]) => {
                Ok(memory.read_text(*text, 100).ok_or("bad address")?.len() as u64)
            }
            ("fail", []) => Err("no".into()),
            ("panic", []) => panic!("in the host"),
            _ => Err(format!("`{name}` {args:?}")),
        }
    }
}

#[test]
fn host_functions_are_called_with_typed_arguments_on_every_target() {
    let host = "int twice(int n); long measure(string s); void fail(void);";
    let text = "long proc(int n) { return twice(n) + measure(\"hello\"); } long bad() { fail(); return 1; }";
    let module = module(text, host);
    for target in TARGETS {
        let got = run(&module, target, Box::new(Echo), "proc", &[Value::I32(4)]);
        assert_eq!(got, Ok(Some(Value::I64(13))), "{target:?}");
        let got = run(&module, target, Box::new(Echo), "bad", &[]);
        assert_eq!(got, Err(CallError::Host("no".into())), "{target:?}");
        let got = run(&module, target, Box::new(Echo), "proc", &[]);
        assert_eq!(got, Err(CallError::NoFunction("proc".into())), "{target:?}");
    }
}
