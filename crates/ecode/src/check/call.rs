//! Calls.

use super::{Checked, Checker, Val};
use crate::{
    ast::Expr,
    ir::{Callee, Inst, MemTy, Operand, Ty},
    span::Span,
    types::{Sig, Type, TypeId},
};

impl Checker<'_> {
    pub(super) fn call(&mut self, callee: &Expr, args: &[Expr], span: Span) -> Checked<Val> {
        let target = self.rvalue(callee)?;
        let pointee = self.types.pointee(target.ty);
        let Some(Type::Func(sig)) = pointee.map(|ty| self.types.get(ty).clone()) else {
            let text = format!("`{}` is not a function", self.types.name(target.ty));
            return Err(self.diags.error(callee.span, text));
        };
        let sig = self.check_count(sig, args.len(), span)?;
        let mut operands = Vec::with_capacity(args.len() + 2);
        let ret_slot = self.types.is_record(sig.ret).then(|| self.new_slot("", sig.ret, span));
        operands.extend(ret_slot.map(|slot| Operand::Slot(slot, 0)));
        let values = self.arguments(&sig, args)?;
        let (fixed, rest) = values.split_at(sig.params.len().min(values.len()));
        operands.extend(fixed.iter().map(|value| value.op));
        if sig.variadic {
            operands.push(self.spread(rest, span));
        }
        let as_called = self.signature(&sig);
        let callee = match target.op {
            // A cast may have given it another type, with which no function is entered.
            Operand::Func(id) if self.module.funcs[id.0 as usize].sig == as_called => {
                Callee::Direct(id)
            }
            other => Callee::Indirect(other, as_called),
        };
        self.mark(span);
        let at = self.func.at;
        if let Some(slot) = ret_slot {
            self.emit(Inst::Call { dst: None, callee, args: operands, at });
            return Ok(Val { op: Operand::Slot(slot, 0), ty: sig.ret });
        }
        let void = sig.ret == TypeId::VOID;
        let dst = (!void).then(|| self.func.reg(self.types.reg(sig.ret)));
        self.emit(Inst::Call { dst, callee, args: operands, at });
        Ok(Val { op: dst.map_or(Operand::Int(0), Operand::Reg), ty: sig.ret })
    }

    fn check_count(&mut self, sig: Sig, count: usize, span: Span) -> Checked<Sig> {
        let wanted = sig.params.len();
        if sig.unspecified && count > 0 {
            let help = "declare its parameters";
            return Err(self.diags.hint(span, "the parameters of this function are unknown", help));
        }
        if count < wanted || count > wanted && !sig.variadic {
            let least = if sig.variadic { "at least " } else { "" };
            let s = if wanted == 1 { "" } else { "s" };
            let text = format!("this function takes {least}{wanted} argument{s}, not {count}");
            return Err(self.diags.error(span, text));
        }
        Ok(sig)
    }

    /// The arguments, left to right, converted; records are copied.
    fn arguments(&mut self, sig: &Sig, args: &[Expr]) -> Checked<Vec<Val>> {
        let mut values = Vec::with_capacity(args.len());
        let mut failed = None;
        let last = args.iter().rposition(super::effects::may_assign);
        for (index, arg) in args.iter().enumerate() {
            let later = last.is_some_and(|last| index < last);
            match self.argument(sig.params.get(index).copied(), arg, later) {
                Ok(value) => values.push(value),
                Err(reported) => failed = Some(reported),
            }
        }
        failed.map_or(Ok(values), Err)
    }

    fn argument(&mut self, param: Option<TypeId>, arg: &Expr, hold: bool) -> Checked<Val> {
        let value = self.rvalue(arg)?;
        let value = match param {
            Some(ty) => self.implicit(value, ty, arg.span)?,
            // As C promotes what `...` stands for.
            None if value.ty == TypeId::FLOAT => self.cast(value, TypeId::DOUBLE),
            None if self.types.is_scalar(value.ty) => {
                let ty = self.types.promote(value.ty);
                self.cast(value, ty)
            }
            None => {
                let text = format!("a `{}` cannot be passed here", self.types.name(value.ty));
                return Err(self.diags.error(arg.span, text));
            }
        };
        if self.types.is_record(value.ty) {
            let slot = self.new_slot("", value.ty, arg.span);
            let len = self.types.size(value.ty).unwrap_or(0);
            let dst = Operand::Slot(slot, 0);
            self.emit(Inst::MemCopy { dst, src: value.op, len, at: self.func.at });
            return Ok(Val { op: dst, ty: value.ty });
        }
        Ok(self.held_if(value, hold))
    }

    /// Puts the arguments for `...` side by side, 8 bytes each; returns where.
    fn spread(&mut self, values: &[Val], span: Span) -> Operand {
        if values.is_empty() {
            return Operand::Int(0);
        }
        let slot = self.raw_slot("", values.len() as u64 * 8, 8, false, span);
        for (index, value) in values.iter().enumerate() {
            let (mem, val) = match self.types.reg(value.ty) {
                Ty::F64 => (MemTy::F64, value.op),
                Ty::Ptr => (MemTy::Ptr, value.op),
                _ => (MemTy::I64, self.cast(*value, TypeId::LONG).op),
            };
            self.emit(Inst::Store {
                mem,
                addr: Operand::Slot(slot, index as i64 * 8),
                off: 0,
                val,
                at: self.func.at,
            });
        }
        Operand::Slot(slot, 0)
    }
}
