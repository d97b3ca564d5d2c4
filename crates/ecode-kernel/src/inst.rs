//! Instructions on registers. Integers of 32 bits and addresses are kept with the upper half clear.

use super::{
    asm::{Alu, Cond, Label, Mreg, R0, R1, R2, R10, Size, Src, Width},
    func::{Flow, SLOTS, size, width},
    program::{FRAME, cell, code},
};
use ecode::ir::{BinOp, CmpOp, ConvOp, Inst, MemTy, Operand, Reg, Ty};

impl Flow<'_, '_> {
    /// A machine register that holds the operand: its own, or `scratch`.
    pub(super) fn operand(&mut self, operand: &Operand, ty: Ty, scratch: Mreg) -> Mreg {
        if let Operand::Reg(reg) = operand
            && let Some(own) = self.homes.mreg(*reg)
        {
            return own;
        }
        self.fetch(scratch, ty, operand);
        scratch
    }

    /// Puts the operand into `to`.
    pub(super) fn fetch(&mut self, to: Mreg, ty: Ty, operand: &Operand) {
        match operand {
            Operand::Reg(reg) => match self.homes.mreg(*reg) {
                Some(from) => self.asm().mov(Width::W64, to, Src::Reg(from)),
                None => {
                    let cell = self.homes.cell(*reg);
                    self.asm().load(size(ty), to, FRAME, cell);
                }
            },
            Operand::Int(value) if ty == Ty::I64 => self.asm().imm64(to, *value),
            Operand::Slot(slot, off) => {
                let at = (self.slots[slot.0 as usize] as i64).wrapping_add(*off) as i32;
                self.asm().load(Size::B4, to, FRAME, SLOTS);
                if at != 0 {
                    self.asm().alu(Alu::ADD, Width::W32, to, Src::Imm(at));
                }
            }
            _ => {
                let value = self.unit.address(operand) as i32;
                self.asm().mov(Width::W32, to, Src::Imm(value));
            }
        }
    }

    /// The same, but the verifier does not know a constant again.
    pub(super) fn unknown(&mut self, to: Mreg, ty: Ty, operand: &Operand) {
        if matches!(operand, Operand::Reg(_) | Operand::Slot(..)) {
            return self.fetch(to, ty, operand);
        }
        let value = match (operand, ty) {
            (Operand::Int(value), Ty::I64) => *value,
            _ => i64::from(self.unit.address(operand) as i32),
        };
        match i32::try_from(value) {
            Ok(value) => {
                self.asm().load(Size::B8, to, R10, cell::ZERO);
                if value != 0 {
                    self.asm().alu(Alu::ADD, width(ty), to, Src::Imm(value));
                }
            }
            Err(_) => {
                // Too long for an instruction, and too long to matter for loops.
                self.asm().imm64(to, value);
            }
        }
    }

    /// A constant as the second operand; `scratch` may hold it.
    pub(super) fn constant(&mut self, value: i64, ty: Ty, scratch: Mreg) -> Src {
        match (ty, i32::try_from(value)) {
            (Ty::I64, Err(_)) => {
                self.asm().imm64(scratch, value);
                Src::Reg(scratch)
            }
            _ => Src::Imm(value as i32),
        }
    }

    /// The second operand of arithmetic and comparisons.
    fn source(&mut self, operand: &Operand, ty: Ty, scratch: Mreg) -> Src {
        match operand {
            Operand::Int(value) => self.constant(*value, ty, scratch),
            Operand::Global(..) | Operand::Func(_) => Src::Imm(self.unit.address(operand) as i32),
            _ => Src::Reg(self.operand(operand, ty, scratch)),
        }
    }

