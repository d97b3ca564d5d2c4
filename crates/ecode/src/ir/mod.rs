//! The typed intermediate form that every target shares.
//!
//! A [`Module`] holds functions, data and imports. A function is a graph of basic blocks over typed
//! registers, which may be assigned several times (targets make them SSA, locals or machine
//! registers). Memory that has an address is a *slot* of the function's frame or a *global*.
//! Everything that C leaves undefined is defined by the operations here, once for all targets:
//!
//! - integers wrap; shift counts are taken modulo the width; `INT_MIN / -1` wraps to `INT_MIN`;
//! - division by zero traps; float to integer saturates and NaN becomes 0;
//! - registers start as zero; a pointer is 32 bits wide on isolated targets and 64 on native ones,
//!   but takes 8 bytes in memory on all of them, so that layouts are equal.

mod at;
mod graph;
mod inline;
mod live;
mod module;
mod narrow;
mod operands;
mod print;
mod prune;
mod size;
mod vector;
mod verify;

pub use at::{At, Lines, Spot};
pub(crate) use graph::{Dominators, Loop};
pub use live::{Live, RegSet};
pub use module::{Body, Func, Global, Module, Signature, Slot, SourceLocation};
pub(crate) use size::{MAX_ALL_BLOCKS, MAX_ALL_LIVE};
pub use vector::{Lane, VecInst};
pub use verify::Malformed;

/// Types of registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ty {
    /// 32-bit integer. Narrower ones are kept here, extended by their own sign.
    I32,
    /// 64-bit integer.
    I64,
    /// IEEE single.
    F32,
    /// IEEE double.
    F64,
    /// An address.
    Ptr,
    /// 128 bits; only what loop transformations make has it, never a signature.
    V128,
}

/// Types of memory cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum MemTy {
    I8,
    U8,
    I16,
    U16,
    I32,
    I64,
    F32,
    F64,
    /// 8 bytes, of which isolated targets use 4; the others are 0.
    Ptr,
}

impl MemTy {
    /// The type of the register that holds the loaded value.
    #[must_use]
    pub fn reg(self) -> Ty {
        match self {
            MemTy::I8 | MemTy::U8 | MemTy::I16 | MemTy::U16 | MemTy::I32 => Ty::I32,
            MemTy::I64 => Ty::I64,
            MemTy::F32 => Ty::F32,
            MemTy::F64 => Ty::F64,
            MemTy::Ptr => Ty::Ptr,
        }
    }
}

/// A register of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reg(pub u32);
/// A basic block of a function; 0 is the entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockId(pub u32);
/// A piece of a function's frame that has an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SlotId(pub u32);
/// A piece of static data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GlobalId(pub u32);
/// A function of the module, defined or imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FuncId(pub u32);

/// What an instruction works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// A register.
    Reg(Reg),
    /// An integer, sign-extended from its type's width; as an address, zero-extended.
    Int(i64),
    /// The bits of a double, also for single values.
    Float(u64),
    /// An address in the frame.
    Slot(SlotId, i64),
    /// An address in static data.
    Global(GlobalId, i64),
    /// The address of a function: it can be called and compared, nothing else.
    Func(FuncId),
}

/// Two operands to one of the same type. On floats only the first four, `DivS` being division.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum BinOp {
    Add,
    Sub,
    Mul,
    DivS,
    DivU,
    RemS,
    RemU,
    And,
    Or,
    Xor,
    Shl,
    ShrS,
    ShrU,
}

/// Comparisons; on floats and for equality the signed ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum CmpOp {
    Eq,
    Ne,
    LtS,
    LtU,
    LeS,
    LeU,
    GtS,
    GtU,
    GeS,
    GeU,
}

impl CmpOp {
    /// The comparison of integers that holds when this one does not.
    pub(crate) fn negated(self) -> CmpOp {
        match self {
            CmpOp::Eq => CmpOp::Ne,
            CmpOp::Ne => CmpOp::Eq,
            CmpOp::LtS => CmpOp::GeS,
            CmpOp::LtU => CmpOp::GeU,
            CmpOp::LeS => CmpOp::GtS,
            CmpOp::LeU => CmpOp::GtU,
            CmpOp::GtS => CmpOp::LeS,
            CmpOp::GtU => CmpOp::LeU,
            CmpOp::GeS => CmpOp::LtS,
            CmpOp::GeU => CmpOp::LtU,
        }
    }

    /// The comparison of the operands in the other order.
    pub(crate) fn swapped(self) -> CmpOp {
        match self {
            CmpOp::LtS => CmpOp::GtS,
            CmpOp::LtU => CmpOp::GtU,
            CmpOp::LeS => CmpOp::GeS,
            CmpOp::LeU => CmpOp::GeU,
            CmpOp::GtS => CmpOp::LtS,
            CmpOp::GtU => CmpOp::LtU,
            CmpOp::GeS => CmpOp::LeS,
            CmpOp::GeU => CmpOp::LeU,
            same => same,
        }
    }
}

/// Conversions. The types of source and result are in the instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConvOp {
    /// Low 8 bits of an `I32`, by sign.
    Sext8,
    /// Low 8 bits of an `I32`, by zeros.
    Zext8,
    /// Low 16 bits of an `I32`, by sign.
    Sext16,
    /// Low 16 bits of an `I32`, by zeros.
    Zext16,
    /// `I32` to `I64` by sign.
    Sext32,
    /// `I32` to `I64` by zeros.
    Zext32,
    /// `I64` to `I32`.
    Wrap,
    /// `Ptr` to `I64`.
    PtrToInt,
    /// `I64` to `Ptr`.
    IntToPtr,
    /// Signed integer to float.
    IntToFloatS,
    /// Unsigned integer to float.
    IntToFloatU,
    /// Float to signed integer, saturating.
    FloatToIntS,
    /// Float to unsigned integer, saturating.
    FloatToIntU,
    /// Between the float types.
    FloatToFloat,
}

/// Who is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callee {
    /// A function of the module.
    Direct(FuncId),
    /// A function by its address, whose signature is checked when called.
    Indirect(Operand, SigId),
}

/// A signature in the module's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SigId(pub u32);

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

/// Why a call ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TrapCode {
    /// An integer was divided by zero.
    DivideByZero,
    /// A place was reached that the program declared impossible.
    Unreachable,
    /// The frames of all active calls exceed the stack.
    StackOverflow,
    /// A call by address met a function of another signature, or none.
    BadCall,
}

/// How a block ends.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Term {
    Jump(BlockId),
    /// To `then` when the `I32` is not 0.
    Branch {
        cond: Operand,
        then: BlockId,
        other: BlockId,
    },
    /// To the block of the equal case.
    Switch {
        ty: Ty,
        value: Operand,
        cases: Vec<(i64, BlockId)>,
        default: BlockId,
    },
    Return(Option<Operand>),
    Trap(TrapCode),
}

/// Straight-line code and its end.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// Steps in order.
    pub insts: Vec<Inst>,
    /// Where it goes.
    pub term: Term,
}
