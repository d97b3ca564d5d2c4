//! Instructions.

use super::{
    code, context,
    flow::Flow,
    unit::{flags, machine_type, signature},
};
use cranelift_codegen::ir::{
    InstBuilder, Value,
    condcodes::{FloatCC, IntCC},
    types,
};
use ecode::ir::{BinOp, Callee, CmpOp, ConvOp, Inst, MemTy, Operand, Reg, SigId, Ty};

/// Copies up to this length are spelled out.
const MAX_INLINE_COPY: u64 = 128;

impl Flow<'_, '_> {
    pub(super) fn operand(&mut self, operand: &Operand, ty: Ty) -> Value {
        match (operand, ty) {
            (Operand::Reg(reg), _) => self.get(*reg),
            (Operand::Int(value), Ty::I32) => {
                self.b.ins().iconst(types::I32, i64::from(*value as u32))
            }
            (Operand::Int(value), _) => self.b.ins().iconst(types::I64, *value),
            (Operand::Float(bits), Ty::F32) => self.b.ins().f32const(f64::from_bits(*bits) as f32),
            (Operand::Float(bits), _) => self.b.ins().f64const(f64::from_bits(*bits)),
            (Operand::Slot(slot, off), _) => {
                let at = i64::from(self.frame.slots[slot.0 as usize]).wrapping_add(*off);
                self.frame_address(at)
            }
            (Operand::Global(global, off), _) => {
                let at = self.shared.globals[global.0 as usize].wrapping_add(*off);
                let context = self.context();
                self.b.ins().iadd_imm_s(context, at)
            }
            (Operand::Func(id), _) => {
                let index = self.shared.table.binary_search(id).map_or(0, |index| index as i64 + 1);
                self.b.ins().iconst(types::I64, index)
            }
        }
    }

    fn frame_address(&mut self, at: i64) -> Value {
        let Some(slot) = self.stack else { return self.b.ins().iconst(types::I64, 0) };
        match i32::try_from(at) {
            Ok(at) if at >= 0 && (at as u32) < self.frame.size => {
                self.b.ins().stack_addr(types::I64, slot, at)
            }
            _ => {
                let base = self.b.ins().stack_addr(types::I64, slot, 0);
                self.b.ins().iadd_imm_s(base, at)
            }
        }
    }

    /// An address and an offset that fits into an instruction.
    pub(super) fn address(&mut self, addr: &Operand, off: i64) -> (Value, i32) {
        match addr {
            Operand::Slot(slot, at) => {
                (self.operand(&Operand::Slot(*slot, at.wrapping_add(off)), Ty::Ptr), 0)
            }
            Operand::Global(global, at) => {
                let at = self.shared.globals[global.0 as usize].wrapping_add(*at).wrapping_add(off);
                let context = self.context();
                match i32::try_from(at) {
                    Ok(at) => (context, at),
                    Err(_) => (self.b.ins().iadd_imm_s(context, at), 0),
                }
            }
            _ => {
                let base = self.operand(addr, Ty::Ptr);
                match i32::try_from(off) {
                    Ok(off) => (base, off),
                    Err(_) => (self.b.ins().iadd_imm_s(base, off), 0),
                }
            }
        }
    }

