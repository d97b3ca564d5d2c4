//! Loops of a few blocks as one: both ways of a branch are taken, and what they give is selected.
//!
//! The loop itself stays as it is; the block is what vectors are made from. Only what cannot fail
//! and changes no memory is computed on both ways: a load is there only if the same has just been
//! loaded.

use crate::ir::{At, BinOp, Block, BlockId, Body, CmpOp, Inst, Live, Operand, Reg, Term, Ty};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Loops with more steps than this are left alone.
pub(super) const MAX_STEPS: usize = 64;
/// Blocks of a loop.
const MAX_BLOCKS: usize = 8;

/// A loop as one block.
pub(super) struct Flat {
    pub(super) block: Block,
    /// The block that leads back to its head.
    pub(super) latch: BlockId,
}

/// The loop that starts at `head`, if it can be one block. `live` is found out once, when it is
/// needed.
pub(super) fn flatten(body: &mut Body, head: BlockId, live: &mut Option<Live>) -> Option<Flat> {
    let (latch, ids) = blocks(body, head)?;
    let steps: usize = ids.iter().map(|id| body.blocks[id.0 as usize].insts.len()).sum();
    if steps > MAX_STEPS {
        return None;
    }
    let blocks = ids.into_iter().map(|id| (id, body.blocks[id.0 as usize].clone())).collect();
    let live = live.get_or_insert_with(|| Live::new(body));
    let mut flatten = Flatten { regs: &mut body.regs, live, blocks, latch, head };
    while flatten.blocks.len() > 1 {
        flatten.reduce()?;
    }
    let mut block = flatten.blocks.remove(&head)?;
    select_what_is_added(&mut block.insts);
    Some(Flat { block, latch })
}

/// The block that leads back to `head`, and the loop's blocks: those between, which lead to one
/// another only.
fn blocks(body: &Body, head: BlockId) -> Option<(BlockId, BTreeSet<BlockId>)> {
    let near = body.blocks.iter().enumerate().skip(head.0 as usize + 1).take(MAX_BLOCKS - 1);
    let mut latches = near.filter(|(_, block)| block.term.successors().contains(&head));
    let latch = BlockId(latches.next().filter(|_| latches.next().is_none())?.0 as u32);
    let mut ids = BTreeSet::from([head]);
    let mut work = vec![head];
    while let Some(id) = work.pop() {
        let next = if id == latch { Vec::new() } else { body.successors(id) };
        for next in next {
            if next <= head || next > latch {
                return None;
            }
            if ids.insert(next) {
                work.push(next);
            }
        }
    }
    Some((latch, ids))
}

struct Flatten<'b> {
    regs: &'b mut Vec<Ty>,
    /// Of the blocks as they were.
    live: &'b Live,
    blocks: BTreeMap<BlockId, Block>,
    latch: BlockId,
    head: BlockId,
}

impl Flatten<'_> {
    fn reg(&mut self, ty: Ty) -> Reg {
        self.regs.push(ty);
        Reg(self.regs.len() as u32 - 1)
    }

    /// Takes a block or two into the one before; `None` if that is not possible anywhere.
    fn reduce(&mut self) -> Option<()> {
        let ids: Vec<BlockId> = self.blocks.keys().copied().collect();
        ids.into_iter().rev().find_map(|id| match self.blocks[&id].term {
            _ if id == self.latch => None,
            Term::Jump(next) => self.join(id, next),
            Term::Branch { cond: Operand::Reg(cond), then, other } => {
                let ends = (self.end(id, then), self.end(id, other));
                match ends {
                    (Some(end), _) if end == other => self.merge(id, cond, [Some(then), None], end),
                    (_, Some(end)) if end == then => self.merge(id, cond, [None, Some(other)], end),
                    (Some(a), Some(b)) if a == b => {
                        self.merge(id, cond, [Some(then), Some(other)], a)
                    }
                    _ => None,
                }
            }
            _ => None,
        })
    }

    fn is_only_way(&self, from: BlockId, to: BlockId) -> bool {
        let ways = self.blocks.iter().filter(|(_, block)| block.term.successors().contains(&to));
        to != self.head && ways.map(|(id, _)| *id).eq([from])
    }

    /// Where the block goes, if it comes only after `from` and has one way on.
    fn end(&self, from: BlockId, id: BlockId) -> Option<BlockId> {
        match self.blocks.get(&id)?.term {
            Term::Jump(to) if id != self.latch && self.is_only_way(from, id) => Some(to),
            _ => None,
        }
    }

    fn join(&mut self, id: BlockId, next: BlockId) -> Option<()> {
        if !self.is_only_way(id, next) {
            return None;
        }
        let Block { insts, term } = self.blocks.remove(&next)?;
        let block = self.blocks.get_mut(&id)?;
        block.insts.extend(insts);
        block.term = term;
        if next == self.latch {
            self.latch = id;
        }
        Some(())
    }

    /// Takes both sides of a branch into the block that it ends.
    fn merge(
        &mut self,
        id: BlockId,
        cond: Reg,
        sides: [Option<BlockId>; 2],
        end: BlockId,
    ) -> Option<()> {
        let mut insts = self.blocks[&id].insts.clone();
        let cond = self.truth(cond, &mut insts);
        let mut values = [HashMap::new(), HashMap::new()];
        for (side, values) in sides.iter().zip(&mut values) {
            if let Some(side) = side {
                for inst in self.blocks[side].insts.clone() {
                    self.speculate(inst, values, &mut insts)?;
                }
            }
        }
        let used = &self.live.at_start[end.0 as usize];
        let assigned = values.iter().flat_map(HashMap::keys).copied();
        let assigned: BTreeSet<Reg> = assigned.filter(|reg| used.contains(*reg)).collect();
        let mut copies = Vec::new();
        for reg in assigned {
            let ty = self.regs[reg.0 as usize];
            let [a, b] = values.each_ref().map(|own| own.get(&reg).copied());
            let (a, b) = (a.unwrap_or(Operand::Reg(reg)), b.unwrap_or(Operand::Reg(reg)));
            let dst = self.reg(ty);
            insts.push(Inst::Select { ty, dst, cond, a, b });
            copies.push(Inst::Copy { ty, dst: reg, src: Operand::Reg(dst) });
        }
        insts.extend(copies);
        sides.iter().flatten().for_each(|side| drop(self.blocks.remove(side)));
        self.blocks.insert(id, Block { insts, term: Term::Jump(end) });
        Some(())
    }

    /// What a branch goes by, as what a comparison gives.
    fn truth(&mut self, cond: Reg, insts: &mut Vec<Inst>) -> Operand {
        let last = insts.iter().rfind(|inst| inst.result().is_some_and(|own| own.0 == cond));
        if matches!(last, Some(Inst::Cmp { .. })) {
            return Operand::Reg(cond);
        }
        let (dst, a, b) = (self.reg(Ty::I32), Operand::Reg(cond), Operand::Int(0));
        insts.push(Inst::Cmp { op: CmpOp::Ne, ty: Ty::I32, dst, a, b });
        Operand::Reg(dst)
    }

    /// Computes a step where it may not be wanted. `values` says what the registers are on this
    /// way.
    fn speculate(
        &mut self,
        mut inst: Inst,
        values: &mut HashMap<Reg, Operand>,
        insts: &mut Vec<Inst>,
    ) -> Option<()> {
        inst.operands_mut(&mut |operand| {
            if let Operand::Reg(reg) = operand {
                *operand = values.get(reg).copied().unwrap_or(*operand);
            }
        });
        let (old, _) = inst.result()?;
        let value = match inst {
            Inst::Copy { src, .. } => src,
            _ => match known(&inst, insts) {
                Some(reg) => Operand::Reg(reg),
                None if is_harmless(&inst) => {
                    let new = self.reg(self.regs[old.0 as usize]);
                    inst.set_result(new);
                    insts.push(inst);
                    Operand::Reg(new)
                }
                None => return None,
            },
        };
        values.insert(old, value);
        Some(())
    }
}

