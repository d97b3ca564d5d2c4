//! Loops over arrays give the results of the loops as written, whatever lengths, offsets and
//! overlaps.

use crate::{
    common::{TARGETS, engine, module, run},
    sys,
};
use ecode::{CallError, Input, NoHost, Value, compile};
use ecode_native::{NativeCode, Protection};
use std::time::{Duration, Instant};

const GRAY: &str = "long gray(const unsigned char *src, unsigned char *dst, long n) {
    const unsigned char *p = src; unsigned char *r = dst;
    while (p <= src + n - 3) { *r++ = (*p >> 2) + (5 * (*(p + 1) >> 3)) + (*(p + 2) >> 3); p = p + 3; }
    return r - dst; }";

/// Whether a function of `text` has become a vector loop.
fn is_vectorized(text: &str) -> bool {
    let module = compile(&Input::new("test.e", text)).unwrap_or_else(|e| panic!("{e}")).module;
    let vectors = module.with_vectors();
    vectors.verify().unwrap_or_else(|e| panic!("{text}\n{e}\n{vectors}"));
    has_vectors(&vectors)
}

fn has_vectors(module: &ecode::ir::Module) -> bool {
    let insts = module.funcs.iter().filter_map(|func| func.body.as_ref()).flat_map(|b| &b.blocks);
    insts.flat_map(|block| &block.insts).any(|inst| matches!(inst, ecode::ir::Inst::Vec(_)))
}

#[test]
fn the_grayscaler_is_right_at_every_length_on_every_target() {
    assert!(is_vectorized(GRAY));
    let module = module(GRAY, "");
    let code = engine().compile(&module).unwrap();
    let mut isolated = code.instantiate(Box::new(NoHost)).unwrap();
    let base = isolated.heap_base().unwrap();
    assert!(isolated.grow_to(base + 100_000));
    for n in (3..200).chain([3 * 8192 - 1, 3 * 8192 + 50, 60_000]) {
        let image: Vec<u8> = (0..n).map(|i| (i * 31 + i / 7) as u8).collect();
        let want: Vec<u8> =
            image.chunks_exact(3).map(|p| (p[0] >> 2) + 5 * (p[1] >> 3) + (p[2] >> 3)).collect();
        let (src, dst) = (base + n as u64 % 5, base + 70_003);
        assert!(isolated.write(src, &image));
        let args = [Value::Ptr(src), Value::Ptr(dst), Value::I64(n.into())];
        let got = isolated.call("gray", &args, Duration::from_secs(1));
        assert_eq!(got, Ok(Some(Value::I64(want.len() as i64))), "{n}");
        assert_eq!(isolated.read(dst, want.len() as u64).unwrap(), want, "{n}");
        for protection in [Protection::None, Protection::Stack] {
            let code = NativeCode::compile(&module, protection).unwrap();
            let mut native = sys::native(&code, Box::new(NoHost));
            let mut out = vec![0_u8; want.len()];
            let (src, dst) = (image.as_ptr() as u64, out.as_mut_ptr() as u64);
            let args = [Value::Ptr(src), Value::Ptr(dst), Value::I64(n.into())];
            assert_eq!(native.call("gray", &args), Ok(Some(Value::I64(want.len() as i64))));
            assert_eq!(out, want, "{n}");
        }
    }
}

#[test]
fn plain_loops_become_vector_loops_and_others_do_not() {
    for (vectorized, text) in [
        (true, "void f(char *a, char *b, int n) { for (int i = 0; i < n; i++) a[i] = b[i] + 1; }"),
        (
            true,
            "void f(short *a, unsigned char *b, long n) { for (long i = 0; i < n; i++) a[i] = b[i] * 7; }",
        ),
        (
            true,
            "void f(float *a, float *b, float c, unsigned n) { for (unsigned i = 0; i < n; i++) a[i] += b[i] * c; }",
        ),
        (
            true,
            "double a[100], b[100]; void f(void) { for (int i = 0; i != 100; i++) a[i] = b[i] / 3 - a[i]; }",
        ),
        (
            true,
            "long f(int *a, long n) { int s = 0; for (long i = 0; i < n; i++) s += a[i]; return s; }",
        ),
        (
            true,
            "int f(short *a, short *b, int n) { int s = 0; for (int i = 0; i < n; i++) s += a[i] * b[i]; return s; }",
        ),
        (true, "void f(char *p, char *e) { while (p != e) *p++ = 0; }"),
        (
            true,
            "void f(unsigned char *in, unsigned char *out, long n) { for (long i = 0; i < n; i++) out[i] = (in[3 * i] >> 2) + 5 * (in[3 * i + 1] >> 3) + (in[3 * i + 2] >> 3); }",
        ),
        (
            true,
            "int in[99]; void f(int *out, int n) { for (int i = 0; i < n; i++) out[i] = in[2 * i + 1] - in[i * 2]; }",
        ),
        (
            true,
            "static int clamp(int v) { return v < 0 ? 0 : v > 255 ? 255 : v; } void f(unsigned char *in, unsigned char *out, long n) { for (long i = 0; i < n; i++) out[i] = clamp(3 * in[i] - 80); }",
        ),
        (
            true,
            "long f(short *a, long n) { int s = 0; for (long i = 0; i < n; i++) if (a[i] > 7 && a[i] < 99) s += a[i]; return s; }",
        ),
        (
            true,
            "long f(unsigned char *a, long n) { unsigned s = 0; for (long i = 0; i < n; i++) s += a[i] == 10; return s; }",
        ),
        (
            true,
            "void f(unsigned *a, unsigned *b, long n) { for (long i = 0; i < n; i++) a[i] = b[i] & 1 ? b[i] >> 1 ^ 0xEDB88320u : b[i] >> 1; }",
        ),
        (
            false,
            "void f(int *a, int *b, long n) { for (long i = 0; i < n; i++) if (a[i] > 3) b[i] = 1; }",
        ),
        // What is not wanted may not be readable.
        (
            false,
            "long f(int *a, int *b, long n) { int s = 0; for (long i = 0; i < n; i++) if (a[i] > 3) s += b[i]; return s; }",
        ),
        (
            false,
            "void f(int *a, long n) { for (long i = 0; i < n; i++) a[i] = a[i] ? 7 % a[i] : 1; }",
        ),
        (
            false,
            "float f(float *a, long n) { float s = 0; for (long i = 0; i < n; i++) s += a[i]; return s; }",
        ),
        (false, "void f(char *a, long n) { for (long i = 1; i < n; i++) a[i] = a[i - 1] + 1; }"),
        (
            false,
            "int g(int); void f(int *a, long n) { for (long i = 0; i < n; i++) a[i] = g(a[i]); }",
        ),
        (false, "void f(int *a, int *b, long n) { for (long i = 0; i < n; i++) a[i] = 7 / b[i]; }"),
        (
            false,
            "void f(unsigned char *h, unsigned char *b, long n) { for (long i = 0; i < n; i++) h[b[i]]++; }",
        ),
    ] {
        let input = Input { host: "int g(int);", ..Input::new("test.e", text) };
        let module = compile(&input).unwrap().module.with_vectors();
        assert_eq!(has_vectors(&module), vectorized, "{text}\n{module}");
    }
}