    /// Where the value of `dst` is made: its own machine register, unless an operand that is still
    /// needed is there.
    fn target(&self, dst: Reg, needed: &[&Operand]) -> Mreg {
        let Some(own) = self.homes.mreg(dst) else { return R0 };
        let is_there = |operand: &&Operand| match operand {
            Operand::Reg(reg) => self.homes.mreg(*reg) == Some(own),
            _ => false,
        };
        if needed.iter().any(is_there) { R0 } else { own }
    }

    /// `dst` gets what `from` holds.
    pub(super) fn set_mreg(&mut self, dst: Reg, from: Mreg) {
        self.changed(dst);
        match self.homes.mreg(dst) {
            Some(own) => self.asm().mov(Width::W64, own, Src::Reg(from)),
            None => {
                let (cell, size) = (self.homes.cell(dst), size(self.ty(dst)));
                self.asm().store(size, FRAME, cell, Src::Reg(from));
            }
        }
    }

    /// What was known about the register is over.
    fn changed(&mut self, reg: Reg) {
        self.checked.remove(&reg);
        if self.in_r2 == Some(reg) {
            self.in_r2 = None;
        }
    }

    /// `dst` gets the operand.
    pub(super) fn set(&mut self, dst: Reg, ty: Ty, operand: &Operand) {
        if let Some(own) = self.homes.mreg(dst) {
            self.changed(dst);
            self.unknown(own, ty, operand);
        } else {
            self.changed(dst);
            let cell = self.homes.cell(dst);
            self.put(cell, ty, operand);
        }
    }

    /// Stores the operand in the cell at `at`.
    pub(super) fn put(&mut self, at: i16, ty: Ty, operand: &Operand) {
        let value = self.source(operand, ty, R0);
        self.asm().store(size(ty), FRAME, at, value);
    }

    /// One instruction; `rest` are it and those behind it in the block.
    pub(super) fn inst(&mut self, inst: &Inst, rest: &[Inst]) {
        match inst {
            Inst::Copy { ty, dst, src } => self.set(*dst, *ty, src),
            Inst::Bin { op, ty, dst, a, b, .. } => self.bin(*op, *ty, *dst, a, b),
            Inst::Cmp { op, ty, dst, a, b } => self.cmp(*op, *ty, *dst, a, b),
            Inst::Conv { op, from, dst, src, .. } => self.conv(*op, *from, *dst, src),
            Inst::PtrAdd { dst, base, index, index_ty, scale } => {
                self.ptr_add(*dst, base, index, *index_ty, *scale);
            }
            Inst::PtrSub { dst, a, b } => {
                let to = self.target(*dst, &[b]);
                self.fetch(to, Ty::Ptr, a);
                let b = self.source(b, Ty::Ptr, R1);
                self.asm().alu(Alu::SUB, Width::W32, to, b);
                self.asm().sign_extend(Width::W64, to, to, 32);
                self.set_mreg(*dst, to);
            }
            Inst::Load { mem, dst, addr, off, .. } => {
                let (base, off) = self.address(addr, *off, bytes(*mem), rest);
                let to = self.target(*dst, &[]);
                self.load(*mem, to, base, off);
                self.set_mreg(*dst, to);
            }
            Inst::Store { mem, addr, off, val, .. } => {
                let (base, off) = self.address(addr, *off, bytes(*mem), rest);
                let val = self.source(val, mem.reg(), R0);
                self.asm().store(mem_size(*mem), base, off, val);
                if *mem == MemTy::Ptr {
                    self.asm().store(Size::B4, base, off + 4, Src::Imm(0));
                }
            }
            Inst::MemCopy { dst, src, len, .. } => self.copy(dst, src, *len),
            Inst::MemZero { dst, len, .. } => self.zero(dst, *len),
            // INVARIANT: calls are the caller's; modules with floats or vectors are refused before.
            Inst::Call { .. }
            | Inst::Neg { .. }
            | Inst::Vec(_)
            | Inst::Select { .. }
            | Inst::Spend { .. }
            | Inst::Spent
            | Inst::FuelLeft { .. }
            | Inst::SetFuelLeft { .. }
            | Inst::Tick { .. } => {}
        }
    }

