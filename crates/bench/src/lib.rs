//! placeholder
mod random;
pub mod sample;
