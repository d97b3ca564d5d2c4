//! Declarations: specifiers, declarators, initialisers.

use super::{Parsed, cursor::Parser};
use crate::{
    ast::{
        Base, Decl, Declarator, Deriv, Designator, Expr, Field, FuncDef, Ident, Init, InitItem,
        Item, Param, Spec, Storage,
    },
    lex::Tok,
    span::Span,
};
use std::rc::Rc;

/// Words of a type as they were counted.
#[derive(Default)]
struct Words {
    long: u8,
    short: u8,
    signed: u8,
    unsigned: u8,
    kind: Option<Tok>,
}

impl Parser<'_, '_> {
    /// A function, a declaration, or `;`.
    pub(super) fn item(&mut self, items: &mut Vec<Item>) -> Parsed<()> {
        if self.eat(Tok::Semi) {
            return Ok(());
        }
        if self.at(Tok::StaticAssert) {
            let (condition, span) = self.static_assert()?;
            items.push(Item::Assert(condition, span));
            return Ok(());
        }
        let spec = self.spec(true)?;
        if self.eat(Tok::Semi) {
            items.push(Item::Decl(Decl { spec, items: Vec::new() }));
            return Ok(());
        }
        let declarator = self.declarator(false)?;
        if self.at(Tok::LBrace) && matches!(declarator.derivs.last(), Some(Deriv::Func { .. })) {
            let def = self.function(spec, declarator)?;
            items.push(Item::Func(def));
            return Ok(());
        }
        items.push(Item::Decl(self.declarators(spec, declarator)?));
        Ok(())
    }

    fn function(&mut self, spec: Rc<Spec>, declarator: Declarator) -> Parsed<FuncDef> {
        self.declare_name(&declarator, &spec);
        let body = self.scoped(|p| {
            if let Some(Deriv::Func { params, .. }) = declarator.derivs.last() {
                for name in params.iter().filter_map(|param| param.declarator.name.as_ref()) {
                    p.declare(&name.name, false);
                }
            }
            p.block()
        })?;
        Ok(FuncDef { spec, declarator, body })
    }

    pub(super) fn static_assert(&mut self) -> Parsed<(Expr, Span)> {
        let start = self.bump().1;
        self.expect(Tok::LParen)?;
        let condition = self.assign_expr()?;
        if self.eat(Tok::Comma) {
            self.expect(Tok::Str)?;
        }
        self.expect(Tok::RParen)?;
        Ok((condition, start.to(self.expect(Tok::Semi)?)))
    }

    /// `TYPE NAME [= VALUE], …;` inside or outside of a function.
    pub(super) fn declaration(&mut self) -> Parsed<Decl> {
        let spec = self.spec(true)?;
        if self.eat(Tok::Semi) {
            return Ok(Decl { spec, items: Vec::new() });
        }
        let first = self.declarator(false)?;
        self.declarators(spec, first)
    }

    fn declarators(&mut self, spec: Rc<Spec>, first: Declarator) -> Parsed<Decl> {
        let mut items = Vec::new();
        let mut declarator = first;
        loop {
            self.declare_name(&declarator, &spec);
            let init = if self.eat(Tok::Assign) { Some(self.initializer()?) } else { None };
            items.push((declarator, init));
            if !self.eat(Tok::Comma) {
                break;
            }
            declarator = self.declarator(false)?;
        }
        self.expect(Tok::Semi)?;
        Ok(Decl { spec, items })
    }

    fn declare_name(&mut self, declarator: &Declarator, spec: &Spec) {
        if let Some(name) = &declarator.name {
            self.declare(&name.name, spec.storage == Storage::Typedef);
        }
    }

