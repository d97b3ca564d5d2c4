//! Where in a text a step comes from, and the line and function that people know that place by.

use crate::span::{PROTOTYPE, Source, Span, TEXT};
use std::fmt;

/// A place in the text of a plugin; by default none.
#[derive(Clone, Copy, Debug, Default)]
pub struct At(u32);

impl At {
    /// Of what the host or a transformation has added.
    pub(crate) const NOWHERE: Self = Self(0);

    /// Where a span begins.
    pub(crate) fn of(span: Span) -> Self {
        match span.file {
            TEXT => Self(span.start + 1),
            // Of a body, which is all of the text.
            PROTOTYPE => Self(1),
            _ => Self::NOWHERE,
        }
    }

    /// Whether it is a place in the text.
    #[must_use]
    pub fn is_known(self) -> bool {
        self.0 != 0
    }

    /// As a number, for code that says it.
    #[must_use]
    pub fn number(self) -> u32 {
        self.0
    }

    /// The place that has this number.
    #[must_use]
    pub fn numbered(number: u32) -> Self {
        Self(number)
    }
}

/// What a step does is the same wherever it comes from, and passes look for steps that do the same.
impl PartialEq for At {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// Where the lines and functions of a text begin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    file: String,
    starts: Vec<u32>,
    /// In the order of their places, the names of functions.
    funcs: Vec<(u32, String)>,
}

impl Lines {
    pub(crate) fn new<'n>(
        source: &Source<'_>,
        begins: impl Iterator<Item = (&'n String, &'n Span)>,
    ) -> Self {
        let ends = source.text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = std::iter::once(0).chain(ends.map(|(end, _)| end as u32 + 1)).collect();
        let begins = begins.map(|(name, span)| (At::of(*span), name));
        let own = begins.filter(|(at, _)| at.is_known());
        let mut funcs: Vec<_> = own.map(|(at, name)| (at.0 - 1, name.clone())).collect();
        funcs.sort_unstable();
        Self { file: source.name.to_owned(), starts, funcs }
    }

    /// The line of a place, counted from 1; `None` if it is none in the text.
    #[must_use]
    pub fn line(&self, at: At) -> Option<u32> {
        let byte = at.0.checked_sub(1)?;
        Some(self.starts.partition_point(|start| *start <= byte) as u32)
    }

    /// What people know a place by. The function is the one in whose text it lies, which may be
    /// written out in another.
    #[must_use]
    pub fn spot(&self, at: At) -> Option<Spot> {
        let (byte, line) = (at.0.checked_sub(1)?, self.line(at)?);
        let before = self.funcs.partition_point(|(start, _)| *start <= byte);
        let function = before.checked_sub(1).map(|last| self.funcs[last].1.clone());
        Some(Spot { file: self.file.clone(), line, function: function.unwrap_or_default() })
    }
}

/// Where in a text a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spot {
    /// What messages call the text.
    pub file: String,
    /// Counted from 1.
    pub line: u32,
    /// The function in whose text that is.
    pub function: String,
}

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}, in `{}`", self.file, self.line, self.function)
    }
}
