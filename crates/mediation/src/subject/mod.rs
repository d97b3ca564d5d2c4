//! Whose label a process has, and what is decided about it where a file or a connection shows it.
//!
//! - files of `/proc` show processes: [`proc_files`];
//! - a connection to a service outside is made by a process: [`connection`].

pub mod connection;
mod lineage;
mod mark;
pub mod proc_files;

pub use lineage::*;
