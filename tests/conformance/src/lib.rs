//! What the comparisons with libsepol share: the oracle, Debian's policy, and the comparison
//! itself.
//!
//! A comparison that cannot run fails and says which package is missing; `packages.txt` lists them
//! all.

mod compare;
mod newer;
mod synthetic;
mod tools;

pub use compare::{Sample, Tally, compare};
pub use newer::Newer;
pub use synthetic::synthetic_policy;
pub use tools::{Module, Oracle, debian_modules, debian_policy, decompile, secilc, setools};
