//! Types as written to types.

use super::{Checked, Checker, lvalue::Deref, scope::Sym};
use crate::{
    ast::{
        Base, Declarator, Deriv, Expr, ExprKind, Field, Ident, Name, Param, Spec, TypeName, UnOp,
    },
    ir::Operand,
    span::Span,
    types::{MAX_DEPTH, MAX_OBJECT, Sig, Type, TypeId},
};
use std::{collections::HashSet, rc::Rc};

/// Members of a struct or union. C asks for 1,023.
const MAX_FIELDS: usize = 4_000;

impl Checker<'_> {
    /// The name and type that a declarator gives.
    pub(super) fn declared(
        &mut self,
        spec: &Spec,
        declarator: &Declarator,
    ) -> Checked<(Name, TypeId)> {
        let base = self.spec(spec)?;
        self.declared_from(base, declarator)
    }

    pub(super) fn declared_from(
        &mut self,
        base: TypeId,
        declarator: &Declarator,
    ) -> Checked<(Name, TypeId)> {
        let ty = self.derive(base, &declarator.derivs, declarator.span)?;
        match &declarator.name {
            Some(name) => Ok((name.name.clone(), ty)),
            None => Err(self.diags.error(declarator.span, "a name is missing")),
        }
    }

    pub(super) fn type_name(&mut self, name: &TypeName) -> Checked<TypeId> {
        let base = self.spec(&name.spec)?;
        self.derive(base, &name.derivs, name.span)
    }

    pub(super) fn spec(&mut self, spec: &Spec) -> Checked<TypeId> {
        let ty = match &spec.base {
            Base::Void => TypeId::VOID,
            Base::Bool => TypeId::BOOL,
            Base::Float => TypeId::FLOAT,
            Base::Double => TypeId::DOUBLE,
            Base::Int { bits, signed } => {
                self.types.intern(Type::Int { bits: *bits, signed: signed.unwrap_or(true) })
            }
            Base::Named(name) => match self.lookup(&name.name) {
                Some(Sym::Type(ty)) => ty,
                _ => {
                    let text = format!("`{}` is not a type here", name.name);
                    return Err(self.diags.error(name.span, text));
                }
            },
            Base::Record { is_union, tag, fields } => {
                self.record(*is_union, tag.as_ref(), fields.as_deref(), spec.span)?
            }
            Base::Enum { tag, items } => self.enumeration(tag.as_ref(), items.as_deref())?,
        };
        Ok(ty.with_const(spec.is_const))
    }

    fn record(
        &mut self,
        is_union: bool,
        tag: Option<&Ident>,
        fields: Option<&[Field]>,
        span: Span,
    ) -> Checked<TypeId> {
        let known = tag.and_then(|tag| match fields {
            Some(_) => self.tag_here(&tag.name),
            None => self.tag(&tag.name),
        });
        let ty = known.unwrap_or_else(|| {
            let word = if is_union { "union" } else { "struct" };
            let name = tag.map_or_else(|| word.to_owned(), |tag| format!("{word} {}", tag.name));
            let ty = self.types.new_record(name, is_union).1;
            if let Some(tag) = tag {
                self.define_tag(tag.name.clone(), ty);
            }
            ty
        });
        let Type::Record(id) = *self.types.get(ty) else {
            return Err(self.diags.error(span, "this tag names an `enum`"));
        };
        if self.types.record(id).is_union != is_union {
            return Err(self.diags.error(span, "this tag was declared with the other keyword"));
        }
        let Some(fields) = fields else { return Ok(ty) };
        if self.types.record(id).complete {
            return Err(self.diags.error(span, "this type is defined twice"));
        }
        let fields = self.fields(fields)?;
        if self.types.complete(id, fields).is_none() {
            return Err(self.diags.error(span, "this type is too large"));
        }
        self.not_too_deep(ty, span)
    }

    fn not_too_deep(&mut self, ty: TypeId, span: Span) -> Checked<TypeId> {
        if self.types.depth(ty) > MAX_DEPTH {
            let text = format!("types lie in each other more than {MAX_DEPTH} deep here");
            return Err(self.diags.error(span, text));
        }
        Ok(ty)
    }

    fn fields(&mut self, fields: &[Field]) -> Checked<Vec<(Option<Name>, TypeId)>> {
        if let Some(field) = fields.get(MAX_FIELDS) {
            let text = format!("this type has more than {MAX_FIELDS} members");
            return Err(self.diags.error(field.spec.span, text));
        }
        let mut names = HashSet::new();
        let mut out: Vec<(Option<Name>, TypeId)> = Vec::with_capacity(fields.len());
        let mut last: Option<(&Rc<Spec>, TypeId)> = None;
        for (index, field) in fields.iter().enumerate() {
            let base = match last {
                Some((spec, ty)) if Rc::ptr_eq(spec, &field.spec) => ty,
                _ => self.spec(&field.spec)?,
            };
            last = Some((&field.spec, base));
            let Some(declarator) = &field.declarator else {
                if self.types.is_record(base) {
                    out.push((None, base));
                }
                continue;
            };
            let (name, ty) = self.declared_from(base, declarator)?;
            let flexible = matches!(self.types.get(ty), Type::Array(_, None));
            if self.types.size(ty).is_none() && !(flexible && index + 1 == fields.len()) {
                let text = format!("field `{name}` has an incomplete type");
                return Err(self.diags.error(declarator.span, text));
            }
            if !names.insert(name.clone()) {
                let text = format!("field `{name}` is declared twice");
                return Err(self.diags.error(declarator.span, text));
            }
            out.push((Some(name), ty));
        }
        Ok(out)
    }

    fn enumeration(
        &mut self,
        tag: Option<&Ident>,
        items: Option<&[(Ident, Option<Expr>)]>,
    ) -> Checked<TypeId> {
        let Some(items) = items else {
            let known = tag.and_then(|tag| self.tag(&tag.name));
            return Ok(known.unwrap_or(TypeId::UINT));
        };
        let (mut next, mut negative) = (0_i64, false);
        for (name, value) in items {
            if let Some(value) = value {
                next = self.const_int(value)?;
            }
            if i32::try_from(next).is_err() {
                let text = format!("`{}` does not fit in an int", name.name);
                return Err(self.diags.error(name.span, text));
            }
            negative |= next < 0;
            if self.defined_here(&name.name).is_some() {
                let text = format!("`{}` is declared twice", name.name);
                return Err(self.diags.error(name.span, text));
            }
            let value = super::Val { op: Operand::Int(next), ty: TypeId::INT };
            self.define(name.name.clone(), Sym::Const(value));
            next += 1;
        }
        // As gcc on Linux: unsigned unless a constant is negative.
        let ty = if negative { TypeId::INT } else { TypeId::UINT };
        if let Some(tag) = tag {
            self.define_tag(tag.name.clone(), ty);
        }
        Ok(ty)
    }

    /// Applies a declarator's derivations to `ty`.
    fn derive(&mut self, mut ty: TypeId, derivs: &[Deriv], span: Span) -> Checked<TypeId> {
        for deriv in derivs {
            ty = match deriv {
                Deriv::Pointer { is_const } => self.types.pointer(ty).with_const(*is_const),
                Deriv::Array(length) => self.array_type(ty, length.as_ref(), span)?,
                Deriv::Func { params, variadic, unspecified } => {
                    if matches!(self.types.get(ty), Type::Array(..) | Type::Func(_)) {
                        let text = "a function cannot return an array or a function";
                        return Err(self.diags.error(span, text));
                    }
                    let params = params
                        .iter()
                        .map(|param| self.param_type(param).map(TypeId::plain))
                        .collect::<Checked<Vec<_>>>()?;
                    let (variadic, unspecified) = (*variadic, *unspecified);
                    let ret = ty.plain();
                    self.types.intern(Type::Func(Sig { params, ret, variadic, unspecified }))
                }
            };
            self.not_too_deep(ty, span)?;
        }
        Ok(ty)
    }

    fn array_type(&mut self, of: TypeId, length: Option<&Expr>, span: Span) -> Checked<TypeId> {
        let Some(size) = self.types.size(of) else {
            return Err(self.diags.error(span, "the elements of this array have no known size"));
        };
        let Some(length) = length else { return Ok(self.types.array(of, None)) };
        let count = self.const_int(length)?;
        let bytes = u64::try_from(count).ok().and_then(|count| count.checked_mul(size.max(1)));
        match bytes {
            Some(bytes) if bytes <= MAX_OBJECT => Ok(self.types.array(of, Some(count as u64))),
            _ => Err(self
                .diags
                .error(length.span, "this array is too large, or has less than no elements")),
        }
    }

    /// The type of a parameter: arrays and functions become pointers.
    pub(super) fn param_type(&mut self, param: &Param) -> Checked<TypeId> {
        let base = self.spec(&param.spec)?;
        let mut derivs: &[Deriv] = &param.declarator.derivs;
        // The outermost array is a pointer, whatever its length says.
        let outer_array = matches!(derivs.last(), Some(Deriv::Array(_)));
        if outer_array {
            derivs = &derivs[..derivs.len() - 1];
        }
        let ty = self.derive(base, derivs, param.declarator.span)?;
        let ty = match self.types.get(ty) {
            _ if outer_array => self.types.pointer(ty),
            Type::Func(_) => self.types.pointer(ty),
            Type::Array(of, _) => {
                let of = *of;
                self.types.pointer(of)
            }
            _ => ty,
        };
        if self.types.size(ty).is_none() {
            let text = format!("a parameter cannot have type `{}`", self.types.name(ty));
            return Err(self.diags.error(param.declarator.span, text));
        }
        Ok(ty)
    }

    /// The value of an integer constant expression.
    pub(super) fn const_int(&mut self, expr: &Expr) -> Checked<i64> {
        let value = self.constant(expr)?;
        match value.op {
            Operand::Int(number) if self.types.is_int(value.ty) => {
                let (bits, signed) = self.types.int(value.ty).unwrap_or((64, true));
                Ok(if bits == 32 && !signed { i64::from(number as u32) } else { number })
            }
            _ => Err(self.diags.error(expr.span, "an integer constant is needed here")),
        }
    }

    /// The value of an expression that needs no code, an address among them.
    pub(super) fn constant(&mut self, expr: &Expr) -> Checked<super::Val> {
        let (value, emitted) = self.scratch(|checker| checker.rvalue(expr));
        let value = value?;
        if emitted || matches!(value.op, Operand::Reg(_) | Operand::Slot(..)) {
            let help = "only numbers, `sizeof`, `enum` constants and addresses of static data are";
            return Err(self.diags.hint(expr.span, "this is not a constant", help));
        }
        Ok(value)
    }

    /// The type of an expression, without generating it.
    pub(super) fn type_of(&mut self, expr: &Expr) -> Checked<TypeId> {
        let find = |checker: &mut Self| match &expr.kind {
            // Looked at once, whatever it is.
            ExprKind::Unary(UnOp::Deref, inner) => match checker.deref(inner, expr.span)? {
                Deref::Lvalue(lvalue) => Ok(lvalue.ty),
                Deref::Function(value) => Ok(value.ty),
            },
            _ => match checker.lvalue_opt(expr) {
                Some(lvalue) => lvalue.map(|lvalue| lvalue.ty),
                None => checker.rvalue(expr).map(|value| value.ty),
            },
        };
        self.scratch(find).0
    }

    /// Runs `f` and throws its code away; tells whether there was any.
    pub(super) fn scratch<T>(&mut self, f: impl FnOnce(&mut Self) -> T) -> (T, bool) {
        let (regs, blocks, slots) =
            (self.func.regs.len(), self.func.blocks.len(), self.func.slots.len());
        let (cur, bytes, float) = (self.func.cur, self.func.frame_bytes, self.func.float);
        self.func.cur = self.func.block();
        let result = f(self);
        let emitted = self.func.blocks[blocks..].iter().any(|block| !block.insts.is_empty());
        self.func.regs.truncate(regs);
        self.func.blocks.truncate(blocks);
        self.func.slots.truncate(slots);
        (self.func.cur, self.func.frame_bytes, self.func.float) = (cur, bytes, float);
        (result, emitted)
    }

    pub(super) fn static_assert(&mut self, condition: &Expr, span: Span) -> Checked<()> {
        if self.const_int(condition)? == 0 {
            return Err(self.diags.error(span, "this assertion does not hold"));
        }
        Ok(())
    }
}