/// Whether a step cannot fail and touches nothing but its result.
fn is_harmless(inst: &Inst) -> bool {
    match inst {
        Inst::Bin { op, ty, .. } => {
            let divides = matches!(op, BinOp::DivS | BinOp::DivU | BinOp::RemS | BinOp::RemU);
            !divides && matches!(ty, Ty::I32 | Ty::I64)
        }
        Inst::Cmp { .. } | Inst::Conv { .. } | Inst::Select { .. } => true,
        Inst::PtrAdd { .. } | Inst::PtrSub { .. } => true,
        _ => false,
    }
}

/// The register that holds behind `insts` what `inst` would give.
fn known(inst: &Inst, insts: &[Inst]) -> Option<Reg> {
    let is_load = matches!(inst, Inst::Load { .. });
    let mut operands = Vec::new();
    inst.operands(&mut |operand| operands.push(*operand));
    for before in insts.iter().rev() {
        if is_load && before.result().is_none() {
            return None;
        }
        let Some((reg, _)) = before.result() else { continue };
        if operands.contains(&Operand::Reg(reg)) {
            return None;
        }
        let mut same = inst.clone();
        same.set_result(reg);
        // What was assigned again since is not known any more.
        let kept = insts.iter().filter(|other| other.result().is_some_and(|own| own.0 == reg));
        if same == *before && kept.count() == 1 {
            return Some(reg);
        }
    }
    None
}

/// Sums to which something is added on one way only: where it is not, 0 is.
fn select_what_is_added(insts: &mut [Inst]) {
    for at in 0..insts.len() {
        let Inst::Select { ty: ty @ (Ty::I32 | Ty::I64), dst, cond, a, b } = insts[at] else {
            continue;
        };
        for (new, old, on_then) in [(a, b, true), (b, a, false)] {
            let Some((place, added)) = addition(&insts[..at], new, old, cond) else { continue };
            let Operand::Reg(new) = new else { continue };
            let is_new = |operand: &Operand| usize::from(*operand == Operand::Reg(new));
            let mut uses = 0;
            insts.iter().for_each(|inst| inst.operands(&mut |operand| uses += is_new(operand)));
            if uses == 1 {
                let zero = Operand::Int(0);
                let (a, b) = if on_then { (added, zero) } else { (zero, added) };
                insts[place] = Inst::Select { ty, dst: new, cond, a, b };
                let b = Operand::Reg(new);
                insts[at] = Inst::Bin { op: BinOp::Add, ty, dst, a: old, b, at: At::NOWHERE };
                break;
            }
        }
    }
}

/// Where `new` is computed as the sum of `old` and something else, both `old` and `cond` being then
/// what they are behind `insts`; and what is added.
fn addition(insts: &[Inst], new: Operand, old: Operand, cond: Operand) -> Option<(usize, Operand)> {
    let result = |inst: &Inst| inst.result().map(|(reg, _)| Operand::Reg(reg));
    let place = insts.iter().rposition(|inst| result(inst) == Some(new))?;
    let Inst::Bin { op: BinOp::Add, a, b, .. } = insts[place] else { return None };
    let added = if a == old { b } else { Some(a).filter(|_| b == old)? };
    let changes = |inst: &Inst| result(inst).is_some_and(|own| own == old || own == cond);
    let is_carried = matches!(old, Operand::Reg(_)) && !insts[place..].iter().any(changes);
    is_carried.then_some((place, added))
}
