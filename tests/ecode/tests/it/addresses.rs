//! Machine code in a process whose addresses are scattered.

use crate::common;
use crate::sys;
use ecode::{NoHost, Value};
use ecode_native::{NativeCode, Protection};
use memmap2::{MmapMut, MmapOptions};

/// Larger than what a 32-bit distance spans.
const LARGE: usize = 5 << 30;

/// Addresses that nobody touches.
fn map(bytes: usize) -> MmapMut {
    MmapOptions::new().len(bytes).no_reserve_swap().map_anon().unwrap()
}

/// Mappings are laid down from the top. What is free above a large one is filled, but for single
/// pages, and all else comes below it: a function that is mapped apart does not reach the others.
#[test]
fn functions_call_each_other_in_a_process_with_large_mappings() {
    let pages: Vec<_> = (0..256).map(|_| map(1 << 12)).collect();
    let large = map(LARGE);
    let mut filled = Vec::new();
    for size in [1 << 24, 1 << 20, 1 << 16, 1 << 12] {
        let above = |mapping: &MmapMut| mapping.as_ptr() > large.as_ptr();
        filled.extend(std::iter::repeat_with(|| map(size)).take(10_000).take_while(above));
    }
    let _kept: Vec<_> = pages.into_iter().step_by(2).collect();
    let mut large = "long twice(long n) { return 2 * n; }\nlong large(long n) {\n".to_owned();
    for at in 0..2_000 {
        large += &format!("n = twice(n) % {};\n", 1_000_003 + at);
    }
    let text = large + "return n; }\nlong proc(long n) { return large(n) - large(n); }\n";
    let module = common::module(&text, "");
    let code = NativeCode::compile(&module, Protection::None).unwrap();
    let mut instance = sys::native(&code, Box::new(NoHost));
    assert_eq!(instance.call("proc", &[Value::I64(1)]).unwrap(), Some(Value::I64(0)));
}
