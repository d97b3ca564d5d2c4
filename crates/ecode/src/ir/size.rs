//! How large a function may be. What Cranelift takes for one grows faster than its size, and with
//! the cube of how deep loops lie in each other: without limits, a text of 200 KB would keep it
//! busy for hours.

use super::{Body, Live};

/// Blocks of one function.
const MAX_BLOCKS: usize = 4_000;
/// Blocks of all functions together.
pub(crate) const MAX_ALL_BLOCKS: usize = 40_000;
/// Values that one function computes. WebAssembly has room for 50,000, of which vectors and
/// counters take some.
const MAX_REGS: usize = 40_000;
/// Values that live where a block begins, of all blocks of all functions together.
pub(crate) const MAX_ALL_LIVE: usize = 2_000_000;
/// Fewer than this, in one function, are not counted.
const FEW: usize = 10_000;
/// Loops around a block. C asks for 127 levels of statements.
const MAX_LOOPS: usize = 128;

impl Body {
    /// What of it is too large to be compiled, if something is. Its blocks are in reverse
    /// postorder.
    pub(crate) fn excess(&self) -> Option<String> {
        let (blocks, regs) = (self.blocks.len(), self.regs.len());
        if blocks > MAX_BLOCKS {
            return Some(format!("it has {blocks} branches and labels, more than {MAX_BLOCKS}"));
        }
        if regs > MAX_REGS {
            return Some(format!("it computes {regs} values, more than {MAX_REGS}"));
        }
        let loops = self.loops_around();
        (loops > MAX_LOOPS)
            .then(|| format!("its loops lie in each other {loops} deep, more than {MAX_LOOPS}"))
    }

    /// How many values live where a block begins, of all blocks together; 0 of a function that is
    /// too large anyway, or so small that there are few.
    pub(crate) fn kept_over_blocks(&self) -> usize {
        let (blocks, regs) = (self.blocks.len(), self.regs.len());
        if blocks > MAX_BLOCKS || regs > MAX_REGS || blocks * regs < FEW {
            return 0;
        }
        Live::new(self).at_start.iter().map(|live| live.len()).sum()
    }

    /// In how many loops the block lies that lies in the most.
    fn loops_around(&self) -> usize {
        let preds = self.predecessors();
        let mut around = vec![0; preds.len()];
        // By block: the last head whose loop it was found in.
        let mut found = vec![usize::MAX; preds.len()];
        for (head, preds_of) in preds.iter().enumerate() {
            let latches = preds_of.iter().filter(|latch| latch.0 as usize >= head);
            let mut work: Vec<usize> = latches.map(|latch| latch.0 as usize).collect();
            // Ways into a loop beside its head lead to blocks before it, where the walk ends.
            while let Some(index) = work.pop() {
                if index >= head && std::mem::replace(&mut found[index], head) != head {
                    around[index] += 1;
                    work.extend(preds[index].iter().map(|pred| pred.0 as usize));
                }
            }
        }
        around.into_iter().max().unwrap_or(0)
    }
}
