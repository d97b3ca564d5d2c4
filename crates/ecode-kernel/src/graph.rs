//! Who may call whom, and how much stack that takes.

use super::homes::HEAD;
use ecode::ir::{Body, Callee, FuncId, Inst, Module, SigId};
use std::collections::{HashMap, HashSet};

/// Functions on cycles of calls.
pub(super) fn recursive(module: &Module) -> HashSet<FuncId> {
    let next = edges(module);
    let on_cycle = |id: &FuncId| {
        let mut todo = next.get(id).cloned().unwrap_or_default();
        let mut seen = HashSet::new();
        while let Some(id) = todo.pop() {
            if seen.insert(id) {
                todo.extend(next.get(&id).into_iter().flatten());
            }
        }
        seen.contains(id)
    };
    next.keys().copied().filter(on_cycle).collect()
}

fn edges(module: &Module) -> HashMap<FuncId, Vec<FuncId>> {
    let table = module.address_taken();
    let mut next = HashMap::new();
    for (id, body) in bodies(module) {
        let callees = calls(body).flat_map(|(_, _, callee)| match callee {
            Callee::Direct(id) => vec![*id],
            Callee::Indirect(_, sig) => of_signature(module, &table, *sig).collect(),
        });
        next.insert(id, callees.collect());
    }
    next
}

/// The functions of `table` that have that signature.
pub(super) fn of_signature<'m>(
    module: &'m Module,
    table: &'m [FuncId],
    sig: SigId,
) -> impl Iterator<Item = FuncId> + 'm {
    table.iter().copied().filter(move |id| module.funcs[id.0 as usize].sig == sig)
}

fn bodies(module: &Module) -> impl Iterator<Item = (FuncId, &Body)> {
    let all = module.funcs.iter().enumerate();
    all.filter_map(|(index, func)| Some((FuncId(index as u32), func.body.as_ref()?)))
}

/// The calls of a function: block, place in the block, who is called.
pub(super) fn calls(body: &Body) -> impl Iterator<Item = (usize, usize, &Callee)> {
    body.blocks.iter().enumerate().flat_map(|(index, block)| {
        block.insts.iter().enumerate().filter_map(move |(step, inst)| match inst {
            Inst::Call { callee, .. } => Some((index, step, callee)),
            _ => None,
        })
    })
}

/// Bytes that slots and frames can take together, where no recursion makes them as many as there
/// may be.
pub(super) struct Need {
    pub(super) slots: Option<u64>,
    pub(super) frames: Option<u64>,
}

impl Need {
    pub(super) fn new(module: &Module) -> Self {
        let recursive = recursive(module);
        // A call of a host function has a frame too.
        let (mut slots, mut frames) = (0, HEAD as u64);
        for (_, body) in bodies(module) {
            slots += slot_bytes(body);
            frames += 8 * (body.regs.len() + most_args(body)) as u64 + HEAD as u64;
        }
        let repeats = |id: &FuncId| {
            let body = module.funcs[id.0 as usize].body.as_ref();
            body.is_some_and(|body| !body.slots.is_empty())
        };
        Self {
            slots: (!recursive.iter().any(repeats)).then_some(slots),
            frames: recursive.is_empty().then_some(frames),
        }
    }
}

fn most_args(body: &Body) -> usize {
    let args = body.blocks.iter().flat_map(|block| &block.insts).map(|inst| match inst {
        Inst::Call { args, .. } => args.len(),
        _ => 0,
    });
    args.max().unwrap_or(0)
}

/// Bytes that the slots of a function take.
fn slot_bytes(body: &Body) -> u64 {
    slots(body).1
}

/// Where slots lie in their part of the stack, and how long that is.
pub(super) fn slots(body: &Body) -> (Vec<u64>, u64) {
    let mut at = 0_u64;
    let mut slots = Vec::with_capacity(body.slots.len());
    for slot in &body.slots {
        at = at.next_multiple_of(slot.align.max(1));
        slots.push(at);
        at += slot.size;
    }
    (slots, at.next_multiple_of(16))
}
