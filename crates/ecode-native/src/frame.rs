//! Where a function's variables lie in its frame.

use super::{Protection, flow};
use cranelift_codegen::{CompiledCode, ir::StackSlot, isa::unwind::UnwindInst};
use ecode::ir::{Body, Reg, Ty};
use std::collections::HashMap;

/// Offsets in one piece of stack. With protection, from low to high: pointers, variables, arrays,
/// the guard. An array that overflows upwards meets the guard before anything else of the frame's
/// own, and nothing that decides where later writes go lies above it.
#[derive(Clone)]
pub(super) struct Frame {
    pub(super) slots: Vec<i32>,
    pub(super) size: u32,
    pub(super) align: u64,
    /// Where the guard lies, in functions that have one.
    pub(super) guard: Option<i32>,
    /// Places of what lives in the frame; none, if all of it lives in registers.
    pub(super) homes: Option<Homes>,
}

/// Where a guarded function keeps what leads to other memory.
#[derive(Clone)]
pub(super) struct Homes {
    /// The instance's context, which says what the guard is compared with.
    pub(super) context: i32,
    /// Pointers that live longer than a block.
    pub(super) pointers: HashMap<Reg, i32>,
}

impl Frame {
    pub(super) fn new(body: &Body, params: usize, protection: Protection) -> Self {
        let has_array = body.slots.iter().any(|slot| slot.is_array);
        let guarded = protection == Protection::Stack && has_array;
        let homes = guarded.then(|| {
            let local = flow::local(body, params);
            let lives = |index: &usize| body.regs[*index] == Ty::Ptr && !local[*index];
            let pointers = (0..body.regs.len()).filter(lives).map(|index| Reg(index as u32));
            Homes { context: 0, pointers: pointers.zip((8..).step_by(8)).collect() }
        });
        let mut at = homes.as_ref().map_or(0, |homes| 8 + 8 * homes.pointers.len() as u64);
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
        if guarded {
            // What Cranelift adds would else hide in the padding; see `is_all`.
            at = (at + 8).next_multiple_of(16);
        }
        Self { slots, size: at as u32, align, guard, homes }
    }

    /// Whether `code` keeps nothing in memory but what this frame holds, and what its callers have
    /// in registers: Cranelift puts values for which it has no register above the arrays.
    pub(super) fn is_all(&self, code: &CompiledCode) -> bool {
        let saved = code.buffer.unwind_info.iter().find_map(|(_, step)| match step {
            UnwindInst::DefineNewFrame { offset_downward_to_clobbers, .. } => {
                Some(*offset_downward_to_clobbers)
            }
            _ => None,
        });
        let (Some(saved), Some(layout)) = (saved, code.buffer.frame_layout()) else { return false };
        // Arguments of calls lie below; the frame is the only slot.
        let arguments = layout.stackslots[StackSlot::from_u32(0)].offset;
        layout.frame_to_fp_offset == arguments + self.size + saved
    }
}

/// What a guard is: a number that cannot be guessed.
pub(crate) fn guard() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    // `RandomState` is keyed by the system's random numbers. The lowest byte is 0, so that an
    // overflowing text cannot carry the guard.
    RandomState::new().hash_one(0) << 8 | 1 << 63
}
