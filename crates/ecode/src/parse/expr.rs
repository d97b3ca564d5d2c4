//! Expressions, by precedence.

use super::{MAX_DEPTH, Parsed, cursor::Parser};
use crate::{
    ast::{BinOp, Expr, ExprKind, TypeName, UnOp},
    lex::{self, Tok},
    number::{self, Number},
    span::Span,
};
use std::rc::Rc;

impl Parser<'_, '_> {
    /// `a, b`
    pub(super) fn expr(&mut self) -> Parsed<Expr> {
        let mut left = self.assign_expr()?;
        while self.eat(Tok::Comma) {
            let right = self.assign_expr()?;
            left = self.join(left, right, ExprKind::Comma)?;
        }
        Ok(left)
    }

    /// An expression without a comma outside of parentheses.
    pub(super) fn assign_expr(&mut self) -> Parsed<Expr> {
        self.nested(|p| {
            let left = p.cond_expr()?;
            let Some(op) = assign_op(p.peek()) else { return Ok(left) };
            p.bump();
            let right = p.assign_expr()?;
            p.join(left, right, |l, r| ExprKind::Assign(op, l, r))
        })
    }

    pub(super) fn cond_expr(&mut self) -> Parsed<Expr> {
        let cond = self.binary_expr(0)?;
        if !self.eat(Tok::Question) {
            return Ok(cond);
        }
        let then = self.nested(Self::expr)?;
        self.expect(Tok::Colon)?;
        let other = self.nested(Self::cond_expr)?;
        let span = cond.span.to(other.span);
        let depth = cond.depth.max(then.depth).max(other.depth);
        let (cond, then, other) = (Box::new(cond), Box::new(then), Box::new(other));
        self.node(ExprKind::Cond(cond, then, other), span, depth)
    }

    fn binary_expr(&mut self, least: u8) -> Parsed<Expr> {
        let mut left = self.unary_expr()?;
        while let Some((op, power)) = binary_op(self.peek()).filter(|(_, power)| *power >= least) {
            self.bump();
            let right = self.nested(|p| p.binary_expr(power + 1))?;
            left = self.join(left, right, |l, r| ExprKind::Binary(op, l, r))?;
        }
        Ok(left)
    }

    fn unary_expr(&mut self) -> Parsed<Expr> {
        self.nested(|p| {
            let start = p.span();
            let op = match p.peek() {
                Tok::Inc => return p.prefix_step(1),
                Tok::Dec => return p.prefix_step(-1),
                Tok::Sizeof => return p.sizeof_expr(),
                Tok::Alignof => return p.alignof_expr(),
                Tok::LParen if p.type_starts(1) => return p.cast_or_compound(),
                Tok::Plus => UnOp::Plus,
                Tok::Minus => UnOp::Minus,
                Tok::Tilde => UnOp::BitNot,
                Tok::Bang => UnOp::Not,
                Tok::Star => UnOp::Deref,
                Tok::Amp => UnOp::Addr,
                _ => return p.postfix_expr(),
            };
            p.bump();
            let inner = p.unary_expr()?;
            let (span, depth) = (start.to(inner.span), inner.depth);
            p.node(ExprKind::Unary(op, Box::new(inner)), span, depth)
        })
    }

    fn prefix_step(&mut self, delta: i64) -> Parsed<Expr> {
        let start = self.bump().1;
        let target = self.unary_expr()?;
        let (span, depth) = (start.to(target.span), target.depth);
        let kind = ExprKind::Step { delta, prefix: true, target: Box::new(target) };
        self.node(kind, span, depth)
    }

    fn sizeof_expr(&mut self) -> Parsed<Expr> {
        let start = self.bump().1;
        if self.at(Tok::LParen) && self.type_starts(1) {
            let name = self.parenthesized_type()?;
            let span = start.to(self.last_span());
            if !self.at(Tok::LBrace) {
                return self.node(ExprKind::SizeofType(Box::new(name)), span, 0);
            }
            let literal = self.compound_literal(name, start)?;
            let literal = self.postfix_ops(literal)?;
            return self.node(ExprKind::SizeofExpr(Box::new(literal)), span, 1);
        }
        let inner = self.unary_expr()?;
        let (span, depth) = (start.to(inner.span), inner.depth);
        self.node(ExprKind::SizeofExpr(Box::new(inner)), span, depth)
    }

