//! Loops that go on while a variable that only grows (or shrinks) has not met a bound.

use super::{
    counting::Counting,
    ends::{Code, Ends},
    growth::Growth,
};
use crate::ir::{BinOp, Block, BlockId, CmpOp, Inst, Loop, Operand, Reg, Term, Ty};
use std::collections::HashMap;

/// Steps and blocks between the test and the loop's head that are repeated outside of the loop.
const MAX_REPEATED: (usize, usize) = (24, 6);
/// Steps that a bound is computed by.
const MAX_DEPTH: u32 = 6;

/// The test that every iteration passes, and that ends the loop.
#[derive(Debug)]
pub(super) struct Plan {
    /// The block that it ends.
    pub(super) test: BlockId,
    /// The comparison in it.
    pub(super) at: usize,
    /// Where it leads in the loop, and where out of it.
    pub(super) stays: BlockId,
    pub(super) leaves: BlockId,
    /// The loop goes on while `var op bound`.
    pub(super) op: CmpOp,
    pub(super) ty: Ty,
    pub(super) var: Reg,
    pub(super) growth: Growth,
    pub(super) bound: Operand,
    /// What computes the bound, where the loop does that in every iteration.
    pub(super) before: Vec<Inst>,
    /// The variable changes before it is tested.
    pub(super) tested_after: bool,
}

impl Plan {
    /// Whether the test ends each iteration of the loop with this head.
    pub(super) fn ends_iterations(&self, head: BlockId) -> bool {
        self.stays == head
    }

    /// Whether the variable meets each number up to where the loop ends.
    pub(super) fn is_exact(&self) -> bool {
        self.growth.most_change() == 1
    }

    /// Whether the loop takes the iteration at the bound as well.
    pub(super) fn takes_bound(&self) -> bool {
        matches!(self.op, CmpOp::LeS | CmpOp::LeU | CmpOp::GeS | CmpOp::GeU)
    }

    /// The comparison that the loop ends by.
    fn inner_op(&self) -> CmpOp {
        match self.op {
            CmpOp::LeS if self.is_exact() => CmpOp::LtS,
            CmpOp::LeU if self.is_exact() => CmpOp::LtU,
            CmpOp::GeS if self.is_exact() => CmpOp::GtS,
            CmpOp::GeU if self.is_exact() => CmpOp::GtU,
            op => op,
        }
    }
}

