//! The edges of what numbers, loops and calls can do: the same on every target as C by gcc, and
//! where C leaves it open, what E-code says.

use crate::common::{TARGETS, engine_of_short_strips, module, run};
use ecode::{NoHost, Value};
use std::time::Duration;

/// What all cases can use. Nothing here is known when the text is compiled.
const BEFORE: &str = "
static unsigned char a[300], b[300]; static signed char c[300]; static short s[300]; static int v[300], w[300];
static unsigned u[300]; static long l[300]; static unsigned long ul[300];
static long one = 1, big = 0x7fffffffffffffffL; static int top = 2147483647; static unsigned most = 4294967295u;
static double zero;
struct wide { long x[30]; short y; }; static struct wide many[3];
static void fill(void) {
    long k;
    for (k = 0; k < 300; k++) {
        a[k] = k * 37 % 256; b[k] = k * 11; c[k] = (signed char)(k * 91); s[k] = (short)(k * 9001); v[k] = (int)((unsigned)k * 1234567891u);
        w[k] = (int)(k % 7 * 5 - 11); u[k] = (unsigned)k * 3333333333u; l[k] = k % 5 ? k * 77 - 9000 : -big + k; ul[k] = k % 3 ? (unsigned long)k : ~(unsigned long)k;
    }
}
static signed char low(int x) { return (signed char)x; }
static unsigned short half(long x) { return (unsigned short)x; }
static int wider(signed char x) { return x; }
static unsigned clamp(int x, int from, int to) { return x < from ? from : x > to ? to : x; }
static long sort(long x) { switch (x) { case -3: return 1; case -2: return 7; case 0: return 2; case 1: return 3; case 2: return 4; case 1L << 40: return 5; default: return 6; } }
static long sparse(int x) { switch (x) { case -2147483647 - 1: return 1; case -1: return 2; case 2147483647: return 3; case 70000: return 4; } return 5; }
";

