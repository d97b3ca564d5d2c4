//! Where things lie in linear memory.

use super::{EmitError, PAGE, WasmOptions};
use crate::ir::Module;

/// Nothing lies below this address, so NULL is no one's.
const FIRST: u64 = 1024;

pub(super) struct Layout {
    /// Addresses of static data.
    pub(super) globals: Vec<u32>,
    /// The lowest address that frames may have.
    pub(super) stack_end: u32,
    /// Where frames start; they grow down.
    pub(super) stack_top: u32,
    /// The first address behind static data.
    pub(super) heap_base: u32,
    pub(super) pages: u64,
}

impl Layout {
    pub(super) fn new(module: &Module, options: &WasmOptions) -> Result<Self, EmitError> {
        let stack_top = FIRST + u64::from(options.stack_bytes).next_multiple_of(16);
        let mut at = stack_top;
        let mut globals = Vec::with_capacity(module.globals.len());
        for global in &module.globals {
            at = at.next_multiple_of(global.align.max(1));
            globals.push(at as u32);
            at = at.saturating_add(global.size);
        }
        let heap_base = at.next_multiple_of(64);
        let need = heap_base.saturating_add(u64::from(options.heap_bytes));
        if need > u64::from(options.max_memory_bytes) {
            return Err(EmitError::Memory { need, limit: options.max_memory_bytes });
        }
        Ok(Self {
            globals,
            stack_end: FIRST as u32,
            stack_top: stack_top as u32,
            heap_base: heap_base as u32,
            pages: need.div_ceil(PAGE),
        })
    }
}
