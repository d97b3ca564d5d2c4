//! Access decisions for C. `include/dewar.h` says what each function does; `examples/kv/kv.c` uses
//! them.
//!
//! Every function checks its pointers for null; beyond that, C's usual promises hold: strings end
//! with 0, a list ends with NULL, a pointer and a length belong together, and what was closed is
//! not used again. No panic crosses: a function that would panic fails, and denies.
#![allow(non_camel_case_types, reason = "these are the names in the header")]

mod sys;

pub use dewar_port as port;
pub use sys::*;
