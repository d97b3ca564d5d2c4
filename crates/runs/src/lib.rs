//! The runs of a user, as others see them: where their sockets lie, and which of their processes
//! has connected.
//!
//! ```text
//!  process in a sandbox ── connect(2), made by its monitor ──▶ service outside
//!                                     ▲                            │ who is it?
//!                                     └──── control socket ◀───────┘  [`client`], [`RunLabels`]
//! ```
//!
//! # Example
//!
//! A broker on a plain unix socket that gives its token to the domain `deploy` of any run, and to
//! nobody else:
//!
//! ```no_run
//! use std::{io::Write, os::{fd::AsFd, unix::net::UnixListener}};
//!
//! for connection in UnixListener::bind("/run/user/1000/broker")?.incoming() {
//!     let mut connection = connection?;
//!     let answer = match runs::client(connection.as_fd()) {
//!         Ok(Some(client)) if client.domain() == "deploy" => "token",
//!         _ => "none for you",
//!     };
//!     connection.write_all(answer.as_bytes())?;
//! }
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! # What is guaranteed
//!
//! The process named made the connection, and from then until the answer it had this context
//! without a break. It is asked about again when it matters again: a process that has entered
//! another domain since, or has ended, is not vouched for any more, so nobody can send as one
//! domain and be served as another. Whoever it hands its descriptor to speaks in its name, as with
//! any descriptor; a port ([`ipc`]) takes messages of the process itself only.
//!
//! *Outside* is who connected with a socket that bears no name: a monitor names every socket that
//! it connects. A run that decides nothing (`--enforce=off`) vouches for nobody, and its processes
//! look like any outside. A socket with a name of its own is nobody's: refuse it.
#![forbid(unsafe_code)]

mod client;
mod directory;
mod id;
mod wire;

pub use client::{Client, RunLabels, Unknown, client};
pub use directory::{
    ControlEntry, RunDirectory, cache_directory, make_private, open_own, own_file, read_own,
    state_directory,
};
pub use id::{is_id, new_id};
pub use wire::{Answer, Connector, Question, ReadError, VERSION, Versioned, read};