    /// Specifiers and qualifiers; a storage class only where `storage_allowed`.
    pub(super) fn spec(&mut self, storage_allowed: bool) -> Parsed<Rc<Spec>> {
        let start = self.span();
        let mut storage = Storage::None;
        let mut is_const = false;
        let mut words = Words::default();
        let mut base = None;
        loop {
            let token = self.peek();
            let word = match token {
                Tok::Const => {
                    is_const = true;
                    true
                }
                Tok::Volatile
                | Tok::Restrict
                | Tok::Register
                | Tok::Auto
                | Tok::Inline
                | Tok::Noreturn => true,
                Tok::Static | Tok::Extern | Tok::Typedef => {
                    self.storage(token, &mut storage, storage_allowed);
                    true
                }
                _ => words.count(token),
            };
            if word {
                self.bump();
            } else if !self.base(&mut base, &words)? {
                break;
            }
        }
        let span = start.to(self.last_span());
        let base = match base {
            Some(base) => base,
            None => self.basic(&words, span, storage != Storage::None || is_const)?,
        };
        Ok(Rc::new(Spec { storage, base, is_const, span }))
    }

    fn storage(&mut self, token: Tok, storage: &mut Storage, allowed: bool) {
        let span = self.span();
        if !allowed {
            self.diags.error(span, "a storage class has no meaning here");
        } else if *storage != Storage::None {
            self.diags.error(span, "there is already a storage class");
        }
        *storage = match token {
            Tok::Static => Storage::Static,
            Tok::Extern => Storage::Extern,
            _ => Storage::Typedef,
        };
    }

    /// Reads a named, record or enum type if one stands here and no type was read before.
    fn base(&mut self, base: &mut Option<Base>, words: &Words) -> Parsed<bool> {
        if base.is_some() || !words.is_empty() {
            return Ok(false);
        }
        *base = Some(match self.peek() {
            Tok::Struct | Tok::Union => self.nested(Self::record)?,
            Tok::Enum => self.enumeration()?,
            Tok::Ident if self.is_type(self.text_at(self.span())) => Base::Named(self.ident()?),
            _ => return Ok(false),
        });
        Ok(true)
    }

    fn basic(&mut self, words: &Words, span: Span, lonely: bool) -> Parsed<Base> {
        if words.is_empty() {
            if lonely && self.at(Tok::Ident) {
                self.diags.warn(span, "no type is named: `int` is taken", Some("write `int`"));
                return Ok(Base::Int { bits: 32, signed: Some(true) });
            }
            if !self.at(Tok::Ident) {
                return Err(self.expected("a type"));
            }
            let (here, name) = (self.span(), self.text_at(self.span()));
            let text = format!("unknown type `{name}`");
            return Err(self.diags.hint(here, text, "declare it with `typedef` or `struct` above"));
        }
        words.base().ok_or_else(|| self.diags.error(span, "these words do not make a type"))
    }

    fn record(&mut self) -> Parsed<Base> {
        let is_union = self.bump().0 == Tok::Union;
        let tag = if self.at(Tok::Ident) { Some(self.ident()?) } else { None };
        if !self.eat(Tok::LBrace) {
            if tag.is_none() {
                return Err(self.expected("a tag or `{`"));
            }
            return Ok(Base::Record { is_union, tag, fields: None });
        }
        let mut fields = Vec::new();
        while !self.eat(Tok::RBrace) {
            self.fields(&mut fields)?;
        }
        Ok(Base::Record { is_union, tag, fields: Some(fields) })
    }

    fn fields(&mut self, fields: &mut Vec<Field>) -> Parsed<()> {
        let spec = self.spec(false)?;
        if self.eat(Tok::Semi) {
            fields.push(Field { spec, declarator: None });
            return Ok(());
        }
        loop {
            let declarator = self.declarator(false)?;
            if self.at(Tok::Colon) {
                let span = self.span();
                let help = "use a whole field, and shifts and masks";
                return Err(self.diags.hint(span, "bit fields do not exist in E-code", help));
            }
            fields.push(Field { spec: Rc::clone(&spec), declarator: Some(declarator) });
            if !self.eat(Tok::Comma) {
                break;
            }
        }
        self.expect(Tok::Semi).map(drop)
    }

