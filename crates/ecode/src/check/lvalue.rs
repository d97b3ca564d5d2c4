//! Places: what can be read, written and pointed to.

use super::{
    Checked, Checker, Val,
    scope::{Home, Sym},
};
use crate::{
    ast::{Expr, ExprKind, Ident, UnOp},
    ir::{Inst, MemTy, Operand, Reg},
    span::Span,
    types::{Type, TypeId},
};

#[derive(Clone, Copy, Debug)]
pub(super) enum Location {
    Reg(Reg),
    Mem { addr: Operand, off: i64 },
}

#[derive(Clone, Copy, Debug)]
pub(super) struct LVal {
    pub(super) place: Location,
    pub(super) ty: TypeId,
}

/// What `*pointer` is: `*function` is the function.
pub(super) enum Deref {
    Lvalue(LVal),
    Function(Val),
}

impl Checker<'_> {
    /// The place that `expr` names; `None` when it is of a kind that names none.
    pub(super) fn lvalue_opt(&mut self, expr: &Expr) -> Option<Checked<LVal>> {
        match &expr.kind {
            ExprKind::Name(name) => match self.lookup(name) {
                Some(Sym::Var(ty, home)) => Some(Ok(LVal { place: home_place(home), ty })),
                _ => None,
            },
            ExprKind::Unary(UnOp::Deref, inner) => match self.deref(inner, expr.span) {
                Ok(Deref::Lvalue(lvalue)) => Some(Ok(lvalue)),
                Ok(Deref::Function(_)) => None,
                Err(reported) => Some(Err(reported)),
            },
            ExprKind::Index(base, index) => Some(self.index(base, index, expr.span)),
            ExprKind::Member { base, field, arrow } => Some(self.member(base, field, *arrow)),
            ExprKind::Str(bytes) => {
                let ty = self.types.array(TypeId::CHAR, Some(bytes.len() as u64));
                let addr = self.string(bytes);
                Some(Ok(LVal { place: Location::Mem { addr, off: 0 }, ty }))
            }
            ExprKind::Compound(name, init) => Some(self.compound_literal(name, init, expr.span)),
            _ => None,
        }
    }

    pub(super) fn lvalue(&mut self, expr: &Expr) -> Checked<LVal> {
        match self.lvalue_opt(expr) {
            Some(lvalue) => lvalue,
            None => {
                // Find what is wrong inside first.
                self.rvalue(expr)?;
                Err(self
                    .diags
                    .error(expr.span, "this is a value, not a place that can be assigned"))
            }
        }
    }

    pub(super) fn deref(&mut self, inner: &Expr, span: Span) -> Checked<Deref> {
        let pointer = self.rvalue(inner)?;
        let Some(ty) = self.types.pointee(pointer.ty) else {
            let text = format!("`{}` is not a pointer", self.types.name(pointer.ty));
            return Err(self.diags.error(span, text));
        };
        if matches!(self.types.get(ty), Type::Func(_)) {
            return Ok(Deref::Function(pointer));
        }
        if pointer.op == Operand::Int(0) {
            self.diags.warn(span, "this reads or writes at NULL", None);
        }
        Ok(Deref::Lvalue(LVal { place: Location::Mem { addr: pointer.op, off: 0 }, ty }))
    }

    fn index(&mut self, base: &Expr, index: &Expr, span: Span) -> Checked<LVal> {
        let a = self.rvalue(base)?;
        let a = self.held_if(a, super::effects::may_assign(index));
        let b = self.rvalue(index)?;
        let (pointer, index) = if self.types.pointee(a.ty).is_some() { (a, b) } else { (b, a) };
        let Some(ty) = self.types.pointee(pointer.ty) else {
            let text = format!("`{}` has no elements", self.types.name(a.ty));
            return Err(self.diags.error(span, text));
        };
        if let Operand::Int(number) = index.op
            && self.types.is_int(index.ty)
        {
            let size = self.pointee_size(ty, span)?;
            let off = number.wrapping_mul(size);
            if i32::try_from(off).is_ok() {
                return Ok(LVal { place: Location::Mem { addr: pointer.op, off }, ty });
            }
        }
        let address = self.pointer_plus(pointer, index, false, span)?;
        Ok(LVal { place: Location::Mem { addr: address.op, off: 0 }, ty })
    }

    fn member(&mut self, base: &Expr, field: &Ident, arrow: bool) -> Checked<LVal> {
        let (addr, off, ty) = if arrow {
            let pointer = self.rvalue(base)?;
            match self.types.pointee(pointer.ty) {
                Some(ty) => (pointer.op, 0, ty),
                None => {
                    let text = format!("`{}` is not a pointer", self.types.name(pointer.ty));
                    return Err(self.diags.hint(base.span, text, "write `.`"));
                }
            }
        } else {
            self.record_place(base)?
        };
        let Type::Record(id) = *self.types.get(ty) else {
            let text = format!("`{}` has no fields", self.types.name(ty));
            let pointer = self.types.pointee(ty).is_some();
            let help = pointer.then(|| "write `->`".to_owned());
            return Err(self.diags.error_help(base.span, text, help));
        };
        let Some((field_ty, offset)) = self.field(id, field)? else {
            let text = format!("`{}` has no field `{}`", self.types.name(ty), field.name);
            return Err(self.diags.error(field.span, text));
        };
        let place = Location::Mem { addr, off: off + offset as i64 };
        Ok(LVal { place, ty: field_ty.with_const(ty.is_const()) })
    }

    fn record_place(&mut self, base: &Expr) -> Checked<(Operand, i64, TypeId)> {
        match self.lvalue_opt(base) {
            Some(lvalue) => {
                let lvalue = lvalue?;
                match lvalue.place {
                    Location::Mem { addr, off } => Ok((addr, off, lvalue.ty)),
                    Location::Reg(_) => Ok((Operand::Int(0), 0, lvalue.ty)),
                }
            }
            None => self.rvalue(base).map(|value| (value.op, 0, value.ty)),
        }
    }

    /// The value in a place; arrays and functions become pointers, records stay where they are.
    pub(super) fn load(&mut self, lvalue: LVal) -> Checked<Val> {
        let LVal { place, ty } = lvalue;
        let (addr, off) = match place {
            Location::Reg(reg) => return Ok(Val { op: Operand::Reg(reg), ty: ty.plain() }),
            Location::Mem { addr, off } => (addr, off),
        };
        match self.types.get(ty) {
            Type::Array(of, _) => {
                let of = of.with_const(ty.is_const());
                let op = self.emit_offset(addr, off);
                Ok(Val { op, ty: self.types.pointer(of) })
            }
            Type::Record(_) => Ok(Val { op: self.emit_offset(addr, off), ty: ty.plain() }),
            _ => {
                let mem = self.mem_ty(ty);
                let dst = self.func.reg(mem.reg());
                self.emit(Inst::Load { mem, dst, addr, off, at: self.func.at });
                Ok(Val { op: Operand::Reg(dst), ty: ty.plain() })
            }
        }
    }

    /// Writes a value that has the place's type.
    pub(super) fn store(&mut self, lvalue: LVal, value: Val) {
        let reg_ty = self.types.reg(lvalue.ty);
        match lvalue.place {
            Location::Reg(reg) => self.emit_copy(reg_ty, reg, value.op),
            Location::Mem { addr, off } if self.types.is_record(lvalue.ty) => {
                let len = self.types.size(lvalue.ty).unwrap_or(0);
                let dst = self.emit_offset(addr, off);
                self.emit(Inst::MemCopy { dst, src: value.op, len, at: self.func.at });
            }
            Location::Mem { addr, off } => {
                let mem = self.mem_ty(lvalue.ty);
                self.emit(Inst::Store { mem, addr, off, val: value.op, at: self.func.at });
            }
        }
    }

    /// The address of a place.
    pub(super) fn address(&mut self, lvalue: LVal, span: Span) -> Checked<Val> {
        let Location::Mem { addr, off } = lvalue.place else {
            return Err(self.diags.error(span, "this has no address"));
        };
        let op = self.emit_offset(addr, off);
        Ok(Val { op, ty: self.types.pointer(lvalue.ty) })
    }

    pub(super) fn mem_ty(&self, ty: TypeId) -> MemTy {
        match self.types.get(ty) {
            Type::Bool | Type::Int { bits: 8, signed: false } => MemTy::U8,
            Type::Int { bits: 8, .. } => MemTy::I8,
            Type::Int { bits: 16, signed: false } => MemTy::U16,
            Type::Int { bits: 16, .. } => MemTy::I16,
            Type::Int { bits: 64, .. } => MemTy::I64,
            Type::F32 => MemTy::F32,
            Type::F64 => MemTy::F64,
            Type::Int { .. } | Type::Void => MemTy::I32,
            Type::Ptr(_) | Type::Array(..) | Type::Record(_) | Type::Func(_) => MemTy::Ptr,
        }
    }

    /// Reports an assignment to what is `const` or no single value.
    pub(super) fn writable(&mut self, lvalue: LVal, span: Span) -> Checked<()> {
        self.mark(span);
        let text = match self.types.get(lvalue.ty) {
            _ if lvalue.ty.is_const() => "this is `const`",
            Type::Array(..) => "an array cannot be assigned as a whole",
            Type::Void => "this has type `void`",
            Type::Record(id) if !self.types.record(*id).complete => "this type is incomplete",
            _ => return Ok(()),
        };
        Err(self.diags.error(span, text))
    }
}

pub(super) fn home_place(home: Home) -> Location {
    match home {
        Home::Reg(reg) => Location::Reg(reg),
        Home::Slot(slot) => Location::Mem { addr: Operand::Slot(slot, 0), off: 0 },
        Home::Indirect(reg) => Location::Mem { addr: Operand::Reg(reg), off: 0 },
        Home::Global(global) => Location::Mem { addr: Operand::Global(global, 0), off: 0 },
    }
}
