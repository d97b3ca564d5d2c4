//! `/proc`, read in one place: one reader of texts, one parser of each file, one walk up from a
//! process.
//!
//! ```text
//!  Proc (a mounted proc file system, by its descriptor)
//!   ├─ status(tid) ─▶ Status: who it is (Identity), groups, tracer, signals
//!   ├─ stat(pid) ───▶ Stat: state, parent, terminal, beginning
//!   ├─ descriptors(tid) ─▶ Descriptors: which are open, and what their links say
//!   ├─ descriptor(tid, fd) ─▶ DescriptorInfo: flags, process, watches, descriptors in flight
//!   ├─ cgroups(tid) ─▶ Cgroups
//!   ├─ maps(tid), smaps(tid) ─▶ Mapping
//!   ├─ tcp_peer(tid, inode), syscall(tid), limit(tid), personality(tid)
//!   └─ pids(), threads(pid), children(pid), descendants(pid)
//!  ProcessTree (Proc, and the first process of a sandbox): who is inside, who is outside
//!  Orphans: which children of the calling process a sandbox has left to it
//! ```
//!
//! Every file is opened relative to a descriptor. So the reader sees the processes of the file
//! system that it holds, whatever lies at `/proc` by then.
//!
//! # Example
//!
//! ```
//! use proc::Proc;
//!
//! let proc = Proc::open()?;
//! let own = proc.identity(std::process::id())?;
//! assert_eq!(own.pid, std::process::id());
//! assert_eq!(proc.stat(own.pid)?.parent, own.parent);
//! # Ok::<(), rustix::io::Errno>(())
//! ```
#![cfg(target_os = "linux")]

mod cgroup;
mod deep;
mod descriptor;
mod descriptors;
mod files;
mod maps;
mod mounts;
mod orphans;
mod processes;
mod stat;
mod status;
mod sys;
mod tcp;
mod tree;

pub use cgroup::Cgroups;
pub use descriptor::{DescriptorInfo, Watch, named};
pub use descriptors::{Descriptors, socket_number};
pub use files::{Proc, none_if_gone};
pub use maps::{Mapping, mapped_files, may_be_written, vdso};
pub use mounts::Mounts;
pub use orphans::Orphans;
pub use stat::Stat;
pub use status::{Identity, Signals, Status};
pub use tcp::listeners;
pub use tree::{ProcessTree, path_of};
