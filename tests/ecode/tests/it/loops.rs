//! Random loops as text, and what they do iteration by iteration.
//!
//! [`Function::text`] prints one, [`Walk`] runs it as slowly as can be: whatever comes by the head
//! of a loop, jumps back or is called takes an iteration.

use crate::generate::Rng;
use std::fmt::Write;

/// Types of variables; a pointer has the 32 bits that it has in a memory of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Type {
    Byte,
    Int,
    Unsigned,
    Long,
    UnsignedLong,
    Pointer,
}
use Type::{Byte, Int, Long, Pointer, Unsigned, UnsignedLong};

impl Type {
    fn name(self) -> &'static str {
        match self {
            Byte => "unsigned char",
            Int => "int",
            Unsigned => "unsigned",
            Long => "long",
            UnsignedLong => "unsigned long",
            Pointer => "char *",
        }
    }

    /// What a variable of the type keeps of a number.
    fn keep(self, number: i64) -> i64 {
        match self {
            Byte => i64::from(number as u8),
            Int => i64::from(number as i32),
            Unsigned | Pointer => i64::from(number as u32),
            Long | UnsignedLong => number,
        }
    }

    /// The type in which values of both are compared.
    fn common(self, other: Type) -> Type {
        self.max(other).max(Int)
    }
}

type Var = usize;

/// A variable (none: the constant alone) plus a constant.
#[derive(Clone, Copy, Debug)]
struct Sum(Option<Var>, i64);

#[derive(Clone, Debug)]
enum Cond {
    Compare(Var, &'static str, Sum),
    /// `(h & mask) == number`
    Hash(u64, u64),
    Both(Box<Cond>, Box<Cond>),
}

#[derive(Clone, Debug)]
enum Stmt {
    Set(Var, Sum),
    Add(Var, Sum),
    Note(Var),
    Call(usize, Var),
    If(Cond, Vec<Stmt>),
    For(Option<(Var, Sum)>, Cond, Var, Sum, Vec<Stmt>),
    While(Cond, Vec<Stmt>),
    Do(Vec<Stmt>, Cond),
    Forever(Vec<Stmt>),
    Break,
    Continue,
    Label(usize),
    Goto(usize),
}

/// A function `long loop_ID(long n)`.
pub(crate) struct Function {
    vars: Vec<Type>,
    body: Vec<Stmt>,
}

/// The variable that holds the argument.
const ARGUMENT: Var = 0;
const OPERATORS: [&str; 6] = ["<", "<=", ">", ">=", "!=", "=="];
const STEPS: [i64; 14] = [1, 1, 1, -1, -1, 2, -2, 3, 7, 0, 1000, -1024, 1025, 70_000];
const NUMBERS: [i64; 26] = [
    0,
    1,
    -1,
    2,
    5,
    9,
    16,
    100,
    255,
    256,
    3000,
    i32::MAX as i64 - 9,
    i32::MAX as i64,
    i32::MIN as i64,
    u32::MAX as i64 - 4,
    u32::MAX as i64,
    i64::MAX - 5,
    i64::MAX,
    i64::MIN,
    -300,
    i64::MAX - 100,
    i64::MAX - 300,
    i64::MIN + 100,
    i32::MAX as i64 - 100,
    i32::MIN as i64 + 300,
    u32::MAX as i64 - 200,
];

/// Makes a function, which may call those of lower numbers.
pub(crate) fn function(rng: &mut Rng, id: usize) -> Function {
    let types = [Byte, Int, Int, Unsigned, Long, Long, UnsignedLong, Pointer];
    let mut vars = vec![Long];
    vars.extend((0..4).map(|_| *rng.pick(&types)));
    let mut maker = Maker { rng, vars: &vars, id, labels: 0, loops: 0 };
    let mut body: Vec<Stmt> =
        (1..maker.vars.len()).map(|var| Stmt::Set(var, maker.number(var))).collect();
    let count = 1 + maker.rng.below(2);
    for _ in 0..count {
        body.push(maker.loop_(3));
    }
    let labels = maker.labels;
    // Where a jump leads may be anywhere.
    for label in 0..labels {
        let place = 4 + rng.below(body.len() - 4);
        let within = rng.chance(40);
        let inside = match &mut body[place] {
            Stmt::For(.., inside) | Stmt::While(_, inside) | Stmt::Do(inside, _) if within => {
                inside
            }
            _ => &mut body,
        };
        let at = if within { rng.below(inside.len() + 1) } else { place };
        inside.insert(at, Stmt::Label(label));
    }
    Function { vars, body }
}

struct Maker<'r> {
    rng: &'r mut Rng,
    vars: &'r [Type],
    id: usize,
    labels: usize,
    loops: usize,
}

