//! Which registers of a function are live where.

use super::{BlockId, Body, Inst, Operand, Reg, Term};

/// A set of registers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegSet(Vec<u64>);

impl RegSet {
    fn new(count: usize) -> Self {
        Self(vec![0; count.div_ceil(64)])
    }

    fn insert(&mut self, reg: Reg) {
        self.0[reg.0 as usize / 64] |= 1 << (reg.0 % 64);
    }

    fn remove(&mut self, reg: Reg) {
        self.0[reg.0 as usize / 64] &= !(1 << (reg.0 % 64));
    }

    /// Whether it is in it.
    #[must_use]
    pub fn contains(&self, reg: Reg) -> bool {
        self.0.get(reg.0 as usize / 64).is_some_and(|word| word & 1 << (reg.0 % 64) != 0)
    }

    fn union(&mut self, other: &RegSet) {
        self.0.iter_mut().zip(&other.0).for_each(|(own, other)| *own |= other);
    }

    /// From what is live after `inst` to what is live before.
    pub fn step(&mut self, inst: &Inst) {
        if let Some((reg, _)) = inst.result() {
            self.remove(reg);
        }
        inst.operands(&mut |operand| note(self, operand));
    }

    /// How many registers are in it.
    pub(crate) fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// The registers in it, in order.
    pub fn iter(&self) -> impl Iterator<Item = Reg> + '_ {
        self.0.iter().enumerate().flat_map(|(index, word)| {
            let bits = (0..64).filter(move |bit| word & 1 << bit != 0);
            bits.map(move |bit| Reg(index as u32 * 64 + bit))
        })
    }
}

/// Blocks times registers.
const MAX_FACTS: usize = 1 << 25;

impl Body {
    /// Whether it would take long and much memory to find out which registers are live where, or
    /// something about each block for each loop.
    #[must_use]
    pub fn is_large(&self) -> bool {
        self.blocks.len().saturating_mul(self.regs.len()) > MAX_FACTS
    }
}

/// Live registers at both ends of each block.
#[derive(Debug)]
pub struct Live {
    /// Before the first instruction, by block.
    pub at_start: Vec<RegSet>,
    /// Behind the last one, by block.
    pub at_end: Vec<RegSet>,
}

impl Live {
    /// Those of a function.
    #[must_use]
    pub fn new(body: &Body) -> Self {
        let empty = RegSet::new(body.regs.len());
        let count = body.blocks.len();
        let (mut at_start, mut at_end) = (vec![empty.clone(); count], vec![empty; count]);
        let mut changed = true;
        while changed {
            changed = false;
            for index in (0..count).rev() {
                let block = &body.blocks[index];
                let mut set = at_end[index].clone();
                for BlockId(next) in block.term.successors() {
                    set.union(&at_start[next as usize]);
                }
                at_end[index].clone_from(&set);
                step_term(&mut set, &block.term);
                block.insts.iter().rev().for_each(|inst| set.step(inst));
                if at_start[index] != set {
                    at_start[index] = set;
                    changed = true;
                }
            }
        }
        Self { at_start, at_end }
    }

    /// What is live behind the block's last instruction.
    #[must_use]
    pub fn at_block_end(&self, body: &Body, block: usize) -> RegSet {
        let mut set = self.at_end[block].clone();
        step_term(&mut set, &body.blocks[block].term);
        set
    }

    /// What is live after each of the block's instructions, the last one first.
    pub fn backwards<'a>(
        &self,
        body: &'a Body,
        block: usize,
    ) -> impl Iterator<Item = (usize, &'a Inst, RegSet)> + use<'a> {
        let mut set = self.at_block_end(body, block);
        body.blocks[block].insts.iter().enumerate().rev().map(move |(index, inst)| {
            let after = set.clone();
            set.step(inst);
            (index, inst, after)
        })
    }
}

fn step_term(set: &mut RegSet, term: &Term) {
    term.operands(&mut |operand| note(set, operand));
}

fn note(set: &mut RegSet, operand: &Operand) {
    if let Operand::Reg(reg) = operand {
        set.insert(*reg);
    }
}
