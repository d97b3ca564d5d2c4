//! Operators on values.

use super::{Checked, Checker, Val};
use crate::{
    ast::BinOp as AstOp,
    ir::{self, BinOp, CmpOp, Inst, Operand, Ty},
    span::Span,
    types::{Type, TypeId},
};

impl Checker<'_> {
    /// `a op b` for every operator except `&&` and `||`.
    pub(super) fn binary(&mut self, op: AstOp, a: Val, b: Val, span: Span) -> Checked<Val> {
        self.mark(span);
        let pointers = (self.types.pointee(a.ty), self.types.pointee(b.ty));
        match op {
            AstOp::Add | AstOp::Sub if pointers != (None, None) => {
                self.pointer_arithmetic(op, a, b, span)
            }
            AstOp::Eq | AstOp::Ne | AstOp::Lt | AstOp::Gt | AstOp::Le | AstOp::Ge => {
                self.compare(op, a, b, span)
            }
            AstOp::Shl | AstOp::Shr => self.shift(op, a, b, span),
            _ => self.arithmetic(op, a, b, span),
        }
    }

    fn bad_operands(&mut self, a: Val, b: Val, span: Span) -> crate::diag::Reported {
        let (a, b) = (self.types.name(a.ty), self.types.name(b.ty));
        self.diags.error(span, format!("this operator does not work on `{a}` and `{b}`"))
    }

    fn arithmetic(&mut self, op: AstOp, a: Val, b: Val, span: Span) -> Checked<Val> {
        let integers_only = !matches!(op, AstOp::Add | AstOp::Sub | AstOp::Mul | AstOp::Div);
        let both = |test: &dyn Fn(TypeId) -> bool| test(a.ty) && test(b.ty);
        if !both(&|ty| self.types.is_arith(ty))
            || integers_only && !both(&|ty| self.types.is_int(ty))
        {
            return Err(self.bad_operands(a, b, span));
        }
        let ty = self.types.usual(a.ty, b.ty);
        if matches!(op, AstOp::Div | AstOp::Rem) && b.op == Operand::Int(0) && self.types.is_int(ty)
        {
            self.diags.warn(span, "this divides by zero: the call will end here", None);
        }
        let (a, b) = (self.cast(a, ty), self.cast(b, ty));
        let signed = self.types.int(ty).is_none_or(|int| int.1);
        let ir = match (op, signed) {
            (AstOp::Add, _) => BinOp::Add,
            (AstOp::Sub, _) => BinOp::Sub,
            (AstOp::Mul, _) => BinOp::Mul,
            (AstOp::Div, true) => BinOp::DivS,
            (AstOp::Div, false) => BinOp::DivU,
            (AstOp::Rem, true) => BinOp::RemS,
            (AstOp::Rem, false) => BinOp::RemU,
            (AstOp::And, _) => BinOp::And,
            (AstOp::Or, _) => BinOp::Or,
            _ => BinOp::Xor,
        };
        let op = self.emit_bin(ir, self.types.reg(ty), a.op, b.op);
        Ok(Val { op, ty })
    }

    fn shift(&mut self, op: AstOp, a: Val, b: Val, span: Span) -> Checked<Val> {
        if !self.types.is_int(a.ty) || !self.types.is_int(b.ty) {
            return Err(self.bad_operands(a, b, span));
        }
        let ty = self.types.promote(a.ty);
        let (bits, signed) = self.types.int(ty).unwrap_or((32, true));
        if let Operand::Int(count) = b.op
            && !(0..i64::from(bits)).contains(&count)
        {
            let help = format!("counts are taken modulo {bits}");
            self.diags.warn(span, "this shifts by more bits than there are", Some(&help));
        }
        // Only the low bits of the count matter, so its own sign does not.
        let count = self.cast(b, if bits == 64 { TypeId::ULONG } else { TypeId::UINT });
        let a = self.cast(a, ty);
        let ir = match (op, signed) {
            (AstOp::Shl, _) => BinOp::Shl,
            (_, true) => BinOp::ShrS,
            (_, false) => BinOp::ShrU,
        };
        let op = self.emit_bin(ir, self.types.reg(ty), a.op, count.op);
        Ok(Val { op, ty })
    }

    fn compare(&mut self, op: AstOp, a: Val, b: Val, span: Span) -> Checked<Val> {
        if !self.types.is_scalar(a.ty) || !self.types.is_scalar(b.ty) {
            return Err(self.bad_operands(a, b, span));
        }
        let pointer = |checker: &Self, v: Val| checker.types.pointee(v.ty);
        let (ty, signed) = match (pointer(self, a), pointer(self, b)) {
            (None, None) => {
                let ty = self.types.usual(a.ty, b.ty);
                (ty, self.types.int(ty).is_none_or(|int| int.1))
            }
            (left, right) => {
                let other = if left.is_none() { a } else { b };
                let mixed = left.is_none() || right.is_none();
                if mixed && self.types.is_float(other.ty) {
                    return Err(self.bad_operands(a, b, span));
                }
                if mixed && other.op != Operand::Int(0) {
                    let help = Some("write a cast");
                    self.diags.warn(span, "a pointer is compared with an integer", help);
                }
                (self.types.pointer(TypeId::VOID), false)
            }
        };
        let (a, b) = (self.cast(a, ty), self.cast(b, ty));
        let ir = match (op, signed) {
            (AstOp::Eq, _) => CmpOp::Eq,
            (AstOp::Ne, _) => CmpOp::Ne,
            (AstOp::Lt, true) => CmpOp::LtS,
            (AstOp::Lt, false) => CmpOp::LtU,
            (AstOp::Le, true) => CmpOp::LeS,
            (AstOp::Le, false) => CmpOp::LeU,
            (AstOp::Gt, true) => CmpOp::GtS,
            (AstOp::Gt, false) => CmpOp::GtU,
            (_, true) => CmpOp::GeS,
            (_, false) => CmpOp::GeU,
        };
        let op = self.emit_cmp(ir, self.types.reg(ty), a.op, b.op);
        Ok(Val { op, ty: TypeId::INT })
    }

    fn pointer_arithmetic(&mut self, op: AstOp, a: Val, b: Val, span: Span) -> Checked<Val> {
        match (self.types.pointee(a.ty), self.types.pointee(b.ty), op) {
            (Some(left), Some(right), AstOp::Sub) => {
                if left.plain() != right.plain() {
                    self.diags.warn(span, "these pointers point to different types", None);
                }
                let size = self.pointee_size(left, span)?.max(1);
                let dst = self.func.reg(Ty::I64);
                self.emit(Inst::PtrSub { dst, a: a.op, b: b.op });
                let size = Operand::Int(size);
                let op = self.emit_bin(BinOp::DivS, Ty::I64, Operand::Reg(dst), size);
                Ok(Val { op, ty: TypeId::LONG })
            }
            (Some(_), None, _) => self.pointer_plus(a, b, op == AstOp::Sub, span),
            (None, Some(_), AstOp::Add) => self.pointer_plus(b, a, false, span),
            _ => Err(self.bad_operands(a, b, span)),
        }
    }

    /// `pointer ± index`, in elements.
    pub(super) fn pointer_plus(
        &mut self,
        pointer: Val,
        index: Val,
        minus: bool,
        span: Span,
    ) -> Checked<Val> {
        let Some(to) = self.types.pointee(pointer.ty) else {
            return Err(self.bad_operands(pointer, index, span));
        };
        if !self.types.is_int(index.ty) {
            return Err(self.bad_operands(pointer, index, span));
        }
        let size = self.pointee_size(to, span)?;
        let promoted = self.types.promote(index.ty);
        // An index is an int or a long; an unsigned int needs its zeros.
        let wide = promoted != TypeId::INT;
        let index = self.cast(index, if wide { TypeId::LONG } else { TypeId::INT });
        let index_ty = if wide { Ty::I64 } else { Ty::I32 };
        let scale = if minus { -size } else { size };
        let op = self.emit_ptr_add(pointer.op, index.op, index_ty, scale);
        Ok(Val { op, ty: pointer.ty.plain() })
    }

    /// Bytes between neighbours; 1 for `void`, as gcc has it.
    pub(super) fn pointee_size(&mut self, to: TypeId, span: Span) -> Checked<i64> {
        if to.plain() == TypeId::VOID {
            return Ok(1);
        }
        match self.types.size(to) {
            Some(size) => Ok(size as i64),
            None => {
                let text = format!("`{}` has no known size", self.types.name(to));
                Err(self.diags.error(span, text))
            }
        }
    }

    /// `-a`
    pub(super) fn negate(&mut self, a: Val, span: Span) -> Checked<Val> {
        if !self.types.is_arith(a.ty) {
            return Err(self.diags.error(span, "only numbers have a negative"));
        }
        let ty = self.types.promote(a.ty);
        let a = self.cast(a, ty);
        let reg = self.types.reg(ty);
        let op = match (self.types.get(ty), a.op) {
            (Type::F32 | Type::F64, Operand::Float(bits)) => Operand::Float(bits ^ 1 << 63),
            (Type::F32 | Type::F64, _) => {
                let dst = self.func.reg(reg);
                self.emit(Inst::Neg { ty: reg, dst, a: a.op });
                Operand::Reg(dst)
            }
            _ => self.emit_bin(ir::BinOp::Sub, reg, Operand::Int(0), a.op),
        };
        Ok(Val { op, ty })
    }

    /// `~a`
    pub(super) fn complement(&mut self, a: Val, span: Span) -> Checked<Val> {
        if !self.types.is_int(a.ty) {
            return Err(self.diags.error(span, "`~` works on integers"));
        }
        let ty = self.types.promote(a.ty);
        let a = self.cast(a, ty);
        let op = self.emit_bin(BinOp::Xor, self.types.reg(ty), a.op, Operand::Int(-1));
        Ok(Val { op, ty })
    }
}
