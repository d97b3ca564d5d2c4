//! What is wrong with a policy's text, and where.

use super::marks::{Marks, Origin};
use crate::spelling;
use indexmap::IndexSet;
use miette::{Diagnostic, LabeledSpan, NamedSource, SourceCode};
use std::{fmt, sync::Arc};

/// One mistake in a policy's text.
#[derive(Clone, Debug)]
pub struct PolicyError {
    source: Option<Arc<NamedSource<Arc<str>>>>,
    start: usize,
    len: usize,
    line: usize,
    column: usize,
    origin: Option<(String, u32)>,
    message: String,
    help: Option<String>,
}

impl PolicyError {
    pub(super) fn without_place(message: String) -> Self {
        Self {
            source: None,
            start: 0,
            len: 0,
            line: 0,
            column: 0,
            origin: None,
            message,
            help: None,
        }
    }

    /// The name of the file, where there is one.
    #[must_use]
    pub fn file(&self) -> Option<&str> {
        self.source.as_ref().map(|source| source.name())
    }

    /// The line, counted from 1; 0 where there is none.
    #[must_use]
    pub fn line(&self) -> usize {
        self.line
    }

    /// The column, counted from 1 in characters; 0 where there is none.
    #[must_use]
    pub fn column(&self) -> usize {
        self.column
    }

    /// The file and line that the CIL was made from, where a line mark tells.
    #[must_use]
    pub fn origin(&self) -> Option<(&str, u32)> {
        self.origin.as_ref().map(|(file, line)| (file.as_str(), *line))
    }

    /// What is wrong.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What to do about it.
    #[must_use]
    pub fn suggestion(&self) -> Option<&str> {
        self.help.as_deref()
    }
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((file, line)) = self.origin() {
            write!(f, "{file}:{line}: ")?;
        }
        if let Some(file) = self.file() {
            write!(f, "{file}:{}:{}: ", self.line, self.column)?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for PolicyError {}

impl Diagnostic for PolicyError {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.source.as_deref().map(|source| source as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let label = LabeledSpan::new(Some("here".to_owned()), self.start, self.len);
        self.source.is_some().then(|| Box::new(std::iter::once(label)) as Box<_>)
    }
}

/// Everything that is wrong with a policy's text, up to a hundred mistakes.
#[derive(Clone, Debug)]
pub struct PolicyErrors(Vec<PolicyError>);

impl PolicyErrors {
    /// The most mistakes that are kept.
    pub(super) const MOST: usize = 100;

    pub(super) fn new(errors: Vec<PolicyError>) -> Self {
        Self(errors)
    }

    /// The one mistake of a policy as a whole.
    pub(crate) fn of_all(message: String) -> Self {
        Self(vec![PolicyError::without_place(message)])
    }

    /// The mistakes, in the order of the text.
    #[must_use]
    pub fn errors(&self) -> &[PolicyError] {
        &self.0
    }
}

impl fmt::Display for PolicyErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0[..] {
            [only] => only.fmt(f),
            [first, rest @ ..] => write!(f, "{first} (and {} more)", rest.len()),
            [] => f.write_str("the policy is wrong"),
        }
    }
}

impl std::error::Error for PolicyErrors {}

impl Diagnostic for PolicyErrors {
    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        Some(Box::new(self.0.iter().map(|error| error as &dyn Diagnostic)))
    }
}

/// The texts of a policy, laid end to end: an offset names a file and a place in it.
#[derive(Debug)]
pub(super) struct Sources {
    files: Vec<File>,
    /// Files that line marks name, after the number of all files that were read.
    marked: IndexSet<Box<str>>,
}

#[derive(Debug)]
struct File {
    base: u32,
    line_starts: Vec<u32>,
    source: Arc<NamedSource<Arc<str>>>,
    marks: Marks,
}

/// A file, a line counted from 1, and the offset of the line's first byte in the file.
struct Located<'a> {
    number: usize,
    file: &'a File,
    line: usize,
    line_start: usize,
    offset: usize,
}

impl Sources {
    pub(super) fn new() -> Self {
        Self { files: Vec::new(), marked: IndexSet::new() }
    }

