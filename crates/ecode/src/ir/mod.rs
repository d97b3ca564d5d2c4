//! The typed intermediate form that every target shares.
//!
//! A [`Module`] holds functions, data and imports. A function is a graph of basic blocks over typed registers,
//! which may be assigned several times (targets make them SSA, locals or machine registers). Memory that has an
//! address is a *slot* of the function's frame or a *global*. Everything that C leaves undefined is defined by
//! the operations here, once for all targets:
//!
//! - integers wrap; shift counts are taken modulo the width; `INT_MIN / -1` wraps to `INT_MIN`;
//! - division by zero traps; float to integer saturates and NaN becomes 0;
//! - registers start as zero; a pointer is 32 bits wide on isolated targets and 64 on native ones, but takes
//!   8 bytes in memory on all of them, so that layouts are equal.

mod graph;
mod live;
mod print;
mod prune;
mod vector;
mod verify;

pub(crate) use graph::{Dominators, Loop};
pub(crate) use live::{Live, RegSet};
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
    },
    Store {
        mem: MemTy,
        addr: Operand,
        off: i64,
        val: Operand,
    },
    /// Copies bytes; the ranges may overlap.
    MemCopy {
        dst: Operand,
        src: Operand,
        len: u64,
    },
    MemZero {
        dst: Operand,
        len: u64,
    },
    Call {
        dst: Option<Reg>,
        callee: Callee,
        args: Vec<Operand>,
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
    /// Counts `turns` (an `I32`) turns of a loop that follows, where turns are counted.
    Spend {
        turns: Operand,
    },
    /// First in a loop: its turns are counted by a [`Inst::Spend`] before it.
    Spent,
    /// How many turns (an `I32`) there are until the clock must be looked at, as the last caller or callee left it.
    TurnsLeft {
        dst: Reg,
    },
    /// Leaves that number to a caller or callee.
    SetTurnsLeft {
        src: Operand,
    },
    /// When `turns` is not positive: looks at the clock, which may end the call; then there is a strip of turns again.
    Tick {
        turns: Reg,
        /// What is used behind it. It is put away for that time, so that it can stay in registers otherwise.
        kept: Vec<Reg>,
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

impl Term {
    /// The blocks that can follow, with repetitions.
    pub fn successors(&self) -> Vec<BlockId> {
        match self {
            Term::Jump(to) => vec![*to],
            Term::Branch { then, other, .. } => vec![*then, *other],
            Term::Switch { cases, default, .. } => {
                cases.iter().map(|case| case.1).chain([*default]).collect()
            }
            Term::Return(_) | Term::Trap(_) => Vec::new(),
        }
    }

    pub(crate) fn retarget(&mut self, map: impl Fn(BlockId) -> BlockId) {
        match self {
            Term::Jump(to) => *to = map(*to),
            Term::Branch { then, other, .. } => (*then, *other) = (map(*then), map(*other)),
            Term::Switch { cases, default, .. } => {
                cases.iter_mut().for_each(|case| case.1 = map(case.1));
                *default = map(*default);
            }
            Term::Return(_) | Term::Trap(_) => {}
        }
    }
}

/// Straight-line code and its end.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// Steps in order.
    pub insts: Vec<Inst>,
    /// Where it goes.
    pub term: Term,
}

/// A piece of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The variable, or empty for a temporary.
    pub name: String,
    /// Bytes.
    pub size: u64,
    /// A power of two.
    pub align: u64,
    /// It is or holds an array: what an overflow starts from.
    pub is_array: bool,
}

/// Parameters and result of a function as targets see them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub struct Signature {
    pub params: Vec<Ty>,
    pub ret: Option<Ty>,
}

/// The inside of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct Body {
    /// Types of the registers; the first ones are the parameters.
    pub regs: Vec<Ty>,
    /// The frame.
    pub slots: Vec<Slot>,
    /// The graph; the entry is the first.
    pub blocks: Vec<Block>,
}

/// A function.
#[derive(Clone, Debug, PartialEq)]
pub struct Func {
    /// As declared.
    pub name: String,
    /// Its signature.
    pub sig: SigId,
    /// Whether others may call it by name.
    pub exported: bool,
    /// `None` for a host function.
    pub body: Option<Body>,
    /// Where its text first computes with floating point, if it does.
    pub float: Option<Place>,
}

/// A place in source text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// What messages call the text.
    pub file: String,
    /// Counted from 1.
    pub line: u32,
    /// In characters, counted from 1.
    pub column: u32,
}

