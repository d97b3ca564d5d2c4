//! A web server that hosts plugins, and is an object manager for what they see.
//!
//! ```text
//!  socket ─▶ serve::worker (epoll, one per core) ─▶ http::head ┐
//!  TLS, HTTP/2 ─▶ serve::modern (hyper) ───────────────────────┤
//!                                                              ▼
//!        answer::Responder ── path ─▶ files (openat2 beneath ROOT) ─▶ plain, range, compressed
//!             │    │            └──▶ plugins: handler │ transform │ headers ─▶ plugin-host
//!             │    └─ request's label, file's label ─▶ manager (AVC) ─▶ security server
//!             ▼
//!        body: bytes │ file (sendfile) │ a plugin's reply where it lies, with the head in front:
//! one send
//! ```
//!
//! One worker per core has its own listening sockets (`SO_REUSEPORT`), connections, open files and
//! instances of plugins; workers share compiled plugins, the security server's cache, and nothing
//! else that a request changes.
#![forbid(unsafe_code)]

mod admin;
mod answer;
mod clock;
mod complaints;
mod compress;
mod config;
mod counters;
mod error;
mod files;
pub mod http;
mod lines;
mod listing;
mod log;
mod manager;
mod plugins;
mod pool;
mod serve;
mod server;
mod shared;

pub use config::{Config, ConfigError, Kind, Listen, PluginConfig};
pub use error::ServerError;
pub use manager::{CLIENT_CONTEXT, ManagerError};
pub use plugins::PluginError;
pub use server::Server;
