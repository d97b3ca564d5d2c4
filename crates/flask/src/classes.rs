//! The classes of a program of its own: what it calls them, and in which order it numbers their
//! permissions.

use crate::{AccessVector, Class};

/// Bits of an access vector.
const BITS: usize = 32;

/// The longest name of a class or permission, as in a policy's binary form.
const MOST_NAME_BYTES: usize = 255;

/// Why classes were not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClassesError {
    /// More classes than there are numbers.
    TooMany,
    /// A class has more permissions than an access vector has bits.
    TooManyPermissions(String),
    /// A class, or a permission of one (`class.permission`), is named twice.
    Twice(String),
    /// A name that no policy can spell.
    Name(String),
}

impl std::fmt::Display for ClassesError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TooMany => {
                write!(f, "a program has at most {} classes of its own", Class::MOST_OWN)
            }
            Self::TooManyPermissions(class) => {
                write!(f, "class `{class}` has more than {BITS} permissions")
            }
            Self::Twice(name) => write!(f, "`{name}` stands twice among the program's classes"),
            Self::Name(name) => write!(
                f,
                "`{}` is no name of a class or permission: 1 to {MOST_NAME_BYTES} letters, digits, `_`, `-` and `.`",
                crate::visible(name)
            ),
        }
    }
}

impl std::error::Error for ClassesError {}

/// The classes that a program has beside those of `policy/access_vectors`, as `selinux_set_mapping`
/// knows them: the program numbers classes and permissions in its own order, and the security
/// server finds them in its policy by name.
///
/// ```
/// use flask::{AccessVector, Classes};
///
/// let classes = Classes::new([("table", vec!["select", "insert"])])?;
/// let table = classes.class("table").unwrap();
/// assert_eq!(classes.permission(table, "insert"), Some(AccessVector(2)));
/// assert_eq!(classes.names(table, AccessVector(3)).collect::<Vec<_>>(), ["select", "insert"]);
/// # Ok::<(), flask::ClassesError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Classes {
    own: Vec<(Box<str>, Vec<Box<str>>)>,
}

impl Classes {
    /// Those classes, each with its permissions: the n-th is bit n of its access vectors. One that
    /// has the name of a listed class is the program's own nevertheless, with the permissions that
    /// it names.
    ///
    /// # Errors
    ///
    /// [`ClassesError`].
    pub fn new<N, P>(classes: impl IntoIterator<Item = (N, P)>) -> Result<Self, ClassesError>
    where
        N: AsRef<str>,
        P: IntoIterator,
        P::Item: AsRef<str>,
    {
        let mut own: Vec<(Box<str>, Vec<Box<str>>)> = Vec::new();
        for (name, permissions) in classes {
            let name = name.as_ref();
            let mut names: Vec<Box<str>> = Vec::new();
            for permission in permissions {
                let permission = permission.as_ref();
                if names.iter().any(|known| **known == *permission) {
                    return Err(ClassesError::Twice(format!("{name}.{permission}")));
                }
                names.push(spelled(permission)?);
            }
            if names.len() > BITS {
                return Err(ClassesError::TooManyPermissions(name.into()));
            }
            if own.iter().any(|(known, _)| **known == *name) {
                return Err(ClassesError::Twice(name.into()));
            }
            own.push((spelled(name)?, names));
        }
        if own.len() > Class::MOST_OWN {
            return Err(ClassesError::TooMany);
        }
        Ok(Self { own })
    }

    /// Whether there are none of the program's own.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.own.is_empty()
    }

    /// The program's own classes, in order.
    pub fn own(&self) -> impl Iterator<Item = Class> {
        (0..self.own.len()).filter_map(Class::own)
    }

    /// The class of that name: the program's own, or else the listed one.
    #[must_use]
    pub fn class(&self, name: &str) -> Option<Class> {
        let own = self.own.iter().position(|(own, _)| **own == *name);
        own.map_or_else(|| Class::by_name(name), Class::own)
    }

    /// Whether the number stands for a class: a listed one, or one of these.
    #[must_use]
    pub fn has(&self, class: Class) -> bool {
        class.as_own().is_none_or(|n| n < self.own.len())
    }

    /// The name of a class.
    #[must_use]
    pub fn name(&self, class: Class) -> &str {
        self.entry(class).map_or(class.name(), |(name, _)| name)
    }

    /// The names of the permissions of a class: the n-th is bit n of its access vectors.
    pub fn permissions(&self, class: Class) -> impl Iterator<Item = &str> {
        let own = self.entry(class).into_iter().flat_map(|(_, names)| names).map(|name| &**name);
        class.permissions().iter().copied().chain(own)
    }

    /// The permission of that name, if the class has it.
    #[must_use]
    pub fn permission(&self, class: Class, name: &str) -> Option<AccessVector> {
        self.permissions(class).position(|known| known == name).map(|bit| AccessVector(1 << bit))
    }

    /// The names that `class` gives to these permissions; bits beyond the class are left out.
    pub fn names(&self, class: Class, av: AccessVector) -> impl Iterator<Item = &str> {
        let names = self.permissions(class).enumerate();
        names.filter(move |(bit, _)| av.0 & (1 << bit) != 0).map(|(_, name)| name)
    }

    fn entry(&self, class: Class) -> Option<&(Box<str>, Vec<Box<str>>)> {
        self.own.get(class.as_own()?)
    }
}

fn spelled(name: &str) -> Result<Box<str>, ClassesError> {
    let letters = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    let good = (1..=MOST_NAME_BYTES).contains(&name.len()) && name.chars().all(letters);
    if good { Ok(name.into()) } else { Err(ClassesError::Name(name.into())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_s_class_of_a_listed_name_has_the_program_s_numbers() {
        let classes = Classes::new([("file", ["write", "read"])]).unwrap();
        let file = classes.class("file").unwrap();
        assert_ne!(file, Class::File);
        assert_eq!(classes.permission(file, "write"), Some(AccessVector(1)));
        assert_eq!(classes.class("dir"), Some(Class::Dir));
        assert_eq!(classes.name(Class::Dir), "dir");
        assert!(classes.has(file) && !classes.has(Class::own(1).unwrap()));
    }

    #[test]
    fn what_no_policy_could_mean_is_refused() {
        let many: Vec<_> = (0..33).map(|n| format!("p{n}")).collect();
        let new = |name: &str, permissions: &[&str]| Classes::new([(name, permissions)]);
        assert_eq!(new("", &[]), Err(ClassesError::Name(String::new())));
        assert_eq!(new("a b", &[]), Err(ClassesError::Name("a b".into())));
        assert_eq!(new("a", &["p", "p"]), Err(ClassesError::Twice("a.p".into())));
        assert_eq!(
            Classes::new([("a", ["p"]), ("a", ["q"])]),
            Err(ClassesError::Twice("a".into()))
        );
        assert_eq!(Classes::new([("a", many)]), Err(ClassesError::TooManyPermissions("a".into())));
        let many = (0..=Class::MOST_OWN).map(|n| (format!("c{n}"), ["p"]));
        assert_eq!(Classes::new(many), Err(ClassesError::TooMany));
    }
}