/// An address inside static data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reloc {
    /// Where in the data it stands, 8 bytes.
    pub at: u64,
    /// What it is the address of: a global or a function.
    pub target: Operand,
}

/// Static data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Global {
    /// As declared, or empty.
    pub name: String,
    /// Bytes in all.
    pub size: u64,
    /// A power of two.
    pub align: u64,
    /// The first bytes; the rest is 0.
    pub init: Vec<u8>,
    /// Addresses in it.
    pub relocs: Vec<Reloc>,
}

/// A compiled text, before a target is chosen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Module {
    /// Signatures that functions and indirect calls use.
    pub sigs: Vec<Signature>,
    /// Functions, imported ones too.
    pub funcs: Vec<Func>,
    /// Static data.
    pub globals: Vec<Global>,
}

impl Module {
    /// The number of `sig` in the table.
    pub fn signature(&mut self, sig: Signature) -> SigId {
        let found = self.sigs.iter().position(|own| *own == sig);
        let index = found.unwrap_or_else(|| {
            self.sigs.push(sig);
            self.sigs.len() - 1
        });
        SigId(index as u32)
    }

    /// The signature of a function.
    #[must_use]
    pub fn sig_of(&self, func: FuncId) -> &Signature {
        &self.sigs[self.funcs[func.0 as usize].sig.0 as usize]
    }

    /// The exported function of that name.
    #[must_use]
    pub fn export(&self, name: &str) -> Option<FuncId> {
        let found =
            self.funcs.iter().position(|f| f.exported && f.body.is_some() && f.name == name);
        found.map(|index| FuncId(index as u32))
    }

    /// Functions whose address is taken, in order: their places in a table of functions, from 1.
    #[must_use]
    pub fn address_taken(&self) -> Vec<FuncId> {
        let mut taken: Vec<FuncId> = Vec::new();
        let mut note = |operand: &Operand| {
            if let Operand::Func(id) = operand {
                taken.push(*id);
            }
        };
        self.globals.iter().flat_map(|g| &g.relocs).for_each(|reloc| note(&reloc.target));
        for body in self.funcs.iter().filter_map(|f| f.body.as_ref()) {
            for block in &body.blocks {
                block.insts.iter().for_each(|inst| inst.operands(&mut note));
                block.term.operands(&mut note);
            }
        }
        taken.sort_unstable();
        taken.dedup();
        taken
    }
}

impl Inst {
    /// Shows `note` every operand.
    pub fn operands(&self, note: &mut impl FnMut(&Operand)) {
        match self {
            Inst::Copy { src, .. } | Inst::Conv { src, .. } => note(src),
            Inst::Bin { a, b, .. } | Inst::Cmp { a, b, .. } | Inst::PtrSub { a, b, .. } => {
                note(a);
                note(b);
            }
            Inst::Neg { a, .. } => note(a),
            Inst::PtrAdd { base, index, .. } => {
                note(base);
                note(index);
            }
            Inst::Load { addr, .. } => note(addr),
            Inst::Store { addr, val, .. } => {
                note(addr);
                note(val);
            }
            Inst::MemCopy { dst, src, .. } => {
                note(dst);
                note(src);
            }
            Inst::MemZero { dst, .. } => note(dst),
            Inst::Call { callee, args, .. } => {
                if let Callee::Indirect(target, _) = callee {
                    note(target);
                }
                args.iter().for_each(note);
            }
            Inst::Select { cond, a, b, .. } => {
                note(cond);
                note(a);
                note(b);
            }
            Inst::Vec(inst) => inst.operands(note),
            Inst::Spend { turns: src } | Inst::SetTurnsLeft { src } => note(src),
            Inst::Tick { turns, .. } => note(&Operand::Reg(*turns)),
            Inst::Spent | Inst::TurnsLeft { .. } => {}
        }
    }

