//! A function whose iterations are being counted.

use crate::ir::{At, BinOp, Block, BlockId, Body, Dominators, Inst, Loop, Operand, Reg, Term, Ty};

/// Steps that count for one more iteration: an iteration may be long, and lies between two looks at
/// the clock as a short one does.
pub(super) const STEPS_OF_ITERATION: i64 = 256;
/// A function of more steps takes time even if it is straight and calls no one.
pub(super) const MAX_STRAIGHT: i64 = 64;
/// Bytes that are copied in the time of a step.
const BYTES_OF_STEP: u64 = 32;
/// Iterations that are counted at once at most, so that the counter cannot wrap.
pub(super) const MAX_AT_ONCE: i64 = 1 << 30;

/// A function whose iterations are being counted.
pub(super) struct Counting<'b> {
    pub(super) body: &'b mut Body,
    /// So many registers are parameters.
    pub(super) params: usize,
    pub(super) fuel: Reg,
    /// Of the graph as it was; what is added lies around loops and at their ends.
    pub(super) preds: Vec<Vec<BlockId>>,
    pub(super) dominators: Dominators,
    /// Loops that count nothing and that nothing counts for yet.
    pub(super) fixed: Vec<Fixed>,
    /// Whether the loop that is looked at lies in another one.
    pub(super) is_inner: bool,
}

/// A loop that counts nothing.
pub(super) struct Fixed {
    pub(super) head: BlockId,
    /// Its blocks.
    pub(super) inside: Vec<bool>,
    /// Iterations that it takes at most, those of loops in it too.
    pub(super) iterations: i64,
}

impl Counting<'_> {
    pub(super) fn all(&mut self, mut loops: Vec<Loop>) {
        for index in 0..loops.len() {
            let (own, around) =
                loops[index..].split_first_mut().map_or((None, &mut [][..]), |(a, b)| (Some(a), b));
            let Some(own) = own else { return };
            let is_inner = around.iter().any(|outer| outer.contains(own.head));
            self.is_inner = is_inner;
            self.one(own);
            for outer in around {
                let inside = outer.contains(own.head);
                outer.inside.resize(self.body.blocks.len(), inside);
            }
        }
    }

    pub(super) fn one(&mut self, own: &Loop) {
        if self.insts(own).any(|inst| *inst == Inst::Spent) && own.blocks().count() == 1 {
            return;
        }
        let blocks = own.blocks().map(|id| &self.body.blocks[id.0 as usize]);
        let inner = self.fixed.iter().filter(|f| own.contains(f.head)).map(|f| f.iterations);
        let weight = (1 + work(blocks) / STEPS_OF_ITERATION + inner.sum::<i64>()).min(MAX_AT_ONCE);
        let counts_inside =
            self.insts(own).any(|inst| inst.result().is_some_and(|(reg, _)| reg == self.fuel));
        let plan = if counts_inside { None } else { self.plan(own) };
        if let Some(iterations) =
            plan.as_ref().and_then(|plan| self.fixed_iterations(own, plan, weight))
        {
            self.fixed.retain(|f| !own.contains(f.head));
            if let Some(plan) = plan.filter(|plan| self.goes_far(own, plan)) {
                self.eliminate_fixed(own, &plan);
            }
            return self.fixed.push(Fixed {
                head: own.head,
                inside: own.inside.clone(),
                iterations,
            });
        }
        // A loop in a loop may take few iterations, each time.
        let is_inner = self.is_inner;
        let paying = plan.as_ref().filter(|plan| !is_inner || plan.is_exact());
        let region = paying.and_then(|plan| self.region(own, plan));
        let region = region.filter(|region| !is_inner || region.is_empty());
        self.fixed.retain(|f| !own.contains(f.head));
        match plan.zip(region) {
            Some((plan, region)) => self.bounded(own, &plan, &region, weight),
            None if weight == 1 && self.counts_in_every_iteration(own) => {}
            None => self.counted(own, weight),
        }
    }

    /// Whether each iteration comes by a place that counts, such as that before a vector loop.
    pub(super) fn counts_in_every_iteration(&self, own: &Loop) -> bool {
        own.blocks().filter(|id| (id.0 as usize) < self.preds.len()).any(|id| {
            let mut insts = self.body.blocks[id.0 as usize].insts.iter();
            insts.any(|inst| matches!(inst, Inst::Tick { .. }))
                && self.latches(own).all(|latch| self.dominators.dominates(id, latch))
        })
    }

    pub(super) fn insts<'s>(&'s self, own: &'s Loop) -> impl Iterator<Item = &'s Inst> {
        own.blocks().flat_map(|id| &self.body.blocks[id.0 as usize].insts)
    }

    pub(super) fn reg(&mut self, ty: Ty) -> Reg {
        self.body.regs.push(ty);
        Reg(self.body.regs.len() as u32 - 1)
    }

    pub(super) fn block(&mut self, insts: Vec<Inst>, term: Term) -> BlockId {
        self.body.blocks.push(Block { insts, term });
        BlockId(self.body.blocks.len() as u32 - 1)
    }

    /// Lets jumps into the loop from without go to `around`.
    pub(super) fn enter_by(&mut self, own: &Loop, around: BlockId) {
        for (index, block) in self.body.blocks.iter_mut().enumerate() {
            if !own.contains(BlockId(index as u32)) {
                block.term.retarget(|to| if to == own.head { around } else { to });
            }
        }
    }

    /// Counts each iteration where it starts.
    pub(super) fn counted(&mut self, own: &Loop, weight: i64) {
        let insts = [take(self.fuel, Operand::Int(weight)), tick(self.fuel)];
        self.body.blocks[own.head.0 as usize].insts.splice(0..0, insts);
    }
}

/// How many steps the blocks are, each taken once.
pub(super) fn work<'b>(blocks: impl Iterator<Item = &'b Block>) -> i64 {
    let steps = |inst: &Inst| match inst {
        Inst::MemCopy { len, .. } | Inst::MemZero { len, .. } => 1 + (len / BYTES_OF_STEP) as i64,
        Inst::Call { .. } => MAX_STRAIGHT,
        _ => 1,
    };
    blocks.flat_map(|block| &block.insts).map(steps).sum()
}

/// `fuel -= by`
pub(super) fn take(fuel: Reg, by: Operand) -> Inst {
    let (a, at) = (Operand::Reg(fuel), At::NOWHERE);
    Inst::Bin { op: BinOp::Sub, ty: Ty::I32, dst: fuel, a, b: by, at }
}

/// A look at the clock, if it is time.
pub(super) fn tick(fuel: Reg) -> Inst {
    Inst::Tick { fuel, kept: Vec::new(), at: At::NOWHERE }
}
