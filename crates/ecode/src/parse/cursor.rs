//! Where the parser stands: tokens, type names in scope, depth, and recovery after an error.

use super::{BUILTIN_TYPES, MAX_DEPTH, Parsed};
use crate::{
    ast::{Ident, Name},
    diag::{Diags, Reported},
    lex::Tok,
    span::Span,
};
use std::{collections::HashMap, rc::Rc};

pub(super) struct Parser<'s, 'd> {
    text: &'s str,
    tokens: Vec<(Tok, Span)>,
    pub(super) pos: usize,
    /// Innermost last: whether a name is a type there.
    scopes: Vec<HashMap<Name, bool>>,
    depth: u16,
    pub(super) diags: &'d mut Diags,
}

impl<'s, 'd> Parser<'s, 'd> {
    pub(super) fn new(
        text: &'s str,
        tokens: Vec<(Tok, Span)>,
        types: &[Name],
        diags: &'d mut Diags,
    ) -> Self {
        let builtin = BUILTIN_TYPES.iter().map(|name| (Rc::from(*name), true));
        let scope = builtin.chain(types.iter().map(|name| (name.clone(), true))).collect();
        Self { text, tokens, pos: 0, scopes: vec![scope], depth: 0, diags }
    }

    pub(super) fn outer_types(mut self) -> Vec<Name> {
        let outer = self.scopes.swap_remove(0);
        outer.into_iter().filter(|entry| entry.1).map(|entry| entry.0).collect()
    }

    pub(super) fn peek(&self) -> Tok {
        self.tokens[self.pos].0
    }

    pub(super) fn peek_at(&self, ahead: usize) -> Tok {
        self.tokens.get(self.pos + ahead).map_or(Tok::End, |t| t.0)
    }

    pub(super) fn span(&self) -> Span {
        self.tokens[self.pos].1
    }

    /// The place of the token before.
    pub(super) fn last_span(&self) -> Span {
        self.tokens[self.pos.saturating_sub(1)].1
    }

    pub(super) fn text_at(&self, span: Span) -> &'s str {
        self.text.get(span.start as usize..span.end as usize).unwrap_or("")
    }

    pub(super) fn at(&self, token: Tok) -> bool {
        self.peek() == token
    }

    /// Steps over one token; stays at the end.
    pub(super) fn bump(&mut self) -> (Tok, Span) {
        let token = self.tokens[self.pos];
        if token.0 != Tok::End {
            self.pos += 1;
        }
        token
    }

    pub(super) fn eat(&mut self, token: Tok) -> bool {
        let here = self.at(token);
        if here {
            self.bump();
        }
        here
    }

    pub(super) fn expect(&mut self, token: Tok) -> Parsed<Span> {
        if self.at(token) { Ok(self.bump().1) } else { Err(self.expected(token.name())) }
    }

    pub(super) fn expected(&mut self, what: &str) -> Reported {
        let span = self.span();
        let found = match self.peek() {
            Tok::End => "the end of the text".to_owned(),
            _ => format!("`{}`", self.text_at(span)),
        };
        // What is missing is missing behind the token before.
        let span = match what {
            "`;`" if self.pos > 0 => self.last_span(),
            _ => span,
        };
        self.diags.error(span, format!("expected {what}, found {found}"))
    }

    pub(super) fn ident(&mut self) -> Parsed<Ident> {
        if !self.at(Tok::Ident) {
            return Err(self.expected("a name"));
        }
        let span = self.bump().1;
        Ok(Ident { name: Rc::from(self.text_at(span)), span })
    }

    /// Runs `read` one level deeper.
    pub(super) fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= MAX_DEPTH {
            let span = self.span();
            return Err(self.diags.error(span, "this is nested too deeply"));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    pub(super) fn scoped<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> T {
        self.scopes.push(HashMap::new());
        let result = read(self);
        self.scopes.pop();
        result
    }

    pub(super) fn declare(&mut self, name: &Name, is_type: bool) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.clone(), is_type);
        }
    }

    pub(super) fn is_type(&self, name: &str) -> bool {
        self.scopes.iter().rev().find_map(|scope| scope.get(name)).copied().unwrap_or(false)
    }

    /// Whether a declaration or a type name starts `ahead` tokens from here.
    pub(super) fn type_starts(&self, ahead: usize) -> bool {
        match self.peek_at(ahead) {
            Tok::Ident => {
                let span = self.tokens[(self.pos + ahead).min(self.tokens.len() - 1)].1;
                self.is_type(self.text_at(span))
            }
            Tok::Auto
            | Tok::KwChar
            | Tok::Const
            | Tok::Double
            | Tok::Enum
            | Tok::Extern
            | Tok::Float
            | Tok::Inline
            | Tok::Int
            | Tok::Long
            | Tok::Register
            | Tok::Restrict
            | Tok::Short
            | Tok::Signed
            | Tok::Static
            | Tok::Struct
            | Tok::Typedef
            | Tok::Union
            | Tok::Unsigned
            | Tok::Void
            | Tok::Volatile
            | Tok::Bool
            | Tok::Noreturn => true,
            _ => false,
        }
    }

    /// After an error in a statement: goes behind the next `;`, or before the `}` that ends the
    /// block.
    pub(super) fn recover_stmt(&mut self) {
        let mut depth = 0_u32;
        loop {
            match self.peek() {
                Tok::End => return,
                Tok::Semi if depth == 0 => {
                    self.bump();
                    return;
                }
                Tok::LBrace => depth += 1,
                Tok::RBrace if depth == 0 => return,
                Tok::RBrace => {
                    depth -= 1;
                    if depth == 0 {
                        self.bump();
                        return;
                    }
                }
                _ => {}
            }
            self.bump();
        }
    }

    /// After an error outside of functions: goes behind the `;` or `}` that ends the item which
    /// began at `start`.
    pub(super) fn recover_item(&mut self, start: usize) {
        self.scopes.truncate(1);
        self.depth = 0;
        if self.pos == start {
            self.bump();
        }
        self.recover_stmt();
        while self.at(Tok::RBrace) {
            self.bump();
        }
    }
}
