//! Loops of a small number of iterations, which constants bound.

use super::{bounded::Plan, counting::Counting};
use crate::ir::{BlockId, CmpOp, Inst, Loop, Operand};

/// Iterations that may be taken without a look at the counter.
const MAX_ITERATIONS: i64 = 2048;
/// Iterations from which on it pays to let pointers step.
const MIN_WALK: i128 = 8;

impl Counting<'_> {
    /// How many iterations the loop takes at most, `weight` counting for one, if that is known and
    /// not many.
    pub(super) fn fixed_iterations(&self, own: &Loop, plan: &Plan, weight: i64) -> Option<i64> {
        let start = i128::from(self.start(own, plan)?);
        let (low, high) = self.range(plan.bound)?;
        let (low, high) = (i128::from(low), i128::from(high));
        let (step, most): (i128, i128) =
            (plan.growth.least_change().into(), plan.growth.most_change().into());
        let ahead = if plan.growth.is_up() { high - start } else { start - low };
        // Nothing wraps among small numbers, unless what is unsigned goes below 0.
        let small = [start, low, high].iter().all(|number| number.abs() < 1 << 20);
        let meets = match plan.op {
            CmpOp::Ne => low == high && ahead > 0 && ahead % step == 0 && step == most,
            // The first iteration may come before any test.
            CmpOp::GtU | CmpOp::GeU => {
                let least = if plan.tested_after { most } else { 0 };
                start >= least && low >= most
            }
            CmpOp::LtU | CmpOp::LeU => start >= 0 && low >= 0,
            _ => true,
        };
        // One iteration more for `<=`, and one for a test behind the first iteration.
        let iterations: i128 = (ahead.max(0) / step + 2) * i128::from(weight);
        (meets && small)
            .then_some(iterations as i64)
            .filter(|iterations| *iterations <= MAX_ITERATIONS)
    }

    /// The range of a bound that is a constant, or a register that only constants are assigned to.
    fn range(&self, bound: Operand) -> Option<(i64, i64)> {
        let reg = match bound {
            Operand::Int(number) => return Some((number, number)),
            Operand::Reg(reg) if reg.0 as usize >= self.params => reg,
            _ => return None,
        };
        // It starts as zero.
        let mut range = (0, 0);
        for inst in self.body.blocks.iter().flat_map(|block| &block.insts) {
            match inst {
                Inst::Copy { dst, src: Operand::Int(number), .. } if *dst == reg => {
                    range = (range.0.min(*number), range.1.max(*number));
                }
                inst if inst.result().is_some_and(|(dst, _)| dst == reg) => return None,
                _ => {}
            }
        }
        Some(range)
    }

    /// Whether the variable starts well before the constant that it meets.
    pub(super) fn goes_far(&self, own: &Loop, plan: &Plan) -> bool {
        let (Operand::Int(bound), Some(start)) = (plan.bound, self.start(own, plan)) else {
            return false;
        };
        let (bound, start) = (i128::from(bound), i128::from(start));
        let ahead = if plan.growth.is_up() { bound - start } else { start - bound };
        ahead >= MIN_WALK && plan.is_exact()
    }

    /// The variable where the loop is entered, if that is a constant.
    fn start(&self, own: &Loop, plan: &Plan) -> Option<i64> {
        let mut ways = self.preds[own.head.0 as usize].iter().filter(|pred| !own.contains(**pred));
        let mut block = *ways.next().filter(|_| ways.next().is_none())?;
        for _ in 0..4 {
            let insts = &self.body.blocks[block.0 as usize].insts;
            if let Some(at) = self.last(block, insts.len(), plan.var) {
                return match insts[at] {
                    Inst::Copy { src: Operand::Int(start), .. } => Some(start),
                    _ => None,
                };
            }
            let [only] = self.preds[block.0 as usize][..] else { return None };
            block = only;
        }
        None
    }

    /// Whether the block lies in a fixed loop inside of this one.
    pub(super) fn is_deeper(&self, own: &Loop, block: BlockId) -> bool {
        let inner = self.fixed.iter().filter(|f| own.contains(f.head));
        inner.into_iter().any(|f| f.inside.get(block.0 as usize) == Some(&true))
    }
}
