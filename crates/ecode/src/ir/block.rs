//! Straight-line code and its end.

use super::{BlockId, Inst, Operand, Ty};

/// Straight-line code and its end.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// Steps in order.
    pub insts: Vec<Inst>,
    /// Where it goes.
    pub term: Term,
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
