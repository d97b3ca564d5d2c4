//! Metering: loops spend fuel, and the clock is read once per strip of iterations.
//!
//! A function that takes time keeps its fuel in a register. Whatever can go on for long spends it.
//! [`Inst::Tick`] reads the clock when nothing is left.
//!
//! - A loop that ends when a variable that only grows (or shrinks) meets a bound spends nothing by
//!   itself ([`bounded`]): its bound is lowered to what the fuel allows. Behind the loop, the fuel
//!   is what the variable has left.
//! - A loop of few iterations, bounded by constants, spends nothing either ([`fixed`]): what is
//!   around it pays for it.
//! - Every other loop pays for each iteration.
//!
//! An induction variable that a loop of the first two kinds uses for addresses only is eliminated
//! ([`induction`]).
//!
//! ```text
//!  around: tick; how far may it go?  ◀──────┐
//!  head:   … a bounded loop …      ◀─┐      │
//!          goes on? ─────────────────┘      │
//!          only the counter is at its end? ─┘
//! ```
//!
//! The host's code uses all registers. What is used behind a look at the clock is therefore put
//! away before it, on the way that is hardly ever taken ([`Inst::Tick`]), so that the loop keeps
//! its registers.

mod bounded;
mod ends;
mod fixed;
mod growth;
mod induction;
mod line;

use crate::ir::{
    At, BinOp, Block, BlockId, Body, Callee, Dominators, FuncId, Inst, Live, Loop, Module, Operand,
    Reg, Term, Ty,
};
use fixed::Fixed;

/// Steps that count for one more iteration: an iteration may be long, and lies between two looks at
/// the clock as a short one does.
const STEPS_OF_ITERATION: i64 = 256;
/// A function of more steps takes time even if it is straight and calls no one.
const MAX_STRAIGHT: i64 = 64;
/// Bytes that are copied in the time of a step.
const BYTES_OF_STEP: u64 = 32;
/// Iterations that are counted at once at most, so that the counter cannot wrap.
const MAX_AT_ONCE: i64 = 1 << 30;

impl Module {
    /// The same program, which counts its iterations. Nothing is removed from it afterwards: that
    /// would join what has been taken apart.
    pub(crate) fn with_counters(mut self) -> Module {
        let counts: Vec<bool> =
            self.funcs.iter().map(|f| takes_time(&self, f.body.as_ref())).collect();
        let shares = |callee: &Callee| match callee {
            Callee::Direct(FuncId(id)) => counts[*id as usize],
            Callee::Indirect(..) => true,
        };
        for (func, counts) in self.funcs.iter_mut().zip(&counts) {
            if let (Some(body), true) = (&mut func.body, counts) {
                count(body, self.sigs[func.sig.0 as usize].params.len(), &shares);
            }
        }
        self
    }
}

/// Whether it has loops, calls functions of the module or is long. What is short, straight and
/// calls no one takes no time to speak of.
fn takes_time(module: &Module, body: Option<&Body>) -> bool {
    let Some(body) = body else { return false };
    let back = |(index, block): (usize, &Block)| {
        block.term.successors().iter().any(|to| to.0 as usize <= index)
    };
    let calls = |inst: &Inst| match inst {
        Inst::Call { callee: Callee::Direct(id), .. } => module.funcs[id.0 as usize].body.is_some(),
        Inst::Call { callee: Callee::Indirect(..), .. } => true,
        _ => false,
    };
    work(body.blocks.iter()) > MAX_STRAIGHT
        || body.blocks.iter().enumerate().any(back)
        || body.blocks.iter().flat_map(|block| &block.insts).any(calls)
}

/// How many steps the blocks are, each taken once.
fn work<'b>(blocks: impl Iterator<Item = &'b Block>) -> i64 {
    let steps = |inst: &Inst| match inst {
        Inst::MemCopy { len, .. } | Inst::MemZero { len, .. } => 1 + (len / BYTES_OF_STEP) as i64,
        Inst::Call { .. } => MAX_STRAIGHT,
        _ => 1,
    };
    blocks.flat_map(|block| &block.insts).map(steps).sum()
}