impl Maker<'_> {
    fn var(&mut self) -> Var {
        1 + self.rng.below(self.vars.len() - 1)
    }

    fn number(&mut self, var: Var) -> Sum {
        let number = *self.rng.pick(&NUMBERS);
        match self.rng.chance(25) && self.vars[var] != Pointer {
            true => Sum(Some(ARGUMENT), *self.rng.pick(&STEPS)),
            false => Sum(None, number),
        }
    }

    fn cond(&mut self, var: Var) -> Cond {
        let op = *self.rng.pick(&OPERATORS[..if self.rng.0 & 8 == 0 { 5 } else { 4 }]);
        let mut to = self.number(var);
        let other = self.var();
        let fits = (self.vars[other] == Pointer) == (self.vars[var] == Pointer);
        if self.rng.chance(25) && fits {
            to = Sum(Some(other), *self.rng.pick(&STEPS));
        }
        let compare = Cond::Compare(var, op, to);
        if self.rng.chance(15) {
            let mask = *self.rng.pick(&[7, 15, 63]);
            let hash = Cond::Hash(mask, self.rng.next() & mask);
            return match self.rng.chance(30) {
                true => hash,
                false => Cond::Both(Box::new(compare), Box::new(hash)),
            };
        }
        compare
    }

    fn step(&mut self, var: Var) -> Sum {
        let other = self.var();
        match self.rng.chance(10) && self.vars[other] != Pointer && other != var {
            true => Sum(Some(other), 0),
            false => Sum(None, *self.rng.pick(&STEPS)),
        }
    }

    fn loop_(&mut self, depth: usize) -> Stmt {
        self.loops += 1;
        let var = self.var();
        let cond = self.cond(var);
        let mut body = self.body(depth - 1);
        match self.rng.below(10) {
            0..=4 => {
                let start = self.rng.chance(70).then(|| (var, self.number(var)));
                Stmt::For(start, cond, var, self.step(var), body)
            }
            5 | 6 => {
                body.push(Stmt::Add(var, self.step(var)));
                Stmt::While(cond, body)
            }
            7 | 8 => {
                let at = self.rng.below(body.len() + 1);
                body.insert(at, Stmt::Add(var, self.step(var)));
                Stmt::Do(body, cond)
            }
            _ => {
                body.push(Stmt::Add(var, self.step(var)));
                body.push(Stmt::If(cond, vec![Stmt::Break]));
                Stmt::Forever(body)
            }
        }
    }

    fn body(&mut self, depth: usize) -> Vec<Stmt> {
        let count = self.rng.below(4);
        (0..count).map(|_| self.stmt(depth)).collect()
    }

    fn stmt(&mut self, depth: usize) -> Stmt {
        let var = self.var();
        match self.rng.below(20) {
            0..=5 => Stmt::Note(var),
            6 => Stmt::Add(var, self.step(var)),
            7 => Stmt::Set(var, self.number(var)),
            8 if self.id > 0 => Stmt::Call(self.rng.below(self.id), var),
            9..=12 if depth > 0 && self.loops < 4 => self.loop_(depth),
            13..=17 => {
                let cond = self.cond(var);
                let then = match self.rng.below(6) {
                    0 => Stmt::Break,
                    1 => Stmt::Continue,
                    2 => {
                        self.labels += 1;
                        Stmt::Goto(self.labels - 1)
                    }
                    3 if depth > 0 && self.loops < 4 => self.loop_(depth),
                    _ => Stmt::Add(var, self.step(var)),
                };
                Stmt::If(cond, vec![then])
            }
            _ => Stmt::Note(var),
        }
    }
}

impl Function {
    pub(crate) fn text(&self, id: usize) -> String {
        let mut out = format!("long loop_{id}(long v0)\n{{\n\tunsigned long h = 7;\n");
        for (var, ty) in self.vars.iter().enumerate().skip(1) {
            let _ = writeln!(out, "\t{} v{var};", ty.name());
        }
        self.block(&self.body, 1, &mut out);
        out + "\treturn h;\n}\n"
    }

    fn sum(&self, Sum(var, number): Sum, like: Var) -> String {
        match (var, self.vars[like]) {
            (Some(var), _) if number != 0 => format!("v{var} + {}", literal(number)),
            (Some(var), _) => format!("v{var}"),
            (None, Pointer) => format!("(char *){}", literal(number)),
            (None, Byte) => literal(i64::from(number as i16)),
            (None, ty) => format!("({}){}", ty.name(), literal(number)),
        }
    }

    fn cond(&self, cond: &Cond) -> String {
        match cond {
            Cond::Compare(var, op, to) => format!("v{var} {op} {}", self.sum(*to, *var)),
            Cond::Hash(mask, number) => format!("(h & {mask}) == {number}"),
            Cond::Both(a, b) => format!("{} && {}", self.cond(a), self.cond(b)),
        }
    }

