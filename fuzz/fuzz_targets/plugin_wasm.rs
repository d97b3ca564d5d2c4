//! Any module that has the plugin's interface ends its own calls at most, and any bytes are refused
//! or run.
#![no_main]

use arbitrary::Unstructured;
use flask::SecurityServer;
use libfuzzer_sys::fuzz_target;
use plugin_host::{HOST_CONTEXT, Limits, PLUGIN_CONTEXT, PluginHost, PluginSpec, base_policy};
use std::{
    sync::{Arc, LazyLock},
    time::{Duration, Instant},
};

static HOST: LazyLock<PluginHost> = LazyLock::new(|| {
    let server = security_server::Server::from_cil(&[("plugins.cil", base_policy())]);
    let server = Arc::new(server.expect("the base policy is valid"));
    let own = server.context_to_sid(HOST_CONTEXT).expect("a context of the base policy");
    PluginHost::new(server, own).expect("there is address space")
});

fuzz_target!(|data: &[u8]| {
    // The bytes as they are, and as a recipe for a module that is valid.
    run(data);
    let interface = br#"(module
        (import "host" "host_log" (func (param i32 i64) (result i32)))
        (import "host" "host_get" (func (param i32 i64 i32 i64) (result i64)))
        (import "host" "host_set" (func (param i32 i64 i32 i64) (result i32)))
        (import "host" "host_open" (func (param i32 i64) (result i32)))
        (import "host" "host_read" (func (param i32 i32 i64) (result i64)))
        (import "host" "host_close" (func (param i32) (result i32))))"#;
    let exports = br#"(module
        (memory (export "memory") 1)
        (func (export "handle") (param i32 i64 i32 i64) (result i64) unreachable))"#;
    let config = wasm_smith::Config {
        available_imports: wat::parse_bytes(interface).ok().map(|module| module.into_owned()),
        exports: wat::parse_bytes(exports).ok().map(|module| module.into_owned()),
        max_memories: 1,
        memory64_enabled: false,
        threads_enabled: false,
        gc_enabled: false,
        exceptions_enabled: false,
        ..wasm_smith::Config::default()
    };
    if let Ok(module) = wasm_smith::Module::new(config, &mut Unstructured::new(data)) {
        run(&module.to_bytes());
    }
});

fn run(module: &[u8]) {
    let limits = Limits { call_time: Duration::from_millis(20), ..Limits::default() };
    let spec = PluginSpec { limits, ..PluginSpec::wasm("fuzz", PLUGIN_CONTEXT, module) };
    if HOST.load(&spec).is_ok() {
        let start = Instant::now();
        // A reply or an error: either is fine, as long as it comes.
        let _ = HOST.call("fuzz", b"request");
        assert!(start.elapsed() < Duration::from_secs(5), "the limit of time does not hold");
        HOST.unload("fuzz");
    }
}
