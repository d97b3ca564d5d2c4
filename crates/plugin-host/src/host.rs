//! The host: plugins by name.

use crate::{
    check::Gate,
    denial::{Denial, Journal},
    imports,
    instance::{CallFailure, Running},
    limits::Limits,
    plugin::{Counters, Plugin, PluginInfo, Version},
    state::State,
};
use arc_swap::ArcSwap;
use avc::{Avc, Hint};
use ecode::{CompileErrors, Input, wasm::WasmOptions};
use flask::{LabelError, SecurityServer, Seqno, Sid, perm::plugin as perm};
use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
};
use wasmtime::{
    Config, Engine, InstanceAllocationStrategy, InstancePre, Linker, Module,
    PoolingAllocationConfig,
};

/// Instances that may exist at a time, of all plugins together.
const INSTANCES: u32 = 128;
/// No plugin's memory may exceed this.
const MAX_MEMORY: usize = 64 << 20;
/// Bytes for the frames of a plugin's functions.
const STACK_BYTES: u32 = 256 << 10;
/// Machine stack that a call may use.
const CALL_STACK_BYTES: usize = 256 << 10;

/// A plugin to be loaded.
#[derive(Clone, Copy, Debug)]
pub struct PluginSpec<'s> {
    /// What it is called by.
    pub name: &'s str,
    /// Its security context.
    pub context: &'s str,
    /// Its text in E-code, which defines `long handle(const char *in, long n, char *out, long room)`: `n` bytes of
    /// request are at `in` (or `n` is a negative error), the reply goes to `out`, its length is returned.
    pub text: &'s str,
    /// What it may use.
    pub limits: Limits,
}

impl<'s> PluginSpec<'s> {
    /// A plugin with the limits that [`Limits::default`] gives.
    #[must_use]
    pub fn new(name: &'s str, context: &'s str, text: &'s str) -> Self {
        Self { name, context, text, limits: Limits::default() }
    }
}

/// Why a plugin was not loaded or replaced. What was there before stays.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// Its text has errors.
    #[error("{0}")]
    Text(#[from] CompileErrors),
    /// Its security context is not valid.
    #[error("the label `{context}` cannot be used: {error}")]
    Label {
        /// As given.
        context: String,
        /// Why.
        error: LabelError,
    },
    /// The policy denies it.
    #[error("the policy does not let this host load `{0}`")]
    Denied(String),
    /// It lacks `handle`, or declares host functions that do not exist.
    #[error("`{name}` does not fit this host: {what}")]
    Interface {
        /// The plugin.
        name: String,
        /// What is missing.
        what: String,
    },
    /// There is no such plugin, or already one.
    #[error("{0}")]
    Name(String),
    /// The engine cannot be set up.
    #[error("the WebAssembly engine refused: {0}")]
    Engine(String),
}

/// Plugins of one server.
pub struct PluginHost {
    engine: Engine,
    linker: Linker<Running>,
    server: Arc<dyn SecurityServer>,
    gate: Arc<Gate>,
    own: Sid,
    plugins: RwLock<HashMap<String, Arc<Entry>>>,
}

struct Entry {
    version: ArcSwap<Version>,
    state: Arc<State>,
    counters: Counters,
}

impl PluginHost {
    /// A host without plugins that acts as `own`.
    ///
    /// # Errors
    ///
    /// [`LoadError::Engine`] when the machine lacks what isolation needs, address space above all.
    pub fn new(server: Arc<dyn SecurityServer>, own: Sid) -> Result<Self, LoadError> {
        let refused = |error: wasmtime::Error| LoadError::Engine(format!("{error:#}"));
        let mut pool = PoolingAllocationConfig::new();
        pool.total_core_instances(INSTANCES)
            .total_memories(INSTANCES)
            .total_tables(INSTANCES)
            .max_memory_size(MAX_MEMORY);
        let mut config = Config::new();
        config
            .allocation_strategy(InstanceAllocationStrategy::Pooling(pool))
            .max_wasm_stack(CALL_STACK_BYTES)
            .wasm_backtrace_max_frames(None);
        let engine = Engine::new(&config).map_err(refused)?;
        let mut linker = Linker::new(&engine);
        imports::link(&mut linker).map_err(refused)?;
        let gate = Gate { avc: Avc::new(Arc::clone(&server)), journal: Journal::default() };
        let (gate, plugins) = (Arc::new(gate), RwLock::default());
        Ok(Self { engine, linker, server, gate, own, plugins })
    }

    /// Compiles and links a new plugin.
    ///
    /// # Errors
    ///
    /// [`LoadError`]; nothing is loaded then.
    pub fn load(&self, spec: &PluginSpec<'_>) -> Result<(), LoadError> {
        let state = Arc::new(State::default());
        let version = self.prepare(spec, &state, 1)?;
        let mut plugins = self.plugins.write().unwrap_or_else(PoisonError::into_inner);
        if plugins.contains_key(spec.name) {
            return Err(LoadError::Name(format!("there is already a plugin `{}`", spec.name)));
        }
        let (version, counters) = (ArcSwap::from_pointee(version), Counters::default());
        plugins.insert(spec.name.to_owned(), Arc::new(Entry { version, state, counters }));
        Ok(())
    }