    /// Lets `note` change every operand.
    pub(crate) fn operands_mut(&mut self, note: &mut impl FnMut(&mut Operand)) {
        match self {
            Inst::Copy { src, .. } | Inst::Conv { src, .. } => note(src),
            Inst::Bin { a, b, .. } | Inst::Cmp { a, b, .. } | Inst::PtrSub { a, b, .. } => {
                note(a);
                note(b);
            }
            Inst::Neg { a, .. } => note(a),
            Inst::PtrAdd { base, index, .. } => {
                note(base);
                note(index);
            }
            Inst::Load { addr, .. } => note(addr),
            Inst::Store { addr, val, .. } => {
                note(addr);
                note(val);
            }
            Inst::MemCopy { dst, src, .. } => {
                note(dst);
                note(src);
            }
            Inst::MemZero { dst, .. } => note(dst),
            Inst::Call { callee, args, .. } => {
                if let Callee::Indirect(target, _) = callee {
                    note(target);
                }
                args.iter_mut().for_each(note);
            }
            Inst::Select { cond, a, b, .. } => {
                note(cond);
                note(a);
                note(b);
            }
            Inst::Vec(inst) => inst.operands_mut(note),
            Inst::Spend { turns: src } | Inst::SetTurnsLeft { src } => note(src),
            // The counter itself is no operand that could be another one.
            Inst::Spent | Inst::TurnsLeft { .. } | Inst::Tick { .. } => {}
        }
    }

    /// Lets a scalar step that assigns a register assign another one.
    pub(crate) fn set_result(&mut self, to: Reg) {
        match self {
            Inst::Copy { dst, .. }
            | Inst::Bin { dst, .. }
            | Inst::Neg { dst, .. }
            | Inst::Cmp { dst, .. }
            | Inst::Conv { dst, .. }
            | Inst::PtrAdd { dst, .. }
            | Inst::PtrSub { dst, .. }
            | Inst::Load { dst, .. }
            | Inst::Select { dst, .. }
            | Inst::Call { dst: Some(dst), .. } => *dst = to,
            _ => {}
        }
    }

    /// The register that it assigns, and its type where the instruction says it.
    #[must_use]
    pub fn result(&self) -> Option<(Reg, Option<Ty>)> {
        Some(match self {
            Inst::Copy { ty, dst, .. } | Inst::Bin { ty, dst, .. } | Inst::Neg { ty, dst, .. } => {
                (*dst, Some(*ty))
            }
            Inst::Cmp { dst, .. } => (*dst, Some(Ty::I32)),
            Inst::Conv { to, dst, .. } => (*dst, Some(*to)),
            Inst::PtrAdd { dst, .. } => (*dst, Some(Ty::Ptr)),
            Inst::PtrSub { dst, .. } => (*dst, Some(Ty::I64)),
            Inst::Load { mem, dst, .. } => (*dst, Some(mem.reg())),
            Inst::Call { dst: Some(dst), .. } => (*dst, None),
            Inst::Select { ty, dst, .. } => (*dst, Some(*ty)),
            Inst::Vec(inst) => return inst.result(),
            Inst::TurnsLeft { dst } | Inst::Tick { turns: dst, .. } => (*dst, Some(Ty::I32)),
            _ => return None,
        })
    }

    /// Whether only loop transformations make it, so that the kernel has nothing for it.
    pub(crate) fn is_of_transformations(&self) -> bool {
        matches!(
            self,
            Inst::Vec(_)
                | Inst::Select { .. }
                | Inst::Spend { .. }
                | Inst::Spent
                | Inst::TurnsLeft { .. }
                | Inst::SetTurnsLeft { .. }
                | Inst::Tick { .. }
        )
    }

    /// Whether it computes with floating point, or moves it.
    #[must_use]
    pub fn is_float(&self) -> bool {
        let float = |ty: Ty| matches!(ty, Ty::F32 | Ty::F64);
        match self {
            Inst::Copy { ty, .. }
            | Inst::Bin { ty, .. }
            | Inst::Neg { ty, .. }
            | Inst::Select { ty, .. }
            | Inst::Cmp { ty, .. } => float(*ty),
            Inst::Conv { from, to, .. } => float(*from) || float(*to),
            Inst::Load { mem, .. } | Inst::Store { mem, .. } => float(mem.reg()),
            _ => false,
        }
    }
}

impl Term {
    /// Shows `note` every operand.
    pub fn operands(&self, note: &mut impl FnMut(&Operand)) {
        match self {
            Term::Branch { cond: operand, .. }
            | Term::Switch { value: operand, .. }
            | Term::Return(Some(operand)) => note(operand),
            Term::Jump(_) | Term::Return(None) | Term::Trap(_) => {}
        }
    }

    /// Lets `note` change every operand.
    pub(crate) fn operands_mut(&mut self, note: &mut impl FnMut(&mut Operand)) {
        match self {
            Term::Branch { cond: operand, .. }
            | Term::Switch { value: operand, .. }
            | Term::Return(Some(operand)) => note(operand),
            Term::Jump(_) | Term::Return(None) | Term::Trap(_) => {}
        }
    }
}