    fn alignof_expr(&mut self) -> Parsed<Expr> {
        let start = self.bump().1;
        let name = self.parenthesized_type()?;
        self.node(ExprKind::AlignofType(Box::new(name)), start.to(self.last_span()), 0)
    }

    fn parenthesized_type(&mut self) -> Parsed<TypeName> {
        self.expect(Tok::LParen)?;
        let name = self.type_name()?;
        self.expect(Tok::RParen)?;
        Ok(name)
    }

    fn cast_or_compound(&mut self) -> Parsed<Expr> {
        let start = self.span();
        let name = self.parenthesized_type()?;
        if self.at(Tok::LBrace) {
            let literal = self.compound_literal(name, start)?;
            return self.postfix_ops(literal);
        }
        let inner = self.unary_expr()?;
        let (span, depth) = (start.to(inner.span), inner.depth);
        self.node(ExprKind::Cast(Box::new(name), Box::new(inner)), span, depth)
    }

    fn compound_literal(&mut self, name: TypeName, start: Span) -> Parsed<Expr> {
        let init = self.initializer()?;
        let span = start.to(self.last_span());
        self.node(ExprKind::Compound(Box::new(name), Box::new(init)), span, 1)
    }

    fn postfix_expr(&mut self) -> Parsed<Expr> {
        let base = self.primary_expr()?;
        self.postfix_ops(base)
    }

    fn postfix_ops(&mut self, mut base: Expr) -> Parsed<Expr> {
        loop {
            base = match self.peek() {
                Tok::LBracket => {
                    self.bump();
                    let index = self.nested(Self::expr)?;
                    self.expect(Tok::RBracket)?;
                    self.join(base, index, ExprKind::Index)?
                }
                Tok::LParen => self.call(base)?,
                Tok::Dot | Tok::Arrow => {
                    let arrow = self.bump().0 == Tok::Arrow;
                    let field = self.ident()?;
                    let (span, depth) = (base.span.to(field.span), base.depth);
                    let base = Box::new(base);
                    self.node(ExprKind::Member { base, field, arrow }, span, depth)?
                }
                Tok::Inc | Tok::Dec => {
                    let (token, end) = self.bump();
                    let delta = if token == Tok::Inc { 1 } else { -1 };
                    let (span, depth) = (base.span.to(end), base.depth);
                    let target = Box::new(base);
                    self.node(ExprKind::Step { delta, prefix: false, target }, span, depth)?
                }
                _ => return Ok(base),
            };
        }
    }

    fn call(&mut self, callee: Expr) -> Parsed<Expr> {
        self.expect(Tok::LParen)?;
        let mut args = Vec::new();
        while !self.at(Tok::RParen) {
            args.push(self.assign_expr()?);
            if !self.eat(Tok::Comma) {
                break;
            }
        }
        let end = self.expect(Tok::RParen)?;
        let depth = args.iter().map(|a| a.depth).max().unwrap_or(0).max(callee.depth);
        let span = callee.span.to(end);
        self.node(ExprKind::Call(Box::new(callee), args), span, depth)
    }

    fn primary_expr(&mut self) -> Parsed<Expr> {
        let span = self.span();
        let kind = match self.peek() {
            Tok::Ident => ExprKind::Name(self.ident()?.name),
            Tok::Number => self.number()?,
            Tok::Char => self.character(),
            Tok::Str => self.strings(),
            Tok::Generic => return self.generic(),
            Tok::LParen => {
                self.bump();
                let inner = self.nested(Self::expr)?;
                let end = self.expect(Tok::RParen)?;
                return Ok(Expr { span: span.to(end), ..inner });
            }
            _ => return Err(self.expected("an expression")),
        };
        let span = span.to(self.last_span());
        self.node(kind, span, 0)
    }

    fn number(&mut self) -> Parsed<ExprKind> {
        let span = self.bump().1;
        match number::parse(self.text_at(span)) {
            Ok(Number::Int { value, unsigned, long, decimal }) => {
                Ok(ExprKind::Int { value, unsigned, long, decimal })
            }
            Ok(Number::Float { value, single }) => Ok(ExprKind::Float { value, single }),
            Err(why) => Err(self.diags.error(span, why)),
        }
    }

    fn character(&mut self) -> ExprKind {
        let span = self.bump().1;
        let bytes = lex::unescape(self.text_at(span), span, self.diags);
        if bytes.len() > 1 {
            self.diags.warn(span, "this constant has several characters", None);
        }
        // As gcc: the first byte is the most significant, and a single one is a signed char.
        let several = bytes.iter().fold(0_i32, |value, b| value << 8 | i32::from(*b));
        ExprKind::Char(if bytes.len() == 1 { i32::from(bytes[0] as i8) } else { several })
    }

