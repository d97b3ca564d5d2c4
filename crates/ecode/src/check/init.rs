//! Initialisers: `{ … }` laid over a type, as C lays it, into single values at offsets.

use super::{Checked, Checker};
use crate::{
    ast::{Designator, Expr, ExprKind, Init, InitItem},
    span::Span,
    types::{MAX_OBJECT, RecordId, Type, TypeId},
};

/// A value for a part of the object.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaf<'a> {
    pub(super) offset: u64,
    pub(super) ty: TypeId,
    pub(super) value: &'a Expr,
}

/// An initialiser in parts.
#[derive(Debug, Default)]
pub(super) struct Plan<'a> {
    pub(super) leaves: Vec<Leaf<'a>>,
    /// One past the last byte named: the size of an array without a length.
    end: u64,
}

impl Plan<'_> {
    /// Bytes that the values reach to, which exceed the type's where it ends in an array without a
    /// length.
    pub(super) fn extent(&self) -> u64 {
        self.end
    }
}

/// The items of one pair of braces, and how far they are used.
struct Items<'a> {
    items: &'a [InitItem],
    at: usize,
}

impl Checker<'_> {
    /// Lays `init` over `ty`; returns the parts, and the type with its length known.
    pub(super) fn plan<'a>(&mut self, ty: TypeId, init: &'a Init) -> Checked<(Plan<'a>, TypeId)> {
        let mut plan = Plan::default();
        self.place(&mut plan, ty, 0, init)?;
        if let Type::Array(of, None) = *self.types.get(ty) {
            let size = self.types.size(of).unwrap_or(1).max(1);
            let full = self.types.array(of, Some(plan.end.div_ceil(size)));
            return Ok((plan, full.with_const(ty.is_const())));
        }
        Ok((plan, ty))
    }

    fn place<'a>(
        &mut self,
        plan: &mut Plan<'a>,
        ty: TypeId,
        offset: u64,
        init: &'a Init,
    ) -> Checked<()> {
        match init {
            Init::Expr(expr) => self.place_expr(plan, ty, offset, expr),
            Init::List(items, span) => {
                // `{"text"}` is `"text"`.
                if let [InitItem { designators, init: Init::Expr(expr) }] = &items[..]
                    && designators.is_empty()
                    && self.is_text_for(expr, ty)
                {
                    return self.place_expr(plan, ty, offset, expr);
                }
                let mut items = Items { items, at: 0 };
                self.fill(plan, ty, offset, &mut items, true, *span)?;
                if items.at < items.items.len() {
                    self.diags.warn(*span, "there are more values than places", None);
                }
                Ok(())
            }
        }
    }

    fn place_expr<'a>(
        &mut self,
        plan: &mut Plan<'a>,
        ty: TypeId,
        offset: u64,
        value: &'a Expr,
    ) -> Checked<()> {
        let mut length = self.types.size(ty).unwrap_or(0);
        if let Type::Array(..) = self.types.get(ty) {
            let ExprKind::Str(bytes) = &value.kind else {
                let help = "write `{ … }` or a string";
                return Err(self.diags.hint(value.span, "this does not initialise an array", help));
            };
            if !self.is_text_for(value, ty) {
                return Err(self.diags.error(value.span, "text initialises arrays of char"));
            }
            length = length.max(if length == 0 { bytes.len() as u64 } else { 0 });
            if (bytes.len() as u64) > length + 1 {
                self.diags.warn(value.span, "this text is longer than its array", None);
            }
        }
        plan.end = plan.end.max(offset + length);
        plan.leaves.push(Leaf { offset, ty, value });
        Ok(())
    }

    fn is_text_for(&self, value: &Expr, ty: TypeId) -> bool {
        let Type::Array(of, _) = self.types.get(ty) else { return false };
        matches!(value.kind, ExprKind::Str(_)) && matches!(self.types.int(*of), Some((8, _)))
    }

    /// Fills an object from `items`. Inside braces of its own, `braced`, designators are its too.
    fn fill<'a>(
        &mut self,
        plan: &mut Plan<'a>,
        ty: TypeId,
        offset: u64,
        items: &mut Items<'a>,
        braced: bool,
        span: Span,
    ) -> Checked<()> {
        match self.types.get(ty).clone() {
            Type::Array(of, length) => {
                let most = length.unwrap_or(MAX_OBJECT);
                self.fill_array(plan, of, most, offset, items, braced, span)
            }
            Type::Record(id) => self.fill_record(plan, id, offset, items, braced, span),
            _ => match items.items.get(items.at) {
                Some(item) if item.designators.is_empty() => {
                    items.at += 1;
                    self.place(plan, ty, offset, &item.init)
                }
                Some(_) => Err(self.diags.error(span, "a single value has no parts")),
                None => Ok(()),
            },
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn fill_array<'a>(
        &mut self,
        plan: &mut Plan<'a>,
        of: TypeId,
        length: u64,
        offset: u64,
        items: &mut Items<'a>,
        braced: bool,
        span: Span,
    ) -> Checked<()> {
        let size = self.types.size(of).unwrap_or(0);
        let mut index = 0;
        while let Some(item) = items.items.get(items.at) {
            let mut rest: &[Designator] = &item.designators;
            if let Some((first, others)) = rest.split_first() {
                if !braced {
                    break;
                }
                let Designator::Index(number) = first else {
                    return Err(self.diags.error(span, "an array has no fields"));
                };
                index = u64::try_from(self.const_int(number)?).unwrap_or(u64::MAX);
                rest = others;
            }
            if index >= length {
                if !rest.is_empty() || !item.designators.is_empty() {
                    return Err(self.diags.error(span, "this index is outside of the array"));
                }
                break;
            }
            let at = size.checked_mul(index).and_then(|at| at.checked_add(offset));
            let Some(at) = at.filter(|at| *at < MAX_OBJECT) else {
                return Err(self.diags.error(span, "this array is too large"));
            };
            plan.end = plan.end.max(at + size);
            self.fill_part(plan, of, at, rest, items, span)?;
            index += 1;
        }
        Ok(())
    }

    fn fill_record<'a>(
        &mut self,
        plan: &mut Plan<'a>,
        id: RecordId,
        offset: u64,
        items: &mut Items<'a>,
        braced: bool,
        span: Span,
    ) -> Checked<()> {
        let mut next = 0;
        while let Some(item) = items.items.get(items.at) {
            let mut rest: &[Designator] = &item.designators;
            let record = self.types.record(id);
            let (is_union, count) = (record.is_union, record.fields.len());
            if let Some((first, others)) = rest.split_first() {
                if !braced {
                    break;
                }
                let Designator::Field(name) = first else {
                    return Err(self.diags.error(span, "this type has no elements"));
                };
                let direct = record.fields.iter().position(|f| f.name.as_ref() == Some(&name.name));
                let Some((ty, at)) = self.field(id, name)? else {
                    let text = format!("there is no field `{}`", name.name);
                    return Err(self.diags.error(name.span, text));
                };
                rest = others;
                next = direct.map_or(next, |index| index + 1);
                self.fill_part(plan, ty, offset + at, rest, items, span)?;
                continue;
            }
            if next >= count || is_union && next > 0 {
                break;
            }
            let field = &record.fields[next];
            let (ty, at) = (field.ty, offset + field.offset);
            next += 1;
            self.fill_part(plan, ty, at, rest, items, span)?;
        }
        Ok(())
    }

    /// Gives the next item to the part at `offset`, or to what `designators` name inside of it.
    fn fill_part<'a>(
        &mut self,
        plan: &mut Plan<'a>,
        ty: TypeId,
        offset: u64,
        designators: &[Designator],
        items: &mut Items<'a>,
        span: Span,
    ) -> Checked<()> {
        // A value without braces of its own goes through every type around it.
        self.step_at(span)?;
        if let Some((first, rest)) = designators.split_first() {
            let (ty, at) = self.designated(ty, first, span)?;
            return self.fill_part(plan, ty, offset + at, rest, items, span);
        }
        let item = &items.items[items.at];
        let whole = match &item.init {
            Init::List(..) => true,
            Init::Expr(expr) => self.fills_whole(expr, ty)?,
        };
        if whole {
            items.at += 1;
            return self.place(plan, ty, offset, &item.init);
        }
        // Braces left out: the part takes as many items as it has places. Its first one may be
        // designated here.
        let first = items.at;
        if !item.designators.is_empty() {
            let Init::Expr(expr) = &item.init else { return Ok(()) };
            items.at += 1;
            return self.first_scalar(plan, ty, offset, expr);
        }
        self.fill(plan, ty, offset, items, false, span)?;
        if items.at == first {
            items.at += 1;
        }
        Ok(())
    }

    /// A designated aggregate whose value is a scalar: it goes to the first scalar inside.
    fn first_scalar<'a>(
        &mut self,
        plan: &mut Plan<'a>,
        ty: TypeId,
        offset: u64,
        value: &'a Expr,
    ) -> Checked<()> {
        self.step_at(value.span)?;
        let inner = match self.types.get(ty) {
            Type::Array(of, _) => Some(*of),
            Type::Record(id) => self.types.record(*id).fields.first().map(|field| field.ty),
            _ => None,
        };
        match inner {
            Some(ty) if !self.types.is_scalar(ty) => self.first_scalar(plan, ty, offset, value),
            Some(ty) => self.place_expr(plan, ty, offset, value),
            None => self.place_expr(plan, ty, offset, value),
        }
    }

    /// Whether `expr` without braces initialises all of an object of type `ty`.
    fn fills_whole(&mut self, expr: &Expr, ty: TypeId) -> Checked<bool> {
        match self.types.get(ty) {
            Type::Array(..) => Ok(self.is_text_for(expr, ty)),
            Type::Record(_) => Ok(self.type_of_once(expr)?.plain() == ty.plain()),
            _ => Ok(true),
        }
    }

    /// The type of `expr`, found once: initialisers inside of initialisers ask again and again.
    fn type_of_once(&mut self, expr: &Expr) -> Checked<TypeId> {
        // INVARIANT: the tree outlives the checker's work on it and does not move.
        let key = std::ptr::from_ref(expr).addr();
        if let Some(known) = self.expr_types.get(&key) {
            return Ok(*known);
        }
        let ty = self.type_of(expr)?;
        self.expr_types.insert(key, ty);
        Ok(ty)
    }

    fn designated(
        &mut self,
        ty: TypeId,
        designator: &Designator,
        span: Span,
    ) -> Checked<(TypeId, u64)> {
        match (self.types.get(ty).clone(), designator) {
            (Type::Array(of, length), Designator::Index(number)) => {
                let index = u64::try_from(self.const_int(number)?).unwrap_or(u64::MAX);
                if index >= length.unwrap_or(MAX_OBJECT) {
                    return Err(self.diags.error(span, "this index is outside of the array"));
                }
                Ok((of, self.types.size(of).unwrap_or(0).saturating_mul(index).min(MAX_OBJECT)))
            }
            (Type::Record(id), Designator::Field(name)) => self.field(id, name)?.ok_or_else(|| {
                let text = format!("there is no field `{}`", name.name);
                self.diags.error(name.span, text)
            }),
            _ => Err(self.diags.error(span, "this designator does not fit the type")),
        }
    }
}
