//! What all parts of a module are made from.

use super::layout::Layout;
use crate::ir::{FuncId, Module, Operand, Ty};
use wasm_encoder::ValType;

pub(crate) const SP: u32 = 0;
pub(crate) const FUEL: u32 = 1;

/// Everything that the sections are made from.
pub(super) struct Unit<'m> {
    pub(super) module: &'m Module,
    pub(super) layout: Layout,
    pub(super) numbers: Numbers,
    pub(super) strip: i32,
}

impl Unit<'_> {
    /// The address that a constant operand stands for.
    pub(super) fn address(&self, operand: &Operand) -> u32 {
        self.layout.address(operand, &self.numbers.table)
    }
}

/// Numbers of functions: imports come first, `tick` before all.
pub(super) struct Numbers {
    pub(super) functions: Vec<u32>,
    pub(super) table: Vec<FuncId>,
}

impl Numbers {
    pub(super) const TICK: u32 = 0;

    pub(super) fn new(module: &Module) -> Self {
        let imports = module.funcs.iter().filter(|f| f.body.is_none()).count() as u32;
        let (mut next_import, mut next_own) = (1, 1 + imports);
        let number = |next: &mut u32| {
            *next += 1;
            *next - 1
        };
        let functions = module.funcs.iter().map(|f| match f.body {
            None => number(&mut next_import),
            Some(_) => number(&mut next_own),
        });
        Self { functions: functions.collect(), table: module.address_taken() }
    }

    pub(super) fn function(&self, id: FuncId) -> u32 {
        self.functions[id.0 as usize]
    }
}

pub(crate) fn val_type(ty: Ty) -> ValType {
    match ty {
        Ty::I32 | Ty::Ptr => ValType::I32,
        Ty::I64 => ValType::I64,
        Ty::F32 => ValType::F32,
        Ty::F64 => ValType::F64,
        Ty::V128 => ValType::V128,
    }
}