    fn strings(&mut self) -> ExprKind {
        let mut bytes = Vec::new();
        while self.at(Tok::Str) {
            let span = self.bump().1;
            bytes.extend(lex::unescape(self.text_at(span), span, self.diags));
        }
        bytes.push(0);
        ExprKind::Str(bytes)
    }

    /// `_Generic(expression, type: expression, …)`
    fn generic(&mut self) -> Parsed<Expr> {
        let start = self.bump().1;
        self.expect(Tok::LParen)?;
        let control = self.assign_expr()?;
        let mut depth = control.depth;
        let mut arms = Vec::new();
        while self.eat(Tok::Comma) {
            let name = if self.eat(Tok::Default) { None } else { Some(self.type_name()?) };
            self.expect(Tok::Colon)?;
            let arm = self.assign_expr()?;
            depth = depth.max(arm.depth);
            arms.push((name, arm));
        }
        let end = self.expect(Tok::RParen)?;
        self.node(ExprKind::Generic(Box::new(control), arms), start.to(end), depth)
    }

    fn join(
        &mut self,
        left: Expr,
        right: Expr,
        kind: impl FnOnce(Box<Expr>, Box<Expr>) -> ExprKind,
    ) -> Parsed<Expr> {
        let (span, depth) = (left.span.to(right.span), left.depth.max(right.depth));
        self.node(kind(Box::new(left), Box::new(right)), span, depth)
    }

    /// A node over trees of height `depth` at most.
    fn node(&mut self, kind: ExprKind, span: Span, depth: u16) -> Parsed<Expr> {
        if depth >= MAX_DEPTH {
            let help = "give parts of it names";
            return Err(self.diags.hint(span, "this expression is too long", help));
        }
        Ok(Expr { kind, span, depth: depth + 1 })
    }

    /// `TYPE` with an abstract declarator.
    pub(super) fn type_name(&mut self) -> Parsed<TypeName> {
        let start = self.span();
        let spec = self.spec(false)?;
        let declarator = self.declarator(true)?;
        if let Some(name) = declarator.name {
            return Err(self.diags.error(name.span, "a type has no name here"));
        }
        let span = start.to(self.last_span());
        Ok(TypeName { spec: Rc::clone(&spec), derivs: declarator.derivs, span })
    }
}

fn assign_op(token: Tok) -> Option<Option<BinOp>> {
    Some(match token {
        Tok::Assign => None,
        Tok::MulAssign => Some(BinOp::Mul),
        Tok::DivAssign => Some(BinOp::Div),
        Tok::RemAssign => Some(BinOp::Rem),
        Tok::AddAssign => Some(BinOp::Add),
        Tok::SubAssign => Some(BinOp::Sub),
        Tok::ShlAssign => Some(BinOp::Shl),
        Tok::ShrAssign => Some(BinOp::Shr),
        Tok::AndAssign => Some(BinOp::And),
        Tok::XorAssign => Some(BinOp::Xor),
        Tok::OrAssign => Some(BinOp::Or),
        _ => return None,
    })
}

fn binary_op(token: Tok) -> Option<(BinOp, u8)> {
    Some(match token {
        Tok::OrOr => (BinOp::LogOr, 1),
        Tok::AndAnd => (BinOp::LogAnd, 2),
        Tok::Pipe => (BinOp::Or, 3),
        Tok::Caret => (BinOp::Xor, 4),
        Tok::Amp => (BinOp::And, 5),
        Tok::EqEq => (BinOp::Eq, 6),
        Tok::Ne => (BinOp::Ne, 6),
        Tok::Lt => (BinOp::Lt, 7),
        Tok::Gt => (BinOp::Gt, 7),
        Tok::Le => (BinOp::Le, 7),
        Tok::Ge => (BinOp::Ge, 7),
        Tok::Shl => (BinOp::Shl, 8),
        Tok::Shr => (BinOp::Shr, 8),
        Tok::Plus => (BinOp::Add, 9),
        Tok::Minus => (BinOp::Sub, 9),
        Tok::Star => (BinOp::Mul, 10),
        Tok::Slash => (BinOp::Div, 10),
        Tok::Percent => (BinOp::Rem, 10),
        _ => return None,
    })
}
