//! Plugins as subjects: untrusted code inside a server, under the same policy as everything else.
//!
//! ```text
//!  request ─▶ PluginHost::call ─▶ version ─▶ idle instance ─▶ handle(in, in_len, out, out_room)
//!                                  │ replaced while calls run:      │ host_log, host_get, host_set
//!                                  ▼ they finish on their version   ▼
//!                                new version                hint ─▶ Avc ─▶ security server
//! ```
//!
//! A plugin is text in E-code. It runs isolated, with limits of time, memory, output and state; what goes wrong
//! in it ends its call. Every host function is a permission of class `plugin`; a denial is an error code inside
//! the plugin, and a record with an explanation outside.
//!
//! # Example
//!
//! ```
//! # use std::sync::Arc;
//! # fn embed(server: Arc<dyn flask::SecurityServer>, own: flask::Sid) -> Result<(), Box<dyn std::error::Error>> {
//! use plugin_host::{PluginHost, PluginSpec};
//!
//! let host = PluginHost::new(server, own)?;
//! let text = "long handle(const char *in, long n, char *out, long room) {
//!                 long i;
//!                 for (i = 0; i < n && i < room; i++)
//!                     out[i] = in[i] >= 'a' && in[i] <= 'z' ? in[i] - 32 : in[i];
//!                 return i;
//!             }";
//! host.load(&PluginSpec::new("upper", "system_u:system_r:plugin_t", text))?;
//! assert_eq!(host.call("upper", b"hello")?, b"HELLO");
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod check;
mod denial;
mod host;
mod imports;
mod instance;
mod limits;
mod plugin;
mod state;

pub use denial::Denial;
pub use host::{LoadError, PluginHost, PluginSpec};
pub use imports::{EACCES, EINVAL, ENOSPC, HOST_DECLARATIONS};
pub use instance::CallFailure;
pub use limits::Limits;
pub use plugin::{PluginInfo, PluginStats};
