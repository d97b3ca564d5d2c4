//! Places in source text.

/// The text of a plugin, as [`Span::file`] says it.
pub(crate) const TEXT: u32 = 1;
/// The prototype of a text that is a body.
pub(crate) const PROTOTYPE: u32 = 2;

/// A range of bytes in one of the texts that a compilation reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    /// Which text: 0 is the host's declarations, 1 the plugin.
    pub(crate) file: u32,
    /// First byte.
    pub(crate) start: u32,
    /// One past the last byte.
    pub(crate) end: u32,
}

impl Span {
    /// From the start of `self` to the end of `last`.
    #[must_use]
    pub(crate) fn to(self, last: Span) -> Span {
        Span { file: self.file, start: self.start, end: last.end.max(self.end) }
    }
}

/// A named text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source<'s> {
    /// What messages call it: usually a file name.
    pub(crate) name: &'s str,
    /// Its contents.
    pub(crate) text: &'s str,
}
