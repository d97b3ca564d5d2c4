//! What is done to numbers.

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
