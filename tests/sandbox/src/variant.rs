//! As whom, and with what from the kernel, a case runs.

/// One of the ways in which every case runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Variant {
    /// Root, with namespaces.
    Root,
    /// Someone without any privilege.
    User,
    /// Someone without any privilege where namespaces are forbidden.
    Bare,
}

impl Variant {
    /// All of them.
    pub(crate) const ALL: [Self; 3] = [Self::Root, Self::User, Self::Bare];

    /// What it is called in the names of tests.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::User => "user",
            Self::Bare => "bare",
        }
    }

    pub(crate) fn is_root(self) -> bool {
        self == Self::Root
    }

    /// Whether the sandbox has namespaces of its own.
    pub(crate) fn has_namespaces(self) -> bool {
        self != Self::Bare
    }
}
