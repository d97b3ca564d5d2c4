//! What instructions use and assign.

use super::{BlockId, Callee, Inst, Operand, Reg, Term, Ty};

/// Passes every operand of `$inst` to `$note`. `$iter` and `$vector` are the methods to see or to
/// change them; `$tick` says what is done about the register that a look at the clock works on.
macro_rules! each_operand {
    ($inst:expr, $note:ident, $iter:ident, $vector:ident, $tick:expr) => {
        match $inst {
            Inst::Copy { src, .. } | Inst::Conv { src, .. } => $note(src),
            Inst::Bin { a, b, .. } | Inst::Cmp { a, b, .. } | Inst::PtrSub { a, b, .. } => {
                $note(a);
                $note(b);
            }
            Inst::Neg { a, .. } => $note(a),
            Inst::PtrAdd { base, index, .. } => {
                $note(base);
                $note(index);
            }
            Inst::Load { addr, .. } => $note(addr),
            Inst::Store { addr, val, .. } => {
                $note(addr);
                $note(val);
            }
            Inst::MemCopy { dst, src, .. } => {
                $note(dst);
                $note(src);
            }
            Inst::MemZero { dst, .. } => $note(dst),
            Inst::Call { callee, args, .. } => {
                if let Callee::Indirect(target, _) = callee {
                    $note(target);
                }
                args.$iter().for_each($note);
            }
            Inst::Select { cond, a, b, .. } => {
                $note(cond);
                $note(a);
                $note(b);
            }
            Inst::Vec(inst) => inst.$vector($note),
            Inst::Spend { fuel: src } | Inst::SetFuelLeft { src } => $note(src),
            Inst::Tick { fuel, .. } => $tick(fuel),
            Inst::Spent | Inst::FuelLeft { .. } => {}
        }
    };
}

impl Inst {
    /// Shows `note` every operand.
    pub fn operands(&self, note: &mut impl FnMut(&Operand)) {
        each_operand!(self, note, iter, operands, |fuel: &Reg| note(&Operand::Reg(*fuel)));
    }

    /// Lets `note` change every operand. The fuel itself is none that could be another one.
    pub fn operands_mut(&mut self, note: &mut impl FnMut(&mut Operand)) {
        each_operand!(self, note, iter_mut, operands_mut, |_: &mut Reg| {});
    }

    /// Lets a scalar step that assigns a register assign another one.
    pub fn set_result(&mut self, to: Reg) {
        match self {
            Inst::Copy { dst, .. }
            | Inst::Bin { dst, .. }
            | Inst::Neg { dst, .. }
            | Inst::Cmp { dst, .. }
            | Inst::Conv { dst, .. }
            | Inst::PtrAdd { dst, .. }
            | Inst::PtrSub { dst, .. }
            | Inst::Load { dst, .. }
            | Inst::Select { dst, .. }
            | Inst::Call { dst: Some(dst), .. } => *dst = to,
            _ => {}
        }
    }

    /// The register that it assigns, and its type where the instruction says it.
    #[must_use]
    pub fn result(&self) -> Option<(Reg, Option<Ty>)> {
        Some(match self {
            Inst::Copy { ty, dst, .. } | Inst::Bin { ty, dst, .. } | Inst::Neg { ty, dst, .. } => {
                (*dst, Some(*ty))
            }
            Inst::Cmp { dst, .. } => (*dst, Some(Ty::I32)),
            Inst::Conv { to, dst, .. } => (*dst, Some(*to)),
            Inst::PtrAdd { dst, .. } => (*dst, Some(Ty::Ptr)),
            Inst::PtrSub { dst, .. } => (*dst, Some(Ty::I64)),
            Inst::Load { mem, dst, .. } => (*dst, Some(mem.reg())),
            Inst::Call { dst: Some(dst), .. } => (*dst, None),
            Inst::Select { ty, dst, .. } => (*dst, Some(*ty)),
            Inst::Vec(inst) => return inst.result(),
            Inst::FuelLeft { dst } | Inst::Tick { fuel: dst, .. } => (*dst, Some(Ty::I32)),
            _ => return None,
        })
    }

    /// Whether only loop transformations make it, so that the kernel has nothing for it.
    pub fn is_of_transformations(&self) -> bool {
        matches!(
            self,
            Inst::Vec(_)
                | Inst::Select { .. }
                | Inst::Spend { .. }
                | Inst::Spent
                | Inst::FuelLeft { .. }
                | Inst::SetFuelLeft { .. }
                | Inst::Tick { .. }
        )
    }

    /// Whether it computes with floating point, or moves it.
    #[must_use]
    pub fn is_float(&self) -> bool {
        let float = |ty: Ty| matches!(ty, Ty::F32 | Ty::F64);
        match self {
            Inst::Copy { ty, .. }
            | Inst::Bin { ty, .. }
            | Inst::Neg { ty, .. }
            | Inst::Select { ty, .. }
            | Inst::Cmp { ty, .. } => float(*ty),
            Inst::Conv { from, to, .. } => float(*from) || float(*to),
            Inst::Load { mem, .. } | Inst::Store { mem, .. } => float(mem.reg()),
            _ => false,
        }
    }
}

impl Term {
    /// The blocks that can follow, with repetitions.
    pub fn successors(&self) -> Vec<BlockId> {
        match self {
            Term::Jump(to) => vec![*to],
            Term::Branch { then, other, .. } => vec![*then, *other],
            Term::Switch { cases, default, .. } => {
                cases.iter().map(|case| case.1).chain([*default]).collect()
            }
            Term::Return(_) | Term::Trap(_) => Vec::new(),
        }
    }

    pub(crate) fn retarget(&mut self, map: impl Fn(BlockId) -> BlockId) {
        match self {
            Term::Jump(to) => *to = map(*to),
            Term::Branch { then, other, .. } => (*then, *other) = (map(*then), map(*other)),
            Term::Switch { cases, default, .. } => {
                cases.iter_mut().for_each(|case| case.1 = map(case.1));
                *default = map(*default);
            }
            Term::Return(_) | Term::Trap(_) => {}
        }
    }

    /// Shows `note` every operand.
    pub fn operands(&self, note: &mut impl FnMut(&Operand)) {
        match self {
            Term::Branch { cond: operand, .. }
            | Term::Switch { value: operand, .. }
            | Term::Return(Some(operand)) => note(operand),
            Term::Jump(_) | Term::Return(None) | Term::Trap(_) => {}
        }
    }

    /// Lets `note` change every operand.
    pub fn operands_mut(&mut self, note: &mut impl FnMut(&mut Operand)) {
        match self {
            Term::Branch { cond: operand, .. }
            | Term::Switch { value: operand, .. }
            | Term::Return(Some(operand)) => note(operand),
            Term::Jump(_) | Term::Return(None) | Term::Trap(_) => {}
        }
    }
}
