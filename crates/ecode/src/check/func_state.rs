//! The function that is being generated.

use crate::{
    ast::Name,
    ir::{At, Block, BlockId, Body, Inst, Reg, Slot, Term, Ty},
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
    pub(super) switches: Vec<Switch>,
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

/// A `switch` whose body is being generated.
#[derive(Debug)]
pub(super) struct Switch {
    pub(super) ty: TypeId,
    pub(super) cases: Vec<(i64, BlockId)>,
    pub(super) values: HashSet<i64>,
    pub(super) default: Option<BlockId>,
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
