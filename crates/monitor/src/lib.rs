//! Placeholder.

pub mod launch;
mod sys;
