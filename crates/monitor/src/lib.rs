//! Placeholder.

pub mod launch;
pub mod layers;
mod sys;
