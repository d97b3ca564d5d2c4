//! How much of what a module of WebAssembly may have. What a compiler takes grows with the cube of
//! how deep loops lie in each other, and with the square of how many data segments there are, or
//! loops and calls of one function. Other operators take a hundred times as long as an addition:
//! without limits, a module of 300 KB would keep it busy for a minute, and take a gigabyte.

use wasmparser::{BlockType, Operator, Parser, Payload};

/// Loops in each other.
const MAX_LOOPS: usize = 128;
/// Blocks, loops and conditions of one function.
const MAX_BLOCKS: usize = 10_000;
/// Operators, counted by what they take to compile: of one function, which bounds the memory, and
/// of all. One takes 10 µs of a build without optimisation at most.
const MAX_WORK: u64 = 200_000;
const MAX_ALL_WORK: u64 = 1_500_000;
/// Values that ways hand on: of each block and branch its parameters and results, and every local
/// of the function. Of one function, and of all: 100 bytes of the compiler's memory each.
const MAX_VALUES: u64 = 4_000_000;
const MAX_ALL_VALUES: u64 = 16_000_000;
/// Functions; segments of data and of tables; exports.
const MAX_FUNCTIONS: u32 = 20_000;
const MAX_SEGMENTS: u32 = 1_000;
const MAX_EXPORTS: u32 = 1_000;

/// What of a module is too much, if something is. What is no module is not looked at further.
pub(crate) fn excess(wasm: &[u8]) -> Option<String> {
    let bound = |what: &str, count: u32, most: u32| {
        (count > most).then(|| format!("it has {count} {what}, more than {most}"))
    };
    let (mut types, mut all, mut work) = (Vec::new(), 0, 0);
    Parser::new(0).parse_all(wasm).map_while(Result::ok).find_map(|payload| match payload {
        Payload::TypeSection(section) => {
            let found = section.into_iter_err_on_gc_types().map_while(Result::ok);
            types = found.map(|ty| (ty.params().len() as u64, ty.results().len() as u64)).collect();
            None
        }
        Payload::FunctionSection(functions) => bound("functions", functions.count(), MAX_FUNCTIONS),
        Payload::DataSection(data) => bound("data segments", data.count(), MAX_SEGMENTS),
        Payload::ElementSection(elements) => {
            bound("element segments", elements.count(), MAX_SEGMENTS)
        }
        Payload::ExportSection(exports) => bound("exports", exports.count(), MAX_EXPORTS),
        Payload::CodeSectionEntry(body) => {
            let locals = body.get_locals_reader().ok()?.into_iter().map_while(Result::ok);
            let locals = locals.map(|(count, _)| u64::from(count)).sum();
            let most_results = types.iter().map(|ty: &(u64, u64)| ty.1).max().unwrap_or(0);
            let mut extent = Extent { types: &types, most_results, locals, ..Extent::default() };
            let operators = body.get_operators_reader().ok()?;
            let mut operators = operators.into_iter().map_while(Result::ok);
            let excess = operators.find_map(|operator| extent.excess_with(&operator));
            all += extent.values;
            let too_many = || format!("its functions hand on more than {MAX_ALL_VALUES} values");
            work += extent.all_work();
            let too_much = || format!("its functions count for more than {MAX_ALL_WORK} operators");
            let excess = excess.or_else(|| (all > MAX_ALL_VALUES).then(too_many));
            excess.or_else(|| (work > MAX_ALL_WORK).then(too_much))
        }
        _ => None,
    })
}

/// What a function has up to one of its operators.
#[derive(Default)]
struct Extent<'t> {
    /// How many parameters and results each type has.
    types: &'t [(u64, u64)],
    /// How many values a call gives at most.
    most_results: u64,
    /// Beside its parameters, of which there are few.
    locals: u64,
    /// Of each block around: whether it is a loop, and how many values a branch to it takes.
    around: Vec<(bool, u64)>,
    loops: usize,
    blocks: usize,
    values: u64,
    work: u64,
    /// Loops and calls in all.
    turns: u64,
    calls: u64,
}

