//! Instructions.

use super::{
    index::Sums,
    layout, relative,
    unit::{FUEL, Numbers, SP, Unit},
};
use crate::ir::{At, Body, Callee, Inst, MemTy, Operand, Reg, Ty};
use wasm_encoder::{BlockType, BranchHint, Function, MemArg};

/// Copies up to this length are spelled out.
const MAX_INLINE_COPY: u64 = 128;
/// Copies beyond this length look at the clock.
const LONG_COPY: u64 = 1 << 16;

/// A function that was emitted.
pub(super) struct Emitted {
    pub(super) code: Function,
    /// Its branches that are hardly ever taken.
    pub(super) unlikely: Vec<BranchHint>,
    /// Where its parts come from, by the offset at which they begin.
    pub(super) marks: Vec<(usize, At)>,
}

pub(super) struct Emitter<'u, 'm> {
    pub(super) unit: &'u Unit<'m>,
    body: &'u Body,
    pub(super) code: Function,
    /// The local that holds the frame's address.
    pub(super) frame: u32,
    pub(super) frame_bytes: u64,
    pub(super) ret: Option<Ty>,
    slots: Vec<u64>,
    /// Where the function has a branch that is hardly ever taken.
    unlikely: Vec<BranchHint>,
    /// Where its parts come from, by the offset at which they begin.
    marks: Vec<(usize, At)>,
    /// What registers that hold distances are the distances from.
    pub(super) bases: Vec<Option<i64>>,
    /// What was added up in the block so far.
    pub(super) sums: Sums,
}

impl<'u, 'm> Emitter<'u, 'm> {
    pub(super) fn new(unit: &'u Unit<'m>, body: &'u Body, params: usize, code: Function) -> Self {
        let mut at = 0_u64;
        let mut slots = Vec::with_capacity(body.slots.len());
        for slot in &body.slots {
            at = at.next_multiple_of(slot.align.max(1));
            slots.push(at);
            at += slot.size;
        }
        let frame_bytes = at.next_multiple_of(16);
        let bases = relative::bases(unit, body, params, &slots);
        let frame = body.regs.len() as u32;
        let (ret, sums) = (None, Sums::default());
        let (unlikely, marks) = (Vec::new(), Vec::new());
        Self { unit, body, code, frame, frame_bytes, ret, slots, unlikely, marks, bases, sums }
    }

    /// The code, and what is known about it.
    pub(super) fn finish(mut self) -> Emitted {
        self.code.instructions().end();
        Emitted { code: self.code, unlikely: self.unlikely, marks: self.marks }
    }

    /// Puts a value on the stack.
    pub(super) fn operand(&mut self, operand: &Operand, ty: Ty) {
        let mut code = self.code.instructions();
        match (operand, ty) {
            (Operand::Reg(reg), _) => code.local_get(reg.0),
            (Operand::Int(value), Ty::I64) => code.i64_const(*value),
            (Operand::Int(value), _) => code.i32_const(*value as i32),
            (Operand::Float(bits), Ty::F32) => {
                code.f32_const((f64::from_bits(*bits) as f32).into())
            }
            (Operand::Float(bits), _) => code.f64_const(f64::from_bits(*bits).into()),
            (Operand::Slot(slot, off), _) => {
                let at = (self.slots[slot.0 as usize] as i64).wrapping_add(*off) as i32;
                code.local_get(self.frame).i32_const(at).i32_add()
            }
            (Operand::Global(..) | Operand::Func(_), _) => {
                code.i32_const(self.unit.address(operand) as i32)
            }
        };
    }

    /// Puts the part of an address on the stack that does not fit into an instruction, and returns
    /// the rest.
    pub(super) fn address(&mut self, addr: &Operand, off: i64) -> MemArg {
        let (base, off) = match addr {
            Operand::Slot(slot, at) => {
                let off = (self.slots[slot.0 as usize] as i64).wrapping_add(*at).wrapping_add(off);
                (None, off)
            }
            Operand::Global(..) | Operand::Int(_) => {
                let at = self.unit.address(addr).wrapping_add(off as u32);
                self.code.instructions().i32_const(at as i32);
                return mem_arg(0);
            }
            Operand::Reg(reg) => {
                (Some(addr), relative::of(&self.bases, *reg).unwrap_or(0).wrapping_add(off))
            }
            _ => (Some(addr), off),
        };
        match base {
            Some(base) => self.operand(base, Ty::Ptr),
            None => drop(self.code.instructions().local_get(self.frame)),
        }
        match u64::try_from(off).ok().filter(|off| *off < 1 << 31) {
            Some(off) => mem_arg(off),
            None => {
                self.code.instructions().i32_const(off as i32).i32_add();
                mem_arg(0)
            }
        }
    }

