//! What policy refuses: it fails, nothing changes, and the record says what and why.

mod execs;
mod files;
pub(crate) mod inside;
mod processes;
mod refusals;
mod refused;
mod sockets;
mod view;

/// The cases of this part.
pub(crate) const CASES: &[&[crate::Case]] = &[
    execs::CASES,
    files::CASES,
    inside::CASES,
    processes::CASES,
    refusals::CASES,
    sockets::CASES,
    view::CASES,
];