impl Extent<'_> {
    /// Counts one more operator.
    fn excess_with(&mut self, operator: &Operator<'_>) -> Option<String> {
        self.work += work(operator);
        match operator {
            Operator::Loop { blockty } => self.enter(*blockty, true),
            Operator::Block { blockty } | Operator::If { blockty } => self.enter(*blockty, false),
            Operator::TryTable { try_table } => self.enter(try_table.ty, false),
            Operator::End => {
                self.loops -= usize::from(self.around.pop().is_some_and(|(is_loop, _)| is_loop));
            }
            Operator::Br { relative_depth } | Operator::BrIf { relative_depth } => {
                self.branch(*relative_depth);
            }
            Operator::BrTable { targets } => {
                targets.targets().map_while(Result::ok).for_each(|depth| self.branch(depth));
            }
            Operator::Call { .. } | Operator::CallIndirect { .. } => {
                self.values += self.most_results;
                self.calls += 1;
            }
            _ => {}
        }
        if self.loops > MAX_LOOPS {
            return Some(format!("a function has more than {MAX_LOOPS} loops in each other"));
        }
        if self.blocks > MAX_BLOCKS {
            return Some(format!("a function has more than {MAX_BLOCKS} blocks"));
        }
        if self.work > MAX_WORK {
            return Some(format!("a function counts for more than {MAX_WORK} operators"));
        }
        (self.values > MAX_VALUES).then(|| {
            format!("a function hands on more than {MAX_VALUES} values: its locals, at each branch")
        })
    }

    /// What the whole function takes: each value that lives on is looked at again at each loop and
    /// call.
    fn all_work(&self) -> u64 {
        self.work + self.turns.pow(2) / 30 + self.calls.pow(2) / 100
    }

    fn enter(&mut self, ty: BlockType, is_loop: bool) {
        let (params, results) = match ty {
            BlockType::Empty => (0, 0),
            BlockType::Type(_) => (0, 1),
            BlockType::FuncType(index) => {
                self.types.get(index as usize).copied().unwrap_or_default()
            }
        };
        self.around.push((is_loop, if is_loop { params } else { results }));
        self.loops += usize::from(is_loop);
        self.turns += u64::from(is_loop);
        self.blocks += 1;
        self.values += self.locals + params + results;
    }

    fn branch(&mut self, depth: u32) {
        let block = self.around.iter().nth_back(depth as usize);
        let taken = block.map_or(self.most_results, |(_, taken)| *taken);
        self.values += self.locals + taken;
    }
}

