//! Bytes of a binary policy, read from front to back.

use super::problem::Problem;
use crate::{BitSet, spelling};

/// The first four bytes of every binary policy.
pub(super) const MAGIC: u32 = 0xf97c_ff8c;

/// What is left to read.
#[derive(Debug)]
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
    len: usize,
    /// The version of the policy.
    pub(super) version: u32,
    /// How many more words sets may take: a few bytes can name a bit far away.
    words: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        let words = (1 << 20) + 4 * bytes.len();
        Self { rest: bytes, len: bytes.len(), version: 0, words }
    }

    /// How many bytes have been read.
    pub(super) fn offset(&self) -> usize {
        self.len - self.rest.len()
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], Problem> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(Problem::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Problem> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(Problem::Truncated)?;
        self.rest = rest;
        Ok(*taken)
    }

    pub(super) fn u8(&mut self) -> Result<u8, Problem> {
        self.array().map(u8::from_le_bytes)
    }

    pub(super) fn u16(&mut self) -> Result<u16, Problem> {
        self.array().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, Problem> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, Problem> {
        self.array().map(u64::from_le_bytes)
    }

    /// Four bytes in the order of the file.
    pub(super) fn bytes<const N: usize>(&mut self) -> Result<[u8; N], Problem> {
        self.array()
    }

    /// A number of entries that take at least `bytes_each`.
    pub(super) fn count(&mut self, bytes_each: usize) -> Result<usize, Problem> {
        let count = self.u32()? as usize;
        self.fits(count, bytes_each)
    }

    /// `count`, if so many entries can still follow.
    pub(super) fn fits(&self, count: usize, bytes_each: usize) -> Result<usize, Problem> {
        let fits = count.checked_mul(bytes_each).is_some_and(|bytes| bytes <= self.rest.len());
        if fits { Ok(count) } else { Err(Problem::Truncated) }
    }

    /// A name of that many bytes, one that CIL can spell.
    pub(super) fn name(&mut self, len: u32) -> Result<&'a str, Problem> {
        let name = std::str::from_utf8(self.take(len as usize)?).map_err(|_| Problem::Name)?;
        if spelling::is_name(name) { Ok(name) } else { Err(Problem::Name) }
    }

    /// A length and a text that CIL can quote: a path, the name of a file.
    pub(super) fn string(&mut self) -> Result<&'a str, Problem> {
        let len = self.u32()?;
        let text = std::str::from_utf8(self.take(len as usize)?).map_err(|_| Problem::Name)?;
        if spelling::is_quotable(text) { Ok(text) } else { Err(Problem::Name) }
    }

    /// A set of numbers below `limit`.
    pub(super) fn bits(&mut self, limit: usize) -> Result<BitSet, Problem> {
        if self.u32()? != 64 {
            return Err(Problem::Malformed("a set is not made of words of 64 bits"));
        }
        let high = self.u32()?;
        let count = self.count(12)?;
        let mut set = BitSet::new();
        let mut next = 0;
        for _ in 0..count {
            let (start, word) = (self.u32()?, self.u64()?);
            if start % 64 != 0 || start < next || start >= high || word == 0 {
                return Err(Problem::Malformed("the words of a set are not in order"));
            }
            next = start + 64;
            set.insert_word(start as usize / 64, word);
            if set.last().is_some_and(|last| last >= limit) {
                return Err(Problem::Malformed("a set holds a number that is too great"));
            }
        }
        self.charge(words_of(&set))?;
        Ok(set)
    }

    /// Adds to a set that is not read as it stands but made of others.
    pub(super) fn insert(&mut self, set: &mut BitSet, number: usize) -> Result<(), Problem> {
        let before = words_of(set);
        set.insert(number);
        self.charge(words_of(set) - before)
    }

    fn charge(&mut self, words: usize) -> Result<(), Problem> {
        let left = self.words.checked_sub(words);
        self.words = left.ok_or(Problem::Malformed(
            "sets take more memory than a policy of this size can need",
        ))?;
        Ok(())
    }
}

fn words_of(set: &BitSet) -> usize {
    set.last().map_or(0, |last| last / 64 + 1)
}