    pub(super) fn inst(&mut self, inst: &Inst) {
        self.at = inst.at();
        let (dst, value) = match inst {
            Inst::Copy { ty, dst, src } => (*dst, self.operand(src, *ty)),
            Inst::Bin { op, ty, dst, a, b, .. } => {
                let (a, b) = (self.operand(a, *ty), self.operand(b, *ty));
                (*dst, self.bin(*op, *ty, a, b))
            }
            Inst::Neg { ty, dst, a } => {
                let a = self.operand(a, *ty);
                (*dst, self.b.ins().fneg(a))
            }
            Inst::Cmp { op, ty, dst, a, b } => {
                let (a, b) = (self.operand(a, *ty), self.operand(b, *ty));
                (*dst, self.cmp(*op, *ty, a, b))
            }
            Inst::Conv { op, to, from, dst, src } => {
                let src = self.operand(src, *from);
                (*dst, self.conv(*op, *to, src))
            }
            Inst::PtrAdd { dst, base, index, index_ty, scale } => {
                let base = self.operand(base, Ty::Ptr);
                let mut index = self.operand(index, *index_ty);
                if *index_ty == Ty::I32 {
                    index = self.b.ins().sextend(types::I64, index);
                }
                let bytes = self.b.ins().imul_imm_s(index, *scale);
                (*dst, self.b.ins().iadd(base, bytes))
            }
            Inst::PtrSub { dst, a, b } => {
                let (a, b) = (self.operand(a, Ty::Ptr), self.operand(b, Ty::Ptr));
                (*dst, self.b.ins().isub(a, b))
            }
            Inst::Load { mem, dst, addr, off, .. } => {
                let (base, off) = self.address(addr, *off);
                (*dst, self.load(*mem, base, off))
            }
            Inst::Store { mem, addr, off, val, .. } => {
                let val = self.operand(val, mem.reg());
                let (base, off) = self.address(addr, *off);
                return self.store(*mem, val, base, off);
            }
            Inst::MemCopy { dst, src, len, .. } => return self.copy(dst, src, *len),
            Inst::MemZero { dst, len, .. } => return self.clear(dst, *len),
            Inst::Call { dst, callee, args, .. } => return self.call(*dst, callee, args),
            Inst::Vec(inst) => return self.vector(inst),
            Inst::Select { ty, dst, cond, a, b } => {
                let cond = self.operand(cond, Ty::I32);
                let (a, b) = (self.operand(a, *ty), self.operand(b, *ty));
                (*dst, self.b.ins().select(cond, a, b))
            }
            // Native code is trusted with its time.
            Inst::FuelLeft { .. }
            | Inst::SetFuelLeft { .. }
            | Inst::Tick { .. }
            | Inst::Spend { .. }
            | Inst::Spent => return,
        };
        self.set(dst, value);
    }

    pub(super) fn bin(&mut self, op: BinOp, ty: Ty, a: Value, b: Value) -> Value {
        let is_float = matches!(ty, Ty::F32 | Ty::F64);
        match op {
            BinOp::Add if is_float => self.b.ins().fadd(a, b),
            BinOp::Sub if is_float => self.b.ins().fsub(a, b),
            BinOp::Mul if is_float => self.b.ins().fmul(a, b),
            _ if is_float => self.b.ins().fdiv(a, b),
            BinOp::Add => self.b.ins().iadd(a, b),
            BinOp::Sub => self.b.ins().isub(a, b),
            BinOp::Mul => self.b.ins().imul(a, b),
            BinOp::And => self.b.ins().band(a, b),
            BinOp::Or => self.b.ins().bor(a, b),
            BinOp::Xor => self.b.ins().bxor(a, b),
            BinOp::Shl => self.b.ins().ishl(a, b),
            BinOp::ShrS => self.b.ins().sshr(a, b),
            BinOp::ShrU => self.b.ins().ushr(a, b),
            BinOp::DivS | BinOp::DivU | BinOp::RemS | BinOp::RemU => self.divide(op, ty, a, b),
        }
    }

    fn divide(&mut self, op: BinOp, ty: Ty, a: Value, b: Value) -> Value {
        let zero = self.b.ins().icmp_imm_s(IntCC::Equal, b, 0);
        self.raise_if(zero, code::DIVIDE);
        match op {
            BinOp::DivU => return self.b.ins().udiv(a, b),
            BinOp::RemU => return self.b.ins().urem(a, b),
            _ => {}
        }
        // The machine traps on the one quotient that does not fit; here it wraps.
        let minus_one = self.b.ins().icmp_imm_s(IntCC::Equal, b, -1);
        let one = self.b.ins().iconst(machine_type(ty), 1);
        let safe = self.b.ins().select(minus_one, one, b);
        if op == BinOp::RemS {
            return self.b.ins().srem(a, safe);
        }
        let quotient = self.b.ins().sdiv(a, safe);
        let negated = self.b.ins().ineg(a);
        self.b.ins().select(minus_one, negated, quotient)
    }

