//! Numbers that change by the same amount in every turn.

use crate::ir::{BinOp, BlockId, Body, Inst, Operand, Reg};
use std::collections::{HashMap, HashSet};

/// A number that changes by `step` from turn to turn (by 0: not at all).
#[derive(Clone, Copy, Debug)]
pub(super) struct Linear {
    pub(super) step: i64,
    pub(super) root: Option<Root>,
}

/// A number as something of the turn's start plus a constant, so that two can be compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Root {
    pub(super) base: Base,
    pub(super) off: i64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Base {
    Reg(Reg),
    /// `base + reg * scale`
    Element {
        base: Operand,
        reg: Reg,
        scale: i64,
    },
}

impl Root {
    pub(super) fn of(reg: Reg) -> Self {
        Self { base: Base::Reg(reg), off: 0 }
    }

    pub(super) fn plus(self, off: i64) -> Self {
        Self { off: self.off.wrapping_add(off), ..self }
    }

    /// The root of `base + index * scale`.
    pub(super) fn sum(
        from: Linear,
        by: Linear,
        base: &Operand,
        index: &Operand,
        scale: i64,
    ) -> Option<Self> {
        if let Operand::Int(index) = index {
            return from.root.map(|root| root.plus(index.wrapping_mul(scale)));
        }
        // A base that does not change is named by itself: it is no register of the loop's.
        let off = match (from.root, base) {
            (Some(Root { base: Base::Reg(reg), off }), Operand::Reg(own)) if *own == reg => off,
            (_, Operand::Slot(..) | Operand::Global(..)) => 0,
            _ => return None,
        };
        match by.root? {
            Root { base: Base::Reg(reg), off: index } if from.step == 0 => Some(Root {
                base: Base::Element { base: *base, reg, scale },
                off: off.wrapping_add(index.wrapping_mul(scale)),
            }),
            _ => None,
        }
    }
}

impl Linear {
    /// `self op other`, `b` being the other's operand.
    pub(super) fn bin(self, op: BinOp, other: Linear, b: &Operand) -> Option<Linear> {
        let changes = self.step != 0 || other.step != 0;
        match (op, b) {
            (BinOp::DivS | BinOp::DivU | BinOp::RemS | BinOp::RemU, _) => None,
            (BinOp::Add, Operand::Int(number)) => {
                let root = self.root.map(|root| root.plus(*number));
                Some(Linear { step: self.step, root })
            }
            (BinOp::Sub, Operand::Int(number)) => {
                let root = self.root.map(|root| root.plus(number.wrapping_neg()));
                Some(Linear { step: self.step, root })
            }
            (BinOp::Add, _) => {
                Some(Linear { step: self.step.checked_add(other.step)?, root: None })
            }
            (BinOp::Sub, _) => {
                Some(Linear { step: self.step.checked_sub(other.step)?, root: None })
            }
            (BinOp::Mul, Operand::Int(by)) => {
                Some(Linear { step: self.step.checked_mul(*by)?, root: None })
            }
            (BinOp::Shl, Operand::Int(by @ 0..=16)) => {
                Some(Linear { step: self.step.checked_mul(1 << by)?, root: None })
            }
            _ if !changes => Some(Linear { step: 0, root: None }),
            _ => None,
        }
    }
}

/// The registers that carry a number from turn to turn: those that change by a constant, and running sums. `None`
/// if there are others.
#[allow(clippy::type_complexity)] // Two lists.
pub(super) fn steps(body: &Body, id: BlockId) -> Option<(Vec<(Reg, i64)>, Vec<Reg>)> {
    let insts = &body.blocks[id.0 as usize].insts;
    // What each register is, as an old register plus a constant.
    let mut now: HashMap<Reg, Option<(Reg, i64)>> = HashMap::new();
    let mut carried: HashSet<Reg> = HashSet::new();
    let mut uses: HashMap<Reg, usize> = HashMap::new();
    for inst in insts {
        inst.operands(&mut |operand| {
            if let Operand::Reg(reg) = operand {
                *uses.entry(*reg).or_default() += 1;
                if !now.contains_key(reg) {
                    carried.insert(*reg);
                }
            }
        });
        let at = |operand: &Operand| match operand {
            Operand::Reg(reg) => now.get(reg).copied().unwrap_or(Some((*reg, 0))),
            _ => None,
        };
        let value = match inst {
            Inst::Copy { src, .. } => at(src),
            Inst::Bin { op: BinOp::Add, a, b: Operand::Int(by), .. } => {
                at(a).map(|(reg, off)| (reg, off.wrapping_add(*by)))
            }
            Inst::Bin { op: BinOp::Sub, a, b: Operand::Int(by), .. } => {
                at(a).map(|(reg, off)| (reg, off.wrapping_sub(*by)))
            }
            Inst::PtrAdd { base, index: Operand::Int(by), scale, .. } => {
                at(base).map(|(reg, off)| (reg, off.wrapping_add(by.wrapping_mul(*scale))))
            }
            _ => None,
        };
        if let Some((reg, _)) = inst.result() {
            now.insert(reg, value);
        }
    }
    let mut inductions = Vec::new();
    let mut sums = Vec::new();
    let mut carried: Vec<Reg> = carried.into_iter().filter(|reg| now.contains_key(reg)).collect();
    carried.sort_unstable();
    for reg in carried {
        match now[&reg] {
            Some((own, step)) if own == reg => inductions.push((reg, step)),
            Some(_) => return None,
            // The sum is used once, and what it becomes is only copied back.
            None if uses[&reg] == 1 && is_sum(insts, reg, &uses) => sums.push(reg),
            None => return None,
        }
    }
    Some((inductions, sums))
}

fn is_sum(insts: &[Inst], reg: Reg, uses: &HashMap<Reg, usize>) -> bool {
    let added = insts.iter().find_map(|inst| match inst {
        Inst::Bin { op: BinOp::Add, dst, a, b, .. }
            if *a == Operand::Reg(reg) || *b == Operand::Reg(reg) =>
        {
            Some(*dst)
        }
        _ => None,
    });
    let assigned =
        |of: Reg| insts.iter().filter(move |inst| inst.result().is_some_and(|r| r.0 == of));
    match added {
        Some(dst) if dst == reg => assigned(reg).count() == 1,
        Some(dst) => {
            let back =
                |inst: &Inst| matches!(inst, Inst::Copy { src, .. } if *src == Operand::Reg(dst));
            uses.get(&dst) == Some(&1)
                && assigned(dst).count() == 1
                && assigned(reg).count() == 1
                && assigned(reg).all(back)
        }
        None => false,
    }
}
