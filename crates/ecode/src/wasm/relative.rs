//! Elements of arrays whose place is known: the array's address goes into the loads and stores,
//! only the distance in it is computed. A distance that leads out of the array downwards does not
//! wrap; such a call may end there.

use super::unit::Unit;
use crate::ir::{Body, Inst, Operand, Reg, VecInst};

/// By register: if it holds a distance instead of an address, what it is the distance from.
pub(super) fn bases(
    unit: &Unit<'_>,
    body: &Body,
    params: usize,
    slots: &[u64],
) -> Vec<Option<i64>> {
    let mut bases = vec![None; body.regs.len()];
    let mut assigned = vec![0_u32; body.regs.len()];
    assigned[..params].fill(1);
    let insts = || body.blocks.iter().flat_map(|block| &block.insts);
    for inst in insts() {
        let Some((dst, _)) = inst.result() else { continue };
        assigned[dst.0 as usize] += 1;
        if let Inst::PtrAdd { base, .. } = inst {
            bases[dst.0 as usize] = match base {
                Operand::Global(global, _) => Some(unit.layout.globals[global.0 as usize].into()),
                Operand::Slot(slot, _) => Some(slots[slot.0 as usize] as i64),
                _ => None,
            };
        }
    }
    let mut unfit = |operand: &Operand| {
        if let Operand::Reg(reg) = operand {
            bases[reg.0 as usize] = None;
        }
    };
    for inst in insts() {
        match inst {
            Inst::Load { .. } | Inst::Vec(VecInst::Load { .. } | VecInst::LoadWiden { .. }) => {}
            Inst::Store { val, .. } | Inst::Vec(VecInst::Store { val, .. }) => unfit(val),
            other => other.operands(&mut unfit),
        }
    }
    body.blocks.iter().for_each(|block| block.term.operands(&mut unfit));
    for (base, _) in bases.iter_mut().zip(&assigned).filter(|(_, count)| **count != 1) {
        *base = None;
    }
    bases
}

/// The part of the base that is computed: what the program adds to the array's address, and where
/// the frame lies.
pub(super) fn rest(base: &Operand) -> (bool, i64) {
    match base {
        Operand::Slot(_, off) => (true, *off),
        Operand::Global(_, off) => (false, *off),
        _ => (false, 0),
    }
}

/// Whether `reg` is one of `bases`.
pub(super) fn of(bases: &[Option<i64>], reg: Reg) -> Option<i64> {
    bases.get(reg.0 as usize).copied().flatten()
}
