//! The arguments of commands that are programs of their own.

// The compiler asks for comments, but a comment on a field that holds further arguments would
// become part of `--help`.
#![expect(missing_docs, reason = "help texts are the documentation of arguments")]

pub mod audit;
pub mod bench;
pub mod daemon;
pub mod mcp;
pub mod plugin;
pub mod selftest;
pub mod serve;
pub mod trust;

pub use self::{
    audit::AuditArgs, bench::BenchArgs, daemon::DaemonArgs, mcp::McpArgs, plugin::PluginArgs,
    selftest::SelftestArgs, serve::ServeArgs,
};