    fn bin(&mut self, op: BinOp, ty: Ty, dst: Reg, a: &Operand, b: &Operand) {
        if matches!(op, BinOp::DivS | BinOp::DivU | BinOp::RemS | BinOp::RemU) {
            return self.divide(op, ty, dst, a, b);
        }
        let to = self.target(dst, &[b]);
        self.fetch(to, ty, a);
        let is_shift = matches!(op, BinOp::Shl | BinOp::ShrS | BinOp::ShrU);
        let b = match b {
            Operand::Int(count) if is_shift => {
                Src::Imm((*count & if ty == Ty::I64 { 63 } else { 31 }) as i32)
            }
            _ => self.source(b, ty, R1),
        };
        self.asm().alu(alu(op), width(ty), to, b);
        self.set_mreg(dst, to);
    }

    fn divide(&mut self, op: BinOp, ty: Ty, dst: Reg, a: &Operand, b: &Operand) {
        let b = match b {
            Operand::Int(value) if *value != 0 => self.constant(*value, ty, R1),
            _ => {
                let value = self.operand(b, ty, R1);
                let by_zero = self.unit.trap(code::DIVIDE);
                self.asm().jump_if(Cond::EQ, width(ty), value, Src::Imm(0), by_zero);
                Src::Reg(value)
            }
        };
        self.fetch(R0, ty, a);
        self.asm().alu(alu(op), width(ty), R0, b);
        self.set_mreg(dst, R0);
    }

    /// 1 or 0; which of them, the verifier does not know.
    fn cmp(&mut self, op: CmpOp, ty: Ty, dst: Reg, a: &Operand, b: &Operand) {
        let to = self.target(dst, &[a, b]);
        // Operands in cells are fetched to the scratch registers, so the result waits.
        let to = if to == R0 { R2 } else { to };
        if to == R2 {
            self.in_r2 = None;
        }
        let no = self.asm().label();
        self.asm().load(Size::B8, to, R10, cell::ZERO);
        self.jump_unless(op, ty, a, b, no);
        self.asm().alu(Alu::ADD, Width::W32, to, Src::Imm(1));
        self.asm().place(no);
        self.set_mreg(dst, to);
    }

    pub(super) fn jump_unless(&mut self, op: CmpOp, ty: Ty, a: &Operand, b: &Operand, to: Label) {
        self.compare(cond(op).not(), ty, a, b, to);
    }

    pub(super) fn jump_if(&mut self, op: CmpOp, ty: Ty, a: &Operand, b: &Operand, to: Label) {
        self.compare(cond(op), ty, a, b, to);
    }

    fn compare(&mut self, cond: Cond, ty: Ty, a: &Operand, b: &Operand, to: Label) {
        let a = self.operand(a, ty, R0);
        let b = self.source(b, ty, R1);
        self.asm().jump_if(cond, width(ty), a, b, to);
    }

    fn conv(&mut self, op: ConvOp, from: Ty, dst: Reg, src: &Operand) {
        let to = self.target(dst, &[]);
        let src = self.operand(src, from, to);
        let asm = self.asm();
        match op {
            ConvOp::Sext8 => asm.sign_extend(Width::W32, to, src, 8),
            ConvOp::Sext16 => asm.sign_extend(Width::W32, to, src, 16),
            ConvOp::Sext32 => asm.sign_extend(Width::W64, to, src, 32),
            ConvOp::Zext8 | ConvOp::Zext16 => {
                let mask = if op == ConvOp::Zext8 { 0xff } else { 0xffff };
                asm.mov(Width::W64, to, Src::Reg(src));
                asm.alu(Alu::AND, Width::W32, to, Src::Imm(mask));
            }
            // Whatever makes 32 bits of 64, or 64 of 32 by zeros.
            _ => asm.mov(Width::W32, to, Src::Reg(src)),
        }
        self.set_mreg(dst, to);
    }

