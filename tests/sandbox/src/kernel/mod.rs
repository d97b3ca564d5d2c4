//! What the kernel offers to programs, where mediation could change it.

mod files;
mod locks;
mod names;
mod owners;
mod processes;
mod signals;

pub(crate) use files::with_say;

/// The cases of this part.
pub(crate) const CASES: &[&[crate::Case]] =
    &[files::CASES, locks::CASES, names::CASES, owners::CASES, processes::CASES, signals::CASES];
