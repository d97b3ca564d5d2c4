//! Loops that count no iterations end at the deadline all the same, however they are bounded, and
//! give the results of the loops as written, however often the clock is looked at.

use crate::common::{engine, engine_of_short_strips, module};
use ecode::{CallError, NoHost, Value};
use plugin_host::bare::IsolatedEngine;
use std::time::{Duration, Instant};

fn call(
    engine: &IsolatedEngine,
    text: &str,
    args: &[Value],
    time_ms: u64,
) -> Result<i64, CallError> {
    let code = engine.compile(&module(text, "")).unwrap();
    let mut instance = code.instantiate(Box::new(NoHost)).unwrap();
    let result = instance.call("proc", args, Duration::from_millis(time_ms))?;
    match result {
        Some(Value::I64(result)) => Ok(result),
        other => panic!("{text}: {other:?}"),
    }
}

/// Loops that go on for ever, or nearly; `one` is 1, `big` is `LONG_MAX`, `top` is `INT_MAX`.
const ENDLESS: [&str; 23] = [
    "for (;;) s++;",
    "while (one) s++;",
    "for (long i = 0; i < big; i++) s ^= i;",
    "for (long i = 0; i < big; i += 2) s ^= i;",
    "for (long i = big - 100; i < big; i += 7) s ^= i;",
    "for (long i = 0; i <= big; i++) s ^= i;",
    "for (long i = big - 9; i <= big; i++) s ^= i;",
    "for (int i = top - 9; i <= top; i++) s ^= i;",
    "for (int i = top - 9; i <= top - 1; i += 5) s ^= i;",
    "for (unsigned i = 10; i >= 0; i--) s ^= i;",
    "for (unsigned long i = 10; i + 0 >= 0; i -= one) s ^= i;",
    "for (unsigned i = 9; i > 0; i -= 2) s ^= i;",
    "for (unsigned i = 0; i <= 0xffffffffu; i++) s ^= i;",
    "for (unsigned char i = 0; i < 256; i++) s ^= i;",
    "for (long i = 0; i != 7; i += 2) s ^= i;",
    "for (long i = 8; i != 7; i++) s ^= i;",
    "for (char *p = (char *)8; p <= (char *)0xffffffff; p += 3) s++;",
    "for (char *p = (char *)8; p != (char *)7; p += 2) s++;",
    "long i = 0; do { i++; if (s == -1) break; } while (i < big);",
    "for (long i = 0; i < big;) { if (s++ == -1) break; i += s & 1 ? 1 : 2; }",
    "for (;;) for (int i = 0; i < 3; i++) s += i;",
    "unsigned long i = 0; do { i -= 2; s++; } while (i >= 9);",
    "long i = big; for (;;) { do { if (s++ != -1) break; i++; } while (i < -big + 5); }",
];

#[test]
fn endless_loops_end_at_the_deadline() {
    for engine in [engine(), engine_of_short_strips()] {
        for text in ENDLESS {
            let text =
                format!("long s; long proc(long one, long big, int top) {{ {text} return s; }}");
            let args = [Value::I64(1), Value::I64(i64::MAX), Value::I32(i32::MAX)];
            let start = Instant::now();
            let got = call(engine, &text, &args, 20);
            assert_eq!(got, Err(CallError::Timeout), "{text}");
            assert!(start.elapsed() < Duration::from_secs(30), "{text}: {:?}", start.elapsed());
        }
    }
}

