//! Programs that people use.

mod build;
mod calls;
mod coreutils;
mod everyday;
mod git;
mod languages;
mod shell;
mod sockets;
mod sqlite;
mod text;

/// The cases of this part.
pub(crate) const CASES: &[&[crate::Case]] = &[
    shell::CASES,
    sockets::CASES,
    coreutils::CASES,
    build::CASES,
    everyday::CASES,
    git::CASES,
    languages::CASES,
    sqlite::CASES,
    text::CASES,
    calls::CASES,
];
