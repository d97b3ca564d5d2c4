//! Addresses of elements.

use super::{inst::Emitter, relative};
use crate::ir::{BinOp, Inst, Operand, Reg, Ty};
use std::collections::HashMap;

/// Sums that are remembered, so that a block takes no longer than its length.
const MAX_SUMS: usize = 32;

/// Registers that are another one plus a constant, in one block.
#[derive(Default)]
pub(super) struct Sums(HashMap<Reg, (Reg, i64)>);

impl Sums {
    /// Takes notice of a step.
    pub(super) fn note(&mut self, inst: &Inst) {
        let Some((dst, _)) = inst.result() else { return };
        self.0.retain(|reg, (of, _)| *reg != dst && *of != dst);
        if let Inst::Bin { op: BinOp::Add, a: Operand::Reg(of), b: Operand::Int(more), .. } = inst
            && *of != dst
        {
            if self.0.len() == MAX_SUMS {
                self.0.clear();
            }
            self.0.insert(dst, (*of, *more));
        }
    }
}

impl Emitter<'_, '_> {
    /// `base + index * scale`, from the beginning of the array that `base` lies in.
    pub(super) fn distance(&mut self, base: &Operand, index: &Operand, index_ty: Ty, scale: i64) {
        let (in_frame, off) = relative::rest(base);
        self.scaled(index, index_ty, scale);
        if off != 0 {
            self.code.instructions().i32_const(off as i32).i32_add();
        }
        if in_frame {
            self.code.instructions().local_get(self.frame).i32_add();
        }
    }

    /// `index * scale` in 32 bits. Of a sum, its parts are: neighbours have one product, and what
    /// is left to add goes into what computes the address.
    pub(super) fn scaled(&mut self, index: &Operand, index_ty: Ty, scale: i64) {
        let sum = match index {
            Operand::Reg(reg) if scale != 1 => self.sums.0.get(reg).copied(),
            _ => None,
        };
        let (index, more) = sum.map_or((*index, 0), |(of, more)| (Operand::Reg(of), more));
        self.operand(&index, index_ty);
        let mut code = self.code.instructions();
        if index_ty == Ty::I64 {
            code.i32_wrap_i64();
        }
        match scale {
            1 => {}
            _ if scale > 0 && scale.count_ones() == 1 => {
                code.i32_const(scale.trailing_zeros() as i32).i32_shl();
            }
            _ => {
                code.i32_const(scale as i32).i32_mul();
            }
        }
        if more != 0 {
            code.i32_const(more.wrapping_mul(scale) as i32).i32_add();
        }
    }
}
