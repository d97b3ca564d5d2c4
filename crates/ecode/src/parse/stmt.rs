//! Statements and blocks.

use super::{Parsed, cursor::Parser};
use crate::{
    ast::{Block, Expr, Stmt, StmtKind},
    lex::Tok,
};

impl Parser<'_, '_> {
    pub(super) fn block(&mut self) -> Parsed<Block> {
        self.expect(Tok::LBrace)?;
        self.nested(|p| p.scoped(Self::block_rest))
    }

    fn block_rest(&mut self) -> Parsed<Block> {
        let mut stmts = Vec::new();
        while !self.at(Tok::RBrace) {
            if self.at(Tok::End) || self.diags.is_full() {
                return Err(self.expected("`}`"));
            }
            match self.stmt() {
                Ok(stmt) => stmts.push(stmt),
                Err(_) => self.recover_stmt(),
            }
        }
        Ok(Block { stmts, end: self.bump().1 })
    }

    fn stmt(&mut self) -> Parsed<Stmt> {
        self.nested(|p| {
            let start = p.span();
            let kind = p.stmt_kind()?;
            Ok(Stmt { kind, span: start.to(p.last_span()) })
        })
    }

    fn stmt_kind(&mut self) -> Parsed<StmtKind> {
        match self.peek() {
            Tok::Semi => {
                self.bump();
                Ok(StmtKind::Empty)
            }
            Tok::LBrace => Ok(StmtKind::Block(self.block()?)),
            Tok::If => self.if_stmt(),
            Tok::While => self.while_stmt(),
            Tok::Do => self.do_stmt(),
            Tok::For => self.scoped(Self::for_stmt),
            Tok::Switch => self.switch_stmt(),
            Tok::Case => self.case_stmt(),
            Tok::Default => {
                self.bump();
                self.expect(Tok::Colon)?;
                Ok(StmtKind::Default(Box::new(self.labelled()?)))
            }
            Tok::Ident if self.peek_at(1) == Tok::Colon => {
                let label = self.ident()?;
                self.bump();
                Ok(StmtKind::Label(label, Box::new(self.labelled()?)))
            }
            Tok::Goto | Tok::Break | Tok::Continue | Tok::Return => self.jump(),
            Tok::StaticAssert => Ok(StmtKind::Assert(self.static_assert()?.0)),
            _ if self.type_starts(0) => Ok(StmtKind::Decl(self.declaration()?)),
            _ => {
                let expr = self.expr()?;
                self.expect(Tok::Semi)?;
                Ok(StmtKind::Expr(expr))
            }
        }
    }

    /// The statement behind a label; none is needed before `}`.
    fn labelled(&mut self) -> Parsed<Stmt> {
        if self.at(Tok::RBrace) {
            return Ok(Stmt { kind: StmtKind::Empty, span: self.span() });
        }
        self.stmt()
    }

    fn condition(&mut self) -> Parsed<Expr> {
        self.expect(Tok::LParen)?;
        let condition = self.expr()?;
        self.expect(Tok::RParen)?;
        Ok(condition)
    }

    fn if_stmt(&mut self) -> Parsed<StmtKind> {
        self.bump();
        let condition = self.condition()?;
        if self.at(Tok::Semi) && self.peek_at(1) != Tok::Else {
            let span = self.span();
            self.diags.warn(span, "this `if` governs nothing", Some("remove the `;`"));
        }
        let then = Box::new(self.stmt()?);
        let other = if self.eat(Tok::Else) { Some(Box::new(self.stmt()?)) } else { None };
        Ok(StmtKind::If(condition, then, other))
    }

    fn while_stmt(&mut self) -> Parsed<StmtKind> {
        self.bump();
        let condition = self.condition()?;
        Ok(StmtKind::While(condition, Box::new(self.stmt()?)))
    }

    fn do_stmt(&mut self) -> Parsed<StmtKind> {
        self.bump();
        let body = Box::new(self.stmt()?);
        self.expect(Tok::While)?;
        let condition = self.condition()?;
        self.expect(Tok::Semi)?;
        Ok(StmtKind::Do(body, condition))
    }

    fn for_stmt(&mut self) -> Parsed<StmtKind> {
        self.bump();
        self.expect(Tok::LParen)?;
        let start = self.span();
        let init = if self.eat(Tok::Semi) {
            None
        } else {
            let kind = if self.type_starts(0) {
                StmtKind::Decl(self.declaration()?)
            } else {
                let expr = self.expr()?;
                self.expect(Tok::Semi)?;
                StmtKind::Expr(expr)
            };
            Some(Box::new(Stmt { kind, span: start.to(self.last_span()) }))
        };
        let cond = if self.at(Tok::Semi) { None } else { Some(self.expr()?) };
        self.expect(Tok::Semi)?;
        let step = if self.at(Tok::RParen) { None } else { Some(self.expr()?) };
        self.expect(Tok::RParen)?;
        Ok(StmtKind::For { init, cond, step, body: Box::new(self.stmt()?) })
    }

    fn switch_stmt(&mut self) -> Parsed<StmtKind> {
        self.bump();
        let value = self.condition()?;
        Ok(StmtKind::Switch(value, Box::new(self.stmt()?)))
    }

    fn case_stmt(&mut self) -> Parsed<StmtKind> {
        self.bump();
        let low = self.cond_expr()?;
        let high = if self.eat(Tok::Ellipsis) { Some(self.cond_expr()?) } else { None };
        self.expect(Tok::Colon)?;
        Ok(StmtKind::Case(low, high, Box::new(self.labelled()?)))
    }

    fn jump(&mut self) -> Parsed<StmtKind> {
        let kind = match self.bump().0 {
            Tok::Goto => StmtKind::Goto(self.ident()?),
            Tok::Break => StmtKind::Break,
            Tok::Continue => StmtKind::Continue,
            _ if self.at(Tok::Semi) => StmtKind::Return(None),
            _ => StmtKind::Return(Some(self.expr()?)),
        };
        self.expect(Tok::Semi)?;
        Ok(kind)
    }
}
