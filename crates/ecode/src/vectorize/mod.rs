//! Loops over arrays become loops over vectors, once on the intermediate form, so that targets stay comparable.
//!
//! A loop of one block, counted by a comparison of a variable that changes by a constant with something that does
//! not change, becomes
//!
//! ```text
//!  outer:  how many whole vectors are left, but for the last turn?  none ─▶ scalar
//!          do stores overlap what they must not, does an index wrap? yes ──▶ scalar
//!  spend:  their turns are counted at once (the deadline is looked at per strip, not per turn)
//!  vector: as many turns as a vector has lanes, at once              ─┐ up to STRIP times
//!          ◀──────────────────────────────────────────────────────────┘
//!  sums:   lanes are added up; back to outer
//!  scalar: the loop as it was, for what is left: at least one turn
//! ```
//!
//! The scalar loop always runs last, so whatever is used behind the loop has the value that it always had. Vector
//! turns read and write the bytes that the scalar ones would, no others. Integers wrap in lanes as they do in
//! registers; floats are never reassociated.

mod analyse;
mod emit;
mod fixed;
mod lanes;
mod ranges;
mod row;
mod scalar;

use crate::ir::{Block, BlockId, Body, Module};

/// Loops with more steps than this are left alone.
const MAX_STEPS: usize = 64;
/// Vectors between two looks of the deadline's counter.
const STRIP: i64 = 512;

impl Module {
    /// The same program, its plain loops also as vector loops. [`crate::wasm::emit`] and [`crate::NativeCode`] do
    /// this by themselves.
    #[must_use]
    pub fn with_vectors(&self) -> Module {
        let mut module = self.clone();
        for body in module.funcs.iter_mut().filter_map(|func| func.body.as_mut()) {
            if vectorize(body) {
                body.prune();
            }
            body.narrow_stores();
        }
        module
    }
}

/// Whether anything changed.
fn vectorize(body: &mut Body) -> bool {
    let mut changed = false;
    if body.is_large() {
        return changed;
    }
    for index in 0..body.blocks.len() {
        let id = BlockId(index as u32);
        let Block { insts, term } = &body.blocks[index];
        if insts.len() > MAX_STEPS || !term.successors().contains(&id) {
            continue;
        }
        if let Some(plan) = analyse::plan(body, id).or_else(|| row::plan(body, id)) {
            emit::emit(body, id, &plan);
            changed = true;
        }
    }
    changed
}
