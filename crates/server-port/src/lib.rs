//! The security server behind a port: another process asks it as if it were its own.
//!
//! ```text
//!  object manager ─▶ avc ── miss ─▶ RemoteServer ══ port ══▶ answer ─▶ flask::SecurityServer
//!        ▲                              │                       │
//!        └── apply, then acknowledge ◀──┴── follow ══ port ══ Members ◀── a change of policy
//! ```
//!
//! [`RemoteServer`] is a [`flask::SecurityServer`]; whatever fails on the way is `Unreachable`, so
//! that its caller denies. When the server goes away it is waited for, but not for long, and found
//! again when it comes back.
//!
//! A change of policy is complete when every member has applied it: [`Members::complete`] tells
//! them, waits, and says of each when it did so, or what was done because it did not.
//!
//! # Example
//!
//! ```
//! use flask::{perm, Class, Question, SecurityServer as _};
//! use ipc::{Access, Port, Server, Transport};
//! use server_port::{Members, RemoteServer, serve};
//! # use std::{io, sync::Arc, thread, time::Duration};
//! # const POLICY: &str = "
//! #     (class file (read)) (classorder (file))
//! #     (sid kernel) (sidorder (kernel)) (sidcontext kernel (u r a))
//! #     (user u) (role r) (userrole u r) (type a) (type b) (roletype r a) (roletype r b)
//! #     (allow a b (file (read)))";
//!
//! let policy = security_server::Server::from_cil(&[("policy.cil", POLICY)])?;
//! # let directory = tempfile::tempdir()?;
//! let path = directory.path().join("server");
//! let members = Members::new(policy.seqno()?);
//! let port = Server::bind(&path, Access::Unchecked)?;
//! thread::scope(|scope| {
//!     scope.spawn(|| port.serve_sessions(|session| serve(session, &policy, &members)));
//!
//!     let connect = move || Port::connect(&path, Transport::Memory).map_err(io::Error::other);
//!     let server = RemoteServer::new(connect, Duration::from_secs(5));
//!     let (ssid, tsid) = (server.context_to_sid("u:r:a")?, server.context_to_sid("u:r:b")?);
//!     let decision = server.compute_av(Question { ssid, tsid, tclass: Class::File })?;
//!     assert_eq!(decision.allowed, perm::file::READ);
//!     port.stop();
//!     Ok::<(), Box<dyn std::error::Error>>(())
//! })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod client;
mod follow;
mod frame;
mod members;
mod sealed;
mod serve;
mod wire;

pub use client::RemoteServer;
pub use follow::PolicyUpdate;
pub use frame::{framed, unframed, whole};
pub use members::{
    Acknowledged, Completion, Member, MemberOutcome, Members, Patience, Progress, Stage,
};
pub use sealed::{Lent, read_sealed, received, sealed, sealed_len};
pub use serve::{answer, is_long, may_be_long, reply, serve, unanswered, waits};
pub use wire::{VOCABULARY_BYTES, decode, vocabulary};