    pub(super) fn set(&mut self, reg: Reg) {
        self.code.instructions().local_set(reg.0);
    }

    /// The steps of a block.
    pub(super) fn insts(&mut self, insts: &[Inst]) {
        self.sums = Sums::default();
        for inst in insts {
            let at = inst.at();
            if at.is_known() {
                self.marks.push((self.code.byte_len(), at));
            }
            self.inst(inst);
            self.sums.note(inst);
        }
    }

    fn inst(&mut self, inst: &Inst) {
        match inst {
            Inst::Copy { ty, dst, src } => {
                self.operand(src, *ty);
                self.set(*dst);
            }
            Inst::Bin { op, ty, dst, a, b, .. } => {
                self.bin(*op, *ty, a, b);
                self.set(*dst);
            }
            Inst::Neg { ty, dst, a } => {
                self.operand(a, *ty);
                match ty {
                    Ty::F32 => self.code.instructions().f32_neg(),
                    _ => self.code.instructions().f64_neg(),
                };
                self.set(*dst);
            }
            Inst::Cmp { op, ty, dst, a, b } => {
                self.operand(a, *ty);
                self.operand(b, *ty);
                self.cmp(*op, *ty);
                self.set(*dst);
            }
            Inst::Conv { op, from, to, dst, src } => {
                self.operand(src, *from);
                self.conv(*op, *from, *to);
                self.set(*dst);
            }
            Inst::PtrAdd { dst, base, index, index_ty, scale } => {
                match relative::of(&self.bases, *dst) {
                    Some(_) => self.distance(base, index, *index_ty, *scale),
                    None => {
                        self.operand(base, Ty::Ptr);
                        self.scaled(index, *index_ty, *scale);
                        self.code.instructions().i32_add();
                    }
                }
                self.set(*dst);
            }
            Inst::PtrSub { dst, a, b } => {
                self.operand(a, Ty::Ptr);
                self.operand(b, Ty::Ptr);
                self.code.instructions().i32_sub().i64_extend_i32_s();
                self.set(*dst);
            }
            Inst::Load { mem, dst, addr, off, .. } => {
                let arg = self.address(addr, *off);
                self.load(*mem, arg);
                self.set(*dst);
            }
            Inst::Store { mem, addr, off, val, .. } => {
                let arg = self.address(addr, *off);
                self.operand(val, mem.reg());
                self.store(*mem, arg);
            }
            Inst::MemCopy { dst, src, len, .. } => self.copy(dst, src, *len),
            Inst::MemZero { dst, len, .. } => self.zero(dst, *len),
            Inst::Call { dst, callee, args, .. } => self.call(*dst, callee, args),
            Inst::Vec(inst) => self.vector(inst),
            Inst::Select { ty, dst, cond, a, b } => {
                self.operand(a, *ty);
                self.operand(b, *ty);
                self.operand(cond, Ty::I32);
                self.code.instructions().select();
                self.set(*dst);
            }
            Inst::FuelLeft { dst } => {
                self.code.instructions().global_get(FUEL);
                self.set(*dst);
            }
            Inst::SetFuelLeft { src } => {
                self.operand(src, Ty::I32);
                self.code.instructions().global_set(FUEL);
            }
            Inst::Tick { fuel, kept, .. } => self.tick(*fuel, kept),
            // Counters have taken them up.
            Inst::Spend { .. } | Inst::Spent => {}
        }
    }

    fn load(&mut self, mem: MemTy, arg: MemArg) {
        let mut code = self.code.instructions();
        match mem {
            MemTy::I8 => code.i32_load8_s(arg),
            MemTy::U8 => code.i32_load8_u(arg),
            MemTy::I16 => code.i32_load16_s(arg),
            MemTy::U16 => code.i32_load16_u(arg),
            MemTy::I32 | MemTy::Ptr => code.i32_load(arg),
            MemTy::I64 => code.i64_load(arg),
            MemTy::F32 => code.f32_load(arg),
            MemTy::F64 => code.f64_load(arg),
        };
    }

    fn store(&mut self, mem: MemTy, arg: MemArg) {
        let mut code = self.code.instructions();
        match mem {
            MemTy::I8 | MemTy::U8 => code.i32_store8(arg),
            MemTy::I16 | MemTy::U16 => code.i32_store16(arg),
            MemTy::I32 => code.i32_store(arg),
            MemTy::I64 => code.i64_store(arg),
            MemTy::Ptr => code.i64_extend_i32_u().i64_store(arg),
            MemTy::F32 => code.f32_store(arg),
            MemTy::F64 => code.f64_store(arg),
        };
    }

