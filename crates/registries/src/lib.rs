//! Which registries a package manager asks, by its own configuration: what `network.registries` of
//! a profile stands for.
//!
//! Configuration is read, and no tool is run: a tool would follow what a project says. Only the
//! user's word and the machine's count. **What lies in the workspace is never read**, whatever
//! leads there: a project's `.npmrc`, or
//! `.cargo/config.toml`, is the repository's word, and the code that is run could have written it.
//!
//! ```
//! use registries::{ConfigRoots, Tool};
//!
//! let nothing = std::path::Path::new("/nonexistent");
//! let paths = realpath::RealPaths::new();
//! let (home, workspace, root) = (nothing, nothing, nothing);
//! let roots = ConfigRoots { home, workspace, root, variables: &[], paths: &paths };
//! let asked = Tool::Npm.asked(&roots);
//! assert_eq!(asked.endpoints[0].to_string(), "registry.npmjs.org:443");
//! ```
#![forbid(unsafe_code)]

mod address;
mod asked;
mod cargo;
mod go;
mod ini;
mod java;
mod npm;
mod plain;
mod python;
mod roots;

pub use address::Endpoint;
pub use asked::{ToolRegistries, Unreadable};
pub use plain::Plain;
pub use realpath::RealPaths;
pub use roots::ConfigRoots;

/// A package manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Tool {
    /// Rust's.
    Cargo,
    /// Go's modules.
    Go,
    /// For Java. What a build file names is the project's word; init scripts are programs, and not
    /// read.
    Gradle,
    /// For Java.
    Maven,
    /// For JavaScript; yarn's first version reads the same.
    Npm,
    /// Python's.
    Pip,
    /// For JavaScript: npm's configuration, and some of its own.
    Pnpm,
    /// For Python.
    Uv,
}

impl Tool {
    /// All of them, by name.
    pub const ALL: [Self; 8] = [
        Self::Cargo,
        Self::Go,
        Self::Gradle,
        Self::Maven,
        Self::Npm,
        Self::Pip,
        Self::Pnpm,
        Self::Uv,
    ];

    /// As profiles call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cargo => "cargo",
            Self::Go => "go",
            Self::Gradle => "gradle",
            Self::Maven => "maven",
            Self::Npm => "npm",
            Self::Pip => "pip",
            Self::Pnpm => "pnpm",
            Self::Uv => "uv",
        }
    }

    /// What it would ask, at `roots`.
    #[must_use]
    pub fn asked(self, roots: &ConfigRoots<'_>) -> ToolRegistries {
        let mut asked = ToolRegistries::default();
        match self {
            Self::Cargo => cargo::ask(roots, &mut asked),
            Self::Go => go::ask(roots, &mut asked),
            Self::Gradle => java::gradle(roots, &mut asked),
            Self::Maven => java::maven(roots, &mut asked),
            Self::Npm => npm::ask(roots, &[], &mut asked),
            Self::Pip => python::pip(roots, &mut asked),
            Self::Pnpm => npm::ask(roots, &npm::PNPM, &mut asked),
            Self::Uv => python::uv(roots, &mut asked),
        }
        asked.add_proxies(roots);
        asked.finish()
    }
}
