//! Ports for C: the library behind `include/dewar_port.h`.

mod sys;

pub use sys::*;
