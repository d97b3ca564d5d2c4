//! Random programs inside the language that are also C without undefined behaviour: signed
//! arithmetic goes through unsigned types or small operands, shift counts and indexes are masked,
//! divisors are positive, loops are counted, floats are bounded before they become integers, and no
//! expression has two side effects.

use std::fmt::Write;

/// xorshift64*
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() >> 33) as usize % n
    }

    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        let index = self.below(items.len());
        &items[index]
    }
}

const INTS: [&str; 9] = [
    "signed char",
    "unsigned char",
    "short",
    "unsigned short",
    "int",
    "unsigned",
    "long",
    "unsigned long",
    "bool",
];
const LITERALS: [&str; 16] = [
    "0",
    "1",
    "-1",
    "2",
    "7",
    "127",
    "128",
    "255",
    "256",
    "-128",
    "32767",
    "65535",
    "2147483647",
    "(-2147483647 - 1)",
    "0xffffffffu",
    "123456789012345L",
];

pub(crate) struct Program<'r> {
    rng: &'r mut Rng,
    id: usize,
    out: String,
    indent: usize,
    /// Places of integer type that may be read and assigned.
    places: Vec<String>,
    floats: Vec<String>,
    /// The types of `floats`: small integers where there is no floating point.
    float_types: &'static [&'static str],
    /// Names that are only read: loop counters.
    counters: Vec<String>,
    next: usize,
    helpers: usize,
    /// How many of them may be called here: a helper calls only those above it.
    callable: usize,
    loops: usize,
    /// How many functions work on arrays.
    kernels: usize,
}

/// A program whose entry is `long test_ID(void)`; all its names end in the number.
pub(crate) fn program(rng: &mut Rng, id: usize) -> String {
    generate(rng, id, &["float", "double"])
}

/// The same without floating point.
#[allow(dead_code)] // Not every test has a target without.
pub(crate) fn integer_program(rng: &mut Rng, id: usize) -> String {
    generate(rng, id, &["long"])
}

fn generate(rng: &mut Rng, id: usize, float_types: &'static [&'static str]) -> String {
    let (out, places, floats, counters) = (String::new(), Vec::new(), Vec::new(), Vec::new());
    let mut p = Program {
        rng,
        id,
        out,
        indent: 0,
        places,
        floats,
        float_types,
        counters,
        next: 0,
        helpers: 0,
        callable: 0,
        loops: 0,
        kernels: 0,
    };
    p.globals();
    for _ in 0..p.rng.below(3) {
        p.helper();
    }
    let mut out = std::mem::take(&mut p.out);
    p.kernels = crate::arrays::kernels(p.rng, id, float_types, &mut out);
    p.out = out;
    p.entry();
    p.out
}