impl Counting<'_> {
    pub(super) fn plan(&self, own: &Loop) -> Option<Plan> {
        own.blocks().find_map(|test| self.plan_of(own, test))
    }

    fn plan_of(&self, own: &Loop, test: BlockId) -> Option<Plan> {
        let Block { insts, term } = &self.body.blocks[test.0 as usize];
        let Term::Branch { cond: Operand::Reg(cond), then, other } = *term else { return None };
        let (stays, leaves) = match (own.contains(then), own.contains(other)) {
            (true, false) => (then, other),
            (false, true) => (other, then),
            _ => return None,
        };
        let every_iteration = self.latches(own).all(|latch| self.dominators.dominates(test, latch));
        if !every_iteration || self.is_deeper(own, test) {
            return None;
        }
        let at = self.last(test, insts.len(), cond)?;
        let Inst::Cmp { op, ty, a, b, .. } = insts[at] else { return None };
        let op = if stays == then { op } else { op.negated() };
        let sides = [(op, a, b), (op.swapped(), b, a)];
        sides.into_iter().find_map(|(op, value, bound)| {
            let Operand::Reg(var) = value else { return None };
            let growth = self.growth(own, var)?;
            // Behind the test, the variable is what was tested.
            let after = growth.block == test && growth.at > at;
            let before_test = growth.block == test && growth.at < at
                || growth.block != test && self.dominators.dominates(growth.block, test);
            let is_exact = growth.least == growth.most && growth.least.abs() == 1 && before_test;
            let fits = match op {
                CmpOp::LtS | CmpOp::LtU | CmpOp::LeS | CmpOp::LeU => growth.is_up(),
                CmpOp::GtS | CmpOp::GtU | CmpOp::GeS | CmpOp::GeU => !growth.is_up(),
                CmpOp::Ne => is_exact,
                CmpOp::Eq => false,
            };
            if after || !fits || !matches!(ty, Ty::I32 | Ty::I64 | Ty::Ptr) {
                return None;
            }
            let before = self.invariant(own, bound, (test, at), MAX_DEPTH)?;
            let tested_after = before_test;
            #[rustfmt::skip]
            let plan = Plan { test, at, stays, leaves, op, ty, var, growth, bound, before, tested_after };
            Some(plan)
        })
    }

    /// The steps in the loop that compute an operand of step `at`, if they give the same in every
    /// iteration.
    fn invariant(
        &self,
        own: &Loop,
        operand: Operand,
        at: (BlockId, usize),
        depth: u32,
    ) -> Option<Vec<Inst>> {
        let Operand::Reg(reg) = operand else { return Some(Vec::new()) };
        if !self.insts(own).any(|inst| inst.result().is_some_and(|(r, _)| r == reg)) {
            return Some(Vec::new());
        }
        let (block, place) = self.only_assignment(own, reg).filter(|_| depth > 0)?;
        // Assigned before it is used, in every iteration.
        let before =
            if block == at.0 { place < at.1 } else { self.dominators.dominates(block, at.0) };
        let inst = &self.body.blocks[block.0 as usize].insts[place];
        let is_pure = match inst {
            Inst::Bin { op, .. } => {
                !matches!(op, BinOp::DivS | BinOp::DivU | BinOp::RemS | BinOp::RemU)
            }
            Inst::Copy { .. } | Inst::Conv { .. } => true,
            Inst::PtrAdd { .. } | Inst::PtrSub { .. } => true,
            _ => false,
        };
        let mut steps = Vec::new();
        let mut known = before && is_pure;
        inst.operands(
            &mut |operand| match self.invariant(own, *operand, (block, place), depth - 1) {
                Some(own) => steps.extend(own),
                None => known = false,
            },
        );
        steps.push(inst.clone());
        known.then_some(steps)
    }

    /// The blocks from the test to the loop's head, which go on after a look at the clock; none if
    /// that is the head. `None` if they are too many to be repeated.
    pub(super) fn region(&self, own: &Loop, plan: &Plan) -> Option<Vec<BlockId>> {
        let mut region = Vec::new();
        let mut work = vec![plan.stays];
        let mut steps = 0;
        while let Some(id) = work.pop() {
            if id == own.head || !own.contains(id) || region.contains(&id) {
                continue;
            }
            let block = &self.body.blocks[id.0 as usize];
            steps += block.insts.len();
            region.push(id);
            if steps > MAX_REPEATED.0 || region.len() > MAX_REPEATED.1 || self.is_deeper(own, id) {
                return None;
            }
            work.extend(block.term.successors());
        }
        Some(region)
    }

    /// Lets the loop end where the counter would.
    pub(super) fn bounded(&mut self, own: &Loop, plan: &Plan, region: &[BlockId], weight: i64) {
        // In a loop in a loop, what the pointers need first may cost more than they save.
        let eliminated = self.elimination(own, plan).filter(|_| !self.is_inner);
        let mut code = Code::new(self, plan, weight);
        let Ends { bound, last, left, behind } = code.ends();
        let (mut before, on_leaving) = (std::mem::take(&mut code.insts), code.leaving(&left));
        let (inner, outer) = (self.reg(Ty::I32), self.reg(Ty::I32));
        let (op, ty, a) = (plan.op, plan.ty, Operand::Reg(plan.var));
        let mut goes_on = Inst::Cmp { op: plan.inner_op(), ty, dst: inner, a, b: last };
        if let Some(eliminated) = eliminated {
            let (start, test) = self.go(own, plan, &eliminated, last);
            before.extend(start);
            goes_on = test(inner);
        }
        let around = BlockId(self.body.blocks.len() as u32);
        self.enter_by(own, around);
        self.block(before, Term::Jump(own.head));
        self.leave_by(own, plan.test, &on_leaving);
        let resumes = self.repeat(own, region, around);
        let resumes = resumes.get(&plan.stays).copied().unwrap_or(around);
        // The test: by `last` in the loop, by the bound behind it.
        let mut insts = if behind == a { on_leaving } else { Vec::new() };
        if behind != a && !plan.takes_bound() {
            // It is that already. So the loop need not keep what it was before the last iteration.
            insts.push(Inst::Copy { ty, dst: plan.var, src: last });
        }
        insts.push(Inst::Cmp { op, ty, dst: outer, a: behind, b: bound });
        let cond = Operand::Reg(outer);
        let behind = self.block(insts, Term::Branch { cond, then: resumes, other: plan.leaves });
        let test = &mut self.body.blocks[plan.test.0 as usize];
        test.insts.push(goes_on);
        let cond = Operand::Reg(inner);
        test.term = Term::Branch { cond, then: plan.stays, other: behind };
    }

    /// Brings the counter up to date on all ways out of the loop but that of the test.
    fn leave_by(&mut self, own: &Loop, test: BlockId, settle: &[Inst]) {
        for id in own.blocks().filter(|id| *id != test) {
            let ways = self.body.blocks[id.0 as usize].term.successors();
            let mut out: Vec<BlockId> = ways.into_iter().filter(|to| !own.contains(*to)).collect();
            out.sort_unstable();
            out.dedup();
            for to in out {
                let way = self.block(settle.to_vec(), Term::Jump(to));
                let term = &mut self.body.blocks[id.0 as usize].term;
                term.retarget(|old| if old == to { way } else { old });
            }
        }
    }

    /// Copies of the blocks, which lead to `around` instead of to the loop's head.
    fn repeat(
        &mut self,
        own: &Loop,
        region: &[BlockId],
        around: BlockId,
    ) -> HashMap<BlockId, BlockId> {
        let first = self.body.blocks.len() as u32;
        let places = region.iter().zip(first..).map(|(old, new)| (*old, BlockId(new)));
        let places: HashMap<BlockId, BlockId> = places.collect();
        for id in region {
            let mut copy = self.body.blocks[id.0 as usize].clone();
            copy.term.retarget(|to| match places.get(&to) {
                Some(place) => *place,
                None if to == own.head => around,
                None => to,
            });
            self.body.blocks.push(copy);
        }
        places
    }
}
