//! Expressions.

use super::{
    Checked, Checker, Val, effects,
    lvalue::{Deref, LVal},
    scope::Sym,
};
use crate::{
    ast::{BinOp, Expr, ExprKind, TypeName, UnOp},
    ir::{BlockId, Operand, Term, Ty},
    span::Span,
    types::{Type, TypeId},
};

impl Checker<'_> {
    /// The value of an expression; arrays and functions become pointers.
    pub(super) fn rvalue(&mut self, expr: &Expr) -> Checked<Val> {
        let span = expr.span;
        self.step_at(span)?;
        self.look_at(span);
        match &expr.kind {
            ExprKind::Int { value, unsigned, long, decimal } => {
                Ok(int_literal(*value, *unsigned, *long, *decimal))
            }
            ExprKind::Float { value, single } => {
                let (ty, reg) =
                    if *single { (TypeId::FLOAT, Ty::F32) } else { (TypeId::DOUBLE, Ty::F64) };
                Ok(Val { op: super::fold::float_operand(*value, reg), ty })
            }
            ExprKind::Char(value) => {
                Ok(Val { op: Operand::Int(i64::from(*value)), ty: TypeId::INT })
            }
            ExprKind::Name(name) => self.name(name, span),
            ExprKind::Unary(op, inner) => self.unary(*op, inner, expr),
            ExprKind::Step { delta, prefix, target } => self.step(*delta, *prefix, target),
            ExprKind::Binary(BinOp::LogAnd | BinOp::LogOr, ..) => self.logical(expr),
            ExprKind::Binary(op, left, right) => {
                let (a, b) = self.operands(left, right)?;
                self.binary(*op, a, b, span)
            }
            ExprKind::Assign(None, left, right) => self.assign(left, right),
            ExprKind::Assign(Some(op), left, right) => self.assign_op(*op, left, right, span),
            ExprKind::Cond(cond, then, other) => self.conditional(cond, then, other, span),
            ExprKind::Comma(left, right) => {
                self.effect(left)?;
                self.rvalue(right)
            }
            ExprKind::Cast(name, inner) => self.explicit_cast(name, inner, span),
            ExprKind::SizeofExpr(inner) => {
                let ty = self.type_of(inner)?;
                self.sizeof_type(ty, span)
            }
            ExprKind::SizeofType(name) => {
                let ty = self.type_name(name)?;
                self.sizeof_type(ty, span)
            }
            ExprKind::AlignofType(name) => {
                let ty = self.type_name(name)?;
                Ok(Val { op: Operand::Int(self.types.align(ty) as i64), ty: TypeId::ULONG })
            }
            ExprKind::Call(callee, args) => self.call(callee, args, span),
            ExprKind::Generic(control, arms) => self.generic(control, arms, span),
            ExprKind::Str(_)
            | ExprKind::Index(..)
            | ExprKind::Member { .. }
            | ExprKind::Compound(..) => {
                let lvalue = self.lvalue(expr)?;
                self.load(lvalue)
            }
        }
    }

    /// Evaluates `expr` for what it does.
    pub(super) fn effect(&mut self, expr: &Expr) -> Checked<()> {
        match &expr.kind {
            ExprKind::Step { delta, target, .. } => self.step(*delta, true, target).map(drop),
            ExprKind::Comma(left, right) => {
                self.effect(left)?;
                self.effect(right)
            }
            ExprKind::Binary(BinOp::Eq, ..) => {
                self.diags.warn(expr.span, "this comparison has no effect", Some("write `=`"));
                self.rvalue(expr).map(drop)
            }
            _ => self.rvalue(expr).map(drop),
        }
    }

    fn name(&mut self, name: &str, span: Span) -> Checked<Val> {
        match self.lookup(name) {
            Some(Sym::Const(value)) => Ok(value),
            Some(Sym::Var(ty, home)) => {
                let place = super::lvalue::home_place(home);
                self.load(LVal { place, ty })
            }
            Some(Sym::Func(id)) => {
                let sig = self.funcs[id.0 as usize].sig.clone();
                let ty = self.types.intern(Type::Func(sig));
                Ok(Val { op: Operand::Func(id), ty: self.types.pointer(ty) })
            }
            Some(Sym::Type(_)) => Err(self.diags.error(span, format!("`{name}` is a type"))),
            None => {
                let help = self.similar(name);
                Err(self.diags.error_help(span, format!("`{name}` is not declared"), help))
            }
        }
    }

    /// Both operands, left first; what the right one may assign is read before.
    fn operands(&mut self, left: &Expr, right: &Expr) -> Checked<(Val, Val)> {
        let a = self.rvalue(left);
        let a = a.map(|a| self.held_if(a, effects::may_assign(right)));
        let b = self.rvalue(right)?;
        Ok((a?, b))
    }

    pub(super) fn held_if(&mut self, value: Val, hold: bool) -> Val {
        let ty = self.types.reg(value.ty);
        if hold { Val { op: self.held(ty, value.op), ..value } } else { value }
    }

    fn unary(&mut self, op: UnOp, inner: &Expr, whole: &Expr) -> Checked<Val> {
        match op {
            UnOp::Deref => match self.deref(inner, whole.span)? {
                Deref::Lvalue(lvalue) => self.load(lvalue),
                Deref::Function(value) => Ok(value),
            },
            UnOp::Addr => self.address_of(inner, whole.span),
            UnOp::Not => {
                let value = self.rvalue(inner)?;
                let truth = self.truth(value, inner.span)?;
                let zero = Operand::Int(0);
                let op = self.emit_cmp(crate::ir::CmpOp::Eq, Ty::I32, truth, zero);
                Ok(Val { op, ty: TypeId::INT })
            }
            UnOp::Minus => {
                let value = self.rvalue(inner)?;
                self.negate(value, inner.span)
            }
            UnOp::BitNot => {
                let value = self.rvalue(inner)?;
                self.complement(value, inner.span)
            }
            UnOp::Plus => {
                let value = self.rvalue(inner)?;
                if !self.types.is_arith(value.ty) {
                    return Err(self.diags.error(inner.span, "only numbers have a sign"));
                }
                let ty = self.types.promote(value.ty);
                Ok(self.cast(value, ty))
            }
        }
    }

    fn address_of(&mut self, inner: &Expr, span: Span) -> Checked<Val> {
        // `&*p` and `&function` are what they point to.
        if let ExprKind::Unary(UnOp::Deref, pointer) = &inner.kind {
            return self.rvalue(pointer);
        }
        let Some(lvalue) = self.lvalue_opt(inner) else {
            let value = self.rvalue(inner)?;
            if matches!(value.op, Operand::Func(_)) {
                return Ok(value);
            }
            return Err(self.diags.error(span, "only places have addresses"));
        };
        let lvalue = lvalue?;
        self.address(lvalue, span)
    }

    /// `++`/`--`: the new value if `prefix`, else the old one.
    fn step(&mut self, delta: i64, prefix: bool, target: &Expr) -> Checked<Val> {
        let lvalue = self.lvalue(target)?;
        self.writable(lvalue, target.span)?;
        let old = self.load(lvalue)?;
        let old = self.held_if(old, !prefix);
        let one = Val { op: Operand::Int(1), ty: TypeId::INT };
        let op = if delta > 0 { BinOp::Add } else { BinOp::Sub };
        let sum = self.binary(op, old, one, target.span)?;
        let new = self.cast(sum, lvalue.ty);
        self.store(lvalue, new);
        Ok(if prefix { new } else { old })
    }

    fn assign(&mut self, left: &Expr, right: &Expr) -> Checked<Val> {
        let lvalue = self.lvalue(left);
        let value = self.rvalue(right)?;
        let lvalue = lvalue?;
        self.writable(lvalue, left.span)?;
        let value = self.implicit(value, lvalue.ty, right.span)?;
        self.store(lvalue, value);
        Ok(value)
    }

    fn assign_op(&mut self, op: BinOp, left: &Expr, right: &Expr, span: Span) -> Checked<Val> {
        let lvalue = self.lvalue(left)?;
        self.writable(lvalue, left.span)?;
        let old = self.load(lvalue)?;
        let old = self.held_if(old, effects::may_assign(right));
        let value = self.rvalue(right)?;
        let result = self.binary(op, old, value, span)?;
        let result = self.implicit(result, lvalue.ty, span)?;
        self.store(lvalue, result);
        Ok(result)
    }

    fn explicit_cast(&mut self, name: &TypeName, inner: &Expr, span: Span) -> Checked<Val> {
        let to = self.type_name(name)?.plain();
        let value = self.rvalue(inner)?;
        if to == TypeId::VOID || value.ty == to {
            return Ok(Val { ty: to, ..value });
        }
        let mixed = self.types.pointee(to).is_some() && self.types.is_float(value.ty)
            || self.types.pointee(value.ty).is_some() && self.types.is_float(to);
        if !self.types.is_scalar(to) || !self.types.is_scalar(value.ty) || mixed {
            let (from, to) = (self.types.name(value.ty), self.types.name(to));
            return Err(self.diags.error(span, format!("`{from}` cannot be cast to `{to}`")));
        }
        Ok(self.cast(value, to))
    }

    fn sizeof_type(&mut self, ty: TypeId, span: Span) -> Checked<Val> {
        match self.types.size(ty) {
            Some(size) => Ok(Val { op: Operand::Int(size as i64), ty: TypeId::ULONG }),
            None if ty.plain() == TypeId::VOID => {
                Ok(Val { op: Operand::Int(1), ty: TypeId::ULONG })
            }
            None => {
                let text = format!("`{}` has no known size", self.types.name(ty));
                Err(self.diags.error(span, text))
            }
        }
    }

    /// `&&` and `||` as values.
    fn logical(&mut self, expr: &Expr) -> Checked<Val> {
        // Where the left side decides at compile time, or both are constants, there is no code.
        let result = self.func.reg(Ty::I32);
        self.func.vars.insert(result);
        let (yes, no, done) = (self.func.block(), self.func.block(), self.func.block());
        if let Some(known) = self.branch(expr, yes, no)? {
            self.func.blocks.truncate(yes.0 as usize);
            self.func.regs.truncate(result.0 as usize);
            self.func.vars.remove(&result);
            return Ok(Val { op: Operand::Int(i64::from(known)), ty: TypeId::INT });
        }
        for (block, value) in [(yes, 1), (no, 0)] {
            self.func.cur = block;
            self.emit_copy(Ty::I32, result, Operand::Int(value));
            self.func.jump(done);
        }
        self.func.cur = done;
        Ok(Val { op: Operand::Reg(result), ty: TypeId::INT })
    }

    /// Goes to `yes` or `no`, as `cond` is. When it is a constant, no code is generated, the
    /// current block stays open and the constant is returned.
    pub(super) fn branch(
        &mut self,
        cond: &Expr,
        yes: BlockId,
        no: BlockId,
    ) -> Checked<Option<bool>> {
        match &cond.kind {
            ExprKind::Unary(UnOp::Not, inner) => {
                Ok(self.branch(inner, no, yes)?.map(|known| !known))
            }
            ExprKind::Binary(op @ (BinOp::LogAnd | BinOp::LogOr), left, right) => {
                self.branch_both(*op == BinOp::LogAnd, left, right, yes, no)
            }
            _ => {
                let value = self.rvalue(cond)?;
                let cond = self.truth(value, cond.span)?;
                match cond {
                    Operand::Int(known) => Ok(Some(known != 0)),
                    Operand::Global(..) | Operand::Func(_) | Operand::Slot(..) => Ok(Some(true)),
                    _ => {
                        self.func.end(Term::Branch { cond, then: yes, other: no });
                        Ok(None)
                    }
                }
            }
        }
    }

    fn branch_both(
        &mut self,
        and: bool,
        left: &Expr,
        right: &Expr,
        yes: BlockId,
        no: BlockId,
    ) -> Checked<Option<bool>> {
        let middle = self.func.block();
        let (on_yes, on_no) = if and { (middle, no) } else { (yes, middle) };
        match self.branch(left, on_yes, on_no)? {
            // The left side decides: the right one is only checked.
            Some(known) if known != and => {
                self.type_of(right)?;
                Ok(Some(known))
            }
            Some(_) => self.branch(right, yes, no),
            None => {
                self.func.cur = middle;
                if let Some(known) = self.branch(right, yes, no)? {
                    self.func.jump(if known { yes } else { no });
                }
                Ok(None)
            }
        }
    }

    fn conditional(&mut self, cond: &Expr, then: &Expr, other: &Expr, span: Span) -> Checked<Val> {
        let (yes, no, done) = (self.func.block(), self.func.block(), self.func.block());
        if let Some(known) = self.branch(cond, yes, no)? {
            let (taken, left) = if known { (then, other) } else { (other, then) };
            let value = self.rvalue(taken)?;
            let left_ty = self.type_of(left)?;
            let left = Val { op: Operand::Int(1), ty: left_ty };
            let ty = self.join_types(value, left, span)?;
            return Ok(self.cast_unless_record(value, ty));
        }
        self.func.cur = yes;
        let a = self.rvalue(then);
        let yes_end = std::mem::replace(&mut self.func.cur, no);
        let b = self.rvalue(other)?;
        let no_end = self.func.cur;
        let a = a?;
        let ty = self.join_types(a, b, span)?;
        let reg_ty = self.types.reg(ty);
        let result = self.func.reg(reg_ty);
        self.func.vars.insert(result);
        for (end, value) in [(yes_end, a), (no_end, b)] {
            self.func.cur = end;
            if ty != TypeId::VOID {
                let value = self.cast_unless_record(value, ty);
                self.emit_copy(reg_ty, result, value.op);
            }
            self.func.jump(done);
        }
        self.func.cur = done;
        Ok(Val { op: Operand::Reg(result), ty })
    }

    fn cast_unless_record(&mut self, value: Val, ty: TypeId) -> Val {
        if self.types.is_scalar(ty) { self.cast(value, ty) } else { Val { ty, ..value } }
    }

    /// The type of `c ? a : b`.
    fn join_types(&mut self, a: Val, b: Val, span: Span) -> Checked<TypeId> {
        let null = |v: Val| v.op == Operand::Int(0);
        let (left, right) = (self.types.pointee(a.ty), self.types.pointee(b.ty));
        match (left, right) {
            _ if self.types.is_arith(a.ty) && self.types.is_arith(b.ty) => {
                Ok(self.types.usual(a.ty, b.ty))
            }
            _ if a.ty.plain() == b.ty.plain() => Ok(a.ty.plain()),
            (Some(to), Some(_)) if to.plain() == TypeId::VOID && !null(a) => Ok(a.ty.plain()),
            (Some(_), Some(to)) if to.plain() == TypeId::VOID && !null(b) => Ok(b.ty.plain()),
            (Some(_), Some(_)) if null(a) => Ok(b.ty.plain()),
            (Some(_), Some(_)) => Ok(a.ty.plain()),
            (Some(_), None) if self.types.is_int(b.ty) => Ok(a.ty.plain()),
            (None, Some(_)) if self.types.is_int(a.ty) => Ok(b.ty.plain()),
            _ if a.ty.plain() == TypeId::VOID || b.ty.plain() == TypeId::VOID => Ok(TypeId::VOID),
            _ => {
                let (a, b) = (self.types.name(a.ty), self.types.name(b.ty));
                Err(self.diags.error(span, format!("`{a}` and `{b}` have no common type")))
            }
        }
    }

    fn generic(
        &mut self,
        control: &Expr,
        arms: &[(Option<TypeName>, Expr)],
        span: Span,
    ) -> Checked<Val> {
        let (value, _) = self.scratch(|checker| checker.rvalue(control).map(|value| value.ty));
        let wanted = value?.plain();
        let mut default = None;
        for (name, arm) in arms {
            match name {
                None => default = Some(arm),
                Some(name) if self.type_name(name)?.plain() == wanted => return self.rvalue(arm),
                Some(_) => {}
            }
        }
        match default {
            Some(arm) => self.rvalue(arm),
            None => {
                let text = format!("no choice is for `{}`", self.types.name(wanted));
                Err(self.diags.error(span, text))
            }
        }
    }
}

fn int_literal(value: u64, unsigned: bool, long: bool, decimal: bool) -> Val {
    let may_be_unsigned = unsigned || !decimal;
    let ty = if !long && !unsigned && i32::try_from(value).is_ok() {
        TypeId::INT
    } else if !long && may_be_unsigned && u32::try_from(value).is_ok() {
        TypeId::UINT
    } else if !unsigned && i64::try_from(value).is_ok() {
        TypeId::LONG
    } else {
        TypeId::ULONG
    };
    let op = match ty {
        TypeId::INT | TypeId::UINT => Operand::Int(i64::from(value as u32 as i32)),
        _ => Operand::Int(value as i64),
    };
    Val { op, ty }
}
