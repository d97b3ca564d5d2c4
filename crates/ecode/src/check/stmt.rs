//! Functions and statements.

use super::{
    Checked, Checker, FuncState,
    func_state::Label,
    init::Plan,
    lvalue::{LVal, Location},
    scope::{Home, Sym},
};
use crate::{
    ast::{
        Block, Decl, Declarator, Deriv, Expr, ExprKind, FuncDef, Ident, Init, Stmt, StmtKind,
        Storage, TypeName,
    },
    ir::{BlockId, Body, FuncId, Inst, MAX_ALL_BLOCKS, MAX_ALL_LIVE, Operand, Term},
    span::Span,
    types::{Type, TypeId},
};

/// Conditions up to this height are tested at the loop's end too, instead of jumping to its start.
const MAX_ROTATED: u16 = 8;

impl Checker<'_> {
    pub(super) fn function_body(&mut self, id: FuncId, def: &FuncDef) -> Checked<()> {
        let sig = self.funcs[id.0 as usize].sig.clone();
        if sig.variadic {
            let text = "only host functions take `...`";
            return Err(self.diags.error(def.declarator.span, text));
        }
        self.func = FuncState {
            name: self.module.funcs[id.0 as usize].name.clone(),
            ret: sig.ret,
            addressed: super::effects::addressed(&def.body),
            here: def.declarator.span,
            ..FuncState::default()
        };
        self.func.cur = self.func.block();
        if self.types.is_record(sig.ret) {
            self.func.ret_address = Some(self.func.reg(crate::ir::Ty::Ptr));
        }
        self.enter();
        let checked = self.params(def);
        if checked.is_ok() {
            self.enter();
            self.stmts(&def.body);
            self.leave();
            self.finish_function(id, def);
        }
        self.leave();
        checked
    }

    fn params(&mut self, def: &FuncDef) -> Checked<()> {
        let Some(Deriv::Func { params, .. }) = def.declarator.derivs.last() else { return Ok(()) };
        let mut homes = Vec::new();
        for param in params {
            let ty = self.param_type(param)?;
            self.func.here = param.declarator.span;
            let reg = self.func.reg(self.types.reg(ty));
            homes.push((param, ty, reg));
        }
        for (param, ty, reg) in homes {
            let Some(name) = &param.declarator.name else { continue };
            let home = if self.types.is_record(ty) {
                Home::Indirect(reg)
            } else if self.func.addressed.contains(&name.name) {
                let slot = self.new_slot(&name.name, ty, name.span);
                let mem = self.mem_ty(ty);
                let (addr, val) = (Operand::Slot(slot, 0), Operand::Reg(reg));
                self.emit(Inst::Store { mem, addr, off: 0, val, at: self.func.at });
                Home::Slot(slot)
            } else {
                self.func.vars.insert(reg);
                Home::Reg(reg)
            };
            self.define_var(name.name.clone(), ty, home, name.span);
        }
        Ok(())
    }

    /// Refuses what would take long to compile.
    fn limit_size(&mut self, body: &Body, span: Span) {
        self.blocks += body.blocks.len();
        self.live += body.kept_over_blocks();
        if let Some(what) = body.excess() {
            self.diags.hint(span, format!("this function is too large: {what}"), "split it");
        } else if self.blocks > MAX_ALL_BLOCKS {
            let text = format!("all functions up to here have more than {MAX_ALL_BLOCKS} branches");
            self.diags.error(span, text);
        } else if self.live > MAX_ALL_LIVE {
            let text = format!(
                "the values that functions up to here keep over their branches are too many: counted for each branch, more than {MAX_ALL_LIVE}"
            );
            self.diags.hint(span, text, "keep them in an array");
        }
    }

    fn finish_function(&mut self, id: FuncId, def: &FuncDef) {
        let undefined: Vec<(String, Span)> = (self.func.labels.iter())
            .filter(|(_, label)| !label.defined)
            .filter_map(|(name, label)| label.used.map(|span| (name.to_string(), span)))
            .collect();
        for (name, span) in undefined {
            self.diags.error(span, format!("there is no label `{name}`"));
        }
        let name = self.func.name.clone();
        let returns = self.func.ret != TypeId::VOID && self.func.ret_address.is_none();
        if returns && name != "main" && self.end_is_reachable() {
            let help = "without it the result is 0";
            self.diags.warn(def.body.end, format!("`{name}` may end without `return`"), Some(help));
        }
        let zero = match self.types.get(self.func.ret) {
            Type::F32 | Type::F64 => Operand::Float(0),
            _ => Operand::Int(0),
        };
        let end = Term::Return(returns.then_some(zero));
        let mut body = self.func.body(&end);
        body.prune();
        self.limit_size(&body, def.declarator.span);
        if let Some(span) = self.func.float {
            self.floats.insert(name, span);
        }
        self.module.funcs[id.0 as usize].body = Some(body);
    }

    fn end_is_reachable(&self) -> bool {
        let blocks = &self.func.blocks;
        let mut seen = vec![false; blocks.len()];
        let mut work = vec![BlockId(0)];
        while let Some(id) = work.pop() {
            let Some(block) = blocks.get(id.0 as usize) else { continue };
            if std::mem::replace(&mut seen[id.0 as usize], true) {
                continue;
            }
            match &block.term {
                None => return true,
                Some(term) => work.extend(term.successors()),
            }
        }
        false
    }

    fn stmts(&mut self, block: &Block) {
        for stmt in &block.stmts {
            let _ = self.stmt(stmt);
        }
    }

    /// Checks a statement. After an error in it, what follows is checked all the same.
    pub(super) fn stmt(&mut self, stmt: &Stmt) -> Checked<()> {
        match &stmt.kind {
            StmtKind::Empty => Ok(()),
            StmtKind::Expr(expr) => self.effect(expr),
            StmtKind::Decl(decl) => self.local_decl(decl),
            StmtKind::Assert(condition) => self.static_assert(condition, stmt.span),
            StmtKind::Block(block) => {
                self.enter();
                self.stmts(block);
                self.leave();
                Ok(())
            }
            StmtKind::If(cond, then, other) => self.if_stmt(cond, then, other.as_deref()),
            StmtKind::While(cond, body) => self.for_loop(Some(cond), None, body),
            StmtKind::Do(body, cond) => self.do_loop(body, cond),
            StmtKind::For { init, cond, step, body } => {
                self.enter();
                if let Some(init) = init {
                    let _ = self.stmt(init);
                }
                let result = self.for_loop(cond.as_ref(), step.as_ref(), body);
                self.leave();
                result
            }
            StmtKind::Switch(value, body) => self.switch(value, body),
            StmtKind::Case(low, high, body) => self.case(low, high.as_ref(), body),
            StmtKind::Default(body) => self.default(body, stmt.span),
            StmtKind::Label(label, body) => {
                self.label(label)?;
                self.stmt(body)
            }
            StmtKind::Goto(label) => self.goto(label),
            StmtKind::Break => self.leave_loop(self.func.breaks.last().copied(), stmt.span),
            StmtKind::Continue => self.leave_loop(self.func.continues.last().copied(), stmt.span),
            StmtKind::Return(value) => self.return_stmt(value.as_ref(), stmt.span),
        }
    }

    fn leave_loop(&mut self, to: Option<BlockId>, span: Span) -> Checked<()> {
        match to {
            Some(to) => {
                self.func.jump(to);
                Ok(())
            }
            None => Err(self.diags.error(span, "there is no loop or `switch` around this")),
        }
    }

    /// Branches on a condition that decides about statements.
    fn condition(&mut self, cond: &Expr, yes: BlockId, no: BlockId) -> Checked<()> {
        if let ExprKind::Assign(None, left, _) = &cond.kind
            && cond.span.start == left.span.start
        {
            let help = "write `==` to compare, or a second pair of parentheses";
            self.diags.warn(cond.span, "this condition is an assignment", Some(help));
        }
        if let Some(known) = self.branch(cond, yes, no)? {
            self.func.jump(if known { yes } else { no });
        }
        Ok(())
    }

    fn if_stmt(&mut self, cond: &Expr, then: &Stmt, other: Option<&Stmt>) -> Checked<()> {
        let (yes, no) = (self.func.block(), self.func.block());
        let checked = self.condition(cond, yes, no);
        self.func.cur = yes;
        let _ = self.stmt(then);
        let Some(other) = other else {
            self.func.fall_into(no);
            return checked;
        };
        let done = self.func.block();
        self.func.jump(done);
        self.func.cur = no;
        let _ = self.stmt(other);
        self.func.fall_into(done);
        checked
    }

    fn for_loop(&mut self, cond: Option<&Expr>, step: Option<&Expr>, body: &Stmt) -> Checked<()> {
        let (start, next, done) = (self.func.block(), self.func.block(), self.func.block());
        // `while (c) body` is generated as `if (c) do body while (c)`: one jump an iteration.
        let rotated = cond.is_none_or(|cond| cond.depth <= MAX_ROTATED);
        let test = if rotated { start } else { self.func.block() };
        if !rotated {
            self.func.fall_into(test);
        }
        let mut checked = Ok(());
        match cond {
            Some(cond) => checked = self.condition(cond, start, done),
            None => self.func.jump(start),
        }
        self.func.cur = start;
        self.loop_body(body, next, done);
        self.func.fall_into(next);
        if let Some(step) = step {
            let _ = self.effect(step);
        }
        match cond {
            Some(cond) if rotated => checked = checked.and(self.condition(cond, start, done)),
            _ => self.func.jump(test),
        }
        self.func.cur = done;
        checked
    }

    fn do_loop(&mut self, body: &Stmt, cond: &Expr) -> Checked<()> {
        let (start, next, done) = (self.func.block(), self.func.block(), self.func.block());
        self.func.fall_into(start);
        self.loop_body(body, next, done);
        self.func.fall_into(next);
        let checked = self.condition(cond, start, done);
        self.func.cur = done;
        checked
    }

    fn loop_body(&mut self, body: &Stmt, next: BlockId, done: BlockId) {
        self.func.breaks.push(done);
        self.func.continues.push(next);
        let _ = self.stmt(body);
        self.func.breaks.pop();
        self.func.continues.pop();
    }

    fn label(&mut self, label: &Ident) -> Checked<()> {
        let block = match self.func.labels.get(&label.name).copied() {
            Some(Label { defined: true, .. }) => {
                let text = format!("label `{}` stands twice", label.name);
                return Err(self.diags.error(label.span, text));
            }
            Some(known) => known.block,
            None => self.func.block(),
        };
        let known = Label { block, defined: true, used: None };
        self.func.labels.insert(label.name.clone(), known);
        self.func.fall_into(block);
        Ok(())
    }

    fn goto(&mut self, label: &Ident) -> Checked<()> {
        let block = match self.func.labels.get(&label.name) {
            Some(known) => known.block,
            None => {
                let block = self.func.block();
                let used = Some(label.span);
                let known = Label { block, defined: false, used };
                self.func.labels.insert(label.name.clone(), known);
                block
            }
        };
        self.func.jump(block);
        Ok(())
    }

    fn return_stmt(&mut self, value: Option<&Expr>, span: Span) -> Checked<()> {
        let ret = self.func.ret;
        let result = match (value, ret == TypeId::VOID) {
            (None, true) => None,
            (None, false) => {
                self.diags.warn(span, "this `return` lacks a value", Some("it returns 0"));
                Some(match self.types.reg(ret) {
                    crate::ir::Ty::F32 | crate::ir::Ty::F64 => Operand::Float(0),
                    _ => Operand::Int(0),
                })
            }
            (Some(value), true) => {
                let found = self.rvalue(value)?;
                if found.ty != TypeId::VOID {
                    return Err(self.diags.error(value.span, "this function returns nothing"));
                }
                None
            }
            (Some(value), false) => {
                let found = self.rvalue(value)?;
                Some(self.implicit(found, ret, value.span)?.op)
            }
        };
        let result = match (self.func.ret_address, result) {
            (Some(to), Some(src)) => {
                let len = self.types.size(ret).unwrap_or(0);
                self.emit(Inst::MemCopy { dst: Operand::Reg(to), src, len, at: self.func.at });
                None
            }
            (Some(_), None) => None,
            (None, result) => result,
        };
        self.func.end(Term::Return(result));
        Ok(())
    }

    fn local_decl(&mut self, decl: &Decl) -> Checked<()> {
        let base = self.spec(&decl.spec)?;
        let mut checked = Ok(());
        for (declarator, init) in &decl.items {
            let item = self.local_item(base, decl.spec.storage, declarator, init.as_ref());
            checked = checked.and(item);
        }
        checked
    }

    fn local_item(
        &mut self,
        base: TypeId,
        storage: Storage,
        declarator: &Declarator,
        init: Option<&Init>,
    ) -> Checked<()> {
        let (name, ty) = self.declared_from(base, declarator)?;
        let span = declarator.span;
        match storage {
            Storage::Typedef => {
                self.define(name, Sym::Type(ty));
                return Ok(());
            }
            _ if matches!(self.types.get(ty), Type::Func(_)) => {
                let Type::Func(sig) = self.types.get(ty).clone() else { return Ok(()) };
                return self.declare_function(&name, sig, false, false, span).map(drop);
            }
            Storage::Static => {
                let id = self.new_global(&name);
                self.define_var(name.clone(), ty, Home::Global(id), span);
                let ty = self.fill_global(id, ty, init, span)?;
                self.define(name, Sym::Var(ty, Home::Global(id)));
                return Ok(());
            }
            Storage::Extern => return self.extern_local(&name, span),
            Storage::None => {}
        }
        self.auto_variable(&name, ty, init, span)
    }

    fn extern_local(&mut self, name: &crate::ast::Name, span: Span) -> Checked<()> {
        match self.lookup_global(name) {
            Some(sym) => {
                self.define(name.clone(), sym);
                Ok(())
            }
            None => Err(self.diags.error(span, format!("there is no static `{name}`"))),
        }
    }

    fn auto_variable(
        &mut self,
        name: &crate::ast::Name,
        ty: TypeId,
        init: Option<&Init>,
        span: Span,
    ) -> Checked<()> {
        if self.types.is_scalar(ty) && !self.func.addressed.contains(name) {
            self.func.here = span;
            let reg = self.func.reg(self.types.reg(ty));
            self.func.vars.insert(reg);
            self.define_var(name.clone(), ty, Home::Reg(reg), span);
            return self.init_scalar(Location::Reg(reg), ty, init);
        }
        let (plan, full) = match init {
            Some(init @ Init::List(..)) => self.plan(ty, init)?,
            Some(init) if matches!(self.types.get(ty), Type::Array(..)) => self.plan(ty, init)?,
            _ => (Plan::default(), ty),
        };
        if self.types.size(full).is_none() {
            let text =
                format!("`{name}` has type `{}`, whose size is unknown", self.types.name(ty));
            return Err(self.diags.error(span, text));
        }
        let slot = self.new_slot(name, full, span);
        self.define_var(name.clone(), full, Home::Slot(slot), span);
        match init {
            Some(Init::Expr(_)) if !matches!(self.types.get(ty), Type::Array(..)) => {
                self.init_scalar(Location::Mem { addr: Operand::Slot(slot, 0), off: 0 }, ty, init)
            }
            Some(_) => self.run_plan(Operand::Slot(slot, 0), full, &plan),
            None => Ok(()),
        }
    }

    fn init_scalar(&mut self, place: Location, ty: TypeId, init: Option<&Init>) -> Checked<()> {
        let expr = match init {
            None => return Ok(()),
            Some(Init::Expr(expr)) => expr,
            Some(Init::List(items, span)) => match &items[..] {
                [item] if item.designators.is_empty() => {
                    return self.init_scalar(place, ty, Some(&item.init));
                }
                _ => return Err(self.diags.error(*span, "this takes one value")),
            },
        };
        let value = self.rvalue(expr)?;
        let value = self.implicit(value, ty, expr.span)?;
        self.store(LVal { place, ty }, value);
        Ok(())
    }

    /// Writes an initialiser's values into the object at `base`.
    fn run_plan(&mut self, base: Operand, ty: TypeId, plan: &Plan<'_>) -> Checked<()> {
        let len = self.types.size(ty).unwrap_or(0);
        self.emit(Inst::MemZero { dst: base, len, at: self.func.at });
        for leaf in &plan.leaves {
            let off = leaf.offset as i64;
            if let (Type::Array(_, length), ExprKind::Str(bytes)) =
                (self.types.get(leaf.ty), &leaf.value.kind)
            {
                let len = length.map_or(bytes.len() as u64, |most| most.min(bytes.len() as u64));
                let src = self.string(bytes);
                let dst = self.emit_offset(base, off);
                self.emit(Inst::MemCopy { dst, src, len, at: self.func.at });
                continue;
            }
            let value = self.rvalue(leaf.value)?;
            let value = self.implicit(value, leaf.ty, leaf.value.span)?;
            self.store(LVal { place: Location::Mem { addr: base, off }, ty: leaf.ty }, value);
        }
        Ok(())
    }

    /// `(type){ … }`
    pub(super) fn compound_literal(
        &mut self,
        name: &TypeName,
        init: &Init,
        span: Span,
    ) -> Checked<LVal> {
        let ty = self.type_name(name)?;
        let (plan, ty) = self.plan(ty, init)?;
        if self.types.size(ty).is_none() {
            return Err(self.diags.error(span, "this type has no known size"));
        }
        if self.scopes.len() <= 2 {
            let id = self.new_global("");
            let ty = self.fill_global(id, ty, Some(init), span)?;
            return Ok(LVal { place: Location::Mem { addr: Operand::Global(id, 0), off: 0 }, ty });
        }
        let slot = self.new_slot("", ty, span);
        self.run_plan(Operand::Slot(slot, 0), ty, &plan)?;
        Ok(LVal { place: Location::Mem { addr: Operand::Slot(slot, 0), off: 0 }, ty })
    }
}
