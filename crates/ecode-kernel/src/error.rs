//! Why a plugin does not run in the kernel.

use ecode::{ir::SourceLocation, wasm::EmitError};
use std::io;

/// Why a plugin does not run in the kernel.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KernelError {
    /// The kernel has no floating point.
    #[error(
        "{}`{function}` computes with floating point, which the kernel does not have: run it isolated",
        .place.as_ref().map_or_else(String::new, |at| format!("{}:{}:{}: ", at.file, at.line, at.column))
    )]
    Float {
        /// The function.
        function: String,
        /// Where it first does so, if it has a text.
        place: Option<SourceLocation>,
    },
    /// The kernel has no vectors: the module comes from [`ecode::ir::Module::with_vectors`].
    #[error(
        "`{0}` computes with vectors, which the kernel does not have: compile the module without"
    )]
    Vectors(String),
    /// A function has more variables than a frame holds, or too many of them in too many blocks.
    #[error("`{0}` is too large for the kernel: divide it")]
    TooLarge(String),
    /// The module does not fit its limits.
    #[error(transparent)]
    Emit(#[from] EmitError),
    /// This process may not load programs.
    #[error("loading programs into the kernel needs CAP_BPF and CAP_PERFMON, or root")]
    NotPermitted,
    /// The kernel lacks arenas or what they need.
    #[error(
        "the kernel is too old for plugins, or built without BPF: Linux 6.12 or later is needed"
    )]
    NoArena,
    /// The verifier did not follow the program to its end: the last lines of what it says.
    #[error("the kernel refused the program: {0}")]
    Refused(String),
    /// Another system error.
    #[error("loading the program failed: {0}")]
    System(#[source] io::Error),
}
