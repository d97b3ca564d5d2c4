//! Plugins as subjects: untrusted code inside a server, under the same policy as everything else.
//!
//! ```text
//!  text ─▶ ecode ─▶ WebAssembly ─▶ cache ─▶ code ┐ isolated: in a memory of its own, within limits
//!           ├─────▶ machine code (load_native) ──┤ native: in the process, trusted
//!           └─────▶ BPF (load_kernel) ───────────┤ kernel: in a memory of its own
//!                                                ▼
//!  request ─▶ PluginHost::call ─▶ version ─▶ idle instance ─▶ handle(in, in_len, out, out_room)
//!                                  │ replaced while calls run:      │ host_log, host_get, host_set
//!                                  ▼ they finish on their version   ▼ host_open, host_connect …
//!                                new version                hint ─▶ Avc ─▶ security server
//! ```
//!
//! A plugin is a text in E-code, or a WebAssembly module from any compiler. It has a security
//! context. Isolated, it has limits of time, memory, output and state, and what goes wrong in it
//! ends its call. Every host function is a permission; a denial is an error code inside the plugin,
//! and a record with an explanation outside.
//!
//! What lasts: static data belongs to an instance, of which there are as many as calls at a time;
//! what a plugin keeps by `host_set` is shared by its instances, and stays when it is replaced.
//!
//! # Example
//!
//! ```
//! use flask::SecurityServer;
//! use plugin_host::{HOST_CONTEXT, PLUGIN_CONTEXT, PluginHost, PluginSpec, base_policy};
//! use std::sync::Arc;
//!
//! let server = Arc::new(security_server::Server::from_cil(&[("plugins.cil", base_policy())])?);
//! let host = PluginHost::new(server.clone(), server.context_to_sid(HOST_CONTEXT)?)?;
//! let text = "long handle(const char *in, long n, char *out, long room) {
//!                 long i;
//!                 for (i = 0; i < n && i < room; i++)
//!                     out[i] = in[i] >= 'a' && in[i] <= 'z' ? in[i] - 32 : in[i];
//!                 return i;
//!             }";
//! host.load(&PluginSpec::new("upper", PLUGIN_CONTEXT, text))?;
//! assert_eq!(host.call("upper", b"hello")?, b"HELLO");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![deny(unsafe_code)]

mod access_check;
pub mod bare;
mod cache;
mod cache_entry;
mod call_failure;
mod calls;
mod compile;
mod denial;
mod engine;
mod extent;
mod grant_cache;
mod handles;
mod host;
mod hosted;
mod imports;
mod instance;
mod interface;
mod isolated;
mod kernel;
mod limits;
mod mapped_images;
mod native;
mod objects;
mod origin;
mod plugin;
mod policy;
mod quota;
mod said;
mod session;
mod spec;
mod spots;
mod state;
mod suspects;
mod sys;
mod target;
mod version;

pub use cache::{Cache, CacheError, CachedCode};
pub use call_failure::CallFailure;
pub use compile::Loaded;
pub use denial::Denial;
pub use host::{PluginHost, Prepared};
pub use interface::{
    EACCES, EBADF, ECONNREFUSED, EINVAL, EIO, EMFILE, ENOENT, ENOSPC, HOST_DECLARATIONS,
};
pub use limits::Limits;
pub use plugin::{PluginInfo, PluginStats};
pub use policy::{HOST_CONTEXT, PLUGIN_CONTEXT, base_policy};
pub use said::visible_lines;
pub use session::Session;
pub use spec::{LoadError, PluginSpec, Source};
pub use sys::Image;
pub use target::Target;
