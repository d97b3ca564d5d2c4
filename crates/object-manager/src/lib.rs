//! For programs that manage objects of their own, and let one policy decide who may use them: what
//! libselinux gives, without an SELinux kernel.
//!
//! ```text
//!  program: its objects, each with a Sid and a Hint
//!      │ Manager::check(question, permissions, hint)
//!      ▼
//!  hint ─▶ cache ─▶ security server: in this process, or `dewar daemon`'s
//!      │                      ▲
//!      ▼                      └── a new policy, a boolean: Manager::load, `dewar policy set`
//!  Ok, or Denied and a record: the program's callback, `dewar audit`
//! ```
//!
//! The program has classes of its own: it names them, numbers their permissions in its own order
//! ([`Builder::class`]), and the security server finds them in the policy by name. What the policy
//! lacks is denied or granted as the policy's `handleunknown` says, and [`Manager::lacking`] names
//! it; with `reject`, nothing starts.
//!
//! # Example
//!
//! ```
//! use object_manager::{About, Hint, Manager, Question};
//!
//! let policy = "
//!     (class note (read change)) (classorder (note))
//!     (user u) (role r) (userrole u r) (roletype object_r public_t) (roletype r reader_t)
//!     (type reader_t) (type public_t)
//!     (allow reader_t public_t (note (read)))
//! ";
//! let manager = Manager::builder("notes")
//!     .policy_text("notes.cil", policy)
//!     .class("note", ["read", "change"])
//!     .on_audit(|record| println!("{record}"))
//!     .open()?;
//!
//! let note = manager.class("note")?;
//! let (read, change) = (manager.permission(note, "read")?, manager.permission(note, "change")?);
//! // Once for each object: its label, and where its last answer lies.
//! let (tsid, hint) = (manager.sid("u:object_r:public_t")?, Hint::default());
//! let ssid = manager.sid("u:r:reader_t")?;
//!
//! let question = Question { ssid, tsid, tclass: note };
//! assert!(manager.check(question, read, &hint, || About::object("today")).is_ok());
//! let denied = manager.check(question, change, &hint, || About::object("today")).unwrap_err();
//! assert_eq!(denied.to_string(), "reader_t may not change public_t (note)");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `examples/kv` is a server of labelled entries, the same in Rust, C (`dewar.h`) and Python.
//!
//! # What is guaranteed
//!
//! - Whatever fails denies: no answer, an unknown SID, a permission that the class lacks, a
//!   question for nothing.
//! - A check that begins after [`Manager::load`] or [`Manager::set_booleans`] has returned is never
//!   answered from the policy before. What a program holds open for somebody (a subscription, say)
//!   it looks at again in [`Builder::on_change`].
//! - A SID stands for the same context as long as the manager lives. Labels that are kept longer
//!   are kept as contexts.
//! - Every function may be called by every thread. A process that forks opens another manager in
//!   the child.
#![forbid(unsafe_code)]

mod builder;
mod denied;
mod hold;
mod manager;
mod open;
mod parts;
mod peer;
mod record;
mod source;
mod status;

pub use avc::{Hint, Source, Stats, Verdict};
pub use builder::Builder;
pub use denied::{Denied, UnknownName};
pub use flask::{
    AccessVector, Class, Classes, ClassesError, Decision, Explanation, LabelError, Question, Seqno,
    Sid, Unreachable,
};
pub use hold::ChangeError;
pub use manager::Manager;
pub use open::{Daemon, OpenError};
pub use peer::{Peer, peer};
pub use record::{About, Record};
pub use runs::Unknown as UnknownPeer;
pub use source::PolicyFault;
pub use status::Status;
