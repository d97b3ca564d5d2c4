//! Ports: typed calls from one process to another on the same machine, checked by policy on every
//! call.
//!
//! ```text
//!  client                     server
//!  Port::call ── request ──▶ Session::recv ─▶ who is it? ─▶ connect? ─▶ in whose name? ─▶ Request
//!             ◀── reply ────── Request::reply         └ hint ─▶ avc ── miss ─▶ security server
//! ```
//!
//! The side that is called checks, for it is the one that the caller has no power over:
//!
//! - **connect**: every call, through hints that are kept with the connection. A permission that
//!   policy takes back is gone with the next call.
//! - **client identification**: [`Request::client`] is the label of the process that connected,
//!   held by pidfd and looked up in a trusted record ([`PeerLabels`]), never what the client says
//!   of itself. For processes inside of `dewar run`, the crate `runs` is that record.
//! - **impersonation**: [`Port::call_as`] names another client, if policy grants `specify_client`
//!   on it. The one named needs `connect`, too. A service that passes its client's SID on can thus
//!   not be used to reach what the client may not reach.
//!
//! Messages travel through shared memory or as packets of a unix socket ([`Transport`]); the socket
//! is how processes meet in either case, and what descriptors travel over. Each client has memory
//! and a thread of its own, so that what a hostile one writes there, or never reads, harms only
//! itself.
//!
//! # Example
//!
//! A broker that gives its token to one domain and refuses another:
//!
//! ```
//! use avc::Avc;
//! use ipc::{Access, ConnectError, Guard, PeerTable, Port, Server, Transport};
//! # use std::{process, sync::Arc, thread};
//! # const POLICY: &str = "
//! #     (class port (connect specify_client)) (classorder (port))
//! #     (sid kernel) (sidorder (kernel)) (sidcontext kernel (u r build))
//! #     (user u) (role r) (userrole u r)
//! #     (type build) (type test) (type broker)
//! #     (roletype r build) (roletype r test) (roletype r broker)
//! #     (allow build broker (port (connect)))";
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("broker");
//! use flask::SecurityServer as _;
//!
//! let policy = Arc::new(security_server::Server::from_cil(&[("policy.cil", POLICY)])?);
//! let [build, test, broker] = ["u:r:build", "u:r:test", "u:r:broker"]
//!     .map(|context| policy.context_to_sid(context).expect("the policy knows it"));
//! let labels = Arc::new(PeerTable::default());
//! let guard = Guard::new(Arc::new(Avc::new(policy)), labels.clone(), broker);
//! let server = Server::bind(&path, Access::Checked(guard))?;
//!
//! thread::scope(|scope| {
//!     scope.spawn(|| server.serve(|request| drop(request.reply(b"token"))));
//!
//!     labels.set(process::id() as i32, Some(build))?;
//!     let mut port = Port::connect(&path, Transport::Memory)?;
//!     assert_eq!(port.call(b"please")?, b"token");
//!
//!     labels.set(process::id() as i32, Some(test))?;
//!     let refused = Port::connect(&path, Transport::Memory);
//!     assert!(matches!(refused, Err(ConnectError::Denied)));
//!     assert!(port.call(b"please").is_err());
//!     server.stop();
//!     Ok(())
//! })
//! # }
//! ```
//!
//! Source: Spencer et al., "The Flask Security Architecture", USENIX Security 1999, sections 4.1,
//! 5.2 and 6.2.

mod body;
mod deadline;
mod generation;
mod guard;
mod head;
mod link;
mod memory;
mod patience;
mod peer;
mod port;
mod region;
mod server;
mod session;
mod socket;
mod sys;

pub use generation::{Counter, Generation, SharedCounter};
pub use guard::{Access, Guard, Record};
pub use link::Transport;
pub use peer::{Label, Peer, PeerLabels, PeerTable, peer_user};
pub use port::{Call, CallError, ConnectError, Port, Reply};
pub use server::Server;
pub use session::{Request, Session, SessionError};

/// The most bytes of a message: 64 KiB. Longer ones go into a file whose descriptor is passed.
pub const MAX_MESSAGE: usize = 64 << 10;

/// The most descriptors that travel with a message.
pub const MAX_DESCRIPTORS: usize = 16;

/// The first thing that a client says. It changes with the protocol.
const GREETING: &[u8] = b"dewar port 1";
