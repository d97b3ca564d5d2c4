//! Variables that only grow, or only shrink, from iteration to iteration.

use super::counting::Counting;
use crate::ir::{BinOp, BlockId, ConvOp, Inst, Loop, Operand, Reg};

/// More than this is no growth by which iterations are worth to be counted.
const MAX_GROWTH: i64 = 1 << 10;

/// What each iteration adds to a variable: between `least` and `most`, both of one sign.
#[derive(Clone, Copy, Debug)]
pub(super) struct Growth {
    pub(super) least: i64,
    pub(super) most: i64,
    /// Where it is added.
    pub(super) block: BlockId,
    pub(super) at: usize,
}

impl Growth {
    pub(super) fn is_up(&self) -> bool {
        self.least > 0
    }

    /// The least that it changes by, without sign.
    pub(super) fn least_change(&self) -> i64 {
        self.least.abs().min(self.most.abs())
    }

    /// The most.
    pub(super) fn most_change(&self) -> i64 {
        self.least.abs().max(self.most.abs())
    }
}

impl Counting<'_> {
    /// How `var` changes in each iteration of the loop, if it does so once and in one direction.
    pub(super) fn growth(&self, own: &Loop, var: Reg) -> Option<Growth> {
        let (block, at) = self.only_assignment(own, var)?;
        let every_iteration =
            self.latches(own).all(|latch| self.dominators.dominates(block, latch));
        if !every_iteration || self.is_deeper(own, block) {
            return None;
        }
        let (least, most) = match &self.body.blocks[block.0 as usize].insts[at] {
            Inst::Copy { src, .. } => self.offset(block, at, *src, var),
            inst => self.added(block, at, inst, var),
        }?;
        let one_sign = least > 0 || most < 0;
        let small = least.abs().max(most.abs()) <= MAX_GROWTH;
        (one_sign && small).then_some(Growth { least, most, block, at })
    }

    pub(super) fn latches<'s>(&'s self, own: &'s Loop) -> impl Iterator<Item = BlockId> + 's {
        let preds = self.preds[own.head.0 as usize].iter().copied();
        preds.filter(|pred| own.contains(*pred))
    }

    pub(super) fn only_assignment(&self, own: &Loop, var: Reg) -> Option<(BlockId, usize)> {
        let mut found = own.blocks().flat_map(|id| {
            let insts = self.body.blocks[id.0 as usize].insts.iter().enumerate();
            let assigns = |inst: &Inst| inst.result().is_some_and(|(reg, _)| reg == var);
            insts.filter(move |(_, inst)| assigns(inst)).map(move |(at, _)| (id, at))
        });
        found.next().filter(|_| found.next().is_none())
    }

    /// The last assignment of `reg` in the first `at` steps of the block.
    pub(super) fn last(&self, block: BlockId, at: usize, reg: Reg) -> Option<usize> {
        let insts = &self.body.blocks[block.0 as usize].insts[..at];
        insts.iter().rposition(|inst| inst.result().is_some_and(|(own, _)| own == reg))
    }

    /// The range of `operand - var`, as the operand is at step `at` of the block. `var` is not
    /// assigned before.
    fn offset(&self, block: BlockId, at: usize, operand: Operand, var: Reg) -> Option<(i64, i64)> {
        let Operand::Reg(reg) = operand else { return None };
        if reg == var {
            return Some((0, 0));
        }
        let at = self.last(block, at, reg)?;
        match &self.body.blocks[block.0 as usize].insts[at] {
            Inst::Copy { src, .. } => self.offset(block, at, *src, var),
            inst => self.added(block, at, inst, var),
        }
    }

    /// The same for the result of an addition.
    fn added(&self, block: BlockId, at: usize, inst: &Inst, var: Reg) -> Option<(i64, i64)> {
        let (base, by, scale) = match inst {
            Inst::Bin { op: BinOp::Add, a, b, .. } => (*a, *b, 1),
            Inst::Bin { op: BinOp::Sub, a, b, .. } => (*a, *b, -1),
            Inst::PtrAdd { base, index, scale, .. } => (*base, *index, *scale),
            _ => return None,
        };
        let (low, high) = self.offset(block, at, base, var)?;
        let (from, to) = self.constant(block, at, by)?;
        let (one, two) = (from.checked_mul(scale)?, to.checked_mul(scale)?);
        Some((low.checked_add(one.min(two))?, high.checked_add(one.max(two))?))
    }

    /// The range of an operand that is one of a few constants.
    pub(super) fn constant(
        &self,
        block: BlockId,
        at: usize,
        operand: Operand,
    ) -> Option<(i64, i64)> {
        let reg = match operand {
            Operand::Int(number) => return Some((number, number)),
            Operand::Reg(reg) => reg,
            _ => return None,
        };
        if let Some(at) = self.last(block, at, reg) {
            return match &self.body.blocks[block.0 as usize].insts[at] {
                Inst::Copy { src, .. } => self.constant(block, at, *src),
                Inst::Conv { op: ConvOp::Sext32, src, .. } => self.constant(block, at, *src),
                _ => None,
            };
        }
        // What every way to the block has just assigned.
        let assigned = self.preds[block.0 as usize].iter().map(|pred| {
            let insts = &self.body.blocks[pred.0 as usize].insts;
            match insts.get(self.last(*pred, insts.len(), reg)?) {
                Some(Inst::Copy { src: Operand::Int(number), .. }) => Some((*number, *number)),
                _ => None,
            }
        });
        let join = |a: (i64, i64), b: (i64, i64)| (a.0.min(b.0), a.1.max(b.1));
        assigned.reduce(|a, b| Some(join(a?, b?)))?
    }
}
