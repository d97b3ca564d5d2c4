//! Labels of files.
//!
//! ```text
//!  Status (device, number, birth) ──▶ Labels::of_file ──▶ known inode: its label
//!                                          │
//!  path ── known_as: what Git takes it for ┴──▶ labelling rules ──▶ Label, kept with the inode
//! ```
//!
//! A file is labelled by its path when it is first met; from then on the label follows the inode
//! through renames and links. A file that gets the number of one that is gone has not its label
//! (`proof.rs`). Names that make a directory a Git repository count as they would in `.git`,
//! whatever the directory is called.
//!
//! # Example
//!
//! ```
//! use flask::{FileKind, FileRule, Sid};
//! use inode_labels::{FileRef, Labels, Status};
//! use labelling::PathRules;
//! use std::{os::fd::AsFd as _, path::Path};
//!
//! let temporary = FileRule { path: "/tmp(/.*)?".into(), kind: FileKind::Any, sid: Sid::new(20) };
//! let labels = Labels::new(PathRules::new(&[temporary])?);
//! let directory = std::fs::File::open("/tmp")?;
//! let own_fds = std::fs::File::open("/proc/self/fd")?;
//! let status = Status::of(directory.as_fd())?;
//! let file = FileRef::Open(directory.as_fd(), own_fds.as_fd());
//! let label = labels.of_file(&status, file, || Ok("/tmp".into()))?;
//! assert_eq!(Some(label.sid), Sid::new(20));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod label;
mod proof;
mod repository;
mod status;
mod sys;

pub use label::{Label, Labels, Making, Private, RuleChange};
pub use repository::{CallClaims, RepositoryNames, is_part, known_as};
pub use status::{FileNumber, FileRef, Status};
