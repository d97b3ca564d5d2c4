//! Classes of objects and their permissions: those that `policy/access_vectors` lists, and a
//! program's own.

use crate::AccessVector;
use std::fmt;

include!(concat!(env!("OUT_DIR"), "/classes.rs"));

/// A class of objects: one of `policy/access_vectors`, or one of a program's own
/// [`Classes`](crate::Classes), which have the numbers behind.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Class(u8);

impl Class {
    /// How many own classes a program can have: as many as numbers are left in a byte.
    pub const MOST_OWN: usize = u8::MAX as usize - CLASSES.len();

    /// Every class of `policy/access_vectors`, in its order.
    pub fn all() -> impl Iterator<Item = Self> {
        (1..=CLASSES.len() as u8).map(Self)
    }

    /// The class of that number, listed or a program's own; `None` beyond.
    #[must_use]
    pub fn from_number(number: u16) -> Option<Self> {
        u8::try_from(number).ok().filter(|number| *number > 0).map(Self)
    }

    /// Its number, at least 1.
    #[must_use]
    #[inline]
    pub const fn number(self) -> u8 {
        self.0
    }

    /// The n-th of a program's own classes; `None` beyond [`Class::MOST_OWN`].
    #[must_use]
    pub(crate) fn own(n: usize) -> Option<Self> {
        let number = u8::try_from(CLASSES.len().checked_add(n)?.checked_add(1)?);
        number.ok().map(Self)
    }

    /// Which of a program's own classes it is; `None` for one of `policy/access_vectors`.
    #[must_use]
    pub const fn as_own(self) -> Option<usize> {
        (self.0 as usize).checked_sub(CLASSES.len() + 1)
    }

    /// The name as policies spell it. A program's own class has its name in
    /// [`Classes`](crate::Classes), and here only one that policies cannot spell.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.entry().0
    }

    /// The names of its permissions: the n-th is bit n of its access vectors. Of a program's own
    /// class, none.
    #[must_use]
    pub fn permissions(self) -> &'static [&'static str] {
        self.entry().1
    }

    /// The class of that name in `policy/access_vectors`, if there is one.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Self::all().find(|class| class.name() == name)
    }

    /// The permission of that name, if the class has it.
    #[must_use]
    pub fn permission(self, name: &str) -> Option<AccessVector> {
        self.permissions().iter().position(|p| *p == name).map(|bit| AccessVector(1 << bit))
    }

    fn entry(self) -> &'static (&'static str, &'static [&'static str]) {
        CLASSES.get(usize::from(self.0) - 1).unwrap_or(&("(own class)", &[]))
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.as_own() {
            None => f.write_str(self.name()),
            Some(n) => write!(f, "own class {n}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_is_found_by_its_name_and_at_its_number() {
        for (index, class) in Class::all().enumerate() {
            assert_eq!(usize::from(class.number()), index + 1);
            assert_eq!(Class::by_name(class.name()), Some(class));
            assert_eq!(Class::from_number(class.number().into()), Some(class));
            assert_eq!(class.as_own(), None);
        }
        assert_eq!((Class::from_number(0), Class::from_number(256)), (None, None));
    }

    #[test]
    fn inherited_permissions_come_before_a_class_s_own() {
        assert_eq!(Class::Dir.permission("getattr"), Some(AccessVector(1)));
        assert!(Class::Dir.permissions().ends_with(&["rmdir"]));
        assert_eq!(Class::File.permission("search"), None);
    }

    #[test]
    fn own_classes_have_the_numbers_behind_and_end_with_the_byte() {
        let last = Class::own(Class::MOST_OWN - 1).unwrap();
        assert_eq!((last.number(), last.as_own()), (u8::MAX, Some(Class::MOST_OWN - 1)));
        assert_eq!(Class::own(Class::MOST_OWN), None);
        assert_eq!(usize::from(Class::own(0).unwrap().number()), Class::all().count() + 1);
    }
}