    fn enumeration(&mut self) -> Parsed<Base> {
        self.bump();
        let tag = if self.at(Tok::Ident) { Some(self.ident()?) } else { None };
        if !self.eat(Tok::LBrace) {
            if tag.is_none() {
                return Err(self.expected("a tag or `{`"));
            }
            return Ok(Base::Enum { tag, items: None });
        }
        let mut items = Vec::new();
        while !self.at(Tok::RBrace) {
            let name = self.ident()?;
            self.declare(&name.name, false);
            let value = if self.eat(Tok::Assign) { Some(self.cond_expr()?) } else { None };
            items.push((name, value));
            if !self.eat(Tok::Comma) {
                break;
            }
        }
        self.expect(Tok::RBrace)?;
        Ok(Base::Enum { tag, items: Some(items) })
    }

    /// A declarator; one without a name only where `may_lack_name`.
    pub(super) fn declarator(&mut self, may_lack_name: bool) -> Parsed<Declarator> {
        self.nested(|p| {
            let start = p.span();
            let mut derivs = p.pointers()?;
            let mut inner = None;
            let mut name = None;
            if p.at(Tok::LParen) && p.inner_declarator(may_lack_name) {
                p.bump();
                inner = Some(p.declarator(may_lack_name)?);
                p.expect(Tok::RParen)?;
            } else if p.at(Tok::Ident) {
                name = Some(p.ident()?);
            } else if !may_lack_name {
                return Err(p.expected("a name"));
            }
            let mut suffixes = p.suffixes()?;
            suffixes.reverse();
            derivs.append(&mut suffixes);
            if let Some(inner) = inner {
                derivs.extend(inner.derivs);
                name = inner.name;
            }
            Ok(Declarator { name, derivs, span: start.to(p.last_span()) })
        })
    }

    fn inner_declarator(&self, may_lack_name: bool) -> bool {
        match self.peek_at(1) {
            Tok::RParen => false,
            _ => !(may_lack_name && self.type_starts(1)),
        }
    }

    fn pointers(&mut self) -> Parsed<Vec<Deriv>> {
        let mut derivs = Vec::new();
        loop {
            if self.at(Tok::At) {
                let span = self.span();
                let help = "write `*`";
                return Err(self.diags.hint(span, "there are no segmented pointers", help));
            }
            if !self.eat(Tok::Star) {
                return Ok(derivs);
            }
            let mut is_const = false;
            while matches!(self.peek(), Tok::Const | Tok::Volatile | Tok::Restrict) {
                is_const |= self.bump().0 == Tok::Const;
            }
            derivs.push(Deriv::Pointer { is_const });
            if derivs.len() > 32 {
                return Err(self.expected("fewer `*`"));
            }
        }
    }

    /// `[…]` and `(…)`, in the order in which they are written.
    fn suffixes(&mut self) -> Parsed<Vec<Deriv>> {
        let mut derivs = Vec::new();
        loop {
            if self.eat(Tok::LBracket) {
                while matches!(
                    self.peek(),
                    Tok::Static | Tok::Const | Tok::Restrict | Tok::Volatile
                ) {
                    self.bump();
                }
                let length = if self.at(Tok::RBracket) { None } else { Some(self.assign_expr()?) };
                self.expect(Tok::RBracket)?;
                derivs.push(Deriv::Array(length));
            } else if self.at(Tok::LParen) {
                derivs.push(self.nested(Self::params)?);
            } else {
                return Ok(derivs);
            }
            if derivs.len() > 32 {
                return Err(self.expected("a simpler declarator"));
            }
        }
    }

