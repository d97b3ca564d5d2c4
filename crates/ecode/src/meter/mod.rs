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
mod counting;
mod ends;
mod fixed;
mod growth;
mod induction;
mod line;

use crate::ir::{
    Block, BlockId, Body, Callee, Dominators, FuncId, Inst, Live, Module, Operand, Reg, Term, Ty,
};
use counting::{Counting, MAX_AT_ONCE, MAX_STRAIGHT, STEPS_OF_ITERATION, take, tick, work};

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