    fn step(&self, var: Var, by: Sum) -> String {
        match by {
            Sum(Some(by), _) => format!("v{var} += v{by}"),
            Sum(None, 1) => format!("v{var}++"),
            Sum(None, -1) => format!("v{var}--"),
            Sum(None, by) if by < 0 => format!("v{var} -= {}", -by),
            Sum(None, by) => format!("v{var} += {by}"),
        }
    }

    fn block(&self, body: &[Stmt], depth: usize, out: &mut String) {
        let tab = "\t".repeat(depth);
        for stmt in body {
            let inside = match stmt {
                Stmt::If(_, inside)
                | Stmt::For(.., inside)
                | Stmt::While(_, inside)
                | Stmt::Do(inside, _)
                | Stmt::Forever(inside) => &inside[..],
                _ => &[],
            };
            let head = match stmt {
                Stmt::Set(var, to) => {
                    let cast = self.vars[*var].name();
                    format!("v{var} = ({cast})({});", self.sum(*to, *var))
                }
                Stmt::Add(var, by) => format!("{};", self.step(*var, *by)),
                Stmt::Note(var) => format!("h = h * 31 + (unsigned long)v{var};"),
                Stmt::Call(id, var) => format!("h += loop_{id}((long)v{var});"),
                Stmt::If(cond, _) => format!("if ({}) {{", self.cond(cond)),
                Stmt::For(start, cond, var, by, _) => {
                    let start = start.map_or(String::new(), |(var, to)| {
                        format!("v{var} = ({})({})", self.vars[var].name(), self.sum(to, var))
                    });
                    format!("for ({start}; {}; {}) {{", self.cond(cond), self.step(*var, *by))
                }
                Stmt::While(cond, _) => format!("while ({}) {{", self.cond(cond)),
                Stmt::Do(..) => "do {".into(),
                Stmt::Forever(_) => "for (;;) {".into(),
                Stmt::Break => "break;".into(),
                Stmt::Continue => "continue;".into(),
                Stmt::Label(label) => format!("l{label}: ;"),
                Stmt::Goto(label) => format!("goto l{label};"),
            };
            let _ = writeln!(out, "{tab}{head}");
            self.block(inside, depth + 1, out);
            match stmt {
                Stmt::Do(_, cond) => drop(writeln!(out, "{tab}}} while ({});", self.cond(cond))),
                _ if head.ends_with('{') => drop(writeln!(out, "{tab}}}")),
                _ => {}
            }
        }
    }
}

fn literal(number: i64) -> String {
    match number {
        i64::MIN => "(-9223372036854775807L - 1)".into(),
        _ if number < 0 => format!("({number}L)"),
        _ => format!("{number}L"),
    }
}

/// A step of the same function without structure.
enum Op {
    Set(Var, Sum),
    Add(Var, Sum),
    Note(Var),
    Call(usize, Var),
    Unless(Cond, usize),
    Jump(usize),
    /// A loop begins here.
    Head,
}

/// Places by their number, known at the end.
#[derive(Default)]
struct Lowering {
    ops: Vec<Op>,
    places: Vec<usize>,
    labels: Vec<(usize, usize)>,
}

impl Lowering {
    fn place(&mut self) -> usize {
        self.places.push(usize::MAX);
        self.places.len() - 1
    }

    fn here(&mut self, place: usize) {
        self.places[place] = self.ops.len();
    }

    fn label(&mut self, label: usize) -> usize {
        if let Some((_, place)) = self.labels.iter().find(|(own, _)| *own == label) {
            return *place;
        }
        let place = self.place();
        self.labels.push((label, place));
        place
    }

    /// `around`: where `break` and `continue` lead.
    fn block(&mut self, body: &[Stmt], around: (usize, usize)) {
        for stmt in body {
            match stmt {
                Stmt::Set(var, to) => self.ops.push(Op::Set(*var, *to)),
                Stmt::Add(var, by) => self.ops.push(Op::Add(*var, *by)),
                Stmt::Note(var) => self.ops.push(Op::Note(*var)),
                Stmt::Call(id, var) => self.ops.push(Op::Call(*id, *var)),
                Stmt::Break => self.ops.push(Op::Jump(around.0)),
                Stmt::Continue => self.ops.push(Op::Jump(around.1)),
                Stmt::Goto(label) => {
                    let place = self.label(*label);
                    self.ops.push(Op::Jump(place));
                }
                Stmt::Label(label) => {
                    let place = self.label(*label);
                    self.here(place);
                }
                Stmt::If(cond, inside) => {
                    let end = self.place();
                    self.ops.push(Op::Unless(cond.clone(), end));
                    self.block(inside, around);
                    self.here(end);
                }
                Stmt::For(start, cond, var, by, inside) => {
                    self.ops.extend(start.map(|(var, to)| Op::Set(var, to)));
                    self.loop_(Some(cond), inside, Some((*var, *by)), None);
                }
                Stmt::While(cond, inside) => self.loop_(Some(cond), inside, None, None),
                Stmt::Do(inside, cond) => self.loop_(None, inside, None, Some(cond)),
                Stmt::Forever(inside) => self.loop_(None, inside, None, None),
            }
        }
    }

