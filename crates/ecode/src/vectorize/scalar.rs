//! Numbers that change by the same amount in every iteration.

use crate::ir::{BinOp, Inst, Operand, Reg, Ty};
use std::collections::{HashMap, HashSet};

/// A number that changes by `step` from iteration to iteration (by 0: not at all).
#[derive(Clone, Copy, Debug)]
pub(super) struct Linear {
    pub(super) step: i64,
    pub(super) root: Option<Root>,
}

/// A number as `base + scale * var + off`, the registers as they are at the iteration's start, so
/// that two can be compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Root {
    /// Something that does not change: a pointer, mostly.
    base: Option<Operand>,
    var: Option<(Reg, i64)>,
    pub(super) off: i64,
}

impl Root {
    pub(super) fn of(reg: Reg) -> Self {
        Self { base: None, var: Some((reg, 1)), off: 0 }
    }

    /// A constant or the address of something.
    pub(super) fn constant(operand: &Operand) -> Option<Self> {
        let (base, off) = match *operand {
            Operand::Int(number) => (None, number),
            Operand::Slot(slot, off) => (Some(Operand::Slot(slot, 0)), off),
            Operand::Global(global, off) => (Some(Operand::Global(global, 0)), off),
            _ => return None,
        };
        Some(Self { base, var: None, off })
    }

    fn as_number(self) -> Option<i64> {
        (self.base.is_none() && self.var.is_none()).then_some(self.off)
    }

    /// The register that this is, but for a constant.
    pub(super) fn as_register(self) -> Option<Reg> {
        match (self.base, self.var) {
            (None, Some((reg, 1))) => Some(reg),
            _ => None,
        }
    }

    pub(super) fn plus(self, off: i64) -> Self {
        Self { off: self.off.wrapping_add(off), ..self }
    }

    pub(super) fn times(self, by: i64) -> Option<Self> {
        let var = match self.var {
            Some((reg, scale)) => Some((reg, scale.checked_mul(by)?)),
            None => None,
        };
        let is_whole = self.base.is_none() || by == 1;
        is_whole.then_some(Self { base: self.base, var, off: self.off.wrapping_mul(by) })
    }

    /// Whether both are the same but for a constant.
    pub(super) fn is_beside(self, other: Self) -> bool {
        self.base == other.base && self.var == other.var
    }
}

/// The sum of two numbers.
pub(super) fn sum(a: Linear, b: Linear) -> Option<Root> {
    let (a, b) = (fixed(a)?, fixed(b)?);
    let base = match (a.base, b.base) {
        (Some(_), Some(_)) => return None,
        (base, other) => base.or(other),
    };
    let (var, base) = match (a.var, b.var, base) {
        (var, None, base) | (None, var, base) => (var, base),
        _ => return None,
    };
    Some(Root { base, var, off: a.off.wrapping_add(b.off) })
}

/// A register that does not change, as the base of what is added to it.
fn fixed(number: Linear) -> Option<Root> {
    let root = number.root?;
    Some(match (number.step, root) {
        (0, Root { base: None, var: Some((reg, 1)), off }) => {
            Root { base: Some(Operand::Reg(reg)), var: None, off }
        }
        _ => root,
    })
}

impl Linear {
    /// `self op other` of integers of type `ty`.
    pub(super) fn bin(self, op: BinOp, ty: Ty, other: Linear) -> Option<Linear> {
        let linear = self.unwrapped(op, other)?;
        // In 32 bits, a step is what is left of it there.
        let step = if ty == Ty::I32 { i64::from(linear.step as i32) } else { linear.step };
        Some(Linear { step, ..linear })
    }

    fn unwrapped(self, op: BinOp, other: Linear) -> Option<Linear> {
        let number = |of: Linear| of.root.and_then(Root::as_number);
        let scaled = |of: Linear, by: i64| {
            let root = of.root.and_then(|root| root.times(by));
            Some(Linear { step: of.step.checked_mul(by)?, root })
        };
        match (op, number(self), number(other)) {
            (BinOp::DivS | BinOp::DivU | BinOp::RemS | BinOp::RemU, ..) => None,
            (BinOp::Add, ..) => {
                let step = self.step.checked_add(other.step)?;
                Some(Linear { step, root: sum(self, other) })
            }
            (BinOp::Sub, ..) => {
                let step = self.step.checked_sub(other.step)?;
                let negative = other.root.and_then(|root| root.times(-1));
                Some(Linear { step, root: sum(self, Linear { root: negative, ..other }) })
            }
            (BinOp::Mul, _, Some(by)) => scaled(self, by),
            (BinOp::Mul, Some(by), _) => scaled(other, by),
            (BinOp::Shl, _, Some(by @ 0..=16)) => scaled(self, 1 << by),
            _ if self.step == 0 && other.step == 0 => Some(Linear { step: 0, root: None }),
            _ => None,
        }
    }
}

/// Registers that carry a number from iteration to iteration.
pub(super) struct Carried {
    /// In order: each, and what an iteration makes of it, where that is an old register plus a
    /// constant.
    pub(super) regs: Vec<(Reg, Option<(Reg, i64)>)>,
    /// How often steps use each register.
    pub(super) uses: HashMap<Reg, usize>,
}

/// The registers that the steps use before they assign them.
pub(super) fn carried(insts: &[Inst]) -> Carried {
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
    let regs = carried.into_iter().filter_map(|reg| Some((reg, *now.get(&reg)?)));
    let mut regs: Vec<_> = regs.collect();
    regs.sort_unstable();
    Carried { regs, uses }
}

/// The registers that change by a constant, and running sums. `None` if there are others.
#[allow(clippy::type_complexity)] // Two lists.
pub(super) fn steps(insts: &[Inst]) -> Option<(Vec<(Reg, i64)>, Vec<Reg>)> {
    let Carried { regs, uses } = carried(insts);
    let mut inductions = Vec::new();
    let mut sums = Vec::new();
    for (reg, after) in regs {
        match after {
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
