//! Loops over arrays become loops over vectors, once on the intermediate form, so that targets stay
//! comparable.
//!
//! A loop of one block, counted by a comparison of a variable that changes by a constant with
//! something that does not change, becomes
//!
//! ```text
//!  outer:  how many whole vectors are left, but for the last iteration?  none ─▶ scalar
//!          do stores overlap what they must not, does an index wrap? yes ──▶ scalar
//!  spend:  their iterations are paid at once (the clock is read per strip, not per iteration)
//!  vector: as many iterations as a vector has lanes, at once              ─┐ up to STRIP times
//!          ◀──────────────────────────────────────────────────────────┘
//!  sums:   lanes are added up; back to outer
//!  scalar: the loop as it was, for what is left: at least one iteration
//! ```
//!
//! The scalar loop always runs last, so whatever is used behind the loop has the value that it
//! always had. Vector iterations read and write the bytes that the scalar ones would, no others.
//! Integers wrap in lanes as they do in registers; floats are never reassociated.

mod analyse;
mod emit;
mod fixed;
mod flatten;
mod lanes;
mod plan;
mod ranges;
mod scalar;
mod unroll;

use crate::ir::{Block, BlockId, Body, Live, Module};
use flatten::{Flat, MAX_STEPS};

/// Steps of unrolled iterations in one function, and in all: code takes time to be made.
const MAX_IN_FUNCTION: usize = 1_000;
const MAX_UNROLLEDS: usize = 10_000;

impl Module {
    /// The same program as targets with vectors run it: small functions written out, plain loops
    /// also as vector loops or with loops unrolled. [`crate::wasm::emit`] and native code do this
    /// by themselves.
    #[must_use]
    pub fn with_vectors(&self) -> Module {
        self.transformed(true)
    }

    /// The same without vectors, as the kernel runs it.
    #[must_use]
    pub fn with_unrolled_loops(&self) -> Module {
        self.transformed(false)
    }

    fn transformed(&self, vectors: bool) -> Module {
        let mut module = self.clone();
        module.inline();
        let mut room = MAX_UNROLLEDS;
        for func in &mut module.funcs {
            let Some(body) = &mut func.body else { continue };
            body.narrow_stores();
            if transform(body, vectors, &mut room) {
                body.prune();
            }
        }
        module
    }
}

/// Whether anything changed. There is `room` for so many steps of unrolled iterations.
fn transform(body: &mut Body, vectors: bool, room: &mut usize) -> bool {
    if body.is_large() {
        return false;
    }
    let mut own_room = MAX_IN_FUNCTION.min(*room);
    let before = own_room;
    let (mut live, count) = (None, body.blocks.len());
    let changes = (0..count).filter(|index| {
        // Those before have made it as large as it may be.
        if body.is_large() {
            return false;
        }
        let id = BlockId(*index as u32);
        if body.blocks[*index].term.successors().contains(&id) {
            let behind = &body.blocks[*index + 1..count];
            let back = |block: &Block| block.term.successors().iter().any(|to| *to < id);
            let is_inner = behind.iter().any(back);
            return of_one_block(body, id, vectors, is_inner, &mut own_room);
        }
        vectors && of_some_blocks(body, id, &mut live)
    });
    let changed = changes.count() > 0;
    *room -= before - own_room;
    changed
}

fn of_one_block(
    body: &mut Body,
    id: BlockId,
    vectors: bool,
    is_inner: bool,
    room: &mut usize,
) -> bool {
    let block = &body.blocks[id.0 as usize];
    if block.insts.len() > MAX_STEPS {
        return false;
    }
    let vector = if vectors { analyse::plan(block, id) } else { None };
    let plan = vector.or_else(|| {
        let plan = if *room > 0 { unroll::plan(body, id, is_inner) } else { None }?;
        *room = room.saturating_sub(block.insts.len() * plan.iterations() as usize);
        Some(plan)
    });
    let Some(plan) = plan else { return false };
    let insts = block.insts.clone();
    emit::emit(body, id, id, &insts, &plan);
    true
}

/// A loop in which some steps are taken under conditions.
fn of_some_blocks(body: &mut Body, head: BlockId, live: &mut Option<Live>) -> bool {
    let regs = body.regs.len();
    let flat = flatten::flatten(body, head, live);
    let flat = flat.filter(|flat| flat.block.insts.len() <= MAX_STEPS);
    let plan = flat.and_then(|flat| Some((analyse::plan(&flat.block, head)?, flat)));
    let Some((plan, Flat { block, latch })) = plan else {
        body.regs.truncate(regs);
        return false;
    };
    emit::emit(body, head, latch, &block.insts, &plan);
    true
}
