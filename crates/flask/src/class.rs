//! Classes of objects and their permissions, as `policy/access_vectors` lists them.

use crate::AccessVector;
use std::fmt;

include!(concat!(env!("OUT_DIR"), "/classes.rs"));

impl Class {
    /// Every class, in the order of `policy/access_vectors`.
    pub fn all() -> impl Iterator<Item = Self> {
        CLASSES.iter().map(|entry| entry.0)
    }

    /// The name as policies spell it.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.entry().1
    }

    /// The names of its permissions: the n-th is bit n of its access vectors.
    #[must_use]
    pub fn permissions(self) -> &'static [&'static str] {
        self.entry().2
    }

    /// The class of that name, if there is one.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        CLASSES.iter().find(|entry| entry.1 == name).map(|entry| entry.0)
    }

    /// The permission of that name, if the class has it.
    #[must_use]
    pub fn permission(self, name: &str) -> Option<AccessVector> {
        self.permissions().iter().position(|p| *p == name).map(|bit| AccessVector(1 << bit))
    }

    fn entry(self) -> &'static (Self, &'static str, &'static [&'static str]) {
        &CLASSES[self as usize - 1]
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_is_found_by_its_name_and_at_its_number() {
        for (index, class) in Class::all().enumerate() {
            assert_eq!(class as usize, index + 1);
            assert_eq!(Class::by_name(class.name()), Some(class));
        }
    }

    #[test]
    fn inherited_permissions_come_before_a_class_s_own() {
        assert_eq!(Class::Dir.permission("getattr"), Some(AccessVector(1)));
        assert!(Class::Dir.permissions().ends_with(&["rmdir"]));
        assert_eq!(Class::File.permission("search"), None);
    }
}
