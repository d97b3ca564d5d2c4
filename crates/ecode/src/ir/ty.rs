//! Types of registers and of memory cells.

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