/// What an operator takes to compile, as measured; an addition takes 1.
fn work(operator: &Operator<'_>) -> u64 {
    use Operator as Op;
    match operator {
        Op::BrTable { targets } => 2 * u64::from(targets.len()),
        // Calls of the engine, or what looks at a table on the way.
        Op::CallIndirect { .. }
        | Op::ReturnCallIndirect { .. }
        | Op::TableGet { .. }
        | Op::TableSet { .. }
        | Op::TableGrow { .. }
        | Op::TableFill { .. }
        | Op::TableCopy { .. }
        | Op::TableInit { .. }
        | Op::MemoryGrow { .. }
        | Op::MemoryFill { .. }
        | Op::MemoryCopy { .. }
        | Op::MemoryInit { .. } => 50,
        // What they are given is looked at on a way of its own.
        Op::I32DivS
        | Op::I32DivU
        | Op::I32RemS
        | Op::I32RemU
        | Op::I64DivS
        | Op::I64DivU
        | Op::I64RemS
        | Op::I64RemU
        | Op::I32TruncF32S
        | Op::I32TruncF32U
        | Op::I32TruncF64S
        | Op::I32TruncF64U
        | Op::I64TruncF32S
        | Op::I64TruncF32U
        | Op::I64TruncF64S
        | Op::I64TruncF64U
        | Op::I32TruncSatF32S
        | Op::I32TruncSatF32U
        | Op::I32TruncSatF64S
        | Op::I32TruncSatF64U
        | Op::I64TruncSatF32S
        | Op::I64TruncSatF32U
        | Op::I64TruncSatF64S
        | Op::I64TruncSatF64U => 5,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(body: &str, rest: &str) -> Vec<u8> {
        wat::parse_str(format!("(module (memory 1) (func {body}) {rest})")).unwrap()
    }

    #[test]
    fn what_would_keep_a_compiler_busy_is_too_much() {
        // Locals that are kept over loops; values that branches hand on.
        let over = |locals: usize, what: &str, count: usize| {
            format!("(local {}) {}", "i32 ".repeat(locals), what.repeat(count))
        };
        let live = |locals, loops| over(locals, "loop end ", loops);
        let branches = |values: usize, branches: usize| {
            let results = "i32 ".repeat(values);
            let (given, taken) = ("i32.const 1 ".repeat(values), "drop ".repeat(values));
            let branches = "i32.const 1 br_if 0 ".repeat(branches);
            format!("block (result {results}) {given} {branches} end {taken}")
        };
        let grown = |count: usize| format!("i32.const 0 {} drop", "memory.grow ".repeat(count));
        let divided = |count: usize| {
            let (given, taken) = ("i32.const 7 ".repeat(count), "i32.div_s ".repeat(count));
            format!("i32.const 9 {given} {taken} drop")
        };
        let jumps = |count: usize| format!("i32.const 0 br_table {}", "0 ".repeat(count));
        let nested = |what: &str, count: usize| what.repeat(count) + &"end ".repeat(count);
        for (wasm, why) in [
            (module(&nested("loop ", 129), ""), Some("128 loops")),
            (module(&nested("loop ", 128), ""), None),
            (module(&nested("block ", 5_000), ""), None),
            (module(&"loop end ".repeat(10_001), ""), Some("10000 blocks")),
            (module(&"block end ".repeat(9_000), ""), None),
            (module(&"loop end ".repeat(9_000), ""), Some("1500000 operators")),
            (module(&"loop end ".repeat(6_000), ""), None),
            (module("", &"(func)".repeat(20_001)), Some("20002 functions")),
            (module("", &"(data (i32.const 0) \"a\")".repeat(1_001)), Some("1001 data segments")),
            (module(&live(2_000, 2_001), ""), Some("4000000 values")),
            (module(&live(2_000, 1_000), ""), None),
            (module(&branches(1_000, 4_001), ""), Some("4000000 values")),
            (module(&branches(1_000, 3_000), ""), None),
            (
                module("", &format!("(func {})", over(1_000, "block end ", 3_000)).repeat(6)),
                Some("16000000 values"),
            ),
            (module(&"nop ".repeat(200_001), ""), Some("200000 operators")),
            (module(&"nop ".repeat(190_000), ""), None),
            (module(&grown(5_000), ""), Some("200000 operators")),
            (module(&grown(3_000), ""), None),
            (module(&divided(40_000), ""), Some("200000 operators")),
            (module(&divided(25_000), ""), None),
            (module(&jumps(100_001), ""), Some("200000 operators")),
            (module(&jumps(90_000), ""), None),
            (module("", &format!("(func {})", "nop ".repeat(190_000)).repeat(8)), Some("1500000")),
            (module("", &format!("(func {})", "call 0 ".repeat(6_000)).repeat(5)), Some("1500000")),
            (
                module("", &format!("(func {})", "loop end ".repeat(3_500)).repeat(5)),
                Some("1500000"),
            ),
            (b"no module".to_vec(), None),
        ] {
            let found = excess(&wasm);
            assert!(found.as_deref().unwrap_or_default().contains(why.unwrap_or_default()));
            assert_eq!(found.is_some(), why.is_some(), "{found:?}, {why:?}");
        }
    }
}