/// Statements that give `h`, in C as well; `known` is 1, and does not change in loops.
const CASES: &[&str] = &[
    // Counters that come to the limits of their types.
    "for (unsigned char i = 200; i >= 100; i++) h = h * 31 + a[i];",
    "for (unsigned char i = 3; i < 250; i--) h = h * 31 + i;",
    "for (signed char i = -128; i < 100; i++) h = h * 31 + a[i + 128];",
    "for (unsigned short i = 65500; i != 9; i++) h = h * 31 + i;",
    "for (unsigned i = 5; i < 6; i--) h = h * 31 + a[i];",
    "for (unsigned i = most - 20; i <= most - 1; i++) h = h * 31 + i;",
    "for (unsigned i = most - 40; i < most - 6; i += 7) h = h * 31 + i;",
    "for (unsigned i = 0xfffffff0u; i != 16; i++) h = h * 31 + a[i + 16];",
    "for (unsigned i = 0xfffffff0u; i != 16; i++) b[i + 16] = a[i + 17] + 3;",
    "for (unsigned i = 40; i-- > 0;) h = h * 31 + a[i];",
    "for (unsigned i = 41; i > 2; i -= 3) h = h * 31 + a[i];",
    "for (int i = top - 33; i < top; i++) h = h * 31 + i;",
    "for (int i = -top; i > -top - 1; i--) h = h * 31 + i;",
    "for (unsigned long i = ~0ul - 33; i != 0; i++) h = h * 31 + i;",
    "for (long i = -big - 1; i < -big + 33; i++) h = h * 31 + i;",
    "for (long i = big; i > big - 33; i--) h = h * 31 + i;",
    "for (long i = big - 33; i <= big - 1; i += 1) h = h * 31 + i;",
    "for (long i = 20; i >= -20; i--) h = h * 31 + a[i + 20];",
    "for (long i = -1; i < 40; i++) h = h * 31 + v[i + 1];",
    // Any number of iterations.
    "for (int n = -3; n < 70; n++) for (int i = 0; i < n; i++) h = h * 31 + a[i] + i;",
    "for (int n = -3; n < 70; n++) for (int i = n; i > 0; i--) h = h * 31 + s[i] + i;",
    "for (int n = 0; n < 70; n++) for (long i = 0; i != n; i++) h ^= h * 5 + v[i];",
    "for (int n = 1; n < 70; n++) { long i = 0; do h = h * 31 + l[i]; while (++i < n); }",
    "for (int n = 1; n < 40; n++) for (unsigned i = 0; i <= (unsigned)n; i += 3) h = h * 31 + u[i];",
    "for (int k = 0; k < 9; k++) for (int i = 0; i < 16; i++) h = h * 31 + a[16 * i + k] * b[i];",
    "for (int k = 0; k < 9; k++) { unsigned t = k; for (int i = 12; i > 0; i--) t = t * 3 ^ a[i + k]; h = h * 31 + t; }",
    "unsigned char *p = a + 3, *e = a + 3 + one * 50; while (p != e) h = h * 31 + *p++;",
    "unsigned char *p = a + 50, *e = a; while (p > e + 2) { h = h * 31 + *p; p -= 3; }",
    "unsigned char *p = a + 50; do h = h * 31 + *p; while (--p != a);",
    // What one iteration hands to the next, by registers and by memory.
    "unsigned long x = 0, y = 1; for (int i = 0; i < 60 * known; i++) { unsigned long t = x + y; x = y; y = t; } h = x * 31 + y;",
    "int x = 1, y = 2, z = 3; for (int i = 0; i < 50 * known; i++) { int t = x; x = y; y = z; z = t ^ a[i]; } h = x * 31 + y * 7 + z;",
    "unsigned x = 1, y = 2, z = 3; for (int i = 0; i < 50 * known; i++) { unsigned t = x; x = y; y = z; z = t; h = h * 31 + x; } h += x * 7 + y;",
    "for (int k = 0; k < 5; k++) { unsigned x = k, y = 2; for (int i = 0; i < 7; i++) { unsigned t = x; x = y; y = t; h = h * 31 + x; } h += x * 7 + y; }",
    "unsigned last = 9; for (long i = 0; i < 77 * known; i++) { h = h * 31 + last; last = a[i]; } h ^= last;",
    "for (long i = 1; i < 70 * known; i++) a[i] = a[i - 1] + b[i];",
    "for (long i = 70 * known; i > 0; i--) a[i] = a[i - 1] + 1;",
    "for (long i = 0; i < 120 * known; i++) { a[a[i] & 127] ^= i; h = h * 31 + a[i]; }",
    "for (long i = 0; i < 90 * known; i++) u[b[i]]++;",
    "long i; for (i = 0; i < 75 * known; i++) h = h * 31 + a[b[i]]; h += i;",
    "int i, x = 0; for (i = 0; i < 10; i++) x = a[i] * 3; h = x * 31 + i;",
    // Conditions.
    "for (int i = 0; i < 299; i++) a[i] = a[i] < 128 ? b[i] : 255 - a[i];",
    "for (int i = 0; i < 299; i++) a[i] = c[i] < -1 ? 1 : c[i] > 126 ? 2 : 3;",
    "for (int i = 0; i < 299; i++) s[i] = s[i] > (short)30000 ? 30000 : s[i] < -30000 ? -30000 : s[i];",
    "for (int i = 0; i < 299; i++) v[i] = v[i] < w[i] ? v[i] : w[i];",
    "for (int i = 0; i < 299; i++) u[i] = u[i] > 0x80000000u ? u[i] - 5 : u[i] >= 0x7fffffffu;",
    "for (int i = 0; i < 299; i++) u[i] = (unsigned)w[i] < 5u ? 1 : (unsigned)w[i] > 0xfffffff9u ? 2 : 3;",
    "for (int i = 0; i < 299; i++) l[i] = l[i] < -9000 ? 5 : l[i] >= 100 ? l[i] : -l[i];",
    "for (int i = 0; i < 299; i++) ul[i] = ul[i] < 50 ? 1 : ul[i];",
    "for (int i = 0; i < 299; i++) b[i] = clamp(3 * a[i] - 80, 0, 255);",
    "for (int i = 0; i < 299; i++) b[i] = clamp(w[i], -3, (int)one);",
    "unsigned n = 0; for (int i = 0; i < 299; i++) if (a[i] > 9 && a[i] < 200) n += a[i]; h = n;",
    "unsigned n = 0; for (int i = 0; i < 299; i++) n += a[i] == 10; for (int i = 0; i < 299; i++) if (s[i]) n++; h = n;",
    "unsigned n = 0; for (int i = 0; i < 299; i++) { unsigned t = n + a[i]; if (t & 1) n = t; } h = n;",
    "unsigned n = 0; for (int i = 0; i < 299; i++) { unsigned t = n + a[i]; if (a[i] & 1) n = t; h ^= t; }",
    "unsigned n = 0, t = 0; for (int i = 0; i < 256; i++) { t = n + a[i]; if (a[i] & 1) n = t; } h = n * 31 + t;",
    "unsigned n = 0, t = 0; for (long i = 0; i < 290 * known; i++) { t = n + u[i]; if (a[i] & 1) n = t; } h = n * 31 + t;",
    "unsigned n = 0, t = 0, r = 0; for (long i = 0; i < 290 * known; i++) { t = n + u[i]; if (a[i] & 1) n = t; r += t; } h = n * 31 + t + r;",
    "int n = 0, t = 5; for (int i = 0; i < 256; i++) { if (v[i] > 3) { n += t; t = v[i]; } } h = n * 31 + t;",
    "int n = 0, t = 5; for (int i = 0; i < 256; i++) { t = v[i] + 1; if (t > 3) { int q = n; n += t; t = q; } } h = n * 31 + t;",
    "unsigned n = 0, c = 0; for (int i = 0; i < 256; i++) { c = a[i] & 1; if (c) { n = n + c; c = 0; } } h = n * 31 + c;",
    "unsigned k = 7; for (int i = 0; i < 299; i++) { if (a[i] & 1) k = a[i]; b[i] = k; }",
    "for (int i = 0; i < 299; i++) v[i] = u[i] & 1 ? u[i] >> 1 ^ 0xEDB88320u : u[i] >> 1;",
    // Calls, branches, copies.
    "for (int i = 0; i < 299; i++) h = h * 31 + low(v[i]) + half(l[i]) + wider(a[i]);",
    "for (long i = -9; i < 9; i++) h = h * 31 + sort(i); h += sort(1L << 40) + sort((1L << 40) + 1) + sort((1L << 32) + 1);",
    "h = sparse(-top - 1) * 10000 + sparse(-1) * 1000 + sparse(top) * 100 + sparse(70000) * 10 + sparse(0);",
    "long i = 5; if (one) goto in; for (i = 0; i < 40; i++) { h = h * 31 + a[i]; in: h += i; }",
    "for (int i = 0; i < 30; i++) many[0].x[i] = i; many[1] = many[0]; many[0].x[3] = 9; many[2] = many[1]; many[1] = many[1]; h = many[2].x[3] * 31 + many[0].x[3];",
    "long t[9000]; for (int i = 0; i < 9000; i++) t[i] = i * known; for (int i = 8999; i > 0; i--) h = h * 31 + t[i];",
    // Floats, where nothing compares with what is no number.
    "double n = zero / zero; h = (n < 1) + (n > 1) * 2 + (n == n) * 4 + (n != n) * 8 + !(n >= 1) * 16;",
    "double n = zero / zero; for (double d = 0; !(d >= 9); d += 1) h++; for (; n < 3; n += 1) h += 100;",
    "float x = 0, y[40]; for (int i = 0; i < 40; i++) y[i] = i * 0.25f; for (long i = 0; i < 40 * known; i++) x += y[i]; h = x * 100;",
];

