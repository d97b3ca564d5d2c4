//! Messages about source text: errors and warnings with place, snippet and hint.

use crate::span::{Source, Span};
use miette::{Diagnostic, LabeledSpan, NamedSource, Severity, SourceCode};
use std::{fmt, sync::Arc};

/// Messages beyond this many errors are dropped.
const MAX_ERRORS: usize = 20;
/// Warnings beyond this many are dropped.
const MAX_WARNINGS: usize = 50;
/// Of longer lines, messages show nothing.
const MAX_SHOWN_BYTES: usize = 2000;

/// One message about a place in the source. Renders with [`miette`].
#[derive(Clone, Debug)]
pub struct Message {
    severity: Severity,
    text: String,
    help: Option<String>,
    span: Span,
    source: Option<Arc<NamedSource<String>>>,
    line: u32,
    column: u32,
    file: String,
}

impl Message {
    /// Whether it is an error: nothing was compiled.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// What is wrong, without the place.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Line, counted from 1.
    #[must_use]
    pub fn line(&self) -> u32 {
        self.line
    }

    /// Column in characters, counted from 1.
    #[must_use]
    pub fn column(&self) -> u32 {
        self.column
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.is_error() { "error" } else { "warning" };
        write!(f, "{}:{}:{}: {word}: {}", self.file, self.line, self.column, self.text)
    }
}

impl std::error::Error for Message {}

impl Diagnostic for Message {
    fn severity(&self) -> Option<Severity> {
        Some(self.severity)
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.source.as_ref().map(|source| source as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let (start, end) = (self.span.start as usize, self.span.end as usize);
        let length = end.saturating_sub(start);
        Some(Box::new(std::iter::once(LabeledSpan::new(Some("here".into()), start, length))))
    }
}

/// Why a plugin was not compiled: every error found.
#[derive(Clone, Debug)]
pub struct CompileErrors {
    /// In the order of their places.
    pub messages: Vec<Message>,
}

impl fmt::Display for CompileErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, message) in self.messages.iter().enumerate() {
            write!(f, "{}{message}", if index == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

impl std::error::Error for CompileErrors {}

impl Diagnostic for CompileErrors {
    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        Some(Box::new(self.messages.iter().map(|m| m as &dyn Diagnostic)))
    }
}

/// Proof that an error was recorded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reported;

/// Collects messages while a text is read and checked.
#[derive(Debug, Default)]
pub(crate) struct Diags {
    messages: Vec<Message>,
    errors: usize,
}

impl Diags {
    pub(crate) fn error(&mut self, span: Span, text: impl Into<String>) -> Reported {
        self.error_help(span, text, None)
    }

    pub(crate) fn hint(&mut self, span: Span, text: impl Into<String>, help: &str) -> Reported {
        self.error_help(span, text, Some(help.to_owned()))
    }

    pub(crate) fn error_help(
        &mut self,
        span: Span,
        text: impl Into<String>,
        help: Option<String>,
    ) -> Reported {
        let text = text.into();
        if !self.said(span, &text) {
            self.errors += 1;
            if self.errors <= MAX_ERRORS {
                self.push(Severity::Error, span, text, help);
            }
        }
        Reported
    }

    pub(crate) fn warn(&mut self, span: Span, text: impl Into<String>, help: Option<&str>) {
        let text = text.into();
        let room = self.messages.len() - self.errors.min(MAX_ERRORS) < MAX_WARNINGS;
        if room && !self.said(span, &text) {
            self.push(Severity::Warning, span, text, help.map(str::to_owned));
        }
    }

    /// Some expressions are checked twice; what is wrong with them is said once.
    fn said(&self, span: Span, text: &str) -> bool {
        self.messages.iter().any(|m| m.span == span && m.text == text)
    }

    fn push(&mut self, severity: Severity, span: Span, text: String, help: Option<String>) {
        let (line, column, file, source) = (0, 0, String::new(), None);
        self.messages.push(Message { severity, text, help, span, source, line, column, file });
    }

    pub(crate) fn has_errors(&self) -> bool {
        self.errors > 0
    }

    pub(crate) fn is_full(&self) -> bool {
        self.errors >= MAX_ERRORS
    }

    /// The messages in the order of their places, each joined with its text.
    pub(crate) fn finish(mut self, sources: &[Source<'_>]) -> Vec<Message> {
        let named: Vec<_> = sources
            .iter()
            .map(|s| Arc::new(NamedSource::new(s.name, s.text.to_owned()).with_language("C")))
            .collect();
        for message in &mut self.messages {
            let Some(source) = sources.get(message.span.file as usize) else { continue };
            (message.line, message.column) = place(source.text, message.span.start as usize);
            message.file = source.name.to_owned();
            let named = named.get(message.span.file as usize);
            message.source = named.filter(|_| is_readable(source.text, message.span)).cloned();
        }
        if self.errors > 0 {
            // After an error, what looks suspicious may only follow from it.
            self.messages.retain(Message::is_error);
        }
        self.messages.sort_by_key(|m| (m.span.file, m.span.start));
        self.messages
    }
}

/// Whether the lines at `span`, with one before and one behind, are for people.
fn is_readable(text: &str, span: Span) -> bool {
    let text = text.as_bytes();
    let end = text.len().min(span.end as usize);
    let start = end.min(span.start as usize);
    let is_break = |byte: &u8| *byte == b'\n';
    let before: usize = text[..start].rsplit(is_break).take(2).map(<[u8]>::len).sum();
    let behind: usize = text[end..].split(is_break).take(2).map(<[u8]>::len).sum();
    before + (end - start) + behind <= MAX_SHOWN_BYTES
}

/// Line and column, counted from 1.
pub(crate) fn place(text: &str, offset: usize) -> (u32, u32) {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    let before = &text[..offset];
    let line = before.bytes().filter(|b| *b == b'\n').count() + 1;
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    (u32::try_from(line).unwrap_or(u32::MAX), u32::try_from(column).unwrap_or(u32::MAX))
}
