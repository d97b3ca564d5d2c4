//! What is known of addresses.

use super::{Endpoints, KeptSockets, Peers};

/// The socket object manager: what it knows of addresses.
pub(crate) struct SocketManager {
    pub(crate) endpoints: Endpoints,
    pub(crate) peers: Peers,
    /// Where the kernel hands out no descriptors of others.
    pub(crate) kept: Option<KeptSockets>,
}