    /// Adds a file and gives the offset of its first byte; `None` when the texts together exceed 4
    /// GiB.
    pub(super) fn add(&mut self, name: &str, text: &str) -> Option<u32> {
        let end = |file: &File| file.base as usize + file.source.inner().len() + 1;
        let base = u32::try_from(self.files.last().map_or(0, end)).ok()?;
        u32::try_from(base as usize + text.len() + 1).ok()?;
        let breaks = text.match_indices('\n').map(|(at, _)| at as u32 + 1);
        let line_starts = std::iter::once(0).chain(breaks).collect();
        let text = Arc::from(spelling::printable(text));
        let source = Arc::new(NamedSource::new(spelling::printable(name), text));
        self.files.push(File { base, line_starts, source, marks: Marks::default() });
        Some(base)
    }

    /// How many bytes the texts have together.
    pub(super) fn len(&self) -> usize {
        self.files.iter().map(|file| file.source.inner().len()).sum()
    }

    /// The files that were read, then those that line marks name: what places refer to.
    pub(super) fn names(&self) -> Vec<Box<str>> {
        let files = self.files.iter().map(|file| file.source.name());
        files.chain(self.marked.iter().map(|name| &**name)).map(Into::into).collect()
    }

    /// Keeps the line mark at an offset; `None` when it makes no sense.
    pub(super) fn mark(&mut self, offset: u32, mark: &str) -> Option<()> {
        let located = self.locate(offset)?;
        let (number, line) = (located.number, located.line as u32);
        let marks = &mut self.files[number].marks;
        marks.read(line, mark)?;
        if let Some(origin) = marks.origin(line + 1) {
            self.marked.insert(origin.file.into());
        }
        Some(())
    }

    fn locate(&self, offset: u32) -> Option<Located<'_>> {
        let number = self.files.partition_point(|file| file.base <= offset).checked_sub(1)?;
        let file = &self.files[number];
        let offset = offset - file.base;
        let line = file.line_starts.partition_point(|start| *start <= offset);
        let line_start = file.line_starts[line.checked_sub(1)?] as usize;
        Some(Located { number, file, line, line_start, offset: offset as usize })
    }

    /// The file and line of an offset; those that a line mark tells, where one does.
    pub(super) fn place(&self, offset: u32) -> Option<crate::policy::SourceLine> {
        let located = self.locate(offset)?;
        let line = located.line as u32;
        if let Some(Origin { file, line }) = located.file.marks.origin(line) {
            let source = self.files.len() + self.marked.get_index_of(file)?;
            return Some(crate::policy::SourceLine { source: source as u32, line });
        }
        Some(crate::policy::SourceLine { source: located.number as u32, line })
    }

    /// The text from an offset on, up to the end of the list or word that starts there.
    pub(super) fn snippet(&self, offset: u32) -> &str {
        let Some(located) = self.locate(offset) else { return "" };
        let text: &str = located.file.source.inner();
        let text = &text[located.offset.min(text.len())..];
        &text[..item_len(text)]
    }

    pub(super) fn error(&self, offset: u32, message: String, help: Option<String>) -> PolicyError {
        let Some(located) = self.locate(offset) else {
            return PolicyError { help, ..PolicyError::without_place(message) };
        };
        let text: &str = located.file.source.inner();
        let start = located.offset.min(text.len());
        let before = &text[located.line_start.min(start)..start];
        let first_line = text[start..].split('\n').next().unwrap_or("");
        PolicyError {
            source: Some(Arc::clone(&located.file.source)),
            start,
            len: item_len(first_line),
            line: located.line,
            column: before.chars().count() + 1,
            origin: located
                .file
                .marks
                .origin(located.line as u32)
                .map(|origin| (origin.file.to_owned(), origin.line)),
            message,
            help,
        }
    }
}

/// Length of the list, string or word at the start of `text`.
fn item_len(text: &str) -> usize {
    let mut depth = 0usize;
    let mut quoted = false;
    for (at, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            _ if quoted => {}
            '(' => depth += 1,
            ')' if depth <= 1 => return if depth == 1 { at + 1 } else { at },
            ')' => depth -= 1,
            c if depth == 0 && c.is_whitespace() => return at,
            _ => {}
        }
    }
    text.len()
}
