//! How a loop becomes another: what each of its steps is to be, and how its iterations are taken
//! together.

use super::scalar::Root;
use crate::ir::{CmpOp, MemTy, Operand, Reg, Ty};

/// What a step of the loop is to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Role {
    /// A number of the first of the iterations that a vector iteration stands for: computed as
    /// before.
    Scalar,
    /// Reads or writes one cell an iteration: access number.
    Access(usize),
    /// Computes one number an iteration.
    Lanes,
    /// The same, by a shift to the right that fills up with zeros or with the sign.
    ShiftRight { zeros: bool },
    /// Compares two numbers of each iteration.
    Compare(Compare),
    /// Selects by what such a comparison gave.
    Select,
    /// Conversion between integers that changes nothing in lanes of this width.
    Same,
    /// Adds one number an iteration to the register.
    Sum(Reg),
    /// Of no concern to vectors.
    Skip,
}

/// A comparison of numbers between `least` and `most`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Compare {
    pub(super) op: CmpOp,
    pub(super) least: i128,
    pub(super) most: i128,
}

/// A cell read or written in every iteration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    /// The step of the loop that it is.
    pub(super) inst: usize,
    pub(super) is_store: bool,
    pub(super) mem: MemTy,
    pub(super) addr: Operand,
    pub(super) off: i64,
    /// Bytes from iteration to iteration; 0 for a number that does not change.
    pub(super) step: i64,
    pub(super) root: Option<Root>,
}

/// The comparison that ends the loop: it goes on while `op` holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Test {
    /// The step of the loop that it is.
    pub(super) inst: usize,
    pub(super) op: CmpOp,
    pub(super) ty: Ty,
    pub(super) value: Operand,
    pub(super) bound: Operand,
    pub(super) step: i64,
    /// What the value is at the iteration's start.
    pub(super) root: Option<Root>,
}

/// A 32-bit number that must not wrap in the iterations of a strip, because it is used as a wider
/// one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Widened {
    /// The step of the loop that uses it.
    pub(super) inst: usize,
    pub(super) value: Operand,
    pub(super) step: i64,
    pub(super) signed: bool,
}

/// How a loop becomes another one.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) roles: Vec<Role>,
    pub(super) accesses: Vec<Access>,
    pub(super) test: Test,
    pub(super) widened: Vec<Widened>,
    /// Variables and what each iteration adds to them.
    pub(super) inductions: Vec<(Reg, i64)>,
    pub(super) sums: Vec<Reg>,
    /// Bytes of a lane.
    pub(super) width: u64,
    /// How the loop's iterations are taken together.
    pub(super) kind: Kind,
}

/// What an iteration of the new loop is.
#[derive(Debug)]
pub(super) enum Kind {
    /// As many iterations as a vector has lanes, at once.
    Vectors,
    /// Iterations one after the other, without tests between them.
    Unrolled(Unrolled),
}

/// Iterations that follow one another.
#[derive(Debug)]
pub(super) struct Unrolled {
    pub(super) iterations: i64,
    pub(super) steps: Vec<Step>,
    /// What an iteration takes over from the one before, but for what changes by a constant.
    pub(super) carried: Vec<Reg>,
}

/// What a step of the loop gives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Step {
    /// What changes by this from iteration to iteration.
    Line(i64),
    /// Something of each iteration's own.
    Own,
    /// What only the loop's end is tested by.
    Test,
}

impl Plan {
    /// Iterations of the loop that an iteration of the new one stands for.
    pub(super) fn iterations(&self) -> i64 {
        match &self.kind {
            Kind::Vectors => 16 / self.width as i64,
            Kind::Unrolled(unrolled) => unrolled.iterations,
        }
    }
}
