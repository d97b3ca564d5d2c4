//! The steps of a function.

use super::{At, BinOp, Callee, CmpOp, ConvOp, MemTy, Operand, Reg, Ty, VecInst};

/// One step inside a block.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Inst {
    Copy {
        ty: Ty,
        dst: Reg,
        src: Operand,
    },
    Bin {
        op: BinOp,
        ty: Ty,
        dst: Reg,
        a: Operand,
        b: Operand,
        at: At,
    },
    /// Negation of a float.
    Neg {
        ty: Ty,
        dst: Reg,
        a: Operand,
    },
    /// 1 or 0.
    Cmp {
        op: CmpOp,
        ty: Ty,
        dst: Reg,
        a: Operand,
        b: Operand,
    },
    Conv {
        op: ConvOp,
        from: Ty,
        to: Ty,
        dst: Reg,
        src: Operand,
    },
    /// `base + index * scale`; the index is an `I64`, or an `I32` taken as signed.
    PtrAdd {
        dst: Reg,
        base: Operand,
        index: Operand,
        index_ty: Ty,
        scale: i64,
    },
    /// `a - b` in bytes, as an `I64`.
    PtrSub {
        dst: Reg,
        a: Operand,
        b: Operand,
    },
    Load {
        mem: MemTy,
        dst: Reg,
        addr: Operand,
        off: i64,
        at: At,
    },
    Store {
        mem: MemTy,
        addr: Operand,
        off: i64,
        val: Operand,
        at: At,
    },
    /// Copies bytes; the ranges may overlap.
    MemCopy {
        dst: Operand,
        src: Operand,
        len: u64,
        at: At,
    },
    MemZero {
        dst: Operand,
        len: u64,
        at: At,
    },
    Call {
        dst: Option<Reg>,
        callee: Callee,
        args: Vec<Operand>,
        at: At,
    },
    /// `a` when the `I32` `cond` is not 0, else `b`; both are known.
    Select {
        ty: Ty,
        dst: Reg,
        cond: Operand,
        a: Operand,
        b: Operand,
    },
    /// A step on vectors.
    Vec(VecInst),
    /// Spends `fuel` (an `I32`) for the iterations of a loop that follows, where iterations are
    /// counted.
    Spend {
        fuel: Operand,
    },
    /// First in a loop: its iterations are counted by a [`Inst::Spend`] before it.
    Spent,
    /// The fuel (an `I32`) until the clock must be read, as the last caller or callee left it.
    FuelLeft {
        dst: Reg,
    },
    /// Leaves that number to a caller or callee.
    SetFuelLeft {
        src: Operand,
    },
    /// When `fuel` is not positive: reads the clock, which may end the call; then there is fuel for
    /// a strip again.
    Tick {
        fuel: Reg,
        /// What is used behind it. It is put away for that time, so that it can stay in registers
        /// otherwise.
        kept: Vec<Reg>,
        at: At,
    },
}

impl Inst {
    /// Where it comes from, if it is one that can fail.
    #[must_use]
    pub fn at(&self) -> At {
        match self {
            Inst::Bin { at, .. }
            | Inst::Load { at, .. }
            | Inst::Store { at, .. }
            | Inst::MemCopy { at, .. }
            | Inst::MemZero { at, .. }
            | Inst::Call { at, .. }
            | Inst::Tick { at, .. }
            | Inst::Vec(
                VecInst::Load { at, .. }
                | VecInst::LoadWiden { at, .. }
                | VecInst::Store { at, .. },
            ) => *at,
            _ => At::NOWHERE,
        }
    }
}
