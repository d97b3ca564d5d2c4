//! Fewer instructions for the same result: distances of addresses move into loads and stores,
//! copies and conversions that nothing needs go.

use super::func::MAX_OFFSET;
use ecode::ir::{BinOp, Block, Body, ConvOp, Inst, Live, MemTy, Operand, Reg, Ty};
use std::collections::HashMap;

/// What a register is known to be, as long as the register it comes from does not change.
#[derive(Clone, Copy)]
enum Known {
    Copy(Reg),
    /// An address and a distance.
    Sum(Reg, i64),
    /// The low bits of a register.
    Low(Reg, u8),
}

/// The body in fewer steps.
pub(super) fn simplify(body: &Body) -> Body {
    let mut body = body.clone();
    for block in &mut body.blocks {
        forward(block);
    }
    let live = Live::new(&body);
    for index in 0..body.blocks.len() {
        retarget(&mut body, &live, index);
    }
    let live = Live::new(&body);
    for index in 0..body.blocks.len() {
        drop_dead(&mut body, &live, index);
    }
    body
}

/// Makes operands come from as early as possible.
fn forward(block: &mut Block) {
    let mut known: HashMap<Reg, Known> = HashMap::new();
    for inst in &mut block.insts {
        inst.operands_mut(&mut |operand| through_copies(operand, &known));
        match inst {
            Inst::Load { addr, off, .. } | Inst::Store { addr, off, .. } => {
                if let Operand::Reg(reg) = addr
                    && let Some(Known::Sum(base, by)) = known.get(reg)
                    && (0..MAX_OFFSET).contains(&(*off + by))
                {
                    (*addr, *off) = (Operand::Reg(*base), *off + by);
                }
            }
            Inst::Bin { op, a, b, .. } => {
                let commutes =
                    matches!(op, BinOp::Add | BinOp::Mul | BinOp::And | BinOp::Or | BinOp::Xor);
                if commutes && matches!(a, Operand::Int(_)) {
                    std::mem::swap(a, b);
                }
            }
            Inst::PtrAdd { base: Operand::Reg(base), index: Operand::Int(by), scale, .. } => {
                if let Some(Known::Sum(first, more)) = known.get(base) {
                    (*by, *scale) = (by.wrapping_mul(*scale).wrapping_add(*more), 1);
                    *base = *first;
                }
            }
            _ => {}
        }
        if let Inst::Store { mem: MemTy::U8 | MemTy::I8, val: Operand::Reg(val), .. } = inst
            && let Some(Known::Low(from, 8..)) = known.get(val)
        {
            *val = *from;
        }
        if let Inst::Store { mem: MemTy::U16 | MemTy::I16, val: Operand::Reg(val), .. } = inst
            && let Some(Known::Low(from, 16..)) = known.get(val)
        {
            *val = *from;
        }
        if let Some((dst, _)) = inst.result() {
            known.retain(|reg, known| *reg != dst && known.from() != dst);
            if let Some(fact) = fact(inst)
                && fact.from() != dst
            {
                known.insert(dst, fact);
            }
        }
    }
    block.term.operands_mut(&mut |operand| through_copies(operand, &known));
}

impl Known {
    fn from(self) -> Reg {
        match self {
            Known::Copy(reg) | Known::Sum(reg, _) | Known::Low(reg, _) => reg,
        }
    }
}

fn through_copies(operand: &mut Operand, known: &HashMap<Reg, Known>) {
    if let Operand::Reg(reg) = operand
        && let Some(Known::Copy(from)) = known.get(reg)
    {
        *reg = *from;
    }
}

fn fact(inst: &Inst) -> Option<Known> {
    match inst {
        Inst::Copy { src: Operand::Reg(from), .. } => Some(Known::Copy(*from)),
        Inst::PtrAdd { base: Operand::Reg(base), index: Operand::Int(by), scale, .. } => {
            // Distances are of 32 bits, as addresses are.
            Some(Known::Sum(*base, i64::from(by.wrapping_mul(*scale) as i32)))
        }
        Inst::Conv { op, from: Ty::I32, src: Operand::Reg(from), .. } => match op {
            ConvOp::Sext8 | ConvOp::Zext8 => Some(Known::Low(*from, 8)),
            ConvOp::Sext16 | ConvOp::Zext16 => Some(Known::Low(*from, 16)),
            _ => None,
        },
        _ => None,
    }
}

/// `t = …; v = t` becomes `v = …` where nothing else uses `t`.
fn retarget(body: &mut Body, live: &Live, index: usize) {
    let after: Vec<_> = live.backwards(body, index).map(|(_, _, after)| after).collect();
    let count = after.len();
    let insts = &mut body.blocks[index].insts;
    for step in 1..count {
        let Inst::Copy { ty, dst, src: Operand::Reg(from) } = insts[step] else { continue };
        if after[count - 1 - step].contains(from) {
            continue;
        }
        let before = &mut insts[step - 1];
        if before.result().is_some_and(|(reg, _)| reg == from) {
            before.set_result(dst);
            insts[step] = Inst::Copy { ty, dst, src: Operand::Reg(dst) };
        }
    }
}

/// Removes instructions whose result nothing uses, and copies of registers to themselves.
fn drop_dead(body: &mut Body, live: &Live, index: usize) {
    let mut set = live.at_block_end(body, index);
    let insts = std::mem::take(&mut body.blocks[index].insts);
    let mut kept: Vec<Inst> = Vec::with_capacity(insts.len());
    for inst in insts.into_iter().rev() {
        let is_idle = matches!(inst, Inst::Copy { dst, src: Operand::Reg(src), .. } if dst == src);
        let is_dead = inst.result().is_some_and(|(dst, _)| !set.contains(dst));
        if is_idle || is_dead && !has_effect(&inst) {
            continue;
        }
        set.step(&inst);
        kept.push(inst);
    }
    kept.reverse();
    body.blocks[index].insts = kept;
}

/// Whether more than the result depends on it. Loads may end the call.
fn has_effect(inst: &Inst) -> bool {
    match inst {
        Inst::Call { .. } | Inst::Load { .. } => true,
        Inst::Bin { op, .. } => {
            matches!(op, BinOp::DivS | BinOp::DivU | BinOp::RemS | BinOp::RemU)
        }
        _ => false,
    }
}