#[test]
fn overlapping_ranges_keep_the_order_of_the_iterations() {
    let text = "char a[300]; void move(char *to, char *from, int n) { for (int i = 0; i < n; i++) to[i] = from[i] ^ 1; }
        long proc(int to, int from, int n) {
            for (int i = 0; i < 300; i++) a[i] = i * 7;
            move(a + to, a + from, n);
            long h = 0; for (int i = 0; i < 300; i++) h = h * 31 + a[i];
            return h; }";
    let module = module(text, "");
    for (to, from, n) in
        [(0, 0, 200), (1, 0, 200), (0, 1, 200), (17, 0, 200), (0, 40, 100), (100, 0, 100)]
    {
        let mut a: Vec<i8> = (0..300).map(|i: i64| (i * 7) as i8).collect();
        (0..n).for_each(|i| a[to + i] = a[from + i] ^ 1);
        let want = a.iter().fold(0_i64, |h, a| h.wrapping_mul(31).wrapping_add(i64::from(*a)));
        for target in TARGETS {
            let args = [to, from, n].map(|v| Value::I32(v as i32));
            let got = run(&module, target, Box::new(NoHost), "proc", &args);
            assert_eq!(got, Ok(Some(Value::I64(want))), "{target:?} {to} {from} {n}");
        }
    }
}

#[test]
fn a_function_may_begin_with_its_loop() {
    let fill =
        "static void fill(char *p, char *e, int v) { do { *p = *p ^ v; p++; } while (p != e); }";
    assert!(is_vectorized(&format!("{fill} void f(char *p) {{ fill(p, p + 9, 1); }}")));
    let text = format!(
        "static char a[200]; {fill} long proc(int n) {{ fill(a + 3, a + 3 + n, 7); fill(a, a + 200, 1);
         long h = 0; for (int i = 0; i < 200; i++) h = h * 31 + a[i]; return h; }}"
    );
    let module = module(&text, "");
    for n in [1, 2, 15, 16, 17, 33, 150] {
        let cell = |i: usize| i64::from(if (3..3 + n).contains(&i) { 7 ^ 1 } else { 1 });
        let want = (0..200).fold(0_i64, |h, i| h.wrapping_mul(31).wrapping_add(cell(i)));
        for target in TARGETS {
            let args = [Value::I32(n as i32)];
            let got = run(&module, target, Box::new(NoHost), "proc", &args);
            assert_eq!(got, Ok(Some(Value::I64(want))), "{target:?} {n}");
        }
    }
}

#[test]
fn a_vector_loop_ends_at_the_deadline() {
    let text = "static char a[1 << 20]; long proc() { for (;;) for (int i = 0; i < 1 << 20; i++) a[i] = a[i] + 1; }";
    let module = module(text, "");
    let mut instance = engine().compile(&module).unwrap().instantiate(Box::new(NoHost)).unwrap();
    let start = Instant::now();
    let got = instance.call("proc", &[], Duration::from_millis(50));
    assert_eq!(got, Err(CallError::Timeout));
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
}

#[test]
fn a_vector_loop_that_leaves_its_memory_ends_the_call() {
    let text = "long proc() { char *p = (char *)2048; for (long i = 0; i < 4294967296; i++) p[i] = 1; return 0; }";
    assert!(is_vectorized(text));
    let module = module(text, "");
    let mut instance = engine().compile(&module).unwrap().instantiate(Box::new(NoHost)).unwrap();
    let got = instance.call("proc", &[], Duration::from_secs(5));
    assert_eq!(got, Err(CallError::OutOfBounds));
}
