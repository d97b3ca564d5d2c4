//! What a plugin to be loaded consists of, and why it may not be.

use crate::{limits::Limits, target::Target};
use ecode::CompileErrors;
use flask::LabelError;

/// What a plugin is made of.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Source<'s> {
    /// A text in E-code, which defines `long handle(const char *in, long n, char *out, long room)`:
    /// `n` bytes of request are at `in` (or `n` is a negative error), the reply goes to `out`, its
    /// length is returned.
    Text(&'s str),
    /// A WebAssembly module from any compiler. It exports `memory` and `handle`, of type
    /// `(i32, i64, i32, i64) -> i64`, and may import the host functions from module `host`.
    Wasm(&'s [u8]),
}

/// A plugin to be loaded.
#[derive(Clone, Copy, Debug)]
pub struct PluginSpec<'s> {
    /// What it is called by.
    pub name: &'s str,
    /// Its security context.
    pub context: &'s str,
    /// What it is made of.
    pub source: Source<'s>,
    /// Where it runs.
    pub target: Target,
    /// The host functions that it may link to, whatever the policy grants; `None` for all of them.
    pub symbols: Option<&'s [&'s str]>,
    /// What it may use.
    pub limits: Limits,
}

impl<'s> PluginSpec<'s> {
    /// A text that runs isolated, with the limits that [`Limits::default`] gives.
    #[must_use]
    pub fn new(name: &'s str, context: &'s str, text: &'s str) -> Self {
        let (source, target) = (Source::Text(text), Target::Isolated);
        Self { name, context, source, target, symbols: None, limits: Limits::default() }
    }

    /// The same for a WebAssembly module.
    #[must_use]
    pub fn wasm(name: &'s str, context: &'s str, module: &'s [u8]) -> Self {
        Self { source: Source::Wasm(module), ..Self::new(name, context, "") }
    }

    /// Whether the plugin may link to a host function.
    pub(crate) fn offers(&self, function: &str) -> bool {
        self.symbols.is_none_or(|symbols| symbols.contains(&function))
    }
}

/// Why a plugin was not loaded or replaced. What was there before stays.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// Its text has errors.
    #[error("{0}")]
    Text(#[from] CompileErrors),
    /// Its security context is not valid.
    #[error("the label `{context}` cannot be used: {error}")]
    Label {
        /// As given.
        context: String,
        /// Why.
        error: LabelError,
    },
    /// The policy denies it.
    #[error(
        "the policy does not let this host load `{plugin}`: it lacks plugin {{ {permission} }}"
    )]
    Denied {
        /// The plugin.
        plugin: String,
        /// The permission that is missing.
        permission: &'static str,
    },
    /// It lacks `handle`, or declares host functions that do not exist.
    #[error("`{name}` does not fit this host: {what}")]
    Interface {
        /// The plugin.
        name: String,
        /// What is missing.
        what: String,
    },
    /// There is no such plugin, or already one.
    #[error("{0}")]
    Name(String),
    /// The engine cannot be set up.
    #[error("the code generator refused: {0}")]
    Engine(String),
}
