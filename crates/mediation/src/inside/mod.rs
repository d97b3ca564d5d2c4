//! Runs inside of the run: a process asks for a policy that bounds what it may do from its next
//! exec on.
//!
//! ```text
//!  open("/proc/self/attr/dewar/exec") ─▶ gate ── a stream socket ─▶ the process
//!      a policy ─▶ Inside::admit: compiled, compared with what the kernel was told ─▶ a layer
//!  execve ─▶ decided with the label in that layer ─▶ at its end, the process has it
//! ```
//!
//! The process that enters is the one that has opened the file, whoever writes to the socket. It
//! goes to where it may do less, never more ([`policy_stack`]), and nothing leads back.

mod allowance;
mod ending;
mod entering;
mod layer_subjects;
mod request;
mod runs;

pub use ending::end_layer;
pub use layer_subjects::{LayerSubject, LayerSubjects};
pub use request::{InsideRequest, request};
pub use runs::{CompileInner, EndLayer, InnerPolicy, Inside, InsideError};
