//! What the socket object manager owns: endpoints of the run, peers, and duplicates of sockets.

use super::{Endpoints, KeptSockets, Peers};

/// The socket object manager: what it knows of addresses.
pub(crate) struct SocketManager {
    pub(crate) endpoints: Endpoints,
    pub(crate) peers: Peers,
    /// Where the kernel hands out no descriptors of others.
    pub(crate) kept: Option<KeptSockets>,
}
