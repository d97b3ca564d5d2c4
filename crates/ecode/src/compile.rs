//! Text to intermediate form.

use crate::{
    ast::Name,
    check::Checker,
    diag::{self, CompileErrors, Diags, Message},
    ir,
    parse::{self, TypeNames},
    span::{self, Source, Span},
};
use std::{collections::HashMap, sync::Arc};

/// Texts beyond this size are refused.
const MAX_BYTES: usize = 4 << 20;

/// What is compiled.
#[derive(Clone, Copy, Debug)]
pub struct Input<'s> {
    /// What messages call the text.
    pub name: &'s str,
    /// The text: declarations and functions, or a body `{ … }`.
    pub text: &'s str,
    /// Declarations of what the host offers: types and function prototypes.
    pub host: &'s str,
    /// For a body: the function that it is, as in `long proc(int a)`.
    pub prototype: &'s str,
}

impl<'s> Input<'s> {
    /// A text that uses nothing of its host.
    #[must_use]
    pub fn new(name: &'s str, text: &'s str) -> Self {
        Self { name, text, host: "", prototype: "long proc()" }
    }
}

/// A text that has been compiled to the intermediate form.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The code.
    pub module: ir::Module,
    /// Remarks about the text.
    pub warnings: Vec<Message>,
}

/// Compiles a text to the intermediate form. Equal inputs give equal results.
///
/// # Errors
///
/// [`CompileErrors`] with every error found, each with its place and, where there is one, a hint.
pub fn compile(input: &Input<'_>) -> Result<Compiled, CompileErrors> {
    let sources = [
        Source { name: "<host>", text: input.host },
        Source { name: input.name, text: input.text },
        Source { name: "<prototype>", text: input.prototype },
    ];
    let mut diags = Diags::default();
    let module = match sources.iter().any(|source| source.text.len() > MAX_BYTES) {
        true => {
            diags.error(crate::span::Span::default(), "the text is longer than 4 MiB");
            None
        }
        false => build(&sources, &mut diags),
    };
    let failed = diags.has_errors();
    let messages = diags.finish(&sources);
    match module {
        Some(module) if !failed => Ok(Compiled { module, warnings: messages }),
        _ => Err(CompileErrors { messages }),
    }
}

fn build(sources: &[Source<'_>; 3], diags: &mut Diags) -> Option<ir::Module> {
    let (mut module, [floats, begins]) = check(sources, diags)?;
    for func in module.funcs.iter_mut().filter(|func| func.body.is_some()) {
        let place = |span: &Span| {
            let source = sources[span.file as usize];
            let (line, column) = diag::place(source.text, span.start as usize);
            ir::SourceLocation { file: source.name.to_owned(), line, column }
        };
        func.float = floats.get(&func.name).map(place);
        func.begin = begins.get(&func.name).map_or(ir::At::NOWHERE, |span| ir::At::of(*span));
    }
    module.lines = Arc::new(ir::Lines::new(&sources[span::TEXT as usize], begins.iter()));
    Some(module)
}

fn check(
    sources: &[Source<'_>; 3],
    diags: &mut Diags,
) -> Option<(ir::Module, [HashMap<String, Span>; 2])> {
    let mut types = TypeNames::default();
    let host = parse::unit(sources[0], 0, &mut types, diags);
    if parse::is_body(sources[1].text) {
        let (spec, declarator) = parse::prototype(sources[2], 2, &types, diags).ok()?;
        let params: Vec<Name> = param_names(&declarator);
        let body = parse::body(sources[1], 1, &types, &params, diags).ok();
        let mut checker = Checker::new(diags);
        checker.unit(&host);
        if let Some(body) = body {
            checker.procedure(spec, declarator, body);
        }
        return Some(checker.finish());
    }
    let unit = parse::unit(sources[1], 1, &mut types, diags);
    let mut checker = Checker::new(diags);
    checker.unit(&host);
    checker.unit(&unit);
    Some(checker.finish())
}

fn param_names(declarator: &crate::ast::Declarator) -> Vec<Name> {
    let Some(crate::ast::Deriv::Func { params, .. }) = declarator.derivs.last() else {
        return Vec::new();
    };
    params.iter().filter_map(|p| p.declarator.name.as_ref()).map(|n| n.name.clone()).collect()
}
