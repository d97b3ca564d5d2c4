//! How much of what a module of WebAssembly may have. What a compiler takes grows with the cube of
//! how deep loops lie in each other, and with the square of how many data segments there are:
//! without limits, a module of 300 KB would keep it busy for a minute, and take a gigabyte.

use wasmparser::{Operator, Parser, Payload};

/// Loops in each other.
const MAX_LOOPS: usize = 128;
/// Blocks, loops and conditions of one function.
const MAX_BLOCKS: usize = 10_000;
/// Functions; segments of data and of tables; exports.
const MAX_FUNCTIONS: u32 = 20_000;
const MAX_SEGMENTS: u32 = 1_000;
const MAX_EXPORTS: u32 = 1_000;

/// What of a module is too much, if something is. What is no module is not looked at further.
pub(crate) fn excess(wasm: &[u8]) -> Option<String> {
    let bound = |what: &str, count: u32, most: u32| {
        (count > most).then(|| format!("it has {count} {what}, more than {most}"))
    };
    Parser::new(0).parse_all(wasm).map_while(Result::ok).find_map(|payload| match payload {
        Payload::FunctionSection(functions) => bound("functions", functions.count(), MAX_FUNCTIONS),
        Payload::DataSection(data) => bound("data segments", data.count(), MAX_SEGMENTS),
        Payload::ElementSection(elements) => {
            bound("element segments", elements.count(), MAX_SEGMENTS)
        }
        Payload::ExportSection(exports) => bound("exports", exports.count(), MAX_EXPORTS),
        Payload::CodeSectionEntry(body) => {
            let operators = body.get_operators_reader().ok()?;
            excess_of_function(operators.into_iter().map_while(Result::ok))
        }
        _ => None,
    })
}

fn excess_of_function<'a>(operators: impl Iterator<Item = Operator<'a>>) -> Option<String> {
    // Whether each of the blocks around is a loop.
    let (mut around, mut loops, mut blocks) = (Vec::new(), 0, 0);
    for operator in operators {
        let is_loop = match operator {
            Operator::Loop { .. } => true,
            Operator::Block { .. } | Operator::If { .. } | Operator::TryTable { .. } => false,
            Operator::End => {
                loops -= usize::from(around.pop() == Some(true));
                continue;
            }
            _ => continue,
        };
        around.push(is_loop);
        loops += usize::from(is_loop);
        blocks += 1;
        if loops > MAX_LOOPS {
            return Some(format!("a function has more than {MAX_LOOPS} loops in each other"));
        }
        if blocks > MAX_BLOCKS {
            return Some(format!("a function has more than {MAX_BLOCKS} blocks"));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(body: &str, rest: &str) -> Vec<u8> {
        wat::parse_str(format!("(module (memory 1) (func {body}) {rest})")).unwrap()
    }

    #[test]
    fn what_would_keep_a_compiler_busy_is_too_much() {
        let nested = |what: &str, count: usize| what.repeat(count) + &"end ".repeat(count);
        for (wasm, why) in [
            (module(&nested("loop ", 129), ""), Some("128 loops")),
            (module(&nested("loop ", 128), ""), None),
            (module(&nested("block ", 5_000), ""), None),
            (module(&"loop end ".repeat(10_001), ""), Some("10000 blocks")),
            (module(&"loop end ".repeat(9_000), ""), None),
            (module("", &"(func)".repeat(20_001)), Some("20002 functions")),
            (module("", &"(data (i32.const 0) \"a\")".repeat(1_001)), Some("1001 data segments")),
            (b"no module".to_vec(), None),
        ] {
            let found = excess(&wasm);
            assert!(found.as_deref().unwrap_or_default().contains(why.unwrap_or_default()));
            assert_eq!(found.is_some(), why.is_some(), "{found:?}, {why:?}");
        }
    }
}