    fn cmp(&mut self, op: CmpOp, ty: Ty, a: Value, b: Value) -> Value {
        let truth = match ty {
            Ty::F32 | Ty::F64 => {
                let cc = match op {
                    CmpOp::Eq => FloatCC::Equal,
                    CmpOp::Ne => FloatCC::NotEqual,
                    CmpOp::LtS | CmpOp::LtU => FloatCC::LessThan,
                    CmpOp::LeS | CmpOp::LeU => FloatCC::LessThanOrEqual,
                    CmpOp::GtS | CmpOp::GtU => FloatCC::GreaterThan,
                    CmpOp::GeS | CmpOp::GeU => FloatCC::GreaterThanOrEqual,
                };
                self.b.ins().fcmp(cc, a, b)
            }
            _ => self.b.ins().icmp(condition(op), a, b),
        };
        self.b.ins().uextend(types::I32, truth)
    }

    fn conv(&mut self, op: ConvOp, to: Ty, src: Value) -> Value {
        let to = machine_type(to);
        match op {
            ConvOp::Sext8 | ConvOp::Sext16 => {
                let small = if op == ConvOp::Sext8 { types::I8 } else { types::I16 };
                let low = self.b.ins().ireduce(small, src);
                self.b.ins().sextend(types::I32, low)
            }
            ConvOp::Zext8 | ConvOp::Zext16 => {
                let small = if op == ConvOp::Zext8 { types::I8 } else { types::I16 };
                let low = self.b.ins().ireduce(small, src);
                self.b.ins().uextend(types::I32, low)
            }
            ConvOp::Sext32 => self.b.ins().sextend(types::I64, src),
            ConvOp::Zext32 => self.b.ins().uextend(types::I64, src),
            ConvOp::Wrap => self.b.ins().ireduce(types::I32, src),
            ConvOp::PtrToInt | ConvOp::IntToPtr => src,
            ConvOp::IntToFloatS => self.b.ins().fcvt_from_sint(to, src),
            ConvOp::IntToFloatU => self.b.ins().fcvt_from_uint(to, src),
            ConvOp::FloatToIntS => self.b.ins().fcvt_to_sint_sat(to, src),
            ConvOp::FloatToIntU => self.b.ins().fcvt_to_uint_sat(to, src),
            ConvOp::FloatToFloat if to == types::F32 => self.b.ins().fdemote(to, src),
            ConvOp::FloatToFloat => self.b.ins().fpromote(to, src),
        }
    }

    fn load(&mut self, mem: MemTy, base: Value, off: i32) -> Value {
        let b = self.b.ins();
        match mem {
            MemTy::I8 => b.sload8(types::I32, flags(), base, off),
            MemTy::U8 => b.uload8(types::I32, flags(), base, off),
            MemTy::I16 => b.sload16(types::I32, flags(), base, off),
            MemTy::U16 => b.uload16(types::I32, flags(), base, off),
            MemTy::I32 => b.load(types::I32, flags(), base, off),
            MemTy::I64 | MemTy::Ptr => b.load(types::I64, flags(), base, off),
            MemTy::F32 => b.load(types::F32, flags(), base, off),
            MemTy::F64 => b.load(types::F64, flags(), base, off),
        }
    }

    fn store(&mut self, mem: MemTy, val: Value, base: Value, off: i32) {
        let b = self.b.ins();
        match mem {
            MemTy::I8 | MemTy::U8 => b.istore8(flags(), val, base, off),
            MemTy::I16 | MemTy::U16 => b.istore16(flags(), val, base, off),
            _ => b.store(flags(), val, base, off),
        };
    }

    fn copy(&mut self, dst: &Operand, src: &Operand, len: u64) {
        let (to, from) = (self.operand(dst, Ty::Ptr), self.operand(src, Ty::Ptr));
        if len <= MAX_INLINE_COPY {
            for (mem, off) in pieces(len) {
                let value = self.load(mem, from, off);
                self.store(mem, value, to, off);
            }
            return;
        }
        let len = self.b.ins().iconst(types::I64, len as i64);
        let copy = self.function_ref(self.shared.copy);
        self.b.ins().call(copy, &[to, from, len]);
    }

