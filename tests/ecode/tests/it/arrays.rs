//! Random loops over arrays, of the shapes that are transformed and of shapes close to them: all
//! element types, lengths from 0 to 70, offsets, steps, pointers into one array, conditions, small
//! functions, counters near the limits of their types.

use crate::generate::Rng;
use std::fmt::Write;

/// Elements of every array; the highest index is 4 * 69 + 15 + 3.
const SIZE: usize = 300;
const INTEGERS: [&str; 8] = [
    "signed char",
    "unsigned char",
    "short",
    "unsigned short",
    "int",
    "unsigned",
    "long",
    "unsigned long",
];

/// Functions `long kN_ID(void)` for N below the number returned, and what they use: arrays of
/// integers, and of `float_types`.
pub(crate) fn kernels(
    rng: &mut Rng,
    id: usize,
    float_types: &[&'static str],
    out: &mut String,
) -> usize {
    let elements = [&INTEGERS, float_types].concat();
    let count = rng.below(3) + 1;
    (0..count).for_each(|n| kernel(rng, &format!("{n}_{id}"), &elements, out));
    count
}

struct Kernel<'r> {
    rng: &'r mut Rng,
    name: &'r str,
    /// Element types of target and sources.
    types: [&'static str; 3],
    index: &'static str,
}

/// Small functions of two numbers; `T` is a type.
const HELPERS: [&str; 7] = [
    "return v < w ? v : w;",
    "if (v > 255) return 255; if (v < 0) return 0; return v;",
    "return (T)((unsigned)v * 3 + (unsigned)w);",
    "if (v & 1) return w; return v ^ w;",
    "T t = v; v = w; w = t; return v | w;",
    "T t; switch (v & 3) { case 0: t = w; break; case 2: t = 7; break; default: t = v; } return t;",
    "T t[2]; t[0] = v; t[1] = w; return t[v & 1];",
];

fn is_float(ty: &str) -> bool {
    matches!(ty, "float" | "double")
}

fn kernel(rng: &mut Rng, name: &str, elements: &[&'static str], out: &mut String) {
    let first = *rng.pick(elements);
    // Mostly of one kind, so that many become vectors.
    let other = |rng: &mut Rng| if rng.chance(60) { first } else { *rng.pick(elements) };
    let types = [first, other(rng), other(rng)];
    let index = *rng.pick(&["int", "long", "unsigned", "unsigned long"]);
    let mut kernel = Kernel { rng, name, types, index };
    let body = kernel.body();
    let ty = *kernel.rng.pick(&INTEGERS);
    let helper = kernel.rng.pick(&HELPERS).replace('T', ty);
    let _ = writeln!(out, "static {ty} small{name}({ty} v, {ty} w) {{ {helper} }}");
    let [d, a, b] = types;
    for (array, ty) in [("d", d), ("a", a), ("b", b)] {
        let _ = writeln!(out, "static {ty} {array}{name}[{SIZE}];");
    }
    let sum = if is_float(d) { "double" } else { *kernel.rng.pick(&["unsigned", "unsigned long"]) };
    // Floats are bounded before they become integers.
    let whole = |value: &str| match is_float(d) {
        true => format!("({value} > -1e15 && {value} < 1e15 ? (long)({value}) : 7)"),
        false => format!("(long){value}"),
    };
    let (result, element) = (whole("sum"), whole(&format!("d{name}[i]")));
    let _ = writeln!(
        out,
        "static long r{name}({d} *d, {a} *a, {b} *b, {index} n, {d} s) {{\n  {sum} sum = 1; unsigned long last = 3;\n{body}  sum = ({sum})(sum + (unsigned)last);\n  return {result};\n}}"
    );
    let (one, two, three) = (kernel.rng.below(16), kernel.rng.below(16), kernel.rng.below(16));
    let n = kernel.rng.below(71);
    // Pointers of one type may lead into one array.
    let source = if a == d && kernel.rng.chance(40) { "d" } else { "a" };
    let s = kernel.rng.below(100);
    let _ = writeln!(
        out,
        "static long k{name}(void) {{\n  unsigned long hash = 5;\n  for (int i = 0; i < {SIZE}; i++) {{ d{name}[i] = ({d})(i * 37 % 251); a{name}[i] = ({a})(i * 91 % 127 - 60); b{name}[i] = ({b})(i * 13 % 63); }}\n  \
         hash += (unsigned long)r{name}(d{name} + {one}, {source}{name} + {two}, b{name} + {three}, {n}, ({d}){s});\n  \
         for (int i = 0; i < {SIZE}; i++) hash = hash * 31 + (unsigned long){element};\n  return (long)hash;\n}}"
    );
}

impl Kernel<'_> {
    fn body(&mut self) -> String {
        let mut steps = String::new();
        for _ in 0..self.rng.below(2) + 1 {
            let value = self.value(2);
            let whole = !is_float(self.types[0]);
            let d = self.types[0];
            let step = match self.rng.below(14) {
                8 if whole => {
                    format!("d[(unsigned){value} & 255] = ({d})((unsigned long)d[i] + {value});")
                }
                9 if whole => format!("last = last * 31 + (unsigned long)({value});"),
                10 if whole => {
                    let (low, high) = (self.rng.below(50), self.rng.below(300));
                    format!(
                        "long v = (long){value}; if (v < {low}) v = {low}; else if (v > {high}) v = {high}; d[i] = ({d})v;"
                    )
                }
                11 if whole => {
                    let cond = self.cond(1);
                    format!("if {cond} sum += {value};")
                }
                12 if whole => {
                    let (cond, other) = (self.cond(1), self.value(1));
                    format!("{d} v = ({d}){value}; if {cond} v = ({d}){other}; d[i] = v;")
                }
                13 if whole => format!("d[i] = ({d})last; last = (unsigned long)({value});"),
                0 if !is_float(self.types[0]) => format!("sum += {value};"),
                1 => format!("sum += d[i]; d[i] = {value};"),
                2 => format!("d[i + {}] = {value};", self.rng.below(3)),
                _ => format!("d[i] = {value};"),
            };
            let _ = writeln!(steps, "    {{ {step} }}");
        }
        let index = self.index;
        if self.rng.chance(15) {
            let _ = writeln!(steps, "    if (d[i] == {}) break;", self.rng.below(60));
        }
        let signed = matches!(index, "int" | "long");
        let head = match self.rng.below(14) {
            8 => format!("for ({index} i = n; i > 0; i--)"),
            9 if signed => format!("for ({index} i = n; i >= 0; i -= {})", self.rng.below(4) + 1),
            9 | 10 => format!("for ({index} i = n; i-- != 0; )"),
            11 => {
                let (from, step) = (self.rng.below(60), self.rng.below(5) + 1);
                format!("for (int i = {from}; i > 2; i -= {step})")
            }
            12 | 13 => {
                let iterations = self.rng.below(70);
                let c = match self.rng.below(9) {
                    0 => format!("int c = 2147483647 - {iterations}; c < 2147483647; c++"),
                    1 => format!("unsigned c = 0xffffffffu - {iterations}; c < 0xffffffffu; c++"),
                    2 => format!("unsigned c = 0u - {iterations}; c != 0; c++"),
                    3 => {
                        format!("unsigned c = 0xffffffffu - {iterations}; c < 0xfffffffcu; c += 3")
                    }
                    4 => {
                        format!("int c = -2147483647 - 1 + {iterations}; c > -2147483647 - 1; c--")
                    }
                    5 => format!(
                        "long c = 0x7fffffffffffffffL - {iterations}; c <= 0x7ffffffffffffffeL; c++"
                    ),
                    6 => format!("unsigned short c = 65535 - {iterations}; c > 9; c++"),
                    7 => "signed char c = -128; c < -60; c++".to_owned(),
                    _ => format!("unsigned long c = {iterations}; c >= 1; c--"),
                };
                return format!("  {index} i = 0;\n  for ({c}, i++) {{\n{steps}  }}\n");
            }
            0 => format!("for ({index} i = 0; i != n; i++)"),
            1 if signed => format!("for ({index} i = 0; i <= n - 1; i++)"),
            2 => format!("for ({index} i = 0; n > i; i += 1)"),
            3 => format!("for ({index} i = 0; i < n; i += {})", self.rng.below(3) + 1),
            4 => {
                let d = self.types[0];
                let step = match self.rng.below(3) {
                    0 if !is_float(d) => "last = last * 31 + (unsigned long)*p++;",
                    1 if !is_float(d) => "++p; last ^= (unsigned long)*p * 7;",
                    _ => "p++;",
                };
                return format!(
                    "  {d} *p = d; {index} i = 0;\n  while (p < d + n) {{\n{steps}    {step} i++;\n  }}\n"
                );
            }
            5 => {
                let (from, iterations) = (self.rng.below(4), self.rng.below(40) + 1);
                format!("for ({index} i = {from}; i < {}; i++)", from + iterations)
            }
            // A counter that wraps.
            6 => {
                let iterations = self.rng.below(70) + 1;
                let c = format!("unsigned char c = {}; c != 0; c++, i++", 256 - iterations);
                return format!("  {index} i = 0;\n  for ({c}) {{\n{steps}  }}\n");
            }
            _ => format!("for ({index} i = 0; i < n; i++)"),
        };
        format!("  {head} {{\n{steps}  }}\n")
    }

    /// A number of the target's kind, of what is read at this iteration.
    fn value(&mut self, depth: usize) -> String {
        if depth == 0 || self.rng.chance(10) {
            return self.leaf();
        }
        let (a, b) = (self.value(depth - 1), self.value(depth - 1));
        if is_float(self.types[0]) {
            return match self.rng.below(5) {
                0 => format!("((float){a} + {b})"),
                1 => format!("((double){a} - {b})"),
                2 => format!("((float){a} / 3)"),
                3 => format!("((float){a} * {b})"),
                _ => format!("((double){a} * {b})"),
            };
        }
        let wide = *self.rng.pick(&["unsigned", "unsigned", "unsigned long"]);
        let narrow = *self.rng.pick(&INTEGERS);
        match self.rng.below(13) {
            8 => format!("small{}(({narrow}){a}, ({narrow}){b})", self.name),
            9 | 10 => {
                let cond = self.cond(0);
                format!("({cond} ? {a} : {b})")
            }
            11 => format!("({a} < {b} ? {a} : {b})"),
            0 => format!("(({wide}){a} + ({wide}){b})"),
            1 => format!("(({wide}){a} - ({wide}){b})"),
            2 => format!("(({wide}){a} * ({wide}){b})"),
            3 => format!("(({wide}){a} * {})", self.rng.below(70)),
            4 => format!("({a} {} {b})", self.rng.pick(&["&", "|", "^"])),
            5 | 6 => format!("({a} >> {})", self.rng.below(12)),
            7 => format!("(({wide}){a} << {})", self.rng.below(12)),
            _ => format!("({narrow}){a}"),
        }
    }

    fn cond(&mut self, depth: usize) -> String {
        let (a, b) = (self.value(depth), self.value(depth));
        let op = *self.rng.pick(&["<", "<=", ">", ">=", "==", "!="]);
        format!("({a} {op} {b})")
    }

    fn leaf(&mut self) -> String {
        let float = is_float(self.types[0]);
        let (array, ty) = *self.rng.pick(&[("a", self.types[1]), ("b", self.types[2])]);
        let read = match self.rng.below(9) {
            0 => return if float { "2.5f".into() } else { self.rng.below(300).to_string() },
            1 => return "s".into(),
            2 => "d[i]".to_owned(),
            3 => format!("{array}[{}]", self.rng.below(4)),
            4 | 5 => {
                let step = self.rng.below(3) + 2;
                match self.rng.below(3) {
                    0 => format!("{array}[{step} * i + {}]", self.rng.below(step)),
                    1 => format!("({array} + {})[i * {step}]", self.rng.below(step)),
                    _ => format!("{array}[i * {step} + {}]", self.rng.below(step)),
                }
            }
            6 => format!("{array}[i + {}]", self.rng.below(4)),
            _ => format!("{array}[i]"),
        };
        match is_float(ty) && !read.starts_with('d') && !float {
            true => format!("(int){read}"),
            false => read,
        }
    }
}
