//! Where a plugin's code runs.

use flask::{AccessVector, perm::plugin as perm};

/// Where a plugin's code runs, and so what it can harm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Target {
    /// In a memory of its own, within limits. It can harm nothing but its own call.
    #[default]
    Isolated,
    /// In the process, with all its rights: the policy must grant the host
    /// `plugin { load_native }`.
    Native,
    /// As [`Target::Native`], with arrays on the stack guarded: an overflow ends the call.
    NativeStack,
    /// In the kernel, as BPF in a memory of its own: the policy must grant the host
    /// `plugin { load_kernel }`, and the kernel must permit it.
    Kernel,
}

impl Target {
    /// Every target.
    pub const ALL: [Self; 4] = [Self::Isolated, Self::Native, Self::NativeStack, Self::Kernel];

    /// Its name in commands and tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Isolated => "isolated",
            Self::Native => "native",
            Self::NativeStack => "native+stack",
            Self::Kernel => "kernel",
        }
    }

    /// The permission of class `plugin` that a host needs on a plugin to load it there, and its
    /// name.
    #[must_use]
    pub const fn permission(self) -> (AccessVector, &'static str) {
        match self {
            Self::Isolated => (perm::LOAD, "load"),
            Self::Native | Self::NativeStack => (perm::LOAD_NATIVE, "load_native"),
            Self::Kernel => (perm::LOAD_KERNEL, "load_kernel"),
        }
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}