fn count(body: &mut Body, params: usize, shares: &impl Fn(&Callee) -> bool) {
    body.regs.push(Ty::I32);
    let fuel = Reg(body.regs.len() as u32 - 1);
    let calls = straight(body, fuel, shares);
    let mut at_entry = i64::from(calls) + work(body.blocks.iter()) / STEPS_OF_ITERATION;
    enter(body, fuel);
    body.drop_unreached();
    let is_large = body.is_large();
    let preds = body.predecessors();
    let dominators = Dominators::new(&preds);
    let loops = if is_large { None } else { body.loops(&preds, &dominators) };
    match loops {
        Some(loops) => {
            let (fixed, is_inner) = (Vec::new(), false);
            let mut counting = Counting { body, params, fuel, preds, dominators, fixed, is_inner };
            counting.all(loops);
            at_entry += counting.fixed.iter().map(|fixed| fixed.iterations).sum::<i64>();
            body.drop_unreached();
        }
        None => in_place(body, fuel),
    }
    if at_entry > 0 {
        let by = Operand::Int(at_entry.min(MAX_AT_ONCE));
        body.blocks[0].insts.splice(1..1, [take(fuel, by), tick(fuel)]);
    }
    name(body);
    if !is_large {
        keep(body);
    }
}

/// `fuel -= by`
fn take(fuel: Reg, by: Operand) -> Inst {
    let (a, at) = (Operand::Reg(fuel), At::NOWHERE);
    Inst::Bin { op: BinOp::Sub, ty: Ty::I32, dst: fuel, a, b: by, at }
}

/// A look at the clock, if it is time.
fn tick(fuel: Reg) -> Inst {
    Inst::Tick { fuel, kept: Vec::new(), at: At::NOWHERE }
}

/// Tells each look at the clock what it stands before, so that a call that ends there can say in
/// which loop it was.
fn name(body: &mut Body) {
    for block in 0..body.blocks.len() {
        for step in 0..body.blocks[block].insts.len() {
            if let Inst::Tick { .. } = body.blocks[block].insts[step] {
                let found = body.at_from(BlockId(block as u32), step);
                if let Inst::Tick { at, .. } = &mut body.blocks[block].insts[step] {
                    *at = found;
                }
            }
        }
    }
}

/// Tells each look at the clock what is used behind it.
fn keep(body: &mut Body) {
    let live = Live::new(body);
    for index in 0..body.blocks.len() {
        let is_tick = |inst: &Inst| matches!(inst, Inst::Tick { .. });
        if !body.blocks[index].insts.iter().any(is_tick) {
            continue;
        }
        let behind = live.backwards(body, index).filter(|(_, inst, _)| is_tick(inst));
        let behind: Vec<(usize, Vec<Reg>)> =
            behind.map(|(at, _, set)| (at, set.iter().collect())).collect();
        for (at, set) in behind {
            if let Inst::Tick { fuel, kept, .. } = &mut body.blocks[index].insts[at] {
                *kept = set.into_iter().filter(|reg| reg != fuel).collect();
            }
        }
    }
}

/// What lies in blocks: calls that count too, loops that were counted before, returns. Returns
/// whether there are such calls.
fn straight(body: &mut Body, fuel: Reg, shares: &impl Fn(&Callee) -> bool) -> bool {
    let mut calls = false;
    for block in &mut body.blocks {
        let mut insts = Vec::with_capacity(block.insts.len());
        for inst in std::mem::take(&mut block.insts) {
            match inst {
                Inst::Call { ref callee, .. } if shares(callee) => {
                    calls = true;
                    insts.push(Inst::SetFuelLeft { src: Operand::Reg(fuel) });
                    insts.push(inst);
                    insts.push(Inst::FuelLeft { dst: fuel });
                }
                Inst::Spend { fuel: by } => insts.extend([take(fuel, by), tick(fuel)]),
                inst => insts.push(inst),
            }
        }
        if matches!(block.term, Term::Return(_)) {
            insts.push(Inst::SetFuelLeft { src: Operand::Reg(fuel) });
        }
        block.insts = insts;
    }
    calls
}

