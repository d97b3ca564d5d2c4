//! Loads, stores and copies: where an address may lead.
//!
//! An address that the program computes is compared with the end of its memory, once per block for
//! all accesses by one register. Variables and static data need no comparison where their place is
//! known.

use super::{
    asm::{Alu, Cond, Mreg, R0, R1, R2, R10, Size, Src, Width},
    func::{Flow, MAX_OFFSET, SLOTS},
    inst::bytes,
    program::{FRAME, cell, code},
};
use ecode::ir::{Inst, MemTy, Operand, Reg, Ty};

/// Copies up to this length are spelled out.
const MAX_INLINE_COPY: u64 = 128;
/// Bytes that an iteration of a longer copy moves.
const STRIDE: u64 = 32;

impl Flow<'_, '_> {
    /// `addr + off` in `R2` and a distance from it, good for `len` bytes. May use `R1`.
    pub(super) fn address(
        &mut self,
        addr: &Operand,
        off: i64,
        len: i64,
        rest: &[Inst],
    ) -> (Mreg, i16) {
        if let Operand::Reg(reg) = addr
            && (0..MAX_OFFSET).contains(&off)
        {
            self.register_address(*reg, off + len, rest);
            return (R2, off as i16);
        }
        self.in_r2 = None;
        (R2, self.address_in(R2, R1, addr, off, len))
    }

    /// Makes `R2` the address in `reg`, of which bytes up to `end` are used.
    fn register_address(&mut self, reg: Reg, end: i64, rest: &[Inst]) {
        let known = self.checked.get(&reg).is_some_and(|known| *known >= end);
        if known && self.in_r2 == Some(reg) {
            return;
        }
        let own = self.operand(&Operand::Reg(reg), Ty::Ptr, R2);
        if !known {
            let end = farthest(reg, end, rest);
            self.compare_with_end(own, end, R1);
            self.checked.insert(reg, end);
        }
        self.asm().cast(R2, own);
        self.in_r2 = Some(reg);
    }

    /// Makes `to` an address and returns a distance from it, good for `len` bytes from
    /// `addr + off`.
    fn address_in(&mut self, to: Mreg, scratch: Mreg, addr: &Operand, off: i64, len: i64) -> i16 {
        match addr {
            Operand::Slot(slot, at) => {
                let at = (self.slots[slot.0 as usize] as i64).wrapping_add(*at).wrapping_add(off);
                let is_inside = at >= 0 && at.saturating_add(len) <= self.slot_bytes as i64;
                self.asm().load(Size::B4, to, FRAME, SLOTS);
                let rest = if is_inside && at < MAX_OFFSET { at } else { 0 };
                if at != rest {
                    self.asm().alu(Alu::ADD, Width::W32, to, Src::Imm((at - rest) as i32));
                }
                if !is_inside {
                    self.compare_with_end(to, len, scratch);
                }
                self.asm().cast(to, to);
                rest as i16
            }
            Operand::Reg(_) => {
                self.fetch(to, Ty::Ptr, addr);
                if off != 0 {
                    self.asm().alu(Alu::ADD, Width::W32, to, Src::Imm(off as i32));
                }
                self.compare_with_end(to, len, scratch);
                self.asm().cast(to, to);
                0
            }
            _ => {
                let at = self.unit.address(addr).wrapping_add(off as u32);
                self.asm().mov(Width::W32, to, Src::Imm(at as i32));
                let end = i64::from(at).saturating_add(len);
                if end > i64::from(self.unit.layout.heap_base) {
                    self.compare_with_end(to, len, scratch);
                }
                self.asm().cast(to, to);
                0
            }
        }
    }

    /// Ends the call unless the `len` bytes from `address` on lie in memory.
    fn compare_with_end(&mut self, address: Mreg, len: i64, scratch: Mreg) {
        let outside = self.unit.trap(code::BOUNDS);
        self.asm().load(Size::B4, scratch, R10, cell::MEMORY);
        self.asm().alu(Alu::SUB, Width::W64, scratch, Src::Imm(len as i32));
        // Signed, since memory may be shorter than what is copied at once.
        self.asm().jump_if(Cond::SGT, Width::W64, address, Src::Reg(scratch), outside);
    }

