//! Steps of the function that is being generated.

use super::Checker;
use crate::{
    ir::{At, BinOp, CmpOp, ConvOp, Inst, Operand, Reg, Slot, SlotId, Ty},
    span::Span,
    types::TypeId,
};

impl Checker<'_> {
    /// What is at `span` is checked.
    pub(super) fn look_at(&mut self, span: Span) {
        self.func.here = span;
        self.mark(span);
    }

    /// The steps that follow come from `span`.
    pub(super) fn mark(&mut self, span: Span) {
        self.func.at = At::of(span);
    }

    pub(super) fn emit(&mut self, inst: Inst) {
        self.func.emit(inst);
    }

    pub(super) fn emit_copy(&mut self, ty: Ty, dst: Reg, src: Operand) {
        if src != Operand::Reg(dst) {
            self.emit(Inst::Copy { ty, dst, src });
        }
    }

    /// `op` in a register of its own, if it is a variable that may change.
    pub(super) fn held(&mut self, ty: Ty, op: Operand) -> Operand {
        match op {
            Operand::Reg(reg) if self.func.vars.contains(&reg) => {
                let dst = self.func.reg(ty);
                self.emit_copy(ty, dst, op);
                Operand::Reg(dst)
            }
            _ => op,
        }
    }

    pub(super) fn emit_bin(&mut self, op: BinOp, ty: Ty, a: Operand, b: Operand) -> Operand {
        if let Some(folded) = super::fold::bin(op, ty, a, b) {
            return folded;
        }
        let dst = self.func.reg(ty);
        self.emit(Inst::Bin { op, ty, dst, a, b, at: self.func.at });
        Operand::Reg(dst)
    }

    pub(super) fn emit_cmp(&mut self, op: CmpOp, ty: Ty, a: Operand, b: Operand) -> Operand {
        if let Some(folded) = super::fold::cmp(op, ty, a, b) {
            return folded;
        }
        let dst = self.func.reg(Ty::I32);
        self.emit(Inst::Cmp { op, ty, dst, a, b });
        Operand::Reg(dst)
    }

    pub(super) fn emit_conv(&mut self, op: ConvOp, from: Ty, to: Ty, src: Operand) -> Operand {
        if let Some(folded) = super::fold::conv(op, from, to, src) {
            return folded;
        }
        let dst = self.func.reg(to);
        self.emit(Inst::Conv { op, from, to, dst, src });
        Operand::Reg(dst)
    }

    /// `base + index * scale`, the index being of type `index_ty`.
    pub(super) fn emit_ptr_add(
        &mut self,
        base: Operand,
        index: Operand,
        index_ty: Ty,
        scale: i64,
    ) -> Operand {
        if let Operand::Int(index) = index
            && let Some(address) = super::fold::offset(base, index.wrapping_mul(scale))
        {
            return address;
        }
        let dst = self.func.reg(Ty::Ptr);
        self.emit(Inst::PtrAdd { dst, base, index, index_ty, scale });
        Operand::Reg(dst)
    }

    /// `base + bytes`.
    pub(super) fn emit_offset(&mut self, base: Operand, bytes: i64) -> Operand {
        self.emit_ptr_add(base, Operand::Int(bytes), Ty::I64, 1)
    }

    /// A new piece of the frame.
    pub(super) fn new_slot(&mut self, name: &str, ty: TypeId, span: Span) -> SlotId {
        let size = self.types.size(ty).unwrap_or(0);
        let is_array = self.types.holds_array(ty);
        self.raw_slot(name, size, self.types.align(ty), is_array, span)
    }

    pub(super) fn raw_slot(
        &mut self,
        name: &str,
        size: u64,
        align: u64,
        is_array: bool,
        span: Span,
    ) -> SlotId {
        const MAX_FRAME: u64 = 1 << 19;
        self.func.frame_bytes = self.func.frame_bytes.saturating_add(size);
        if self.func.frame_bytes > MAX_FRAME {
            let help = "declare large arrays `static`";
            self.diags.hint(span, "the variables of this function exceed 512 KiB", help);
        }
        self.func.slots.push(Slot { name: name.to_owned(), size, align, is_array });
        SlotId(self.func.slots.len() as u32 - 1)
    }
}
