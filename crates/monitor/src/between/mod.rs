//! Where object managers meet: what belongs to two of them, so that neither knows the other.
//!
//! - files of `/proc` show processes: [`proc_files`];
//! - a connection to a service outside is made by a process: [`connection`].

pub(crate) mod connection;
pub(crate) mod proc_files;
