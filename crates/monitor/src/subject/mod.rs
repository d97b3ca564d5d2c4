//! Whose label a process has, and what is decided about it where a file or a connection shows it.
//!
//! - files of `/proc` show processes: [`proc_files`];
//! - a connection to a service outside is made by a process: [`connection`].

pub(crate) mod connection;
mod lineage;
mod mark;
pub(crate) mod proc_files;

pub(crate) use lineage::*;
