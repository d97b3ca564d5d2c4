//! Which label an object has when it is first met: a policy's labelling rules, made for looking up.
//!
//! Object managers of different kinds (a sandbox's monitor, a host of plugins) label the same
//! objects by the same rules; this is their one reading of them.
//!
//! # Example
//!
//! ```
//! use flask::{FileKind, FileRule, Sid};
//! use labelling::PathRules;
//! use std::path::Path;
//!
//! let home = FileRule { path: "/home(/.*)?".into(), kind: FileKind::Any, sid: Sid::new(20) };
//! let rules = PathRules::new(&[home])?;
//! assert_eq!(Some(rules.sid(Path::new("/home/me/x"), FileKind::File)), Sid::new(20));
//! # Ok::<(), labelling::BadRule>(())
//! ```
#![forbid(unsafe_code)]

mod expression;
mod names;
mod network;
mod path;
mod scope;
mod stem;

pub use expression::BadRule;
pub use names::{NameRule, Names};
pub use network::Networks;
pub use path::{PathRules, depth};
pub use stem::{Tree, literal, stem_dir};