    fn copy(&mut self, dst: &Operand, src: &Operand, len: u64) {
        if len <= MAX_INLINE_COPY {
            for (mem, off) in pieces(len) {
                let to = self.address(dst, off);
                let from = self.address(src, off);
                self.load(mem, from);
                self.store(mem, to);
            }
            return;
        }
        self.operand(dst, Ty::Ptr);
        self.operand(src, Ty::Ptr);
        self.code.instructions().i32_const(len as i32).memory_copy(0, 0);
        self.long_step(len);
    }

    fn zero(&mut self, dst: &Operand, len: u64) {
        if len <= MAX_INLINE_COPY {
            for (mem, off) in pieces(len) {
                let to = self.address(dst, off);
                self.operand(&Operand::Int(0), mem.reg());
                self.store(mem, to);
            }
            return;
        }
        self.operand(dst, Ty::Ptr);
        self.code.instructions().i32_const(0).i32_const(len as i32).memory_fill(0);
        self.long_step(len);
    }

    /// The host's code uses all registers. Where values are put away for that time, the register
    /// allocator need not do that for the whole of the loop around.
    fn tick(&mut self, iterations: Reg, kept: &[Reg]) {
        let mut at = layout::ROOM.start;
        let places = kept.iter().map(|reg| {
            at += 16;
            (*reg, memory_type(self.body.regs[reg.0 as usize]), mem_arg(at - 16))
        });
        let places: Vec<_> = places.collect();
        let fits = at <= layout::ROOM.end;
        let mut code = self.code.instructions();
        code.local_get(iterations.0).i32_const(0).i32_le_s();
        let branch_func_offset = self.code.byte_len() as u32;
        self.unlikely.push(BranchHint { branch_func_offset, branch_hint_value: 0 });
        self.code.instructions().if_(BlockType::Empty);
        for (reg, ty, arg) in places.iter().filter(|_| fits) {
            let mut code = self.code.instructions();
            code.i32_const(0).local_get(reg.0);
            match ty {
                Some(mem) => self.store(*mem, *arg),
                None => drop(code.v128_store(*arg)),
            }
        }
        self.code
            .instructions()
            .call(Numbers::TICK)
            .i32_const(self.unit.strip)
            .local_set(iterations.0);
        for (reg, ty, arg) in places.iter().filter(|_| fits) {
            self.code.instructions().i32_const(0);
            match ty {
                Some(mem) => self.load(*mem, *arg),
                None => drop(self.code.instructions().v128_load(*arg)),
            }
            self.set(*reg);
        }
        if self.frame_bytes > 0 {
            self.code.instructions().global_get(SP).local_set(self.frame);
        }
        self.code.instructions().end();
    }

    /// One step that takes as long as many iterations.
    fn long_step(&mut self, len: u64) {
        if len > LONG_COPY {
            self.code.instructions().call(Numbers::TICK);
        }
    }

    fn call(&mut self, dst: Option<Reg>, callee: &Callee, args: &[Operand]) {
        let sig = match callee {
            Callee::Direct(id) => self.unit.module.sig_of(*id),
            Callee::Indirect(_, sig) => &self.unit.module.sigs[sig.0 as usize],
        };
        for (arg, ty) in args.iter().zip(&sig.params) {
            self.operand(arg, *ty);
        }
        let has_result = sig.ret.is_some();
        match callee {
            Callee::Direct(id) => {
                let number = self.unit.numbers.function(*id);
                self.code.instructions().call(number);
            }
            Callee::Indirect(target, sig) => {
                self.operand(target, Ty::Ptr);
                self.code.instructions().call_indirect(0, sig.0 + 1);
            }
        }
        match dst {
            Some(dst) => self.set(dst),
            None if has_result => drop(self.code.instructions().drop()),
            None => {}
        }
    }
}

/// How a register is kept in memory; `None` is a vector.
fn memory_type(ty: Ty) -> Option<MemTy> {
    Some(match ty {
        Ty::I32 | Ty::Ptr => MemTy::I32,
        Ty::I64 => MemTy::I64,
        Ty::F32 => MemTy::F32,
        Ty::F64 => MemTy::F64,
        Ty::V128 => return None,
    })
}

/// The cells that `len` bytes are made of.
fn pieces(len: u64) -> Vec<(MemTy, i64)> {
    let mut out = Vec::new();
    let mut at = 0;
    for (mem, size) in [(MemTy::I64, 8), (MemTy::I32, 4), (MemTy::U16, 2), (MemTy::U8, 1)] {
        while len - at >= size {
            out.push((mem, at as i64));
            at += size;
        }
    }
    out
}

pub(super) fn mem_arg(offset: u64) -> MemArg {
    MemArg { offset, align: 0, memory_index: 0 }
}
