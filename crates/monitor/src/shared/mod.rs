//! Where object managers meet: what belongs to two of them, so that neither knows the other.
//!
//! A name of a unix socket can be a file: [`SocketFiles`].

mod socket_file;

pub(crate) use socket_file::{SocketFiles, Way};
