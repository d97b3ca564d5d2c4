//! Throwing away what no path reaches.

use super::{Block, BlockId, Body, Callee, FuncId, Inst, Module, Operand, Term};

impl Body {
    /// Removes blocks that nothing reaches and jumps to blocks that only jump on; numbers the rest
    /// in an order where, loops apart, each comes after those that lead to it.
    pub(crate) fn prune(&mut self) {
        self.fold_branches();
        self.skip_empty();
        self.drop_unreached();
        self.join_chains();
    }

    /// Branches whose condition is known, or whose ways are one, are jumps.
    fn fold_branches(&mut self) {
        for block in &mut self.blocks {
            match block.term {
                Term::Branch { cond: Operand::Int(known), then, other } => {
                    block.term = Term::Jump(if known != 0 { then } else { other });
                }
                Term::Branch { then, other, .. } if then == other => block.term = Term::Jump(then),
                _ => {}
            }
        }
    }

    fn skip_empty(&mut self) {
        let mut ends: Vec<Option<BlockId>> = vec![None; self.blocks.len()];
        for start in 0..self.blocks.len() {
            let (mut id, mut way) = (BlockId(start as u32), Vec::new());
            while let Block { insts, term: Term::Jump(to) } = &self.blocks[id.0 as usize]
                && insts.is_empty()
                && ends[id.0 as usize].is_none()
            {
                // Until the end is known, a block is its own: so a cycle of empty blocks has one.
                ends[id.0 as usize] = Some(id);
                way.push(id);
                id = *to;
            }
            let end = *ends[id.0 as usize].get_or_insert(id);
            way.iter().for_each(|id| ends[id.0 as usize] = Some(end));
        }
        for block in &mut self.blocks {
            block.term.retarget(|to| ends[to.0 as usize].unwrap_or(to));
        }
    }

    /// The blocks that can be reached, each before its successors except along back edges.
    pub(crate) fn reverse_postorder(&self) -> Vec<BlockId> {
        let mut seen = vec![false; self.blocks.len()];
        let mut order = Vec::with_capacity(self.blocks.len());
        let mut stack = vec![(BlockId(0), self.successors(BlockId(0)))];
        seen[0] = true;
        while let Some((id, rest)) = stack.last_mut() {
            match rest.pop() {
                Some(next) if !seen[next.0 as usize] => {
                    seen[next.0 as usize] = true;
                    let after = self.successors(next);
                    stack.push((next, after));
                }
                Some(_) => {}
                None => {
                    order.push(*id);
                    stack.pop();
                }
            }
        }
        order.reverse();
        order
    }

    pub(crate) fn successors(&self, id: BlockId) -> Vec<BlockId> {
        self.blocks[id.0 as usize].term.successors()
    }

    /// For each block, those that lead to it.
    pub(crate) fn predecessors(&self) -> Vec<Vec<BlockId>> {
        let mut preds = vec![Vec::new(); self.blocks.len()];
        for (index, block) in self.blocks.iter().enumerate() {
            for next in block.term.successors() {
                let list: &mut Vec<BlockId> = &mut preds[next.0 as usize];
                if list.last() != Some(&BlockId(index as u32)) {
                    list.push(BlockId(index as u32));
                }
            }
        }
        preds
    }

    /// Joins a block to the one before it when that leads nowhere else and nothing else leads
    /// there.
    fn join_chains(&mut self) {
        let preds = self.predecessors();
        let mut joined = false;
        for index in (0..self.blocks.len()).rev() {
            let Term::Jump(to) = self.blocks[index].term else { continue };
            if to.0 as usize <= index || preds[to.0 as usize].len() != 1 {
                continue;
            }
            let nothing = Block { insts: Vec::new(), term: Term::Return(None) };
            let next = std::mem::replace(&mut self.blocks[to.0 as usize], nothing);
            self.blocks[index].insts.extend(next.insts);
            self.blocks[index].term = next.term;
            joined = true;
        }
        if joined {
            self.drop_unreached();
        }
    }

    /// Removes blocks that nothing reaches, and puts the rest in reverse postorder.
    pub(crate) fn drop_unreached(&mut self) {
        let order = self.reverse_postorder();
        let mut place = vec![BlockId(0); self.blocks.len()];
        for (index, id) in order.iter().enumerate() {
            place[id.0 as usize] = BlockId(index as u32);
        }
        let old = std::mem::take(&mut self.blocks);
        let mut old: Vec<Option<Block>> = old.into_iter().map(Some).collect();
        for id in order {
            if let Some(mut block) = old[id.0 as usize].take() {
                block.term.retarget(|to| place[to.0 as usize]);
                self.blocks.push(block);
            }
        }
    }
}

impl Module {
    /// Removes the functions that `keep` denies; nothing may use them.
    pub(crate) fn retain_funcs(&mut self, keep: &[bool]) {
        let mut place = Vec::with_capacity(keep.len());
        let mut next = 0;
        for keep in keep {
            place.push(FuncId(next));
            next += u32::from(*keep);
        }
        let mut index = 0;
        self.funcs.retain(|_| {
            index += 1;
            keep[index - 1]
        });
        let renumber = |operand: &mut Operand| {
            if let Operand::Func(id) = operand {
                *id = place[id.0 as usize];
            }
        };
        self.globals.iter_mut().flat_map(|g| g.relocs.values_mut()).for_each(renumber);
        for block in
            self.funcs.iter_mut().filter_map(|f| f.body.as_mut()).flat_map(|b| &mut b.blocks)
        {
            for inst in &mut block.insts {
                if let Inst::Call { callee: Callee::Direct(id), .. } = inst {
                    *id = place[id.0 as usize];
                }
                inst.operands_mut(&mut |operand| renumber(operand));
            }
            block.term.operands_mut(&mut |operand| renumber(operand));
        }
    }
}
