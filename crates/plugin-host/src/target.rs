//! Where a plugin's code runs.

/// Where a plugin's code runs, and so what it can harm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Target {
    /// In a memory of its own, within limits. It can harm nothing but its own call.
    #[default]
    Isolated,
    /// In the process, with all its rights: the policy must grant the host `plugin { load_native }`.
    Native,
    /// As [`Target::Native`], with arrays on the stack guarded: an overflow ends the call.
    NativeStack,
}

impl Target {
    /// Every target.
    pub const ALL: [Self; 3] = [Self::Isolated, Self::Native, Self::NativeStack];

    /// Its name in commands and tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Isolated => "isolated",
            Self::Native => "native",
            Self::NativeStack => "native+stack",
        }
    }

    /// Whether code runs with all rights of the process.
    #[must_use]
    pub const fn is_trusted(self) -> bool {
        matches!(self, Self::Native | Self::NativeStack)
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}
