//! What Dewar's programs share.
//!
//! ```text
//!  dewar bench build ─▶ dewar: parses, helps ─▶ program::become_helper ─▶ dewar-bench: does it
//! ```
//!
//! `dewar` becomes the monitor of untrusted code. So it links no compiler, database or plotting
//! library: commands that need one are programs of their own, which lie beside it ([`program`]).
//! Their arguments are defined here ([`args`]), so that `dewar help`, completions and manual pages
//! cover every command. `dewar` checks a command line; the other program parses the same words once
//! more.
//!
//! [`output`] prints; [`look`] makes it readable: colour, width, pages.
//! [`output_file`] writes, and [`input_file`] reads, where a run may have been before.
//! [`help`] completes what help texts say, and fits it to the terminal.
//! [`failure`] says why something was not done, and with which exit status.
#![forbid(unsafe_code)]

pub mod args;
pub mod exhausted;
pub mod failure;
pub mod help;
pub mod input_file;
pub mod look;
pub mod output;
pub mod output_file;
pub mod program;
