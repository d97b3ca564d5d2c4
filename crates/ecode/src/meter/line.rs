//! Addresses that follow from a loop's variable by additions and multiplications.

use super::{bounded::Plan, counting::Counting};
use crate::ir::{BinOp, BlockId, ConvOp, Inst, Loop, Operand, Reg};

/// An address as `base + by * var + terms + off`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Line {
    pub(super) base: Operand,
    pub(super) by: i64,
    pub(super) terms: Vec<(Reg, i64)>,
    pub(super) off: i64,
}

/// What the steps to one value are found to be.
pub(super) struct Trace<'c, 'b> {
    counting: &'c Counting<'b>,
    own: &'c Loop,
    plan: &'c Plan,
    block: BlockId,
    /// The step whose value it is.
    site: usize,
    line: Line,
    steps: Vec<(BlockId, usize)>,
}

impl<'c, 'b> Trace<'c, 'b> {
    /// What step `(block, site)` gives and the steps that it is computed by, if it follows from the
    /// loop's variable.
    pub(super) fn of(
        counting: &'c Counting<'b>,
        own: &'c Loop,
        plan: &'c Plan,
        (block, site): (BlockId, usize),
    ) -> Option<(Line, Vec<(BlockId, usize)>)> {
        let line = Line { base: Operand::Int(0), by: 0, terms: Vec::new(), off: 0 };
        let mut trace = Self { counting, own, plan, block, site, line, steps: Vec::new() };
        let inst = &counting.body.blocks[block.0 as usize].insts[site];
        let follows = trace.inst(inst, site, 1)?;
        trace.line.terms.sort_unstable();
        follows.then_some((trace.line, trace.steps))
    }

    /// Adds `operand`, as it is before step `at`, times `by`; whether it follows from the variable.
    fn add(&mut self, operand: Operand, at: usize, by: i64) -> Option<bool> {
        let reg = match operand {
            Operand::Int(number) => {
                self.line.off = self.line.off.wrapping_add(number.wrapping_mul(by));
                return Some(false);
            }
            Operand::Reg(reg) => reg,
            _ => return None,
        };
        if reg == self.plan.var {
            let growth = self.plan.growth;
            let is_before = |at: usize| growth.block != self.block || at <= growth.at;
            self.line.by = self.line.by.wrapping_add(by);
            return (is_before(at) == is_before(self.site)).then_some(true);
        }
        if !self.counting.assigns(self.own, reg) {
            self.line.terms.push((reg, by));
            return Some(false);
        }
        let Some(place) = self.counting.last(self.block, at, reg) else {
            let (from, to) = self.counting.constant(self.block, at, operand)?;
            self.line.off = self.line.off.wrapping_add(from.wrapping_mul(by));
            return (from == to).then_some(false);
        };
        let inst = &self.counting.body.blocks[self.block.0 as usize].insts[place];
        let follows = self.inst(inst, place, by)?;
        if follows {
            self.steps.push((self.block, place));
        }
        Some(follows)
    }

    fn inst(&mut self, inst: &Inst, at: usize, by: i64) -> Option<bool> {
        match inst {
            Inst::Copy { src, .. }
            | Inst::Conv { op: ConvOp::Sext32 | ConvOp::Zext32 | ConvOp::Wrap, src, .. } => {
                self.add(*src, at, by)
            }
            Inst::Bin { op: BinOp::Add, a, b, .. } => {
                Some(self.add(*a, at, by)? | self.add(*b, at, by)?)
            }
            Inst::Bin { op: BinOp::Sub, a, b, .. } => {
                Some(self.add(*a, at, by)? | self.add(*b, at, by.wrapping_neg())?)
            }
            Inst::Bin { op: BinOp::Mul, a, b: Operand::Int(times), .. }
            | Inst::Bin { op: BinOp::Mul, a: Operand::Int(times), b: a, .. } => {
                self.add(*a, at, by.wrapping_mul(*times))
            }
            Inst::Bin { op: BinOp::Shl, a, b: Operand::Int(bits @ 0..32), .. } => {
                self.add(*a, at, by.wrapping_shl(*bits as u32))
            }
            Inst::PtrAdd { base, index, scale, .. } => {
                let follows = self.add(*index, at, by.wrapping_mul(*scale))?;
                Some(self.base(*base, at)? | follows)
            }
            _ => None,
        }
    }

    fn base(&mut self, base: Operand, at: usize) -> Option<bool> {
        self.line.base = match base {
            Operand::Slot(slot, off) => {
                self.line.off = self.line.off.wrapping_add(off);
                Operand::Slot(slot, 0)
            }
            Operand::Global(global, off) => {
                self.line.off = self.line.off.wrapping_add(off);
                Operand::Global(global, 0)
            }
            Operand::Reg(reg) if self.counting.assigns(self.own, reg) => {
                let place = self.counting.last(self.block, at, reg)?;
                let inst = &self.counting.body.blocks[self.block.0 as usize].insts[place];
                let follows = match inst {
                    Inst::Copy { src, .. } => self.base(*src, place)?,
                    Inst::PtrAdd { .. } => self.inst(inst, place, 1)?,
                    _ => return None,
                };
                if follows {
                    self.steps.push((self.block, place));
                }
                return Some(follows);
            }
            Operand::Reg(_) => base,
            _ => return None,
        };
        Some(false)
    }
}

impl Counting<'_> {
    fn assigns(&self, own: &Loop, reg: Reg) -> bool {
        self.insts(own).any(|inst| inst.result().is_some_and(|(own, _)| own == reg))
    }
}
