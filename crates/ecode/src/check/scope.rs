//! Names and what they stand for.

use super::{Checker, Val};
use crate::{
    ast::Name,
    ir::{FuncId, GlobalId, Reg, SlotId},
    span::Span,
    types::TypeId,
};
use std::collections::HashMap;

#[derive(Clone, Copy, Debug)]
pub(super) enum Sym {
    Type(TypeId),
    Const(Val),
    Func(FuncId),
    Var(TypeId, Home),
}

/// Where a variable lives.
#[derive(Clone, Copy, Debug)]
pub(super) enum Home {
    Reg(Reg),
    Slot(SlotId),
    /// A parameter passed by address.
    Indirect(Reg),
    Global(GlobalId),
}

#[derive(Debug, Default)]
pub(super) struct Scope {
    names: HashMap<Name, Sym>,
    tags: HashMap<Name, TypeId>,
    /// Variables that were declared here and not used yet.
    unused: HashMap<Name, Span>,
}

impl Checker<'_> {
    pub(super) fn define(&mut self, name: Name, sym: Sym) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.names.insert(name, sym);
        }
    }

    pub(super) fn define_var(&mut self, name: Name, ty: TypeId, home: Home, span: Span) {
        let warn = self.scopes.len() > 3;
        let Some(scope) = self.scopes.last_mut() else { return };
        if scope.names.contains_key(&name) {
            self.diags.error(span, format!("`{name}` is declared twice"));
            return;
        }
        if warn {
            scope.unused.insert(name.clone(), span);
        }
        scope.names.insert(name, Sym::Var(ty, home));
    }

    /// Whether the innermost scope has the name.
    pub(super) fn defined_here(&self, name: &str) -> Option<Sym> {
        self.scopes.last().and_then(|scope| scope.names.get(name)).copied()
    }

    /// Defines outside of all functions.
    pub(super) fn define_global(&mut self, name: Name, sym: Sym) {
        self.scopes[1].names.insert(name, sym);
    }

    pub(super) fn lookup_global(&self, name: &str) -> Option<Sym> {
        self.scopes[1].names.get(name).copied()
    }

    pub(super) fn lookup(&mut self, name: &str) -> Option<Sym> {
        self.scopes.iter_mut().rev().find_map(|scope| {
            let sym = scope.names.get(name).copied()?;
            scope.unused.remove(name);
            Some(sym)
        })
    }

    pub(super) fn define_tag(&mut self, name: Name, ty: TypeId) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.tags.insert(name, ty);
        }
    }

    pub(super) fn tag_here(&self, name: &str) -> Option<TypeId> {
        self.scopes.last().and_then(|scope| scope.tags.get(name)).copied()
    }

    pub(super) fn tag(&self, name: &str) -> Option<TypeId> {
        self.scopes.iter().rev().find_map(|scope| scope.tags.get(name)).copied()
    }

    pub(super) fn enter(&mut self) {
        self.scopes.push(Scope::default());
    }

    pub(super) fn leave(&mut self) {
        let Some(scope) = self.scopes.pop() else { return };
        for (name, span) in scope.unused {
            self.diags.warn(span, format!("variable `{name}` is never used"), None);
        }
    }

    /// A declared name that is spelled nearly so.
    pub(super) fn similar(&self, name: &str) -> Option<String> {
        let near = |other: &Name| distance_at_most_one(name.as_bytes(), other.as_bytes());
        let names = self.scopes.iter().rev().flat_map(|scope| scope.names.keys());
        names.filter(|other| near(other)).min().map(|other| format!("did you mean `{other}`?"))
    }
}

fn distance_at_most_one(a: &[u8], b: &[u8]) -> bool {
    let front = a.iter().zip(b).take_while(|(x, y)| x == y).count();
    let (a, b) = (&a[front..], &b[front..]);
    let back = a.iter().rev().zip(b.iter().rev()).take_while(|(x, y)| x == y).count();
    let (a, b) = (a.len() - back, b.len() - back);
    (a <= 1 && b <= 1 && front + back > 0) || (a == 2 && b == 2 && front + back > 1)
}
