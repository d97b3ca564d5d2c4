//! The function that is being generated.

use super::Checker;
use crate::{
    ast::Name,
    ir::{
        At, BinOp, Block, BlockId, Body, CmpOp, ConvOp, Inst, Operand, Reg, Slot, SlotId, Term, Ty,
    },
    span::Span,
    types::TypeId,
};
use std::collections::{HashMap, HashSet};

/// Registers, frame and graph so far, and where jumps lead.
#[derive(Debug, Default)]
pub(super) struct FuncState {
    pub(super) name: String,
    pub(super) regs: Vec<Ty>,
    /// Registers that are variables: their values change.
    pub(super) vars: HashSet<Reg>,
    pub(super) slots: Vec<Slot>,
    pub(super) blocks: Vec<OpenBlock>,
    pub(super) cur: BlockId,
    pub(super) breaks: Vec<BlockId>,
    pub(super) continues: Vec<BlockId>,
    pub(super) switches: Vec<super::switch::Switch>,
    pub(super) labels: HashMap<Name, Label>,
    pub(super) ret: TypeId,
    /// Where a record is returned to.
    pub(super) ret_address: Option<Reg>,
    /// Names whose address is taken somewhere in the function.
    pub(super) addressed: HashSet<Name>,
    /// Frame bytes so far.
    pub(super) frame_bytes: u64,
    /// What is being checked.
    pub(super) here: Span,
    /// Where the next steps come from.
    pub(super) at: At,
    /// Where floating point was first met.
    pub(super) float: Option<Span>,
}

#[derive(Debug, Default)]
pub(super) struct OpenBlock {
    pub(super) insts: Vec<Inst>,
    pub(super) term: Option<Term>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Label {
    pub(super) block: BlockId,
    pub(super) defined: bool,
    pub(super) used: Option<Span>,
}

impl Default for TypeId {
    fn default() -> Self {
        TypeId::VOID
    }
}

impl FuncState {
    pub(super) fn reg(&mut self, ty: Ty) -> Reg {
        if matches!(ty, Ty::F32 | Ty::F64) {
            self.float.get_or_insert(self.here);
        }
        self.regs.push(ty);
        Reg(self.regs.len() as u32 - 1)
    }

    pub(super) fn block(&mut self) -> BlockId {
        self.blocks.push(OpenBlock::default());
        BlockId(self.blocks.len() as u32 - 1)
    }

    pub(super) fn emit(&mut self, inst: Inst) {
        let cur = self.cur.0 as usize;
        if self.blocks.len() <= cur {
            self.blocks.resize_with(cur + 1, OpenBlock::default);
        }
        if self.blocks[cur].term.is_none() {
            if inst.is_float() {
                self.float.get_or_insert(self.here);
            }
            self.blocks[cur].insts.push(inst);
        }
    }

    /// Ends the current block, unless it has ended before.
    pub(super) fn end(&mut self, term: Term) {
        if let Some(block) = self.blocks.get_mut(self.cur.0 as usize)
            && block.term.is_none()
        {
            block.term = Some(term);
        }
    }

    pub(super) fn jump(&mut self, to: BlockId) {
        self.end(Term::Jump(to));
    }

    /// Ends the current block by a jump to `next` and goes on there.
    pub(super) fn fall_into(&mut self, next: BlockId) {
        self.jump(next);
        self.cur = next;
    }

    pub(super) fn body(&mut self, fallback: &Term) -> Body {
        let close = |block: OpenBlock| Block {
            insts: block.insts,
            term: block.term.unwrap_or_else(|| fallback.clone()),
        };
        Body {
            regs: std::mem::take(&mut self.regs),
            slots: std::mem::take(&mut self.slots),
            blocks: std::mem::take(&mut self.blocks).into_iter().map(close).collect(),
        }
    }
}

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
