//! Where a function's variables lie in its frame.

use super::Protection;
use crate::ir::{Body, Reg, Ty};
use std::collections::HashMap;

/// Offsets in one piece of stack. With protection, from low to high: copies of pointer parameters, variables,
/// arrays, the guard. An array that overflows upwards meets the guard before anything else of the frame's own,
/// and nothing that decides where later writes go lies above it.
pub(super) struct Frame {
    pub(super) slots: Vec<i32>,
    pub(super) size: u32,
    pub(super) align: u64,
    /// Where the guard lies, in functions that have one.
    pub(super) guard: Option<i32>,
    /// Pointer parameters that live in the frame.
    pub(super) homes: HashMap<Reg, i32>,
}

impl Frame {
    pub(super) fn new(body: &Body, params: usize, protection: Protection) -> Self {
        let has_array = body.slots.iter().any(|slot| slot.is_array);
        let guarded = protection == Protection::Stack && has_array;
        let mut at: u64 = 0;
        let mut homes = HashMap::new();
        if guarded {
            for index in (0..params).filter(|index| body.regs[*index] == Ty::Ptr) {
                homes.insert(Reg(index as u32), at as i32);
                at += 8;
            }
        }
        let mut order: Vec<usize> = (0..body.slots.len()).collect();
        order.sort_by_key(|index| guarded && body.slots[*index].is_array);
        let mut slots = vec![0; body.slots.len()];
        let mut align = 16;
        for index in order {
            let slot = &body.slots[index];
            align = slot.align.max(align);
            at = at.next_multiple_of(slot.align.max(1));
            slots[index] = at as i32;
            at += slot.size;
        }
        at = at.next_multiple_of(8);
        let guard = guarded.then_some(at as i32);
        at += if guarded { 8 } else { 0 };
        Self { slots, size: at as u32, align, guard, homes }
    }
}
