//! What a compiled text consists of.

use super::{At, Block, BlockId, FuncId, Inst, Lines, Operand, SigId, Ty};
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

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
    pub float: Option<SourceLocation>,
    /// Where its text begins, if it has one.
    pub begin: At,
}

/// A place in source text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLocation {
    /// What messages call the text.
    pub file: String,
    /// Counted from 1.
    pub line: u32,
    /// In characters, counted from 1.
    pub column: u32,
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
    /// Addresses in it, 8 bytes each: where they stand, and what they are of, which is a global or
    /// a function.
    pub relocs: BTreeMap<u64, Operand>,
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
    /// The lines of the text.
    pub lines: Arc<Lines>,
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
        self.globals.iter().flat_map(|g| &g.relocs).for_each(|(_, target)| note(target));
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

impl Module {
    /// A place in function `id`: where the function begins, if it is none.
    #[must_use]
    pub fn at(&self, id: FuncId, at: At) -> At {
        let begin = || self.funcs.get(id.0 as usize).map_or(At::NOWHERE, |func| func.begin);
        if at.is_known() { at } else { begin() }
    }
}

/// So many blocks are looked through for a place.
const BLOCKS: usize = 16;

impl Body {
    /// The first known place from step `step` of a block on: that of a loop at its head, where
    /// iterations are counted.
    #[must_use]
    pub fn at_from(&self, block: BlockId, step: usize) -> At {
        let (mut seen, mut todo) = (vec![block], VecDeque::from([(block, step)]));
        while let Some((id, from)) = todo.pop_front() {
            let Some(block) = self.blocks.get(id.0 as usize) else { continue };
            let mut steps = block.insts.iter().skip(from).map(Inst::at);
            if let Some(at) = steps.find(|at| at.is_known()) {
                return at;
            }
            for next in block.term.successors() {
                if seen.len() < BLOCKS && !seen.contains(&next) {
                    seen.push(next);
                    todo.push_back((next, 0));
                }
            }
        }
        At::NOWHERE
    }
}
