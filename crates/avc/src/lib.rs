//! Access vector cache: what every object manager links between itself and the security server.
//!
//! ```text
//!  object ── hint ──▶ slot ─┐ still that question, and current?
//!            │ no           ├──▶ Verdict
//!            ▼              │
//!          cache ───────────┤
//!            │ miss         │
//!            ▼              │
//!     security server ──────┘  the answer is kept; a late one is asked again
//! ```
//!
//! An object manager owns one [`Avc`], and each of its objects a [`Hint`]. Readers take no lock and
//! write nothing that another thread reads. The number of entries is fixed when the cache is made,
//! so that a program which produces labels without end costs time, never memory.
//!
//! Every entry carries the policy sequence number of its answer and is compared with the current
//! one at each use. [`Avc::reset`] therefore only raises that number: whatever is older is dead at
//! once, wherever it lies, including what a slow thread inserts afterwards.
//!
//! # Example
//!
//! ```
//! use avc::{Avc, Hint, Source};
//! use flask::{perm, Class, Question, SecurityServer};
//!
//! fn may_read(avc: &Avc, question: Question, hint: &Hint) -> bool {
//!     assert_eq!(question.tclass, Class::File);
//!     let asked = avc.ask(question, perm::file::READ, hint);
//!     if asked.is_recorded() {
//!         eprintln!("{:?} of {question:?} is missing", asked.missing());
//!     }
//!     asked.granted()
//! }
//! ```
//!
//! Source: Spencer et al., "The Flask Security Architecture", USENIX Security 1999, sections 4.2
//! and 6.2; names as in Linux `security/selinux/avc.c`.
#![forbid(unsafe_code)]

mod asked;
mod cache;
mod counters;
mod hint;
mod slot;
mod stats;
mod sync;
mod table;
mod verdict;

pub use asked::AccessOutcome;
pub use cache::Avc;
pub use hint::Hint;
pub use stats::Stats;
pub use verdict::{Source, Verdict};
