//! The arguments of commands that are programs of their own.

// The compiler asks for comments, but a comment on a field that holds further arguments would
// become part of `--help`.
#![expect(missing_docs, reason = "help texts are the documentation of arguments")]

pub mod audit;
pub mod bench;
pub mod daemon;
pub mod library;
pub mod mcp;
pub mod plugin;
pub mod selftest;
pub mod serve;
pub mod show;
pub mod trust;

pub use self::{
    audit::AuditArgs, bench::BenchArgs, daemon::DaemonArgs, mcp::McpArgs, plugin::PluginArgs,
    selftest::SelftestArgs, serve::ServeArgs,
};

/// A time, a share: a number that something can be measured by.
fn positive(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "write a number, such as 1.5")?;
    if number.is_finite() && number > 0.0 {
        return Ok(number);
    }
    Err("write a number greater than 0".to_owned())
}
