//! Which functions count their turns: those with loops, and those that call functions of the module. The rest
//! is straight and calls no one, and takes no time to speak of.

use crate::ir::{Body, Callee, FuncId, Inst, Module};

pub(super) struct Metered {
    metered: Vec<bool>,
}

impl Metered {
    pub(super) fn new(module: &Module) -> Self {
        let metered = module.funcs.iter().map(|f| match &f.body {
            Some(body) => has_loop(body) || calls_own(module, body),
            None => false,
        });
        Self { metered: metered.collect() }
    }

    pub(super) fn is(&self, func: FuncId) -> bool {
        self.metered[func.0 as usize]
    }

    /// Whether the counter may change in a call.
    pub(super) fn call(&self, callee: &Callee) -> bool {
        match callee {
            Callee::Direct(id) => self.is(*id),
            Callee::Indirect(..) => true,
        }
    }
}

fn has_loop(body: &Body) -> bool {
    let back = |(index, block): (usize, &crate::ir::Block)| {
        block.term.successors().iter().any(|to| to.0 as usize <= index)
    };
    body.blocks.iter().enumerate().any(back)
}

fn calls_own(module: &Module, body: &Body) -> bool {
    body.blocks.iter().flat_map(|block| &block.insts).any(|inst| match inst {
        Inst::Call { callee: Callee::Direct(id), .. } => module.funcs[id.0 as usize].body.is_some(),
        Inst::Call { callee: Callee::Indirect(..), .. } => true,
        _ => false,
    })
}
