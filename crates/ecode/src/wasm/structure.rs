//! Blocks and loops for a graph, after Ramsey, "Beyond Relooper" (ICFP 2022): a block's place
//! follows from the dominator tree. Graphs that cannot be nested so (jumps into loops) are told
//! apart; they run by a dispatcher.

use crate::ir::{BlockId, Body, Dominators, Term};

/// Dominators and kinds of the blocks of a body whose blocks are in reverse postorder.
pub(super) struct Shape {
    /// The blocks that each block dominates directly, and that are labelled, highest number first.
    pub(super) labelled_children: Vec<Vec<BlockId>>,
    pub(super) is_header: Vec<bool>,
    /// Reached from several places, or from a `switch`: it needs a label.
    pub(super) is_labelled: Vec<bool>,
    pub(super) is_reducible: bool,
}

impl Shape {
    pub(super) fn new(body: &Body) -> Self {
        let count = body.blocks.len();
        let preds = body.predecessors();
        let dominators = Dominators::new(&preds);
        let mut is_header = vec![false; count];
        let mut is_labelled = vec![false; count];
        let mut is_reducible = true;
        for (index, block) in body.blocks.iter().enumerate() {
            let switch = matches!(block.term, Term::Switch { .. });
            for to in block.term.successors() {
                let target = to.0 as usize;
                if target <= index {
                    is_header[target] = true;
                    is_reducible &= dominators.dominates(to, BlockId(index as u32));
                } else if switch {
                    is_labelled[target] = true;
                }
            }
        }
        for (index, preds) in preds.iter().enumerate() {
            let forward = preds.iter().filter(|pred| (pred.0 as usize) < index).count();
            is_labelled[index] |= forward > 1;
        }
        let mut labelled_children = vec![Vec::new(); count];
        for index in (1..count).rev().filter(|index| is_labelled[*index]) {
            labelled_children[dominators.direct[index]].push(BlockId(index as u32));
        }
        Self { labelled_children, is_header, is_labelled, is_reducible }
    }
}
