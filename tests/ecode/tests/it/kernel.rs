//! The kernel target: the same results as isolated and gcc, and nothing but the end of its own call
//! for a hostile program. Where the machine does not let programs into the kernel, each test says
//! so and tests nothing. `ECODE_PROGRAMS` (2,000 if it is not set: each is loaded by itself) and
//! `ECODE_SEED` as in `differential.rs`.

use crate::common::{TRAPS, engine, module};
use crate::generate::{Rng, integer_program};
use crate::programs::PROGRAMS;
use ecode::{
    CallError, Host, Memory, NoHost, Value,
    ir::{Module, TrapCode},
};
use ecode_kernel::{KernelCode, KernelError, KernelInstance, KernelOptions};
use std::{
    sync::{
        OnceLock,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

const LONG: Duration = Duration::from_secs(20);

/// Whether programs can be loaded here; says aloud when not.
fn permitted() -> bool {
    static WHY_NOT: OnceLock<Option<String>> = OnceLock::new();
    let why_not = WHY_NOT.get_or_init(|| match load(&module("{ return 1; }", "")) {
        Ok(_) => None,
        Err(error @ (KernelError::NotPermitted | KernelError::NoArena)) => Some(error.to_string()),
        Err(error) => panic!("{error}"),
    });
    if let Some(why_not) = why_not {
        eprintln!("NOT TESTED: {why_not}");
    }
    why_not.is_none()
}

fn load(module: &Module) -> Result<KernelInstance, KernelError> {
    KernelCode::compile(module, KernelOptions::default())?.instantiate(Box::new(NoHost))
}

fn run(text: &str, time: Duration) -> Result<Option<Value>, CallError> {
    let module = module(text, "");
    let mut instance = load(&module).unwrap_or_else(|error| panic!("{text}\n{module}\n{error}"));
    instance.call("proc", &[], time)
}

#[test]
fn the_language_gives_the_same_results_without_floats() {
    if !permitted() {
        return;
    }
    let mut refused = 0;
    for (text, want) in PROGRAMS {
        match load(&module(text, "")) {
            Ok(mut instance) => {
                let got = instance.call("proc", &[], LONG);
                assert_eq!(got, Ok(Some(Value::I64(*want))), "{text}");
            }
            Err(KernelError::Float { .. }) => refused += 1,
            Err(error) => panic!("{text}\n{error}"),
        }
    }
    assert_eq!(refused, PROGRAMS.iter().filter(|(text, _)| text.contains("double")).count());
}

#[test]
fn vectors_are_refused() {
    let text =
        "{ static int a[99], b[99]; for (int i = 0; i < 99; i++) a[i] = b[i] + 1; return a[3]; }";
    let vectors = module(text, "").with_vectors();
    let compiled = KernelCode::compile(&vectors, KernelOptions::default());
    assert!(matches!(compiled, Err(KernelError::Vectors(name)) if name == "proc"));
}

#[test]
fn random_programs_agree_with_gcc_and_isolated() {
    if !permitted() {
        return;
    }
    let (refused, slowest) = (AtomicUsize::new(0), AtomicU64::new(0));
    let count = crate::batches::run(500, |batch| {
        let folder = tempfile::tempdir().unwrap();
        let mut rng = Rng(batch.random());
        let texts: Vec<String> = (0..batch.size).map(|id| integer_program(&mut rng, id)).collect();
        let wanted = crate::gcc::results(folder.path(), &texts.concat(), batch.size, &["-O0"]);
        let isolated = engine().compile(&module(&texts.concat(), "")).unwrap();
        let mut isolated = isolated.instantiate(Box::new(NoHost)).unwrap();
        for (id, text) in texts.iter().enumerate() {
            let (name, want) = (format!("test_{id}"), Ok(Some(Value::I64(wanted[id]))));
            assert_eq!(isolated.call(&name, &[], LONG), want, "isolated: {text}");
            let start = Instant::now();
            match load(&module(text, "")) {
                Ok(mut instance) => assert_eq!(instance.call(&name, &[], LONG), want, "{text}"),
                Err(error @ KernelError::Refused(_)) => {
                    eprintln!("refused: {error}\n{text}");
                    refused.fetch_add(1, Ordering::Relaxed);
                }
                Err(error) => panic!("{error}\n{text}"),
            }
            slowest.fetch_max(start.elapsed().as_micros() as u64, Ordering::Relaxed);
        }
    });
    let (refused, slowest) = (refused.into_inner(), slowest.into_inner());
    println!("{count} programs, the verifier refused {refused}, the slowest took {slowest} us");
    assert!(refused * 200 <= count, "{refused} of {count} programs refused");
}

#[test]
fn loops_whose_conditions_leave_one_number_are_loaded() {
    if !permitted() {
        return;
    }
    // Where `i > 65535` and then `i + 1 < 2`, `i` has wrapped: it can only be the least number, and
    // then those after it.
    let text = r#"
        static int m, c = 5;
        static long a[8];
        long proc() {
            short s = c;
            bool v = 0;
            for (int i = 0; i < 2; i++) {
                v ^= (1 - "dewar"[3] % 77) / (((m ^ "dewar"[3]) & 15) + 1);
                a[(signed char)255 * (short)c & 7] =
                    (unsigned char)((unsigned)(i > 65535 ? s : 256) - (unsigned)c) | i / (("dewar"[4] & 15) + 1);
            }
            for (int k = 0; k < 6; k++) { }
            return v + s + a[3] * 10;
        }"#;
    let isolated = engine().compile(&module(text, "")).unwrap();
    let want = isolated.instantiate(Box::new(NoHost)).unwrap().call("proc", &[], LONG);
    assert_eq!(run(text, LONG), want);
}

#[test]
fn signals_do_not_keep_programs_from_being_loaded() {
    if !permitted() {
        return;
    }
    let mut rng = Rng(7);
    let module = module(&(0..5).map(|id| integer_program(&mut rng, id)).collect::<String>(), "");
    let pid = std::process::id();
    // Fewer than a program is loaded again for.
    let script =
        format!("for i in $(seq 40); do kill -STOP {pid}; kill -CONT {pid}; sleep 0.002; done");
    let mut stops = std::process::Command::new("sh").args(["-c", &script]).spawn().unwrap();
    while stops.try_wait().unwrap().is_none() {
        assert!(load(&module).is_ok());
    }
    assert!(stops.wait().unwrap().success());
}

#[test]
fn addresses_outside_of_memory_end_the_call() {
    if !permitted() {
        return;
    }
    for text in [
        "long proc() { return *(char *)0x7fffffff; }",
        "long proc() { *(long *)0xfffffff0u = 1; return 0; }",
        "long proc() { return *(long *)0xffffffffu; }",
        "long f(char *p) { return p[0x7ffffff0]; } long proc() { char c = 1; return f(&c); }",
        "long f(char *p) { return p[-0x600000]; } long proc() { char c = 1; return f(&c); }",
        "char a[4]; long proc() { long i, s = 0; for (i = 0; ; i += 4096) s += a[i]; return s; }",
        "char a[4]; long proc() { long i; for (i = 0; ; i++) a[i] = 1; return 0; }",
        "long proc() { char a[4]; long i; for (i = 0; ; i--) a[i] = 1; return 0; }",
        "struct b { char c[1 << 20]; }; long proc() { *(struct b *)0x7ff00000 = *(struct b *)0; return 0; }",
        "struct b { char c[1 << 26]; } x; long proc() { struct b *p = (struct b *)1024; x = *(p + 1); return 0; }",
        "struct b { char c[100]; }; long proc() { struct b *p = (struct b *)0xffffffc0u; *p = *(struct b *)0; return 0; }",
    ] {
        let module = module(text, "");
        let mut options = KernelOptions::default();
        options.memory.max_memory_bytes = 1 << 27;
        let code = KernelCode::compile(&module, options).unwrap();
        let got = code.instantiate(Box::new(NoHost)).unwrap().call("proc", &[], LONG);
        assert_eq!(got, Err(CallError::OutOfBounds), "{text}");
    }
}

#[test]
fn the_last_byte_of_memory_is_the_plugins_and_the_next_is_not() {
    if !permitted() {
        return;
    }
    let module = module("long proc(char *p) { *p = 1; return *p + p[1]; }", "");
    let mut instance = load(&module).unwrap();
    let base = instance.heap_base().unwrap();
    assert!(instance.grow_to(base + 100_000));
    let end = (base..).step_by(1).find(|at| instance.read(*at, 1).is_none()).unwrap();
    assert_eq!(instance.call("proc", &[Value::Ptr(end - 2)], LONG), Ok(Some(Value::I64(1))));
    assert_eq!(instance.call("proc", &[Value::Ptr(end - 1)], LONG), Err(CallError::OutOfBounds));
    assert!(!instance.write(end, &[1]));
}

#[test]
fn a_program_that_overwrites_all_its_memory_still_returns_where_it_was_called() {
    if !permitted() {
        return;
    }
    let text = "static long fill(char *p, long n, long depth)
                { if (depth) return fill(p, n, depth - 1) + 1; for (long i = 0; i < n; i++) p[i] = 0xff; return 1; }
                long proc(long n) { return fill((char *)0, n, 5); }";
    let module = module(text, "");
    let mut instance = load(&module).unwrap();
    let end = (0..).step_by(4096).find(|at| instance.read(*at, 4096).is_none()).unwrap();
    let got = instance.call("proc", &[Value::I64(end as i64)], LONG);
    assert_eq!(got, Ok(Some(Value::I64(6))));
    let got = instance.call("proc", &[Value::I64(end as i64 + 1)], LONG);
    assert_eq!(got, Err(CallError::OutOfBounds));
}

#[test]
fn a_program_never_reaches_memory_of_another() {
    if !permitted() {
        return;
    }
    let writer = "char a[64]; long proc() { for (int i = 0; i < 64; i++) a[i] = 1; return 0; }";
    let reader = "long proc(unsigned n) { long s = 0; for (unsigned a = 0; a < n; a++) s += *(char *)a; return s; }";
    let mut other = load(&module(writer, "")).unwrap();
    assert_eq!(other.call("proc", &[], LONG), Ok(Some(Value::I64(0))));
    let mut own = load(&module(reader, "")).unwrap();
    let got = own.call("proc", &[Value::I32(1 << 16)], LONG);
    assert_eq!(got, Ok(Some(Value::I64(0))));
}

#[test]
fn endless_programs_end_at_the_deadline() {
    if !permitted() {
        return;
    }
    for text in [
        "long proc() { for (;;) ; }",
        "long proc() { int i; for (i = 0; i >= 0; i ^= 1) ; return 0; }",
        "long proc() { a: goto b; b: goto a; }",
        "long f(long n) { return n < 1 ? 1 : f(n - 1) + f(n - 1); } long proc() { return f(60); }",
        "long proc() { int i = 0; if (i) goto in; for (;;) { i++; in: i--; } }",
        "struct b { char c[1 << 20]; } x, y; long proc() { for (;;) x = y; }",
        "long f() { for (;;) ; } long proc() { return f() + 1; }",
    ] {
        for millis in [10, 400] {
            let start = Instant::now();
            let got = run(text, Duration::from_millis(millis));
            assert_eq!(got, Err(CallError::Timeout), "{text}");
            let took = start.elapsed();
            assert!(took >= Duration::from_millis(millis), "{text}: {took:?}");
            assert!(took < Duration::from_millis(millis + 20_000), "{text}: {took:?}");
        }
    }
}

#[test]
fn a_loop_may_run_longer_than_the_kernel_lets_a_program_run() {
    if !permitted() {
        return;
    }
    // The kernel breaks loops off after a quarter of a second.
    let text = "long proc() { unsigned long s = 1; for (long i = 0; i < 400000000; i++) s = s * 3 + i; return (long)s; }";
    let start = Instant::now();
    let want = (0..400_000_000_u64).fold(1_u64, |s, i| s.wrapping_mul(3).wrapping_add(i));
    assert_eq!(run(text, LONG), Ok(Some(Value::I64(want as i64))));
    assert!(start.elapsed() > Duration::from_millis(250), "the test is too short");
}

#[test]
fn what_uses_up_its_stack_ends() {
    if !permitted() {
        return;
    }
    for text in [
        "long f(long n) { return f(n + 1) + 1; } long proc() { return f(0); }",
        "long f(char *p) { char b[1000]; b[0] = *p; return f(b) + b[0]; } long proc() { char c = 1; return f(&c); }",
        "long g(long n); long f(long n) { return g(n) + 1; } long g(long n) { return f(n) + 1; } long proc() { return f(0); }",
        "long f(long n) { char big[500000]; big[n] = 1; return n ? f(n - 1) + big[n] : 1; } long proc() { return f(9); }",
        "long f(long n) { return n; } long (*p)(long); long g(long n) { return p(n) + 1; } long proc() { p = f; p = g; return p(1); }",
    ] {
        let spent = CallError::Trap(TrapCode::StackOverflow);
        assert_eq!(run(text, LONG), Err(spent), "{text}");
    }
    // Deep, but not too deep.
    let text = "long f(long n) { return n ? f(n - 1) + n : 0; } long proc() { return f(1000); }";
    assert_eq!(run(text, LONG), Ok(Some(Value::I64(500_500))));
}

#[test]
fn what_has_no_meaning_ends_the_call_and_what_c_leaves_open_has_one_result() {
    if !permitted() {
        return;
    }
    for (text, code) in TRAPS {
        assert_eq!(run(text, LONG), Err(CallError::Trap(*code)), "{text}");
    }
    for (text, want) in [
        ("int m = -2147483647 - 1; int n = -1; long proc() { return m / n; }", i64::from(i32::MIN)),
        ("int m = -2147483647 - 1; int n = -1; long proc() { return m % n; }", 0),
        ("long m = 1L << 63; long n = -1; long proc() { return m / n; }", i64::MIN),
        ("long m = 1L << 63; long n = -1; long proc() { return m % n; }", 0),
        ("long m = 1L << 63; long proc() { return m / -1; }", i64::MIN),
        ("int m = -7; long proc() { return m / 2 * 10 + m % 2; }", -31),
        ("int m = 2147483647; long proc() { return m + 1; }", i64::from(i32::MIN)),
        ("int s = 33; long proc() { return 1 << s; }", 2),
        ("long s = 65; long proc() { return -8L >> s; }", -4),
        ("unsigned u = 0xfffffff9u; long proc() { return u / 3 + u % 3; }", 1_431_655_763),
        ("long proc() { int x; return x; }", 0),
        ("int f() { } long proc() { return f(); }", 0),
        ("long proc() { long *p = (long *)2048; *p = -1; *(char **)p = (char *)7; return *p; }", 7),
        ("long proc() { return (long)((char *)0x123456789 - (char *)1); }", 0x2345_6788),
    ] {
        assert_eq!(run(text, LONG), Ok(Some(Value::I64(want))), "{text}");
    }
}

#[test]
fn loops_whose_bounds_the_verifier_could_guess_are_not_unrolled() {
    if !permitted() {
        return;
    }
    for (text, want) in [
        (
            "unsigned char b = 3; long proc() { int n = b, t = 0; while (n < 5000000) { n++; t++; } return t; }",
            4_999_997,
        ),
        (
            "long proc() { long t = 0; for (int i = 0; i < 3000; i++) for (int k = 0; k < 300; k++) if (k < 400) t++; return t; }",
            900_000,
        ),
        (
            "int a[64]; long proc() { long t = 0; for (int *p = a; p < a + 64; p++) for (int i = 0; i < 64; i += 2) { *p += i; t += *p; } return t; }",
            698_368,
        ),
        (
            "long one() { return 1; } long proc() { long i = one(), t = 0; while (i < 1000000) { i += one(); t++; } return t; }",
            999_999,
        ),
        (
            "long proc() { long t = 0; for (int a = 0; a < 20; a++) for (int b = 0; b < 20; b++) for (int c = 0; c < 20; c++) for (int d = 0; d < 20; d++) for (int e = 0; e < 20; e++) t++; return t; }",
            3_200_000,
        ),
    ] {
        assert_eq!(run(text, LONG), Ok(Some(Value::I64(want))), "{text}");
    }
}

/// The formula of the transcoder in "Kernel Plugins".
#[test]
fn the_grayscaler_gives_the_bytes_of_its_formula() {
    if !permitted() {
        return;
    }
    let mut instance = load(&module(include_str!("../../benches/gray.e"), "")).unwrap();
    let image: Vec<u8> =
        (0..3 * 57 * 57_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let want: Vec<u8> = image
        .chunks_exact(3)
        .map(|p| (p[0] >> 2).wrapping_add(5 * (p[1] >> 3)).wrapping_add(p[2] >> 3))
        .collect();
    let src = instance.heap_base().unwrap();
    let dst = src + image.len() as u64;
    assert!(instance.grow_to(dst + want.len() as u64));
    assert!(instance.write(src, &image));
    let args = [Value::Ptr(src), Value::Ptr(dst), Value::I64(image.len() as i64)];
    assert_eq!(instance.call("gray", &args, LONG), Ok(Some(Value::I64(want.len() as i64))));
    assert_eq!(instance.read(dst, want.len() as u64), Some(want));
}

#[test]
fn floating_point_is_refused_with_its_place() {
    for (text, place) in [
        (
            "long proc() { return 0; }\ndouble half(double d) { return d / 2; }",
            "test.e:2:20: `half`",
        ),
        ("double d[2];\nlong proc() {\n\td[0] = 1.5; return 0; }", "test.e:3:9: `proc`"),
        (
            "long proc() { long n = 1;\n  return n + (long)sizeof(1.0) + (n > 0.5); }",
            "test.e:2:39: `proc`",
        ),
    ] {
        let code = KernelCode::compile(&module(text, ""), KernelOptions::default());
        let error = code.err().unwrap();
        assert!(matches!(error, KernelError::Float { .. }), "{error}");
        assert!(error.to_string().starts_with(place), "{error}");
    }
    // A record that holds one can still be copied.
    let text =
        "struct s { double d; long n; } a = { 1.5, 2 }, b; long proc() { b = a; return b.n; }";
    assert!(KernelCode::compile(&module(text, ""), KernelOptions::default()).is_ok());
}

struct Echo(u64);

impl Host for Echo {
    fn call(&mut self, name: &str, args: &[Value], memory: &mut dyn Memory) -> Result<u64, String> {
        self.0 += 1;
        match (name, args) {
            ("twice", [Value::I32(n)]) => Ok(2_i64.wrapping_mul(i64::from(*n)) as u64),
            ("count", []) => Ok(self.0),
            ("measure", [Value::Ptr(text)]) => {
                Ok(memory.read_text(*text, 100).ok_or("bad address")?.len() as u64)
            }
            ("put", [Value::Ptr(at), Value::I64(value)]) => {
                memory.write(*at, &value.to_le_bytes()).then_some(0).ok_or("bad address".into())
            }
            ("fail", []) => Err("no".into()),
            _ => Err(format!("`{name}` {args:?}")),
        }
    }
}

#[test]
fn host_functions_are_called_from_the_kernel_with_typed_arguments() {
    if !permitted() {
        return;
    }
    let host = "int twice(int n); long measure(string s); void fail(void); long count(void); void put(long *p, long v);";
    let text = "long proc(int n) { return twice(n) + measure(\"hello\"); } long bad() { fail(); return 1; }
                long many(long n) { long s = 0, a[4]; for (long i = 0; i < n; i++) { put(&a[i & 3], i); s += a[i & 3] + count() * 0; } return s; }
                int (*indirect)(int) = twice; long by_address(int n) { return indirect(n) + n; }
                long wild() { put((long *)0xfffffff0u, 1); return 0; }";
    let code = KernelCode::compile(&module(text, host), KernelOptions::default()).unwrap();
    let mut plugin = code.instantiate(Echo(0)).unwrap();
    let call =
        |plugin: &mut KernelInstance<Echo>, name, args: &[Value]| plugin.call(name, args, LONG);
    let result = |value| Ok(Some(Value::I64(value)));
    assert_eq!(call(&mut plugin, "proc", &[Value::I32(4)]), result(13));
    assert_eq!(call(&mut plugin, "proc", &[Value::I32(-4)]), result(-3));
    assert_eq!(call(&mut plugin, "many", &[Value::I64(1000)]), result(499_500));
    assert_eq!(call(&mut plugin, "by_address", &[Value::I32(-5)]), result(-15));
    assert_eq!(call(&mut plugin, "bad", &[]), Err(CallError::Host("no".into())));
    assert_eq!(call(&mut plugin, "wild", &[]), Err(CallError::Host("bad address".into())));
    let missing = Err(CallError::NoFunction("proc".into()));
    assert_eq!(call(&mut plugin, "proc", &[]), missing);
}
