//! The system calls that no safe library offers. All unsafe code of this crate lies in this folder.
#![allow(unsafe_code)]

pub(crate) mod clock;
pub(crate) mod limit;
pub(crate) mod memory;
pub(crate) mod notify;
pub(crate) mod ptrace;
pub(crate) mod socket;
pub(crate) mod thread;