/// A first block, which takes over the counter.
fn enter(body: &mut Body, fuel: Reg) {
    let old = BlockId(body.blocks.len() as u32);
    for block in &mut body.blocks {
        block.term.retarget(|to| if to == BlockId(0) { old } else { to });
    }
    let insts = vec![Inst::FuelLeft { dst: fuel }];
    let first = std::mem::replace(&mut body.blocks[0], Block { insts, term: Term::Jump(old) });
    body.blocks.push(first);
}

/// For graphs that are too large, or whose loops cannot be told apart: every block that a jump
/// leads back to counts.
fn in_place(body: &mut Body, fuel: Reg) {
    let weight = 1 + work(body.blocks.iter()) / STEPS_OF_ITERATION;
    for (index, preds) in body.predecessors().iter().enumerate() {
        if preds.iter().any(|pred| pred.0 as usize >= index) {
            let by = Operand::Int(weight.min(MAX_AT_ONCE));
            let count = [take(fuel, by), tick(fuel)];
            body.blocks[index].insts.splice(0..0, count);
        }
    }
}

struct Counting<'b> {
    body: &'b mut Body,
    /// So many registers are parameters.
    params: usize,
    fuel: Reg,
    /// Of the graph as it was; what is added lies around loops and at their ends.
    preds: Vec<Vec<BlockId>>,
    dominators: Dominators,
    /// Loops that count nothing and that nothing counts for yet.
    fixed: Vec<Fixed>,
    /// Whether the loop that is looked at lies in another one.
    is_inner: bool,
}

impl Counting<'_> {
    fn all(&mut self, mut loops: Vec<Loop>) {
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

    fn one(&mut self, own: &Loop) {
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
        let pays = |plan: &&bounded::Plan| !is_inner || plan.is_exact();
        let region = plan.as_ref().filter(pays).and_then(|plan| self.region(own, plan));
        let region = region.filter(|region| !is_inner || region.is_empty());
        self.fixed.retain(|f| !own.contains(f.head));
        match plan.zip(region) {
            Some((plan, region)) => self.bounded(own, &plan, &region, weight),
            None if weight == 1 && self.counts_in_every_iteration(own) => {}
            None => self.counted(own, weight),
        }
    }

    /// Whether each iteration comes by a place that counts, such as that before a vector loop.
    fn counts_in_every_iteration(&self, own: &Loop) -> bool {
        own.blocks().filter(|id| (id.0 as usize) < self.preds.len()).any(|id| {
            let mut insts = self.body.blocks[id.0 as usize].insts.iter();
            insts.any(|inst| matches!(inst, Inst::Tick { .. }))
                && self.latches(own).all(|latch| self.dominators.dominates(id, latch))
        })
    }

    fn insts<'s>(&'s self, own: &'s Loop) -> impl Iterator<Item = &'s Inst> {
        own.blocks().flat_map(|id| &self.body.blocks[id.0 as usize].insts)
    }

    fn reg(&mut self, ty: Ty) -> Reg {
        self.body.regs.push(ty);
        Reg(self.body.regs.len() as u32 - 1)
    }

    fn block(&mut self, insts: Vec<Inst>, term: Term) -> BlockId {
        self.body.blocks.push(Block { insts, term });
        BlockId(self.body.blocks.len() as u32 - 1)
    }

    /// Lets jumps into the loop from without go to `around`.
    fn enter_by(&mut self, own: &Loop, around: BlockId) {
        for (index, block) in self.body.blocks.iter_mut().enumerate() {
            if !own.contains(BlockId(index as u32)) {
                block.term.retarget(|to| if to == own.head { around } else { to });
            }
        }
    }

    /// Counts each iteration where it starts.
    fn counted(&mut self, own: &Loop, weight: i64) {
        let insts = [take(self.fuel, Operand::Int(weight)), tick(self.fuel)];
        self.body.blocks[own.head.0 as usize].insts.splice(0..0, insts);
    }
}