    /// Puts new code in the place of a plugin's. Calls that run finish on the old code; what the plugin has kept
    /// by `host_set` stays.
    ///
    /// # Errors
    ///
    /// [`LoadError`]; the old code stays then.
    pub fn replace(&self, spec: &PluginSpec<'_>) -> Result<(), LoadError> {
        let entry = self.entry(spec.name).ok_or_else(|| {
            LoadError::Name(format!("there is no plugin `{}` to replace", spec.name))
        })?;
        let number = entry.version.load().number + 1;
        let version = self.prepare(spec, &entry.state, number)?;
        entry.version.store(Arc::new(version));
        Ok(())
    }

    /// Forgets a plugin and what it kept. Whether there was one.
    pub fn unload(&self, name: &str) -> bool {
        let mut plugins = self.plugins.write().unwrap_or_else(PoisonError::into_inner);
        plugins.remove(name).is_some()
    }

    /// The plugin's reply to `request`.
    ///
    /// # Errors
    ///
    /// [`CallFailure`] says why there is none.
    pub fn call(&self, name: &str, request: &[u8]) -> Result<Vec<u8>, CallFailure> {
        let entry = self.entry(name).ok_or_else(|| CallFailure::Unknown(name.to_owned()))?;
        let version = entry.version.load_full();
        let sid = version.plugin.sid;
        if !self.gate.allows(name, self.own, sid, perm::CALL, &version.host_hint) {
            return Err(CallFailure::Denied);
        }
        let result = version.call(request);
        entry.counters.count(result.is_err());
        result
    }

    /// The loaded plugins, by name.
    #[must_use]
    pub fn list(&self) -> Vec<PluginInfo> {
        let plugins = self.plugins.read().unwrap_or_else(PoisonError::into_inner);
        let mut infos: Vec<PluginInfo> = (plugins.iter())
            .map(|(name, entry)| {
                let version = entry.version.load();
                PluginInfo {
                    name: name.clone(),
                    sid: version.plugin.sid,
                    version: version.number,
                    quarantined: version.is_quarantined(),
                    stats: entry.counters.read(),
                }
            })
            .collect();
        infos.sort_by(|a, b| a.name.cmp(&b.name));
        infos
    }

    /// The last lines that the plugin's current version has logged.
    #[must_use]
    pub fn log(&self, name: &str) -> Vec<String> {
        self.entry(name).map_or_else(Vec::new, |entry| entry.version.load().plugin.log())
    }

    /// The last denials, each once, oldest first.
    #[must_use]
    pub fn denials(&self) -> Vec<Denial> {
        self.gate.journal.all()
    }

    /// Takes note of a new policy state: answers older than it are not used any more.
    pub fn reset(&self, seqno: Seqno) {
        self.gate.avc.reset(seqno);
    }

    fn entry(&self, name: &str) -> Option<Arc<Entry>> {
        let plugins = self.plugins.read().unwrap_or_else(PoisonError::into_inner);
        plugins.get(name).cloned()
    }

    fn prepare(
        &self,
        spec: &PluginSpec<'_>,
        state: &Arc<State>,
        number: u64,
    ) -> Result<Version, LoadError> {
        let sid = self
            .server
            .context_to_sid(spec.context)
            .map_err(|error| LoadError::Label { context: spec.context.to_owned(), error })?;
        if !self.gate.allows(spec.name, self.own, sid, perm::LOAD, &Hint::default()) {
            return Err(LoadError::Denied(spec.name.to_owned()));
        }
        let pre = self.link(spec)?;
        let (name, gate, state) = (spec.name.to_owned(), Arc::clone(&self.gate), Arc::clone(state));
        let plugin = Arc::new(Plugin::new(name, sid, spec.limits, gate, state));
        let version = Version::new(plugin, self.engine.clone(), pre, number);
        // One instance shows that the interface is there.
        version.instantiate().map_err(|error| LoadError::Interface {
            name: spec.name.to_owned(),
            what: error.to_string(),
        })?;
        Ok(version)
    }

    fn link(&self, spec: &PluginSpec<'_>) -> Result<InstancePre<Running>, LoadError> {
        let interface = |what: String| LoadError::Interface { name: spec.name.to_owned(), what };
        let input = Input { host: imports::HOST_DECLARATIONS, ..Input::new(spec.name, spec.text) };
        let compiled = ecode::compile(&input)?;
        let max_memory_bytes = spec.limits.memory_bytes.min(MAX_MEMORY as u32) >> 16 << 16;
        let options = WasmOptions { stack_bytes: STACK_BYTES, heap_bytes: 0, max_memory_bytes };
        let bytes = ecode::wasm::emit(&compiled.module, &options)
            .map_err(|error| interface(error.to_string()))?;
        let module = Module::new(&self.engine, bytes)
            .map_err(|error| LoadError::Engine(format!("{error:#}")))?;
        self.linker.instantiate_pre(&module).map_err(|error| interface(format!("{error:#}")))
    }
}
