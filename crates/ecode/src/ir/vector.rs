//! Steps on 128-bit vectors, which loop transformations make. A vector register has the type
//! [`Ty::V128`]; each step says how it is divided into lanes, the first one lowest in memory.

use super::{At, BinOp, CmpOp, Operand, Reg, Ty};
use std::fmt;

/// A division of 128 bits into equal numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Lane {
    I8,
    I16,
    I32,
    I64,
    F32,
    F64,
}

impl Lane {
    /// Bytes of a lane.
    #[must_use]
    pub fn bytes(self) -> u64 {
        match self {
            Lane::I8 => 1,
            Lane::I16 => 2,
            Lane::I32 | Lane::F32 => 4,
            Lane::I64 | Lane::F64 => 8,
        }
    }

    /// The type of one lane in a register of its own; integers below 32 bits are the low bits of
    /// it.
    #[must_use]
    pub fn reg(self) -> Ty {
        match self {
            Lane::I8 | Lane::I16 | Lane::I32 => Ty::I32,
            Lane::I64 => Ty::I64,
            Lane::F32 => Ty::F32,
            Lane::F64 => Ty::F64,
        }
    }
}

/// One step on vectors.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum VecInst {
    /// One number in every lane.
    Splat { lane: Lane, dst: Reg, src: Operand },
    /// Lane by lane, as [`super::Inst::Bin`]: `Add`, `Sub`, `Mul`; `And`, `Or`, `Xor` on integers,
    /// `DivS` on floats. There is no `Mul` on bytes.
    Bin { op: BinOp, lane: Lane, dst: Reg, a: Operand, b: Operand },
    /// Lane by lane of integers: all bits 1 where `op` holds, 0 where it does not. Unsigned ones
    /// are not for `I64`.
    Cmp { op: CmpOp, lane: Lane, dst: Reg, a: Operand, b: Operand },
    /// The bits of `a` where those of `mask` are 1, and of `b` where they are 0.
    Select { dst: Reg, mask: Operand, a: Operand, b: Operand },
    /// `Shl`, `ShrS`, `ShrU` of integers by `by` bits, fewer than a lane has.
    Shift { op: BinOp, lane: Lane, dst: Reg, a: Operand, by: u32 },
    /// The bytes of `a` and `b`, numbered from 0 to 31, that `bytes` says.
    Shuffle { dst: Reg, a: Operand, b: Operand, bytes: [u8; 16] },
    /// 16 bytes.
    Load { dst: Reg, addr: Operand, off: i64, at: At },
    /// As many integers of `from` bytes as there are lanes, each extended to its lane. `from` is
    /// the half of a lane, or 1 for lanes of 4.
    LoadWiden { lane: Lane, from: u64, signed: bool, dst: Reg, addr: Operand, off: i64, at: At },
    /// The first `bytes` bytes: 16, 8 or 4.
    Store { bytes: u64, addr: Operand, off: i64, val: Operand, at: At },
    /// Lane `index` of an `I32` or `I64` division.
    Extract { lane: Lane, index: u8, dst: Reg, src: Operand },
}

/// Passes every operand of `$inst` to `$note`, to see or to change it.
macro_rules! each_operand {
    ($inst:expr, $note:ident) => {
        match $inst {
            VecInst::Splat { src: a, .. }
            | VecInst::Shift { a, .. }
            | VecInst::Load { addr: a, .. }
            | VecInst::LoadWiden { addr: a, .. }
            | VecInst::Extract { src: a, .. } => $note(a),
            VecInst::Select { mask, a, b, .. } => {
                $note(mask);
                $note(a);
                $note(b);
            }
            VecInst::Bin { a, b, .. }
            | VecInst::Cmp { a, b, .. }
            | VecInst::Shuffle { a, b, .. }
            | VecInst::Store { addr: a, val: b, .. } => {
                $note(a);
                $note(b);
            }
        }
    };
}

impl VecInst {
    pub(super) fn operands(&self, note: &mut impl FnMut(&Operand)) {
        each_operand!(self, note);
    }

    pub(super) fn operands_mut(&mut self, note: &mut impl FnMut(&mut Operand)) {
        each_operand!(self, note);
    }

    /// The register that it assigns.
    pub(super) fn result(&self) -> Option<(Reg, Option<Ty>)> {
        match self {
            VecInst::Splat { dst, .. }
            | VecInst::Bin { dst, .. }
            | VecInst::Cmp { dst, .. }
            | VecInst::Select { dst, .. }
            | VecInst::Shift { dst, .. }
            | VecInst::Shuffle { dst, .. }
            | VecInst::Load { dst, .. }
            | VecInst::LoadWiden { dst, .. } => Some((*dst, Some(Ty::V128))),
            VecInst::Extract { lane, dst, .. } => Some((*dst, Some(lane.reg()))),
            VecInst::Store { .. } => None,
        }
    }

    /// The types of its operands, in the order of `operands`.
    pub(super) fn operand_types(&self) -> Vec<Ty> {
        match self {
            VecInst::Splat { lane, .. } => vec![lane.reg()],
            VecInst::Shift { .. } | VecInst::Extract { .. } => vec![Ty::V128],
            VecInst::Load { .. } | VecInst::LoadWiden { .. } => vec![Ty::Ptr],
            VecInst::Bin { .. } | VecInst::Cmp { .. } | VecInst::Shuffle { .. } => {
                vec![Ty::V128, Ty::V128]
            }
            VecInst::Select { .. } => vec![Ty::V128; 3],
            VecInst::Store { .. } => vec![Ty::Ptr, Ty::V128],
        }
    }
}

impl fmt::Display for VecInst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VecInst::Splat { lane, src, .. } => write!(f, "splat.{lane:?} {src}"),
            VecInst::Bin { op, lane, a, b, .. } => write!(f, "v{op:?}.{lane:?} {a}, {b}"),
            VecInst::Cmp { op, lane, a, b, .. } => write!(f, "v{op:?}.{lane:?} {a}, {b}"),
            VecInst::Select { mask, a, b, .. } => write!(f, "vselect {mask}, {a}, {b}"),
            VecInst::Shift { op, lane, a, by, .. } => write!(f, "v{op:?}.{lane:?} {a}, {by}"),
            VecInst::Shuffle { a, b, bytes, .. } => write!(f, "shuffle {a}, {b}, {bytes:?}"),
            VecInst::Load { addr, off, .. } => write!(f, "vload [{addr} + {off}]"),
            VecInst::LoadWiden { lane, from, signed, addr, off, .. } => {
                let sign = if *signed { 's' } else { 'u' };
                write!(f, "vload.{from}{sign}.{lane:?} [{addr} + {off}]")
            }
            VecInst::Store { bytes, addr, off, val, .. } => {
                write!(f, "vstore.{bytes} [{addr} + {off}], {val}")
            }
            VecInst::Extract { lane, index, src, .. } => write!(f, "lane.{lane:?} {src}, {index}"),
        }
    }
}
