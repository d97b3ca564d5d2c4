//! Sets of small numbers: types of an attribute, categories of a level, roles of a user.

/// A set of small numbers, one bit each. Trailing zero words are never kept, so equal sets compare
/// equal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct BitSet(Vec<u64>);

impl BitSet {
    /// The empty set.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// All numbers below `count`.
    #[must_use]
    pub fn below(count: usize) -> Self {
        let mut words = vec![u64::MAX; count / 64];
        if !count.is_multiple_of(64) {
            words.push((1 << (count % 64)) - 1);
        }
        Self(words)
    }

    /// Puts `number` into the set.
    pub fn insert(&mut self, number: usize) {
        let word = number / 64;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (number % 64);
    }

    /// Takes `number` out of the set.
    pub fn remove(&mut self, number: usize) {
        if let Some(word) = self.0.get_mut(number / 64) {
            *word &= !(1 << (number % 64));
        }
        self.trim();
    }

    /// Puts the 64 numbers from `64 * word` on into the set where `bits` has a one.
    pub(crate) fn insert_word(&mut self, word: usize, bits: u64) {
        if bits == 0 {
            return;
        }
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= bits;
    }

    /// Whether `number` is in the set.
    #[inline]
    #[must_use]
    pub fn contains(&self, number: usize) -> bool {
        self.0.get(number / 64).is_some_and(|word| word & (1 << (number % 64)) != 0)
    }

    /// Whether every number of `other` is in the set.
    #[must_use]
    pub fn contains_all(&self, other: &Self) -> bool {
        other.0.len() <= self.0.len() && other.0.iter().zip(&self.0).all(|(o, s)| o & !s == 0)
    }

    /// Whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many numbers are in the set.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// How many words of memory the set takes, and one for itself.
    pub(crate) const fn words(&self) -> usize {
        1 + self.0.len()
    }

    /// The numbers, ascending.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0
            .iter()
            .enumerate()
            .flat_map(|(index, word)| Ones(*word).map(move |bit| index * 64 + bit))
    }

    /// The greatest number.
    #[must_use]
    pub fn last(&self) -> Option<usize> {
        let word = self.0.last()?;
        Some(self.0.len() * 64 - 1 - word.leading_zeros() as usize)
    }

    /// Adds the numbers of `other`.
    pub fn union_with(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine |= theirs;
        }
    }

    /// Keeps only the numbers that are in `other` too.
    pub fn intersect_with(&mut self, other: &Self) {
        self.0.truncate(other.0.len());
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine &= theirs;
        }
        self.trim();
    }

    /// Takes out the numbers of `other`.
    pub fn subtract(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine &= !theirs;
        }
        self.trim();
    }

    fn trim(&mut self) {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }
}

impl FromIterator<usize> for BitSet {
    fn from_iter<I: IntoIterator<Item = usize>>(numbers: I) -> Self {
        let mut set = Self::new();
        numbers.into_iter().for_each(|number| set.insert(number));
        set
    }
}

/// The numbers of the one bits of a word.
struct Ones(u64);

impl Iterator for Ones {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let bit = self.0.trailing_zeros() as usize;
        self.0 &= self.0 - 1;
        Some(bit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_sets_compare_equal_whatever_was_in_them_before() {
        let mut set: BitSet = [1, 700].into_iter().collect();
        set.remove(700);
        assert_eq!(set, [1].into_iter().collect());
        set.subtract(&BitSet::below(64));
        assert_eq!(set, BitSet::new());
    }

    #[test]
    fn below_holds_exactly_the_smaller_numbers() {
        for count in [0, 1, 63, 64, 65, 128] {
            let set = BitSet::below(count);
            assert_eq!(set.iter().collect::<Vec<_>>(), (0..count).collect::<Vec<_>>());
            assert_eq!(set.last(), count.checked_sub(1));
        }
    }
}
