//! What instructions work on, by number.

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
/// A signature in the module's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SigId(pub u32);

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

/// Who is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callee {
    /// A function of the module.
    Direct(FuncId),
    /// A function by its address, whose signature is checked when called.
    Indirect(Operand, SigId),
}