    fn params(&mut self) -> Parsed<Deriv> {
        self.expect(Tok::LParen)?;
        if self.eat(Tok::RParen) {
            return Ok(Deriv::Func { params: Vec::new(), variadic: false, unspecified: true });
        }
        if self.at(Tok::Void) && self.peek_at(1) == Tok::RParen {
            self.bump();
            self.bump();
            return Ok(Deriv::Func { params: Vec::new(), variadic: false, unspecified: false });
        }
        let mut params = Vec::new();
        let mut variadic = false;
        loop {
            if self.eat(Tok::Ellipsis) {
                variadic = true;
                break;
            }
            if self.at(Tok::Ident) && !self.type_starts(0) {
                let (span, name) = (self.span(), self.text_at(self.span()));
                let text = format!("parameter `{name}` has no known type");
                return Err(self.diags.hint(span, text, "write its type before its name"));
            }
            let spec = self.spec(false)?;
            params.push(Param { spec, declarator: self.declarator(true)? });
            if !self.eat(Tok::Comma) {
                break;
            }
        }
        self.expect(Tok::RParen)?;
        Ok(Deriv::Func { params, variadic, unspecified: false })
    }

    pub(super) fn initializer(&mut self) -> Parsed<Init> {
        if !self.at(Tok::LBrace) {
            return Ok(Init::Expr(self.assign_expr()?));
        }
        self.nested(|p| {
            let start = p.bump().1;
            let mut items = Vec::new();
            while !p.at(Tok::RBrace) {
                let designators = p.designators()?;
                items.push(InitItem { designators, init: p.initializer()? });
                if !p.eat(Tok::Comma) {
                    break;
                }
            }
            let end = p.expect(Tok::RBrace)?;
            Ok(Init::List(items, start.to(end)))
        })
    }

    fn designators(&mut self) -> Parsed<Vec<Designator>> {
        let mut designators = Vec::new();
        // The old `name:` form of gcc.
        if self.at(Tok::Ident) && self.peek_at(1) == Tok::Colon {
            designators.push(Designator::Field(self.ident()?));
            self.bump();
            return Ok(designators);
        }
        loop {
            if self.eat(Tok::Dot) {
                let name: Ident = self.ident()?;
                designators.push(Designator::Field(name));
            } else if self.eat(Tok::LBracket) {
                designators.push(Designator::Index(self.cond_expr()?));
                self.expect(Tok::RBracket)?;
            } else {
                break;
            }
        }
        if !designators.is_empty() {
            self.expect(Tok::Assign)?;
        }
        Ok(designators)
    }
}

impl Words {
    fn is_empty(&self) -> bool {
        self.kind.is_none() && self.long + self.short + self.signed + self.unsigned == 0
    }

    /// Counts `token` if it is a word of a basic type.
    fn count(&mut self, token: Tok) -> bool {
        match token {
            Tok::Long => self.long = self.long.saturating_add(1),
            Tok::Short => self.short = self.short.saturating_add(1),
            Tok::Signed => self.signed = self.signed.saturating_add(1),
            Tok::Unsigned => self.unsigned = self.unsigned.saturating_add(1),
            Tok::Void | Tok::KwChar | Tok::Int | Tok::Float | Tok::Double | Tok::Bool
                if self.kind.is_none() =>
            {
                self.kind = Some(token);
            }
            _ => return false,
        }
        true
    }

    fn base(&self) -> Option<Base> {
        let Self { long, short, signed, unsigned, kind } = *self;
        let sign = match (signed, unsigned) {
            (0, 0) => None,
            (1, 0) => Some(true),
            (0, 1) => Some(false),
            _ => return None,
        };
        Some(match (kind, long, short, sign) {
            (Some(Tok::Void), 0, 0, None) => Base::Void,
            (Some(Tok::Bool), 0, 0, None) => Base::Bool,
            (Some(Tok::Float), 0, 0, None) => Base::Float,
            (Some(Tok::Double), 0 | 1, 0, None) => Base::Double,
            (Some(Tok::KwChar), 0, 0, signed) => Base::Int { bits: 8, signed },
            (None | Some(Tok::Int), 0, 0, sign) => int(32, sign),
            (None | Some(Tok::Int), 0, 1, sign) => int(16, sign),
            (None | Some(Tok::Int), 1 | 2, 0, sign) => int(64, sign),
            _ => return None,
        })
    }
}

fn int(bits: u8, sign: Option<bool>) -> Base {
    Base::Int { bits, signed: Some(sign.unwrap_or(true)) }
}