    fn ptr_add(&mut self, dst: Reg, base: &Operand, index: &Operand, index_ty: Ty, scale: i64) {
        if let Operand::Int(index) = index {
            let to = self.target(dst, &[]);
            self.fetch(to, Ty::Ptr, base);
            let bytes = index.wrapping_mul(scale) as i32;
            self.asm().alu(Alu::ADD, Width::W32, to, Src::Imm(bytes));
            return self.set_mreg(dst, to);
        }
        let to = self.target(dst, &[base]);
        let index = self.operand(index, index_ty, to);
        self.asm().mov(Width::W32, to, Src::Reg(index));
        match scale {
            1 => {}
            _ if scale > 0 && scale.count_ones() == 1 => {
                // More than 31 places leave nothing of 32 bits.
                let shift = scale.trailing_zeros() as i32;
                match shift < 32 {
                    true => self.asm().alu(Alu::LSH, Width::W32, to, Src::Imm(shift)),
                    false => self.asm().mov(Width::W32, to, Src::Imm(0)),
                }
            }
            _ => self.asm().alu(Alu::MUL, Width::W32, to, Src::Imm(scale as i32)),
        }
        let base = self.source(base, Ty::Ptr, R1);
        self.asm().alu(Alu::ADD, Width::W32, to, base);
        self.set_mreg(dst, to);
    }

    fn load(&mut self, mem: MemTy, to: Mreg, base: Mreg, off: i16) {
        self.asm().load(mem_size(mem), to, base, off);
        match mem {
            MemTy::I8 => self.asm().sign_extend(Width::W32, to, to, 8),
            MemTy::I16 => self.asm().sign_extend(Width::W32, to, to, 16),
            _ => {}
        }
    }
}

/// Bytes that a cell takes.
pub(super) fn bytes(mem: MemTy) -> i64 {
    match mem {
        MemTy::I8 | MemTy::U8 => 1,
        MemTy::I16 | MemTy::U16 => 2,
        MemTy::I32 | MemTy::F32 => 4,
        MemTy::I64 | MemTy::F64 | MemTy::Ptr => 8,
    }
}

/// Bytes that are loaded and stored at once: of an address, the lower half.
fn mem_size(mem: MemTy) -> Size {
    match mem {
        MemTy::I8 | MemTy::U8 => Size::B1,
        MemTy::I16 | MemTy::U16 => Size::B2,
        MemTy::I32 | MemTy::F32 | MemTy::Ptr => Size::B4,
        MemTy::I64 | MemTy::F64 => Size::B8,
    }
}

fn alu(op: BinOp) -> Alu {
    match op {
        BinOp::Add => Alu::ADD,
        BinOp::Sub => Alu::SUB,
        BinOp::Mul => Alu::MUL,
        BinOp::DivS => Alu::SDIV,
        BinOp::DivU => Alu::DIV,
        BinOp::RemS => Alu::SMOD,
        BinOp::RemU => Alu::MOD,
        BinOp::And => Alu::AND,
        BinOp::Or => Alu::OR,
        BinOp::Xor => Alu::XOR,
        BinOp::Shl => Alu::LSH,
        BinOp::ShrS => Alu::ARSH,
        BinOp::ShrU => Alu::RSH,
    }
}

fn cond(op: CmpOp) -> Cond {
    match op {
        CmpOp::Eq => Cond::EQ,
        CmpOp::Ne => Cond::NE,
        CmpOp::LtS => Cond::SLT,
        CmpOp::LtU => Cond::LT,
        CmpOp::LeS => Cond::SLE,
        CmpOp::LeU => Cond::LE,
        CmpOp::GtS => Cond::SGT,
        CmpOp::GtU => Cond::GT,
        CmpOp::GeS => Cond::SGE,
        CmpOp::GeU => Cond::GE,
    }
}