fn function(id: usize, statements: &str) -> String {
    format!(
        "long test_{id}(void) {{ unsigned long h = 7; long known = one; fill(); {{ {statements} }} \
         for (int k = 0; k < 300; k++) h = h * 33 + a[k] + b[k] + s[k] + v[k] + u[k] + l[k] + ul[k]; return h; }}\n"
    )
}

#[test]
fn edges_are_as_in_c_on_every_target() {
    let functions: String = CASES.iter().enumerate().map(|(id, text)| function(id, text)).collect();
    let text = format!("{BEFORE}{functions}");
    let folder = tempfile::tempdir().unwrap();
    let wanted = crate::gcc::results(folder.path(), &text, CASES.len(), &["-O0", "-fwrapv"]);
    for (id, (case, wanted)) in CASES.iter().zip(wanted).enumerate() {
        let text = format!("{BEFORE}{}", function(id, case));
        let module = module(&text, "");
        let name = format!("test_{id}");
        for target in TARGETS {
            let got = run(&module, target, Box::new(NoHost), &name, &[]);
            assert_eq!(got, Ok(Some(Value::I64(wanted))), "{target:?}: {case}");
        }
        let code = engine_of_short_strips().compile(&module).unwrap();
        let mut instance = code.instantiate(Box::new(NoHost)).unwrap();
        let got = instance.call(&name, &[], Duration::from_secs(20));
        assert_eq!(got, Ok(Some(Value::I64(wanted))), "short strips: {case}");
    }
}

/// What C leaves open.
const DEFINED: &[(&str, i64)] = &[
    ("return 1 << (int)(one + 32);", 2),
    ("return 1L << (one + 64);", 2),
    ("return -8 >> (int)(one + 32);", -4),
    ("return (int)(-top - 1) / (int)-one;", -2147483648),
    ("return (int)(-top - 1) % (int)-one;", 0),
    ("return (-big - 1) / -one;", i64::MIN),
    ("return (-big - 1) % -one;", 0),
    ("return (int)(1e30 * one);", 2147483647),
    ("return (int)(-1e30 * one);", -2147483648),
    ("return (long)(1e30 * one);", i64::MAX),
    ("return (unsigned)(-5.0 * one);", 0),
    ("return (int)(zero / zero);", 0),
    ("int n = 0; for (int i = top - 3; i > 0; i++) n++; return n;", 4),
    ("int n = 0; for (int i = top - 20; i <= top; i++) if (++n > 100) break; return n;", 101),
    ("int n = 0; for (unsigned char i = 0; i < 256; i++) if (++n == 1000) break; return n;", 1000),
];

#[test]
fn what_c_leaves_open_is_the_same_on_every_target() {
    for (statements, want) in DEFINED {
        let module = module(&format!("{BEFORE}long proc(void) {{ {statements} }}"), "");
        for target in TARGETS {
            let got = run(&module, target, Box::new(NoHost), "proc", &[]);
            assert_eq!(got, Ok(Some(Value::I64(*want))), "{target:?}: {statements}");
        }
    }
}
