//! What is measured: a host that may load on every target, and a plugin of a plausible size.

use flask::SecurityServer;
use plugin_host::{
    Cache, HOST_CONTEXT, Limits, PLUGIN_CONTEXT, PluginHost, PluginSpec, Target, base_policy,
};
use security_server::Server;
use std::{sync::Arc, time::Duration};

/// Whoever starts the benchmark trusts its kernels.
const RULE: &str = "(allow host_t plugin_t (plugin (load_native load_kernel)))";

/// The image transcoder that "Kernel Plugins" (VM'04) measured, in E-code.
pub(super) const GRAY: &str = include_str!("../../../../examples/plugins/gray.e");

/// A host that may load on every target, and its security server.
pub(super) struct Trial {
    pub(super) plugins: PluginHost,
    pub(super) server: Arc<Server>,
}

impl Trial {
    pub(super) fn new(cache: Option<Cache>) -> anyhow::Result<Self> {
        let files = [("plugins.cil", base_policy()), ("targets.cil", RULE.to_owned())];
        let server = Arc::new(Server::from_cil(&files)?);
        let own = server.context_to_sid(HOST_CONTEXT).map_err(anyhow::Error::new)?;
        let shared = Arc::clone(&server) as Arc<dyn SecurityServer>;
        Ok(Self { plugins: PluginHost::with_cache(shared, own, cache)?, server })
    }
}

/// Limits that no kernel reaches, and that are in force nevertheless.
pub(super) fn limits() -> Limits {
    let (call_time, memory_bytes) = (Duration::from_secs(60), 64 << 20);
    Limits { call_time, memory_bytes, output_bytes: 8 << 20, ..Limits::default() }
}

/// The image transcoder as a plugin on `target`.
pub(super) fn spec(target: Target) -> PluginSpec<'static> {
    PluginSpec { target, limits: limits(), ..PluginSpec::new("gray.e", PLUGIN_CONTEXT, GRAY) }
}
