//! Tokens to syntax tree, by recursive descent. C's grammar needs to know which names are types
//! while it is read, and its expressions bind by precedence: both are simplest by hand, and errors
//! recover at statements.

mod cursor;
mod decl;
mod expr;
mod stmt;

use crate::{
    ast::{Block, Declarator, Item, Spec},
    diag::{Diags, Reported},
    lex::{self, Tok},
    span::Source,
};
use cursor::Parser;
use std::rc::Rc;

type Parsed<T> = Result<T, Reported>;

/// Nesting beyond this is refused, so that no recursion over the tree runs out of stack.
const MAX_DEPTH: u16 = 200;

/// Names that are types from the start, and may be shadowed.
pub(crate) const BUILTIN_TYPES: &[&str] = &[
    "string",
    "bool",
    "int8_t",
    "int16_t",
    "int32_t",
    "int64_t",
    "uint8_t",
    "uint16_t",
    "uint32_t",
    "uint64_t",
    "size_t",
    "ssize_t",
    "ptrdiff_t",
    "intptr_t",
    "uintptr_t",
];

/// Type names of a text, for one read after it.
#[derive(Debug, Default)]
pub(crate) struct TypeNames(Vec<Rc<str>>);

/// Reads a text of declarations and functions.
pub(crate) fn unit(
    source: Source<'_>,
    file: u32,
    types: &mut TypeNames,
    diags: &mut Diags,
) -> Vec<Item> {
    let tokens = lex::tokens(source, file, diags);
    let mut parser = Parser::new(source.text, tokens, &types.0, diags);
    let mut items = Vec::new();
    while !parser.at(Tok::End) && !parser.diags.is_full() {
        let before = parser.pos;
        if parser.item(&mut items).is_err() {
            parser.recover_item(before);
        }
    }
    types.0 = parser.outer_types();
    items
}

/// Reads `{ … }`: the body of a function whose prototype comes from elsewhere.
pub(crate) fn body(
    source: Source<'_>,
    file: u32,
    types: &TypeNames,
    params: &[Rc<str>],
    diags: &mut Diags,
) -> Parsed<Block> {
    let tokens = lex::tokens(source, file, diags);
    let mut parser = Parser::new(source.text, tokens, &types.0, diags);
    params.iter().for_each(|name| parser.declare(name, false));
    let block = parser.block()?;
    if !parser.at(Tok::End) {
        return Err(parser.expected("the end of the text after the last `}`"));
    }
    Ok(block)
}

/// Reads `TYPE NAME(PARAMETERS)`, with or without `;`.
pub(crate) fn prototype(
    source: Source<'_>,
    file: u32,
    types: &TypeNames,
    diags: &mut Diags,
) -> Parsed<(Rc<Spec>, Declarator)> {
    let tokens = lex::tokens(source, file, diags);
    let mut parser = Parser::new(source.text, tokens, &types.0, diags);
    let spec = parser.spec(true)?;
    let declarator = parser.declarator(false)?;
    parser.eat(Tok::Semi);
    if !parser.at(Tok::End) {
        return Err(parser.expected("the end of the prototype"));
    }
    Ok((spec, declarator))
}

/// Whether `text`'s first token is `{`: a body rather than declarations.
pub(crate) fn is_body(text: &str) -> bool {
    let mut diags = Diags::default();
    let tokens = lex::tokens(Source { name: "", text }, 0, &mut diags);
    tokens.first().is_some_and(|t| t.0 == Tok::LBrace)
}