    fn loop_(
        &mut self,
        before: Option<&Cond>,
        body: &[Stmt],
        step: Option<(Var, Sum)>,
        behind: Option<&Cond>,
    ) {
        let (head, next, end) = (self.place(), self.place(), self.place());
        self.here(head);
        self.ops.push(Op::Head);
        self.ops.extend(before.map(|cond| Op::Unless(cond.clone(), end)));
        self.block(body, (end, next));
        self.here(next);
        self.ops.extend(step.map(|(var, by)| Op::Add(var, by)));
        self.ops.extend(behind.map(|cond| Op::Unless(cond.clone(), end)));
        self.ops.push(Op::Jump(head));
        self.here(end);
    }
}

/// Runs functions iteration by iteration.
pub(crate) struct Walk<'f> {
    functions: &'f [Function],
    /// Iterations taken.
    pub(crate) iterations: u64,
    most: u64,
}

impl<'f> Walk<'f> {
    pub(crate) fn new(functions: &'f [Function], most: u64) -> Self {
        Self { functions, iterations: 0, most }
    }

    /// What function `id` gives, unless it takes more iterations than it may.
    pub(crate) fn call(&mut self, id: usize, argument: i64) -> Option<i64> {
        self.iteration()?;
        let Function { vars: types, body } = &self.functions[id];
        let mut code = Lowering::default();
        // Outside of loops there is no `break`.
        code.block(body, (usize::MAX, usize::MAX));
        let mut vars = vec![0; types.len()];
        vars[ARGUMENT] = argument;
        let (mut hash, mut at) = (7_u64, 0);
        while at < code.ops.len() {
            let mut next = at + 1;
            let sum = |vars: &[i64], Sum(var, number): Sum| {
                let own = var.map_or(0, |var| vars[var]);
                let ty = var.map_or(Long, |var| types[var].max(Int));
                ty.keep(own.wrapping_add(number))
            };
            match &code.ops[at] {
                Op::Set(var, to) => vars[*var] = types[*var].keep(sum(&vars, *to)),
                Op::Add(var, by) => {
                    let by = by.0.map_or(by.1, |by| vars[by]);
                    vars[*var] = types[*var].keep(vars[*var].wrapping_add(by));
                }
                Op::Note(var) => hash = hash.wrapping_mul(31).wrapping_add(vars[*var] as u64),
                Op::Head => self.iteration()?,
                Op::Call(id, var) => {
                    hash = hash.wrapping_add(self.call(*id, vars[*var])? as u64);
                }
                Op::Unless(cond, place) => {
                    if !holds(cond, types, &vars, hash) {
                        next = code.places[*place];
                    }
                }
                Op::Jump(place) => {
                    next = code.places[*place];
                    if next <= at {
                        self.iteration()?;
                    }
                }
            }
            at = next;
        }
        Some(hash as i64)
    }

    fn iteration(&mut self) -> Option<()> {
        self.iterations += 1;
        (self.iterations <= self.most).then_some(())
    }
}

fn holds(cond: &Cond, types: &[Type], vars: &[i64], hash: u64) -> bool {
    match cond {
        Cond::Hash(mask, number) => hash & mask == *number,
        Cond::Both(a, b) => holds(a, types, vars, hash) && holds(b, types, vars, hash),
        Cond::Compare(var, op, Sum(to, number)) => {
            let own = types[*var];
            let (right, right_type) = match (to, own) {
                // A sum with a number of 64 bits has 64 bits itself, but that of a pointer.
                (Some(to), _) if *number != 0 => {
                    let ty = types[*to].common(Long);
                    (ty.keep(vars[*to].wrapping_add(*number)), ty)
                }
                (Some(to), _) => (vars[*to], types[*to]),
                (None, Byte) => (i64::from(*number as i16), Long),
                (None, ty) => (ty.keep(*number), ty),
            };
            let ty = own.common(right_type);
            let (a, b) = (ty.keep(vars[*var]), ty.keep(right));
            let order = match ty {
                UnsignedLong => (a as u64).cmp(&(b as u64)),
                _ => a.cmp(&b),
            };
            match *op {
                "<" => order.is_lt(),
                "<=" => order.is_le(),
                ">" => order.is_gt(),
                ">=" => order.is_ge(),
                "!=" => order.is_ne(),
                _ => order.is_eq(),
            }
        }
    }
}
