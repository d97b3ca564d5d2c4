//! Dominators and loops of a graph.

use super::{BlockId, Body};

/// A natural loop: the blocks from which its head is reached without leaving it.
#[derive(Clone, Debug)]
pub(crate) struct Loop {
    pub(crate) head: BlockId,
    /// By block: whether it belongs to the loop.
    pub(crate) inside: Vec<bool>,
}

impl Loop {
    pub(crate) fn contains(&self, id: BlockId) -> bool {
        self.inside.get(id.0 as usize).copied().unwrap_or(false)
    }

    /// The blocks of the loop.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = BlockId> {
        let inside = self.inside.iter().enumerate().filter(|(_, inside)| **inside);
        inside.map(|(index, _)| BlockId(index as u32))
    }
}

/// Who dominates whom, for a body whose blocks are in reverse postorder.
pub(crate) struct Dominators {
    /// The direct dominator of each block.
    pub(crate) direct: Vec<usize>,
}

impl Dominators {
    /// After Cooper, Harvey, Kennedy, "A Simple, Fast Dominance Algorithm".
    pub(crate) fn new(preds: &[Vec<BlockId>]) -> Self {
        const UNKNOWN: usize = usize::MAX;
        let mut direct = vec![UNKNOWN; preds.len()];
        direct[0] = 0;
        let mut changed = true;
        while changed {
            changed = false;
            for index in 1..preds.len() {
                let known =
                    preds[index].iter().map(|p| p.0 as usize).filter(|p| direct[*p] != UNKNOWN);
                let new = known.reduce(|a, b| meet(&direct, a, b)).unwrap_or(0);
                if direct[index] != new {
                    direct[index] = new;
                    changed = true;
                }
            }
        }
        Self { direct }
    }

    pub(crate) fn dominates(&self, above: BlockId, below: BlockId) -> bool {
        let (above, mut below) = (above.0 as usize, below.0 as usize);
        while below > above {
            below = self.direct[below];
        }
        below == above
    }
}

fn meet(direct: &[usize], mut a: usize, mut b: usize) -> usize {
    while a != b {
        if a > b {
            a = direct[a];
        } else {
            b = direct[b];
        }
    }
    a
}

impl Body {
    /// The loops, each before those that it lies in; `None` if some can be entered by several ways.
    /// The blocks are in reverse postorder.
    pub(crate) fn loops(
        &self,
        preds: &[Vec<BlockId>],
        dominators: &Dominators,
    ) -> Option<Vec<Loop>> {
        let mut loops = Vec::new();
        for (index, preds_of) in preds.iter().enumerate().rev() {
            let head = BlockId(index as u32);
            let mut work: Vec<BlockId> = preds_of.iter().copied().filter(|p| *p >= head).collect();
            if work.is_empty() {
                continue;
            }
            if work.iter().any(|latch| !dominators.dominates(head, *latch)) {
                return None;
            }
            let mut inside = vec![false; self.blocks.len()];
            inside[index] = true;
            while let Some(id) = work.pop() {
                if !std::mem::replace(&mut inside[id.0 as usize], true) {
                    work.extend(&preds[id.0 as usize]);
                }
            }
            loops.push(Loop { head, inside });
        }
        Some(loops)
    }
}
