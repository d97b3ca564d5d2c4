//! E-code: a subset of C in which every program has a meaning, compiled at run time.
//!
//! ```text
//!  text ─▶ lex ─▶ parse ─▶ check ─▶ ir::Module ─┬─▶ wasm ─▶ plugin-host   memory of its own
//!                            │                  ├─▶ ecode-native          in the process, trusted;
//!                            │                  │                         stacks guarded or not
//!                            └▶ CompileErrors   └─▶ ecode-kernel          in the kernel
//! ```
//!
//! The intermediate form ([`ir`]) defines what C leaves undefined, so a program gives the same
//! result on every target. The language is described in `docs/ecode.md`. This crate makes no
//! machine code and runs nothing.
//!
//! # Example
//!
//! ```
//! use ecode::{Input, compile, wasm};
//!
//! let text = "long sum(long n) { long s = 0; while (n > 0) s += n--; return s; }";
//! let compiled = compile(&Input::new("sum.e", text))?;
//! let bytes = wasm::emit(&compiled.module, &wasm::WasmOptions::default())?;
//! assert_eq!(&bytes[..4], b"\0asm");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod ast;
mod check;
mod compile;
mod diag;
mod entry;
pub mod ir;
mod lex;
mod meter;
mod number;
mod parse;
mod span;
mod types;
mod value;
mod vectorize;
pub mod wasm;

pub use compile::{Compiled, Input, compile};
pub use diag::{CompileErrors, Message};
pub use entry::{Address, Args, Reply, Scalar};
pub use value::{CallError, Host, Memory, NoHost, Value};

/// A name of this compiler that changes whenever its source does: what one compiler has made of a
/// text may be taken for what another one would make if their names are the same.
pub const SOURCE_HASH: &str = env!("ECODE_SOURCE_HASH");
