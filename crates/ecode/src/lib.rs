//! E-code: a safe subset of C, compiled at run time.
#![deny(unsafe_code)]

mod ast;
mod check;
mod compile;
mod diag;
pub mod ir;
mod isolated;
mod jit;
mod lex;
mod native;
mod number;
mod parse;
mod span;
mod types;
mod value;
pub mod wasm;

pub use compile::{Compiled, Input, compile};
pub use diag::{CompileErrors, Message};
pub use isolated::{IsolateError, IsolatedCode, IsolatedEngine, IsolatedInstance, IsolatedOptions};
pub use jit::{NativeCode, NativeInstance};
pub use native::{NativeError, Protection};
pub use value::{CallError, Host, Memory, NoHost, Value};
