//! E-code: a subset of C in which every program has a meaning, compiled at run time.
//!
//! ```text
//!  text ─▶ lex ─▶ parse ─▶ check ─▶ ir::Module ─┬─▶ wasm ─▶ IsolatedEngine   memory of its own, limits
//!                            │                  ├─▶ native ─▶ NativeCode     in the process, trusted;
//!                            │                  │                            with or without stack protection
//!                            └▶ CompileErrors   └─▶ kernel ─▶ KernelCode     in the kernel, memory of its own
//! ```
//!
//! The intermediate form ([`ir`]) defines what C leaves undefined, so a program gives the same result on every
//! target. The language is described in `docs/ecode.md`.
//!
//! # Example
//!
//! ```
//! use ecode::{Input, IsolatedEngine, IsolatedOptions, NoHost, Value, compile};
//! use std::time::Duration;
//!
//! let text = "long sum(long n) { long s = 0; while (n > 0) s += n--; return s; }";
//! let compiled = compile(&Input::new("sum.e", text))?;
//! let engine = IsolatedEngine::new(IsolatedOptions::default())?;
//! let mut plugin = engine.compile(&compiled.module)?.instantiate(Box::new(NoHost))?;
//! let result = plugin.call("sum", &[Value::I64(100)], Duration::from_millis(10))?;
//! assert_eq!(result, Some(Value::I64(5050)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![deny(unsafe_code)]

mod ast;
mod check;
mod compile;
mod diag;
mod entry;
pub mod ir;
mod isolated;
mod jit;
mod kernel;
mod lex;
mod meter;
mod native;
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
pub use isolated::{
    IsolateError, IsolatedCode, IsolatedEngine, IsolatedEntry, IsolatedInstance, IsolatedOptions,
};
pub use jit::{NativeCode, NativeEntry, NativeInstance};
pub use kernel::{KernelCode, KernelError, KernelInstance, KernelOptions};
pub use native::{NativeError, Protection};
pub use value::{CallError, Host, Memory, NoHost, Value};

/// A name of this compiler that changes whenever its source does: what one compiler has made of a text may be taken for
/// what another one would make if their names are the same.
pub const SOURCE_HASH: &str = env!("ECODE_SOURCE_HASH");