    pub(super) fn copy(&mut self, dst: &Operand, src: &Operand, len: u64) {
        self.in_r2 = None;
        let from = self.address_in(R2, R1, src, 0, len as i64);
        let to = self.address_in(R1, R0, dst, 0, len as i64);
        let piece = |flow: &mut Self, size: Size, at: i16| {
            flow.asm().load(size, R0, R2, from + at);
            flow.asm().store(size, R1, to + at, Src::Reg(R0));
        };
        self.in_pieces(len, &[R1, R2], piece);
    }

    pub(super) fn zero(&mut self, dst: &Operand, len: u64) {
        self.in_r2 = None;
        let to = self.address_in(R2, R1, dst, 0, len as i64);
        let piece = |flow: &mut Self, size, at| flow.asm().store(size, R2, to + at, Src::Imm(0));
        self.in_pieces(len, &[R2], piece);
    }

    /// Does `piece` for all parts of `len` bytes; in a loop that moves `bases` if they are many.
    fn in_pieces(&mut self, len: u64, bases: &[Mreg], piece: impl Fn(&mut Self, Size, i16)) {
        if len <= MAX_INLINE_COPY {
            return pieces(len).for_each(|(size, at)| piece(self, size, at));
        }
        let iterations = (len / STRIDE) as i32;
        self.asm().store(Size::B4, R10, cell::COUNT, Src::Imm(iterations));
        let (again, late) = (self.asm().label(), self.unit.trap(code::TIME));
        self.asm().place(again);
        self.asm().may_goto(late);
        pieces(STRIDE).for_each(|(size, at)| piece(self, size, at));
        for base in bases {
            self.asm().alu(Alu::ADD, Width::W64, *base, Src::Imm(STRIDE as i32));
        }
        self.asm().load(Size::B4, R0, R10, cell::COUNT);
        self.asm().alu(Alu::SUB, Width::W32, R0, Src::Imm(1));
        self.asm().store(Size::B4, R10, cell::COUNT, Src::Reg(R0));
        self.asm().jump_if(Cond::NE, Width::W32, R0, Src::Imm(0), again);
        pieces(len % STRIDE).for_each(|(size, at)| piece(self, size, at));
        // It took as long as that many iterations of a loop.
        self.asm().load(Size::B4, R0, R10, cell::FUEL);
        self.asm().alu(Alu::SUB, Width::W32, R0, Src::Imm(iterations));
        self.asm().store(Size::B4, R10, cell::FUEL, Src::Reg(R0));
    }
}

/// The farthest byte from `reg` that the block uses before it changes, at least `end`.
fn farthest(reg: Reg, end: i64, rest: &[Inst]) -> i64 {
    let mut farthest = end;
    for inst in rest {
        let (mem, addr, off): (MemTy, &Operand, i64) = match inst {
            Inst::Load { mem, addr, off, .. } | Inst::Store { mem, addr, off, .. } => {
                (*mem, addr, *off)
            }
            Inst::Call { .. } => break,
            _ => (MemTy::U8, &Operand::Int(0), 0),
        };
        if *addr == Operand::Reg(reg) && (0..MAX_OFFSET).contains(&off) {
            farthest = farthest.max(off + bytes(mem));
        }
        if inst.result().is_some_and(|(dst, _)| dst == reg) {
            break;
        }
    }
    farthest
}

/// The cells that `len` bytes are made of.
fn pieces(len: u64) -> impl Iterator<Item = (Size, i16)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let (size, step) = match len - at {
            0 => return None,
            1 => (Size::B1, 1),
            2..4 => (Size::B2, 2),
            4..8 => (Size::B4, 4),
            _ => (Size::B8, 8),
        };
        at += step;
        Some((size, (at - step) as i16))
    })
}
