//! Static data.

use super::{
    Checked, Checker,
    init::Leaf,
    scope::{Home, Sym},
};
use crate::{
    ast::{Decl, Declarator, ExprKind, Init, Name, Storage},
    ir::{Global, GlobalId, Operand, Ty},
    span::Span,
    types::{Type, TypeId},
};
use std::collections::BTreeMap;

/// All static data together.
const MAX_STATIC: u64 = 64 << 20;

/// Static objects, strings among them: every target keeps each apart.
const MAX_GLOBALS: usize = 20_000;

impl Checker<'_> {
    /// A declaration outside of functions.
    pub(super) fn global_decl(&mut self, decl: &Decl) {
        let Ok(base) = self.spec(&decl.spec) else { return };
        for (declarator, init) in &decl.items {
            let _ = self.global_item(base, decl.spec.storage, declarator, init.as_ref());
        }
    }

    fn global_item(
        &mut self,
        base: TypeId,
        storage: Storage,
        declarator: &Declarator,
        init: Option<&Init>,
    ) -> Checked<()> {
        let (name, ty) = self.declared_from(base, declarator)?;
        let span = declarator.span;
        if storage == Storage::Typedef {
            self.define(name, Sym::Type(ty));
            return Ok(());
        }
        if let Type::Func(sig) = self.types.get(ty).clone() {
            let is_static = storage == Storage::Static;
            return self.declare_function(&name, sig, is_static, false, span).map(drop);
        }
        if let Some(Sym::Var(old, Home::Global(id))) = self.lookup_global(&name) {
            return self.redeclare_global(&name, (old, id), ty, init, span);
        }
        if self.lookup_global(&name).is_some() {
            return Err(self.diags.error(span, format!("`{name}` is declared twice")));
        }
        let id = self.new_global(&name);
        // The name is known in its own initialiser.
        self.define_global(name.clone(), Sym::Var(ty, Home::Global(id)));
        let ty = self.fill_global(id, ty, init, span)?;
        self.define_global(name, Sym::Var(ty, Home::Global(id)));
        Ok(())
    }

    fn redeclare_global(
        &mut self,
        name: &Name,
        old: (TypeId, GlobalId),
        ty: TypeId,
        init: Option<&Init>,
        span: Span,
    ) -> Checked<()> {
        let (old_ty, id) = old;
        let element = |checker: &Self, ty: TypeId| match checker.types.get(ty) {
            Type::Array(of, _) => (of.plain(), true),
            _ => (ty.plain(), false),
        };
        if element(self, old_ty) != element(self, ty) {
            let text = format!("`{name}` was declared with another type");
            return Err(self.diags.error(span, text));
        }
        let sized = if self.types.size(ty).is_some() { ty } else { old_ty };
        if init.is_some() && !self.module.globals[id.0 as usize].init.is_empty() {
            return Err(self.diags.error(span, format!("`{name}` has two values")));
        }
        let ty = self.fill_global(id, if init.is_some() { ty } else { sized }, init, span)?;
        self.define_global(name.clone(), Sym::Var(ty, Home::Global(id)));
        Ok(())
    }

    /// New static data, still without size.
    pub(super) fn new_global(&mut self, name: &str) -> GlobalId {
        let (name, init, relocs) = (name.to_owned(), Vec::new(), BTreeMap::new());
        self.module.globals.push(Global { name, size: 0, align: 1, init, relocs });
        GlobalId(self.module.globals.len() as u32 - 1)
    }

    /// Gives static data its size and contents; returns its type with the length known.
    pub(super) fn fill_global(
        &mut self,
        id: GlobalId,
        ty: TypeId,
        init: Option<&Init>,
        span: Span,
    ) -> Checked<TypeId> {
        let (plan, ty) = match init {
            Some(init) => {
                let (plan, ty) = self.plan(ty, init)?;
                (plan, ty)
            }
            None => (super::init::Plan::default(), ty),
        };
        let size = match (self.types.size(ty), self.types.get(ty)) {
            (Some(size), _) => size.max(plan.extent()),
            // `int a[];` may be completed below.
            (None, Type::Array(..)) => 0,
            (None, _) => {
                let text = format!("`{}` has no known size", self.types.name(ty));
                return Err(self.diags.error(span, text));
            }
        };
        self.static_bytes += size;
        if self.static_bytes > MAX_STATIC {
            return Err(self.diags.error(span, "there is too much static data"));
        }
        if self.module.globals.len() > MAX_GLOBALS {
            let text = format!("there are more than {MAX_GLOBALS} static objects and strings");
            return Err(self.diags.error(span, text));
        }
        let align = self.types.align(ty);
        let global = &mut self.module.globals[id.0 as usize];
        (global.size, global.align) = (global.size.max(size), align.max(global.align));
        for leaf in plan.leaves {
            self.static_leaf(id, leaf)?;
        }
        Ok(ty)
    }

    fn static_leaf(&mut self, id: GlobalId, leaf: Leaf<'_>) -> Checked<()> {
        let offset = leaf.offset;
        if let (Type::Array(_, length), ExprKind::Str(bytes)) =
            (self.types.get(leaf.ty), &leaf.value.kind)
        {
            let most = length.map_or(bytes.len(), |length| length as usize);
            let bytes = bytes[..bytes.len().min(most)].to_vec();
            self.write_static(id, offset, &bytes);
            return Ok(());
        }
        // A compound literal gives its own values.
        if let ExprKind::Compound(_, init) = &leaf.value.kind
            && self.types.is_record(leaf.ty)
        {
            let (plan, _) = self.plan(leaf.ty, init)?;
            for inner in plan.leaves {
                self.static_leaf(id, Leaf { offset: inner.offset + offset, ..inner })?;
            }
            return Ok(());
        }
        let value = self.constant(leaf.value)?;
        let (value, emitted) = self.scratch(|c| c.implicit(value, leaf.ty, leaf.value.span));
        let value = value?;
        if emitted {
            return Err(self.diags.error(leaf.value.span, "this is not a constant of this type"));
        }
        let size = self.types.size(leaf.ty).unwrap_or(0) as usize;
        match value.op {
            Operand::Int(number) => {
                self.write_static(id, offset, &number.to_le_bytes()[..size.min(8)]);
            }
            Operand::Float(bits) if self.types.reg(leaf.ty) == Ty::F32 => {
                let single = f64::from_bits(bits) as f32;
                self.write_static(id, offset, &single.to_le_bytes());
            }
            Operand::Float(bits) => self.write_static(id, offset, &bits.to_le_bytes()),
            target @ (Operand::Global(..) | Operand::Func(_)) if size == 8 => {
                self.write_static(id, offset, &[0; 8]);
                self.module.globals[id.0 as usize].relocs.insert(offset, target);
            }
            _ => return Err(self.diags.error(leaf.value.span, "this is not a constant")),
        }
        Ok(())
    }

    fn write_static(&mut self, id: GlobalId, offset: u64, bytes: &[u8]) {
        let global = &mut self.module.globals[id.0 as usize];
        let end = offset as usize + bytes.len();
        let clipped = end.min(global.size as usize);
        let Some(count) = clipped.checked_sub(offset as usize) else { return };
        // What is written over is no address any more.
        let over = offset.saturating_sub(7)..clipped as u64;
        while let Some((at, _)) = global.relocs.range(over.clone()).next() {
            let at = *at;
            global.relocs.remove(&at);
        }
        if global.init.len() < clipped {
            global.init.resize(clipped, 0);
        }
        global.init[offset as usize..clipped].copy_from_slice(&bytes[..count]);
    }

    /// The address of a string; equal strings are one.
    pub(super) fn string(&mut self, bytes: &[u8]) -> Operand {
        if let Some(id) = self.strings.get(bytes) {
            return Operand::Global(*id, 0);
        }
        let id = self.new_global("");
        let global = &mut self.module.globals[id.0 as usize];
        (global.size, global.init) = (bytes.len() as u64, bytes.to_vec());
        self.static_bytes += bytes.len() as u64;
        self.strings.insert(bytes.to_vec(), id);
        Operand::Global(id, 0)
    }
}
