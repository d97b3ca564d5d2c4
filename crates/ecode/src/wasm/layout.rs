//! Where things lie in linear memory.

use super::options::WasmOptions;
use crate::ir::{FuncId, Module, Operand};
use std::ops::Range;

/// Bytes of a page.
pub const PAGE: u64 = 65536;

/// Nothing lies below this address, so NULL is no one's.
const FIRST: u64 = 1024;
/// Below it, values are put away while the host looks at the clock.
pub(super) const ROOM: Range<u64> = 16..FIRST;

/// Why there is no WebAssembly for a module.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EmitError {
    /// Static data and frames exceed the memory.
    #[error("static data and stack need {need} bytes, the limit is {limit}")]
    Memory {
        /// Bytes needed.
        need: u64,
        /// Bytes allowed.
        limit: u32,
    },
}

/// Addresses of a program in a linear memory.
#[derive(Debug)]
pub struct Layout {
    /// Addresses of static data.
    pub globals: Vec<u32>,
    /// The lowest address that frames may have.
    pub stack_end: u32,
    /// Where frames start; they grow down.
    pub stack_top: u32,
    /// The first address behind static data.
    pub heap_base: u32,
    /// Pages that the memory has at the start.
    pub pages: u64,
}

impl Layout {
    /// Lays a program out.
    ///
    /// # Errors
    ///
    /// [`EmitError::Memory`] when it needs more than it may have.
    pub fn new(module: &Module, options: &WasmOptions) -> Result<Self, EmitError> {
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
    /// Static data with all addresses filled in: where it lies, and its bytes.
    pub fn data(&self, module: &Module) -> Vec<(u32, Vec<u8>)> {
        let table = module.address_taken();
        let mut data = Vec::new();
        for (global, at) in module.globals.iter().zip(&self.globals) {
            if global.init.is_empty() {
                continue;
            }
            let mut bytes = global.init.clone();
            for (at, target) in &global.relocs {
                let address = u64::from(self.address(target, &table));
                let place = *at as usize;
                if let Some(cell) = bytes.get_mut(place..place + 8) {
                    cell.copy_from_slice(&address.to_le_bytes());
                }
            }
            data.push((*at, bytes));
        }
        data
    }

    /// The address that a constant operand stands for; that of a function is its place in `table`,
    /// from 1.
    pub fn address(&self, operand: &Operand, table: &[FuncId]) -> u32 {
        match operand {
            Operand::Global(global, off) => {
                self.globals[global.0 as usize].wrapping_add(*off as u32)
            }
            Operand::Func(id) => table.binary_search(id).map_or(0, |index| index as u32 + 1),
            Operand::Int(value) => *value as u32,
            Operand::Reg(_) | Operand::Float(_) | Operand::Slot(..) => 0,
        }
    }
}
