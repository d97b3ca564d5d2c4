//! `switch`.

use super::{Checked, Checker, func_state::Switch};
use crate::{
    ast::{Expr, Stmt},
    ir::{BlockId, Term},
    span::Span,
};
use std::collections::HashSet;

/// Ranges of cases are spelled out up to this length.
const MAX_RANGE: i64 = 4096;

impl Checker<'_> {
    pub(super) fn switch(&mut self, value: &Expr, body: &Stmt) -> Checked<()> {
        let value_span = value.span;
        let value = self.rvalue(value)?;
        if !self.types.is_int(value.ty) {
            return Err(self.diags.error(value_span, "`switch` works on integers"));
        }
        let ty = self.types.promote(value.ty);
        let value = self.cast(value, ty);
        let op = self.held(self.types.reg(ty), value.op);
        let (head, done) = (self.func.cur, self.func.block());
        let (cases, values, default) = (Vec::new(), HashSet::new(), None);
        self.func.switches.push(Switch { ty, cases, values, default });
        self.func.breaks.push(done);
        // What stands before the first case is never reached.
        self.func.cur = self.func.block();
        let _ = self.stmt(body);
        self.func.breaks.pop();
        self.func.jump(done);
        if let Some(Switch { cases, default, .. }) = self.func.switches.pop() {
            self.func.cur = head;
            let (ty, default) = (self.types.reg(ty), default.unwrap_or(done));
            self.func.end(Term::Switch { ty, value: op, cases, default });
        }
        self.func.cur = done;
        Ok(())
    }

    pub(super) fn case(&mut self, low: &Expr, high: Option<&Expr>, body: &Stmt) -> Checked<()> {
        let first = self.case_value(low);
        let last = high.map(|high| self.case_value(high)).transpose();
        let block = self.func.block();
        self.func.fall_into(block);
        if let (Ok(first), Ok(last)) = (first, last) {
            let last = last.unwrap_or(first);
            let _ = self.add_cases(first, last, block, low.span);
        }
        self.stmt(body)
    }

    fn case_value(&mut self, expr: &Expr) -> Checked<i64> {
        let Some(ty) = self.func.switches.last().map(|switch| switch.ty) else {
            return Err(self.diags.error(expr.span, "there is no `switch` around this"));
        };
        let number = self.const_int(expr)?;
        // As the value, it is brought to the type of the `switch`.
        Ok(if self.types.reg(ty) == crate::ir::Ty::I32 { i64::from(number as i32) } else { number })
    }

    fn add_cases(&mut self, first: i64, last: i64, block: BlockId, span: Span) -> Checked<()> {
        let Some(switch) = self.func.switches.last_mut() else { return Ok(()) };
        let count = last.checked_sub(first).filter(|count| (0..MAX_RANGE).contains(count));
        if count.is_none() {
            return Err(self.diags.error(span, "this range of cases is empty or too long"));
        }
        for value in first..=last {
            if !switch.values.insert(value) {
                return Err(self.diags.error(span, format!("case {value} stands twice")));
            }
            switch.cases.push((value, block));
        }
        Ok(())
    }

    pub(super) fn default(&mut self, body: &Stmt, span: Span) -> Checked<()> {
        let block = self.func.block();
        self.func.fall_into(block);
        match self.func.switches.last_mut() {
            None => return Err(self.diags.error(span, "there is no `switch` around this")),
            Some(Switch { default: Some(_), .. }) => {
                return Err(self.diags.error(span, "`default` stands twice"));
            }
            Some(switch) => switch.default = Some(block),
        }
        self.stmt(body)
    }
}
