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
mod block;
mod graph;
mod inline;
mod inst;
mod live;
mod module;
mod narrow;
mod op;
mod operand;
mod operands;
mod print;
mod prune;
mod size;
mod ty;
mod vector;
mod verify;

pub use at::{At, Lines, Spot};
pub use block::{Block, Term, TrapCode};
pub(crate) use graph::{Dominators, Loop};
pub use inst::Inst;
pub use live::{Live, RegSet};
pub use module::{Body, Func, Global, Module, Signature, Slot, SourceLocation};
pub use op::{BinOp, CmpOp, ConvOp};
pub use operand::{BlockId, Callee, FuncId, GlobalId, Operand, Reg, SigId, SlotId};
pub(crate) use size::{MAX_ALL_BLOCKS, MAX_ALL_LIVE};
pub use ty::{MemTy, Ty};
pub use vector::{Lane, VecInst};
pub use verify::Malformed;