/// Each returns what a walk over its iterations gives; `n` is a number of iterations.
const SHAPES: [&str; 16] = [
    "for (long i = 0; i < n; i++) h = h * 31 + i;",
    "for (long i = 0; i <= n; i++) h = h * 31 + i;",
    "for (long i = n; i > 0; i--) h = h * 31 + i;",
    "for (long i = n; i >= 0; i--) h = h * 31 + i;",
    "for (unsigned i = n; i > 0; i--) h = h * 31 + i;",
    "for (int i = 0; i < (int)n; i += 3) h = h * 31 + i;",
    "for (int i = n; i > 0; i -= 3) h = h * 31 + i;",
    "for (long i = 0; i != n; i++) h = h * 31 + i;",
    "for (char *p = (char *)64, *e = p + n; p < e; p++) h = h * 31 + (long)p;",
    "for (char *p = (char *)64, *e = p + n; p <= e - 3; p += 3) h = h * 31 + (long)p;",
    "for (long i = 0; i < n && h % 97 != 5; i++) h = h * 31 + i;",
    "for (long i = 0; i < n; i++) { if (i == 40) break; if (i % 3 == 0) continue; h = h * 31 + i; }",
    "long i = n; do { h = h * 31 + i; i++; } while (i < 10);",
    "for (long i = 0; i < n; i += h & 1 ? 2 : 1) h = h * 31 + i;",
    "for (long i = 0; i < n; i++) for (int k = 0; k < 5; k++) for (int j = k; j < 7; j++) h = h * 31 + j + i;",
    "long i; for (i = 0; i < n - 1 && h != 0; i++) { long k = i; while (k < n) { h = h * 31 + k; k += 2; if (h % 89 == 3) goto out; } } out: h += i;",
];

/// The same with arrays: `a` of bytes and `b` of `int`, which hold something.
const WALKS: [&str; 15] = [
    "for (long i = 0; i < n; i++) h = h * 31 + a[i];",
    "for (long i = n; i > 0; i--) h = h * 31 + a[i - 1];",
    "for (long i = n; i > 0; i--) h = h * 31 + b[2 * i];",
    "for (long i = 0; i < n; i++) h = h * 31 + a[3 * i + 2] + a[3 * i + 1900] + b[i];",
    "for (int i = 0; i < (int)n; i++) h = h * 31 + a[16 * i + (int)n];",
    "for (unsigned i = 0; i < (unsigned)n; i++) h = h * 31 + a[i + 5];",
    "for (unsigned i = n; i > 0; i--) { h = h * 31 + a[2 * i]; b[i] ^= h; }",
    "for (long i = 0; i != n + 1; i++) h = h * 31 + b[i];",
    "long i = 0; while (i < n) { h = h * 31 + a[i++]; h += a[i] * 3; }",
    "long i = 0; do { i++; h = h * 31 + a[4 * i] + a[4 * i - 3]; } while (i < n); h += i;",
    "for (long i = 0; i < n; i++) { if (a[i] & 1) h = h * 31 + b[i]; else h ^= b[i + 1]; }",
    "for (long i = 0; i < n; i++) { if (h % 97 == 5) continue; h = h * 31 + a[i]; }",
    "for (long j = 0; j < n; j++) for (int i = 0; i < 16; i++) h = h * 31 + a[16 * j + i] * m[i][j & 15];",
    "for (long j = 0; j < n; j++) for (int i = 15; i > 3; i--) { short s[4]; s[i & 3] = h; h = h * 31 + m[j & 15][i]; h += s[i & 3]; }",
    "short s[256]; for (long i = 0; i < n; i++) s[i] = b[i] * 3; for (long i = 0; i < n; i++) h = h * 31 + s[i];",
];

#[test]
fn loops_give_the_same_however_long_strips_are() {
    for text in SHAPES.into_iter().chain(WALKS) {
        let text = format!(
            "static unsigned char a[4096]; static int b[1024], m[16][16]; static long filled; \
             static void fill(void) {{ long i; for (i = 0; i < 4096; i++) a[i] = i * i >> 3; \
             for (i = 0; i < 1024; i++) b[i] = i * 77777; \
             for (i = 0; i < 256; i++) m[i / 16][i % 16] = i * 3; filled = 1; }} \
             long proc(long n) {{ unsigned long h = 7; if (!filled) fill(); {text} return h; }}"
        );
        for n in [0, 1, 2, 3, 4, 5, 11, 63, 200] {
            let args = [Value::I64(n)];
            let long = call(engine(), &text, &args, 10_000);
            let short = call(engine_of_short_strips(), &text, &args, 10_000);
            let native = crate::common::run(
                &module(&text, ""),
                crate::common::Target::Native,
                Box::new(NoHost),
                "proc",
                &args,
            );
            assert_eq!(native, long.clone().map(|value| Some(Value::I64(value))), "{text} {n}");
            assert_eq!(long, short, "{text} {n}");
        }
    }
}
