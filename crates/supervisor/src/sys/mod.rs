//! The system calls that no safe library offers. All unsafe code of this crate lies in this folder.
#![allow(unsafe_code)]

pub mod clock;
pub mod closing;
pub mod limit;
pub mod memory;
pub(crate) mod notify;
pub mod ptrace;
pub(crate) mod rseq;
pub mod socket;
pub mod thread;
