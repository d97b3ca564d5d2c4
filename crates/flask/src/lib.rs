//! The vocabulary of the Flask security architecture.
//!
//! An *object manager* owns a kind of object, labels it, asks whether a subject may use it, and
//! enforces the answer. A *security server* decides. They share nothing but the words of this
//! crate:
//!
//! ```text
//!  object manager ── Question { ssid, tsid, tclass } ──▶ security server
//!                 ◀─ Decision { allowed, auditallow, auditdeny, seqno } ─
//! ```
//!
//! Labels are security contexts; object managers see them only as [`Sid`]s, which stand for a
//! context inside one security server and grant nothing by themselves. Classes, permissions and
//! initial SIDs come from `policy/access_vectors` and `policy/initial_sids` and are typed nowhere
//! else; a program that manages objects of other kinds has [`Classes`] of its own beside.
//!
//! # Example
//!
//! ```
//! use flask::{perm, AccessVector, Class};
//!
//! let wanted = perm::file::READ | perm::file::OPEN;
//! assert_eq!(Class::File.permission("read"), Some(perm::file::READ));
//! assert_eq!(wanted.names(Class::File).collect::<Vec<_>>(), ["read", "open"]);
//! let decision = flask::Decision { allowed: perm::file::READ, ..flask::Decision::DENY_ALL };
//! assert_eq!(wanted.missing_from(decision.allowed), perm::file::OPEN);
//! ```
//!
//! Source: Spencer et al., "The Flask Security Architecture", USENIX Security 1999; names as in
//! Linux `security/selinux/avc.c` and `ss/services.c`.
#![forbid(unsafe_code)]

mod access_vector;
mod class;
mod classes;
mod context;
mod labelling;
mod server;
mod sid;
mod visible;

pub use access_vector::{AccessVector, Decision, Seqno};
pub use class::{Class, perm};
pub use classes::{Classes, ClassesError};
pub use context::{ContextParts, domain_of, type_of};
pub use labelling::{FileKind, FileRule, LabelRules, NodeRule, PortRule, Protocol};
pub use server::{Explanation, LabelError, Question, SecurityServer, Unreachable};
pub use sid::{InitialSid, Sid};
pub use visible::{is_ignorable, is_quotable, is_turning, visible, visible_json, visible_name};