    fn clear(&mut self, dst: &Operand, len: u64) {
        let to = self.operand(dst, Ty::Ptr);
        if len <= MAX_INLINE_COPY {
            for (mem, off) in pieces(len) {
                let zero = self.b.ins().iconst(machine_type(mem.reg()), 0);
                self.store(mem, zero, to, off);
            }
            return;
        }
        let len = self.b.ins().iconst(types::I64, len as i64);
        let zero = self.function_ref(self.shared.zero);
        self.b.ins().call(zero, &[to, len]);
    }

    fn call(&mut self, dst: Option<Reg>, callee: &Callee, args: &[Operand]) {
        let sig = match callee {
            Callee::Direct(id) => self.shared.module.sig_of(*id),
            Callee::Indirect(_, sig) => &self.shared.module.sigs[sig.0 as usize],
        };
        let mut values = vec![self.context()];
        for (arg, ty) in args.iter().zip(&sig.params) {
            let value = self.operand(arg, *ty);
            values.push(value);
        }
        let call = match callee {
            Callee::Direct(id) => {
                let target = self.function_ref(self.shared.funcs[id.0 as usize]);
                self.b.ins().call(target, &values)
            }
            Callee::Indirect(target, number) => {
                let code = self.code_of(target, *number);
                let sig = signature(self.jit, sig);
                let sig = self.b.import_signature(sig);
                self.b.ins().call_indirect(sig, code, &values)
            }
        };
        if let Some(dst) = dst {
            let result = self.b.inst_results(call)[0];
            self.set(dst, result);
        }
    }

    /// The code behind an address of a function, whose signature is checked.
    fn code_of(&mut self, target: &Operand, sig: SigId) -> Value {
        let index = self.operand(target, Ty::Ptr);
        let count = self.shared.table.len() as i64 + 1;
        let outside = self.b.ins().icmp_imm_s(IntCC::UnsignedGreaterThanOrEqual, index, count);
        self.raise_if(outside, code::BAD_CALL);
        let context = self.context();
        let table = self.b.ins().load(types::I64, flags(), context, context::TABLE);
        let offset = self.b.ins().ishl_imm_s(index, 4);
        let entry = self.b.ins().iadd(table, offset);
        let found = self.b.ins().load(types::I64, flags(), entry, 8);
        let wrong = self.b.ins().icmp_imm_s(IntCC::NotEqual, found, i64::from(sig.0));
        self.raise_if(wrong, code::BAD_CALL);
        self.b.ins().load(types::I64, flags(), entry, 0)
    }
}

/// Comparisons of integers.
pub(super) fn condition(op: CmpOp) -> IntCC {
    match op {
        CmpOp::Eq => IntCC::Equal,
        CmpOp::Ne => IntCC::NotEqual,
        CmpOp::LtS => IntCC::SignedLessThan,
        CmpOp::LtU => IntCC::UnsignedLessThan,
        CmpOp::LeS => IntCC::SignedLessThanOrEqual,
        CmpOp::LeU => IntCC::UnsignedLessThanOrEqual,
        CmpOp::GtS => IntCC::SignedGreaterThan,
        CmpOp::GtU => IntCC::UnsignedGreaterThan,
        CmpOp::GeS => IntCC::SignedGreaterThanOrEqual,
        CmpOp::GeU => IntCC::UnsignedGreaterThanOrEqual,
    }
}

/// The cells that `len` bytes are made of.
fn pieces(len: u64) -> Vec<(MemTy, i32)> {
    let mut out = Vec::new();
    let mut at = 0;
    for (mem, size) in [(MemTy::I64, 8), (MemTy::I32, 4), (MemTy::U16, 2), (MemTy::U8, 1)] {
        while len - at >= size {
            out.push((mem, at as i32));
            at += size;
        }
    }
    out
}
