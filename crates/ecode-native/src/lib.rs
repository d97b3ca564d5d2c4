//! The native targets: machine code in the process, by Cranelift. `Protection::None` trusts the
//! program with everything the process has; `Protection::Stack` guards arrays on the stack as
//! ProPolice does.
//!
//! Every function takes the instance's context (see `sys.rs`) as a first, hidden argument. What has
//! no meaning (division by zero, a spent stack, a smashed one) leaves through `raise`, which
//! returns from the outermost call of the instance.
#![deny(unsafe_code)]

mod flow;
mod frame;
mod inst;
mod sys;
mod unit;
mod vector;

pub use sys::{NativeCode, NativeEntry, NativeInstance};
pub(crate) use unit::{Unit, build, data_layout};

/// What native code guards against by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protection {
    /// Nothing.
    None,
    /// Overflows of arrays on the stack: a random guard behind them, checked on return; other
    /// variables, and copies of pointer arguments, below them.
    Stack,
}

/// Offsets into an instance's context; `sys.rs` lays it out.
pub(crate) mod context {
    /// The lowest stack address that frames may reach.
    pub(crate) const STACK_LIMIT: i32 = 16;
    /// The random guard.
    pub(crate) const GUARD: i32 = 24;
    /// Address of the table of functions: pairs of code address and signature number.
    pub(crate) const TABLE: i32 = 32;
    /// Where static data starts.
    pub(crate) const DATA: i64 = 64;
}

/// What `raise` is told: the reason, and where the program was.
pub(crate) mod code {
    pub(crate) const DIVIDE: i64 = 1;
    pub(crate) const UNREACHABLE: i64 = 2;
    pub(crate) const STACK: i64 = 3;
    pub(crate) const BAD_CALL: i64 = 4;
    pub(crate) const HOST: i64 = 5;
    pub(crate) const SMASHED: i64 = 6;

    /// `reason`, and the number of the place. Not 0.
    pub(crate) fn told(reason: i64, at: u32) -> i64 {
        reason | i64::from(at) << 8
    }

    /// The reason, and the number of the place.
    pub(crate) fn heard(told: u64) -> (i64, u32) {
        ((told & 0xff) as i64, (told >> 8) as u32)
    }
}

/// Names of what the code calls in the process.
pub(crate) mod symbol {
    pub(crate) const RAISE: &str = "dewar_raise";
    pub(crate) const HOST: &str = "dewar_host";
    pub(crate) const COPY: &str = "dewar_copy";
    pub(crate) const ZERO: &str = "dewar_zero";
}

/// Why there is no native code.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NativeError {
    /// Cranelift does not know this machine.
    #[error("this machine is not supported: {0}")]
    Machine(String),
    /// Cranelift refused.
    #[error("code generation failed: {0}")]
    Codegen(String),
}

impl From<cranelift_module::ModuleError> for NativeError {
    fn from(error: cranelift_module::ModuleError) -> Self {
        Self::Codegen(format!("{error:?}"))
    }
}