impl Program<'_> {
    fn line(&mut self, text: &str) {
        let _ = writeln!(self.out, "{:1$}{text}", "", self.indent * 2);
    }

    fn name(&mut self, prefix: &str) -> String {
        self.next += 1;
        format!("{prefix}{}_{}", self.next, self.id)
    }

    fn globals(&mut self) {
        let id = self.id;
        let ty = *self.rng.pick(&INTS);
        let fields: Vec<&str> = (0..3).map(|_| *self.rng.pick(&INTS)).collect();
        self.line(&format!(
            "struct S_{id} {{ {} a; {} b[4]; {} c; {} d; struct {{ int x; short y; }} in; }};",
            fields[0],
            fields[1],
            fields[2],
            self.float_types.last().unwrap_or(&"double"),
        ));
        self.line(&format!(
            "union U_{id} {{ unsigned long w; unsigned u[2]; unsigned char b[8]; }};"
        ));
        self.line(&format!("static {ty} ga_{id}[8] = {{ 1, 2, 3, [5] = 9 }};"));
        self.line(&format!(
            "static struct S_{id} gs_{id} = {{ .a = 1, .b = {{ 4, 5 }}, .in = {{ .y = 3 }} }};"
        ));
        self.line(&format!("static union U_{id} gu_{id};"));
        self.line(&format!("static int gm_{id}[3][4] = {{ {{ 1, 2 }}, 3, 4, 5, 6, {{ 7 }} }};"));
        let first = self.rng.below(100);
        self.line(&format!("enum {{ E1_{id} = {first}, E2_{id} }};"));
        self.line(&format!("static int (*gf_{id})(int, int, int);"));
    }

    fn global_places(&mut self) {
        let id = self.id;
        self.places = vec![
            format!("ga_{id}[3]"),
            format!("gs_{id}.a"),
            format!("gs_{id}.b[1]"),
            format!("gs_{id}.c"),
            format!("gs_{id}.in.y"),
            format!("gu_{id}.w"),
            format!("gu_{id}.u[1]"),
            format!("gu_{id}.b[5]"),
            format!("gm_{id}[2][1]"),
        ];
        self.floats = vec![format!("gs_{id}.d")];
    }

    fn helper(&mut self) {
        self.global_places();
        self.callable = self.helpers;
        self.helpers += 1;
        let (n, id) = (self.helpers, self.id);
        self.line(&format!("static int h{n}_{id}(int p, int q, int depth) {{"));
        self.indent += 1;
        self.places.extend(["p".into(), "q".into()]);
        let count = self.rng.below(3) + 1;
        self.statements(count, 1);
        if self.rng.chance(30) {
            self.line(&format!(
                "if (depth > 0) return h{n}_{id}((int)((unsigned)p * 3u), q, depth - 1);"
            ));
        }
        let result = self.int(2);
        self.line(&format!("return (int)({result});"));
        self.indent -= 1;
        self.line("}");
    }

    fn entry(&mut self) {
        self.global_places();
        self.callable = self.helpers;
        let id = self.id;
        self.line(&format!("long test_{id}(void) {{"));
        self.indent += 1;
        self.line("unsigned long hash = 17;");
        self.line("int i0 = 0;");
        self.line(&format!("gf_{id} = 0;"));
        if self.helpers > 0 {
            let n = self.rng.below(self.helpers) + 1;
            self.line(&format!("gf_{id} = h{n}_{id};"));
        }
        for n in 0..self.kernels {
            self.line(&format!("hash = hash * 31 + (unsigned long)k{n}_{id}();"));
        }
        let count = self.rng.below(6) + 4;
        self.declarations();
        self.statements(count, 3);
        for place in self.places.clone() {
            self.line(&format!("hash = hash * 31 + (unsigned long)({place});"));
        }
        for place in self.floats.clone() {
            self.line(&format!("hash = hash * 31 + (unsigned long){};", bounded(&place)));
        }
        self.line(&format!(
            "for (i0 = 0; i0 < 8; i0++) hash = hash * 33 + (unsigned long)ga_{id}[i0];"
        ));
        self.line("return (long)hash;");
        self.indent -= 1;
        self.line("}");
    }

    fn declarations(&mut self) {
        for _ in 0..self.rng.below(4) + 2 {
            let name = self.name("v");
            let ty = *self.rng.pick(&INTS);
            let value = self.int(2);
            self.line(&format!("{ty} {name} = ({ty})({value});"));
            self.places.push(name);
        }
        let (name, ty) = (self.name("f"), *self.rng.pick(self.float_types));
        let value = self.float(1);
        self.line(&format!("{ty} {name} = {value};"));
        self.floats.push(name);
        let id = self.id;
        if self.rng.chance(50) {
            let name = self.name("s");
            self.line(&format!("struct S_{id} {name} = gs_{id};"));
            self.line(&format!("struct S_{id} *{name}p = &{name};"));
            self.places.extend([
                format!("{name}.a"),
                format!("{name}p->b[2]"),
                format!("{name}p->in.x"),
            ]);
            self.line(&format!("gs_{id} = *{name}p;"));
        }
        if self.rng.chance(50) {
            let (name, ty) = (self.name("a"), *self.rng.pick(&INTS));
            self.line(&format!("{ty} {name}[4] = {{ 1, 0, 1 }};"));
            let index = self.rng.below(4);
            self.line(&format!("{ty} *{name}p = {name} + {index};"));
            self.places.extend([format!("{name}[{}]", self.rng.below(4)), format!("*{name}p")]);
        }
        if self.rng.chance(30) {
            let name = self.name("st");
            self.line(&format!("static short {name}; {name} = 5;"));
            self.places.push(name);
        }
    }

    fn statements(&mut self, count: usize, depth: usize) {
        for _ in 0..count {
            self.statement(depth);
        }
    }

    fn block(&mut self, depth: usize) {
        self.indent += 1;
        let count = self.rng.below(3) + 1;
        self.statements(count, depth);
        self.indent -= 1;
    }

    fn statement(&mut self, depth: usize) {
        let compound = depth > 0 && self.loops < 3;
        match self.rng.below(if compound { 16 } else { 9 }) {
            0..=3 => self.assignment(),
            4 => self.float_assignment(),
            5 => {
                let place = self.place();
                let op = *self.rng.pick(&["|=", "&=", "^="]);
                let value = self.int(2);
                self.line(&format!("{place} {op} {value};"));
            }
            6 if self.callable > 0 && self.indent == 1 && self.rng.chance(70) => self.call(),
            6 | 7 => {
                // Of a type that is not promoted to a signed one, or small enough.
                let place = format!("gu_{}.{}", self.id, self.rng.pick(&["w", "u[0]", "b[3]"]));
                let form = *self.rng.pick(&["++", "--"]);
                self.line(&format!("{place}{form};"));
            }
            8 => {
                let (place, cond) = (self.place(), self.cond(2));
                let (a, b) = (self.int(1), self.int(1));
                self.line(&format!("{place} = ({cond}) ? {a} : {b};"));
            }
            9 | 10 => {
                let cond = self.cond(2);
                self.line(&format!("if ({cond}) {{"));
                self.block(depth - 1);
                if self.rng.chance(50) {
                    self.line("} else {");
                    self.block(depth - 1);
                }
                self.line("}");
            }
            11 | 12 => self.counted_loop(depth),
            13 => self.while_loop(depth),
            14 => self.switch(depth),
            _ => {
                let label = self.name("l");
                let cond = self.cond(2);
                self.line(&format!("if ({cond}) goto {label};"));
                self.statement(depth - 1);
                self.line(&format!("{label}: ;"));
            }
        }
    }

    fn assignment(&mut self) {
        let place = self.place();
        let value = self.int(3);
        self.line(&format!("{place} = {value};"));
    }

    fn float_assignment(&mut self) {
        let place = self.rng.pick(&self.floats.clone()).clone();
        let value = self.float(2);
        self.line(&format!("{place} = {value};"));
    }

    fn call(&mut self) {
        // C does not say whether an index is evaluated before the call.
        let place = self.plain_place();
        let (n, id) = (self.rng.below(self.callable) + 1, self.id);
        let (a, b) = (self.int(1), self.int(1));
        let is_entry = self.callable == self.helpers;
        let callee =
            if is_entry && self.rng.chance(30) { format!("gf_{id}") } else { format!("h{n}_{id}") };
        self.line(&format!("{place} = {callee}((int)({a}), (int)({b}), 4);"));
    }

    fn counted_loop(&mut self, depth: usize) {
        self.loops += 1;
        let name = self.name("i");
        let iterations = self.rng.below(9) + 1;
        let step = if self.rng.chance(70) { format!("{name}++") } else { format!("{name} += 2") };
        self.line(&format!("for (int {name} = 0; {name} < {iterations}; {step}) {{"));
        self.counters.push(name.clone());
        self.block(depth - 1);
        self.indent += 1;
        if self.rng.chance(40) {
            let cond = self.cond(1);
            let jump = *self.rng.pick(&["break", "continue"]);
            self.line(&format!("if ({cond}) {jump};"));
        }
        self.assignment();
        if self.rng.chance(40) {
            self.line(&format!("ga_{0}[{name} & 7] = {name} * 3;", self.id));
        }
        self.indent -= 1;
        self.counters.pop();
        self.line("}");
        self.loops -= 1;
    }

    fn while_loop(&mut self, depth: usize) {
        self.loops += 1;
        let name = self.name("n");
        let iterations = self.rng.below(7);
        self.line(&format!("{{ int {name} = {iterations};"));
        let post = self.rng.chance(50);
        self.line(&if post { "do {".to_owned() } else { format!("while ({name}-- > 0) {{") });
        self.block(depth - 1);
        self.line(&if post { format!("}} while ({name}-- > 0); }}") } else { "} }".to_owned() });
        self.loops -= 1;
    }

    fn switch(&mut self, depth: usize) {
        let value = self.int(2);
        self.line(&format!("switch ((int)({value}) & 7) {{"));
        for case in 0..self.rng.below(5) + 1 {
            self.line(&format!("case {case}:"));
            self.block(depth - 1);
            if self.rng.chance(60) {
                self.line("break;");
            }
        }
        if self.rng.chance(60) {
            self.line("default:");
            self.block(depth - 1);
        }
        self.line("}");
    }

    fn place(&mut self) -> String {
        let id = self.id;
        if self.rng.chance(20) {
            let index = self.int(1);
            return match self.rng.below(3) {
                0 => format!("ga_{id}[({index}) & 7]"),
                1 => format!("gm_{id}[1][({index}) & 3]"),
                _ => format!("gu_{id}.b[({index}) & 7]"),
            };
        }
        self.plain_place()
    }

    fn plain_place(&mut self) -> String {
        let places = std::mem::take(&mut self.places);
        let place = self.rng.pick(&places).clone();
        self.places = places;
        place
    }

    /// An expression of some integer type.
    fn int(&mut self, depth: usize) -> String {
        if depth == 0 || self.rng.chance(15) {
            return self.int_leaf();
        }
        let (a, b) = (self.int(depth - 1), self.int(depth - 1));
        let unsigned = *self.rng.pick(&["unsigned", "unsigned long"]);
        match self.rng.below(18) {
            0..=3 => {
                let op = *self.rng.pick(&["+", "-", "*"]);
                let sum = format!("(({unsigned})({a}) {op} ({unsigned})({b}))");
                let ty = *self.rng.pick(&INTS);
                if self.rng.chance(60) { format!("({ty}){sum}") } else { sum }
            }
            4 => format!("(({a}) % 1000 - ({b}) % 77)"),
            5 => format!("((signed char)({a}) * (short)({b}))"),
            6..=8 => format!("(({a}) {} ({b}))", self.rng.pick(&["&", "|", "^"])),
            9 => format!("(({unsigned})({a}) << (({b}) & 31))"),
            10 => format!("(({a}) >> (({b}) & 7))"),
            11 => format!("(({a}) / ((({b}) & 15) + 1))"),
            12 => format!("(({a}) % ((({b}) & 63) + 1))"),
            13 => format!("({})", self.cond(depth - 1)),
            14 => format!("({})({a})", self.rng.pick(&INTS)),
            15 => format!("(~({a}))"),
            16 => format!("(({}) ? ({a}) : ({b}))", self.cond(depth - 1)),
            _ => {
                let value = self.float(depth - 1);
                format!("(int){}", bounded(&value))
            }
        }
    }

    fn int_leaf(&mut self) -> String {
        match self.rng.below(10) {
            0..=2 => (*self.rng.pick(&LITERALS)).to_owned(),
            3 => format!("E2_{}", self.id),
            4 if !self.counters.is_empty() => self.rng.pick(&self.counters.clone()).clone(),
            5 => format!("(int)sizeof(struct S_{})", self.id),
            6 => format!("\"dewar\"[{}]", self.rng.below(6)),
            _ => {
                let places = std::mem::take(&mut self.places);
                let place = self.rng.pick(&places).clone();
                self.places = places;
                place
            }
        }
    }

    fn cond(&mut self, depth: usize) -> String {
        let (a, b) = (self.int(depth.saturating_sub(1)), self.int(depth.saturating_sub(1)));
        match self.rng.below(8) {
            0..=4 => format!("({a}) {} ({b})", self.rng.pick(&["<", ">", "<=", ">=", "==", "!="])),
            5 => format!("({a}) && ({b})"),
            6 => format!("({a}) || !({b})"),
            _ => {
                let (x, y) = (self.float(1), self.float(1));
                format!("({x}) {} ({y})", self.rng.pick(&["<", ">=", "!="]))
            }
        }
    }

    fn float(&mut self, depth: usize) -> String {
        if self.float_types == ["long"] {
            let value = self.int(depth);
            return format!("(long)(short)({value})");
        }
        if depth == 0 || self.rng.chance(20) {
            return match self.rng.below(4) {
                0 => format!("{}.{}", self.rng.below(100), self.rng.below(100)),
                1 => format!("{}.5f", self.rng.below(50)),
                2 if !self.floats.is_empty() => self.rng.pick(&self.floats.clone()).clone(),
                _ => {
                    let ty = *self.rng.pick(self.float_types);
                    let value = self.int_leaf();
                    format!("({ty})({value})")
                }
            };
        }
        let (a, b) = (self.float(depth - 1), self.float(depth - 1));
        match self.rng.below(6) {
            0 => format!("({a} + {b})"),
            1 => format!("({a} - {b})"),
            2 => format!("({a} * {b})"),
            3 => format!("({a} / (({b}) * ({b}) + 1.0))"),
            4 => format!("(-({a}))"),
            _ => format!("(float)({a})"),
        }
    }
}

/// `value` where it fits into an int, else 7.
fn bounded(value: &str) -> String {
    format!("(({value}) > -1000000000 && ({value}) < 1000000000 ? (int)({value}) : 7)")
}
