//! The security server: decides what subjects may do to objects, exactly as SELinux does.
//!
//! ```text
//!  CIL ───────▶ cil ──────┐
//!                         ├─▶ policy::Policy ─▶ index::Index ─▶ Engine ──▶ Server◀─ SecurityServer
//!  policy.33 ─▶ policydb ─┘   (database)        (look-up)       (contexts) (SIDs, reload)
//! ```
//!
//! No I/O, no unsafe code. Everything read from outside is checked before it is used.
//!
//! # Example
//!
//! ```
//! use flask::{perm, Class, Question, SecurityServer};
//! use security_server::Server;
//!
//! let policy = "
//!     (class file (read write)) (classorder (file))
//!     (user u) (role r) (userrole u r)
//!     (type editor_t) (type note_t) (roletype r editor_t)
//!     (allow editor_t note_t (file (read)))
//! ";
//! let server = Server::from_cil(&[("example.cil", policy)])?;
//! let ssid = server.context_to_sid("u:r:editor_t")?;
//! let tsid = server.context_to_sid("u:object_r:note_t")?;
//! let decision = server.compute_av(Question { ssid, tsid, tclass: Class::File })?;
//! assert_eq!(decision.allowed, perm::file::READ);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub mod analysis;
mod bitset;
pub mod cil;
mod engine;
pub mod explain;
mod export;
mod format;
mod hash;
mod ids;
pub mod index;
pub mod policy;
pub mod policydb;
mod server;
mod spelling;

pub use bitset::BitSet;
pub use cil::{PolicyError, PolicyErrors};
pub use engine::{AvDecision, Engine};
pub use ids::{BoolId, ClassId, CondId, RoleId, SensId, TypeId, UserId};
pub use server::{LabelBudget, LoadError, Saved, Server, UnknownBoolean};
