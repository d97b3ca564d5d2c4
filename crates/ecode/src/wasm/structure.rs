//! Blocks and loops for a graph, after Ramsey, "Beyond Relooper" (ICFP 2022): a block's place follows from the
//! dominator tree. Graphs that cannot be nested so (jumps into loops) are told apart; they run by a dispatcher.

use crate::ir::{BlockId, Body, Term};

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
        let idom = dominators(&preds);
        let mut is_header = vec![false; count];
        let mut is_labelled = vec![false; count];
        let mut is_reducible = true;
        for (index, block) in body.blocks.iter().enumerate() {
            let switch = matches!(block.term, Term::Switch { .. });
            for to in block.term.successors() {
                let target = to.0 as usize;
                if target <= index {
                    is_header[target] = true;
                    is_reducible &= dominates(&idom, target, index);
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
            labelled_children[idom[index]].push(BlockId(index as u32));
        }
        Self { labelled_children, is_header, is_labelled, is_reducible }
    }
}

/// The direct dominator of each block (Cooper, Harvey, Kennedy).
fn dominators(preds: &[Vec<BlockId>]) -> Vec<usize> {
    const UNKNOWN: usize = usize::MAX;
    let mut idom = vec![UNKNOWN; preds.len()];
    idom[0] = 0;
    let mut changed = true;
    while changed {
        changed = false;
        for index in 1..preds.len() {
            let known = preds[index].iter().map(|p| p.0 as usize).filter(|p| idom[*p] != UNKNOWN);
            let new = known.reduce(|a, b| meet(&idom, a, b)).unwrap_or(0);
            if idom[index] != new {
                idom[index] = new;
                changed = true;
            }
        }
    }
    idom
}

fn meet(idom: &[usize], mut a: usize, mut b: usize) -> usize {
    while a != b {
        if a > b {
            a = idom[a];
        } else {
            b = idom[b];
        }
    }
    a
}

fn dominates(idom: &[usize], above: usize, mut below: usize) -> bool {
    while below > above {
        below = idom[below];
    }
    below == above
}
