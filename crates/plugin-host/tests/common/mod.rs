//! A security server under the policy that a test adds to the base.

#![allow(dead_code)] // Each test uses a part of it.

use flask::{SecurityServer, Sid};
use plugin_host::{
    Cache, HOST_CONTEXT, Limits, PLUGIN_CONTEXT, PluginHost, PluginSpec, Target, base_policy,
};
use security_server::{Server, cil};
use std::{sync::Arc, time::Duration};

pub(crate) const NATIVE: &str = "(allow host_t plugin_t (plugin (load_native load_kernel)))";

pub(crate) fn server(rules: &str) -> Arc<Server> {
    let files = [("base.cil", base_policy()), ("rules.cil", rules.to_owned())];
    Arc::new(Server::from_cil(&files).unwrap())
}

pub(crate) fn host_of(server: &Arc<Server>, cache: Option<Cache>) -> PluginHost {
    let own: Sid = server.context_to_sid(HOST_CONTEXT).unwrap();
    PluginHost::with_cache(Arc::clone(server) as Arc<dyn SecurityServer>, own, cache).unwrap()
}

/// Another policy from now on: the base with other rules.
pub(crate) fn reload(server: &Server, host: &PluginHost, rules: &str) {
    let files =
        [("base.cil".to_owned(), base_policy()), ("rules.cil".to_owned(), rules.to_owned())];
    host.reset(server.reload(cil::compile(&files).unwrap()).unwrap());
}

/// With as much time as a busy machine may need.
pub(crate) fn spec<'s>(name: &'s str, text: &'s str) -> PluginSpec<'s> {
    let limits = Limits { call_time: PATIENCE, ..Limits::default() };
    PluginSpec { limits, ..PluginSpec::new(name, PLUGIN_CONTEXT, text) }
}

/// For calls that are not to run out of time.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) const UPPER: &str = "long handle(const char *in, long n, char *out, long room) {
    long i;
    for (i = 0; i < n && i < room; i++) out[i] = in[i] >= 'a' && in[i] <= 'z' ? in[i] - 32 : in[i];
    return i;
}";

/// The targets that this machine permits; says which are left out, and why.
pub(crate) fn targets() -> Vec<Target> {
    let host = host_of(&server(NATIVE), None);
    let mut targets = Target::ALL.to_vec();
    targets.retain(|target| {
        match host.load(&PluginSpec { target: *target, ..spec(target.name(), UPPER) }) {
            Ok(_) => true,
            Err(error) if *target == Target::Kernel => {
                println!("left out: kernel: {error}");
                false
            }
            Err(error) => panic!("{target}: {error}"),
        }
    });
    targets
}
