//! From a plugin's text or module to code that instances can be made of.

use crate::{
    cache::Cache,
    cache_entry::{CacheEntry, CachedModule},
    call_failure::CallFailure,
    engine::engine,
    extent,
    imports::{self, Running},
    instance::Instance,
    interface::HOST_DECLARATIONS,
    isolated::{Isolated, IsolatedCode},
    kernel::Kernel,
    limits::MAX_MEMORY,
    native::Native,
    origin::Origin,
    plugin::Plugin,
    quota::Quota,
    spec::{LoadError, PluginSpec, Source},
    spots::Spots,
    sys::{Slots, Trusted},
    target::Target,
};
use ecode::{Input, ir, wasm::WasmOptions};
use ecode_kernel::{KernelCode, KernelOptions};
use ecode_native::{NativeCode, Protection};
use std::{
    sync::{Arc, OnceLock},
    thread,
    time::Duration,
};
use wasmtime::{Engine, Linker, Module};

/// Instances that may exist at a time, of all plugins of one engine together.
const INSTANCES: usize = 128;
/// Instances that may be in the kernel at a time.
const KERNEL_INSTANCES: usize = 64;
/// Of each, those that may wait for the next call, so that no plugin's idle ones keep others from
/// being called.
const IDLE: usize = INSTANCES / 2;
const KERNEL_IDLE: usize = KERNEL_INSTANCES / 2;
/// Bytes for the frames of a plugin's functions.
const STACK_BYTES: u32 = 256 << 10;
/// Machine stack that a call may use.
const CALL_STACK_BYTES: usize = 256 << 10;
/// WebAssembly beyond this size is refused.
const MAX_WASM: usize = 4 << 20;
/// How often modules that do not count their own iterations are made to look at the clock.
const EPOCH: Duration = Duration::from_millis(5);

/// Where code came from, and what was remarkable about it.
#[derive(Clone, Debug, Default)]
pub struct Loaded {
    /// The machine code lay in the cache.
    pub from_cache: bool,
    /// Bytes of machine code.
    pub code_bytes: usize,
    /// Remarks about the text.
    pub remarks: Vec<ecode::Message>,
    /// What is wrong with the cache, if something is. The plugin was compiled all the same.
    pub cache_warning: Option<String>,
}

/// Code of one version of a plugin.
pub(crate) enum Code {
    Isolated(IsolatedCode),
    Native { code: NativeCode, trusted: Trusted },
    Kernel { code: KernelCode, room: Arc<Quota> },
}

impl Code {
    /// A fresh instance.
    pub(crate) fn instantiate(&self, plugin: &Arc<Plugin>) -> Result<Instance, CallFailure> {
        Ok(match self {
            Self::Isolated(code) => Instance::Isolated(Box::new(Isolated::new(code, plugin)?)),
            Self::Native { code, trusted } => {
                Instance::Native(Box::new(Native::new(code, *trusted, plugin)?))
            }
            Self::Kernel { code, room } => {
                Instance::Kernel(Box::new(Kernel::new(code, room, plugin)?))
            }
        })
    }
}

/// An engine and the host functions for it.
struct Isolation {
    engine: Engine,
    slots: Arc<Slots>,
    linker: Linker<Running>,
}

impl Isolation {
    fn new(foreign: bool) -> wasmtime::Result<Self> {
        let (engine, slots) = engine(INSTANCES, CALL_STACK_BYTES, foreign)?;
        let mut linker = Linker::new(&engine);
        imports::link(&mut linker)?;
        Ok(Self { engine, slots, linker })
    }
}

/// Compiles and links.
pub(crate) struct Compiler {
    own: Isolation,
    /// For modules that do not count their own iterations; made when the first one comes.
    foreign: OnceLock<Isolation>,
    kernel_quota: Arc<Quota>,
    idle: Arc<Quota>,
    kernel_idle: Arc<Quota>,
    cache: Option<Cache>,
}

impl Compiler {
    pub(crate) fn new(cache: Option<Cache>) -> Result<Self, LoadError> {
        let own = Isolation::new(false).map_err(|error| refused(&error))?;
        let (foreign, kernel_quota) = (OnceLock::new(), Quota::new(KERNEL_INSTANCES));
        let (idle, kernel_idle) = (Quota::new(IDLE), Quota::new(KERNEL_IDLE));
        Ok(Self { own, foreign, kernel_quota, idle, kernel_idle, cache })
    }

    /// Where instances of a target may wait for calls.
    pub(crate) fn idle_quota(&self, target: Target) -> &Arc<Quota> {
        if target == Target::Kernel { &self.kernel_idle } else { &self.idle }
    }

    pub(crate) fn cache(&self) -> Option<&Cache> {
        self.cache.as_ref()
    }

    /// Code for a plugin. `trusted` stands for the policy's leave to run it where it is to run.
    pub(crate) fn compile(
        &self,
        spec: &PluginSpec<'_>,
        trusted: Trusted,
    ) -> Result<(Code, Loaded), LoadError> {
        match (spec.source, spec.target) {
            (Source::Text(text), Target::Isolated) => self.isolated_text(spec, text),
            (Source::Text(text), target) => {
                let compiled = self.front(spec, text)?;
                offered(spec, &compiled.module)?;
                let (code, code_bytes) = if target == Target::Kernel {
                    let code = in_kernel(spec, &compiled.module)?;
                    let bytes = code.code_bytes();
                    (Code::Kernel { code, room: Arc::clone(&self.kernel_quota) }, bytes)
                } else {
                    let code = native(&compiled.module, target)?;
                    let bytes = code.code_bytes();
                    (Code::Native { code, trusted }, bytes)
                };
                let loaded = Loaded { code_bytes, remarks: compiled.warnings, ..Loaded::default() };
                Ok((code, loaded))
            }
            (Source::Wasm(wasm), Target::Isolated) => {
                if wasm.len() > MAX_WASM {
                    return Err(interface(spec, format!("it is longer than {MAX_WASM} bytes")));
                }
                if let Some(excess) = extent::excess(wasm) {
                    return Err(interface(spec, excess));
                }
                self.isolated_wasm(spec, wasm)
            }
            (Source::Wasm(_), target) => {
                Err(interface(spec, format!("WebAssembly runs isolated, not {target}")))
            }
        }
    }

    fn front(&self, spec: &PluginSpec<'_>, text: &str) -> Result<ecode::Compiled, LoadError> {
        let input = Input { host: HOST_DECLARATIONS, ..Input::new(spec.name, text) };
        Ok(ecode::compile(&input)?)
    }

    /// The engine for modules that come as WebAssembly, and the thread that makes them look at the
    /// clock. Both end with the host.
    fn foreign(&self) -> Result<&Isolation, LoadError> {
        if let Some(made) = self.foreign.get() {
            return Ok(made);
        }
        let made = Isolation::new(true).map_err(|error| refused(&error))?;
        let weak = made.engine.weak();
        let mut is_ours = false;
        let foreign = self.foreign.get_or_init(|| {
            is_ours = true;
            made
        });
        if is_ours {
            let tick = move || {
                while let Some(engine) = weak.upgrade() {
                    engine.increment_epoch();
                    drop(engine);
                    thread::sleep(EPOCH);
                }
            };
            let clock = thread::Builder::new().name("plugin clock".to_owned());
            clock.spawn(tick).map_err(|error| LoadError::Engine(error.to_string()))?;
        }
        Ok(foreign)
    }

    fn isolated_text(
        &self,
        spec: &PluginSpec<'_>,
        text: &str,
    ) -> Result<(Code, Loaded), LoadError> {
        let (engine, memory) = (&self.own.engine, memory(spec));
        let (compiler, declarations) = (ecode::SOURCE_HASH, HOST_DECLARATIONS);
        let origin = Origin::Text { compiler, declarations, memory, text };
        let entry = CacheEntry::of(self.cache.as_ref(), engine, &origin, spec.name);
        let warning = match entry.find() {
            Ok(CachedModule { module, remarked }) => {
                // Whoever loads the text hears the remarks about it, each time.
                let remarks = if remarked { self.front(spec, text)?.warnings } else { Vec::new() };
                let loaded = Loaded { from_cache: true, remarks, ..Loaded::default() };
                let spots = Spots::of_text(spec.name, text, memory);
                return link(spec, &self.own, &module, loaded, spots);
            }
            Err(warning) => warning,
        };
        let compiled = self.front(spec, text)?;
        let (wasm, places) = ecode::wasm::emit_with_places(&compiled.module, &memory)
            .map_err(|error| interface(spec, error.to_string()))?;
        if let Some(excess) = extent::excess(&wasm) {
            return Err(interface(spec, excess));
        }
        let module = Module::from_binary(engine, &wasm).map_err(|error| refused(&error))?;
        let remarks = compiled.warnings;
        let cache_warning = entry.keep(&module, !remarks.is_empty()).or(warning);
        let loaded = Loaded { remarks, cache_warning, ..Loaded::default() };
        link(spec, &self.own, &module, loaded, Spots::Known(places))
    }

    fn isolated_wasm(
        &self,
        spec: &PluginSpec<'_>,
        wasm: &[u8],
    ) -> Result<(Code, Loaded), LoadError> {
        let isolation = self.foreign()?;
        let engine = &isolation.engine;
        let entry = CacheEntry::of(self.cache.as_ref(), engine, &Origin::Wasm(wasm), spec.name);
        let warning = match entry.find() {
            Ok(CachedModule { module, .. }) => {
                let loaded = Loaded { from_cache: true, ..Loaded::default() };
                return link(spec, isolation, &module, loaded, Spots::Foreign);
            }
            Err(warning) => warning,
        };
        // That it is refused is the module's own fault.
        let module = Module::from_binary(engine, wasm);
        let module = module.map_err(|error| interface(spec, format!("{error:#}")))?;
        let cache_warning = entry.keep(&module, false).or(warning);
        let loaded = Loaded { cache_warning, ..Loaded::default() };
        link(spec, isolation, &module, loaded, Spots::Foreign)
    }
}

/// Code that instances can be made of, if the plugin links to nothing that it is not offered.
fn link(
    spec: &PluginSpec<'_>,
    isolation: &Isolation,
    module: &Module,
    mut loaded: Loaded,
    spots: Spots,
) -> Result<(Code, Loaded), LoadError> {
    for import in module.imports().filter(|import| import.module() == ecode::wasm::HOST) {
        if !spec.offers(import.name()) {
            return Err(interface(spec, not_offered(import.name())));
        }
    }
    loaded.code_bytes = module.functions().map(|function| function.len).sum();
    let code = IsolatedCode::new(&isolation.linker, &isolation.slots, module, spots);
    Ok((Code::Isolated(code.map_err(|what| interface(spec, what))?), loaded))
}

/// Whether the host offers every function that the text declares and does not define.
fn offered(spec: &PluginSpec<'_>, module: &ir::Module) -> Result<(), LoadError> {
    for func in module.funcs.iter().filter(|func| func.body.is_none()) {
        // In the declarations a name stands behind its type and before its parameters, as in the
        // text.
        let known = HOST_DECLARATIONS.contains(&format!(" {}(", func.name));
        if !known || !spec.offers(&func.name) {
            return Err(interface(spec, not_offered(&func.name)));
        }
    }
    Ok(())
}

fn native(module: &ir::Module, target: Target) -> Result<NativeCode, LoadError> {
    let protection = match target {
        Target::NativeStack => Protection::Stack,
        _ => Protection::None,
    };
    let code = NativeCode::compile(module, protection);
    code.map_err(|error| LoadError::Engine(crate::visible_lines(&error.to_string())))
}

fn in_kernel(spec: &PluginSpec<'_>, module: &ir::Module) -> Result<KernelCode, LoadError> {
    let memory = memory(spec);
    let options = KernelOptions { memory, ..KernelOptions::default() };
    let code = KernelCode::compile(module, options);
    code.map_err(|error| interface(spec, error.to_string()))
}

/// Sizes of a plugin's memory.
fn memory(spec: &PluginSpec<'_>) -> WasmOptions {
    let max_memory_bytes = spec.limits.memory_bytes.min(MAX_MEMORY as u32) >> 16 << 16;
    WasmOptions {
        stack_bytes: STACK_BYTES,
        heap_bytes: 0,
        max_memory_bytes,
        ..WasmOptions::default()
    }
}

fn not_offered(name: &str) -> String {
    format!("the host does not offer it a function `{name}`")
}

fn interface(spec: &PluginSpec<'_>, what: String) -> LoadError {
    LoadError::Interface { name: spec.name.to_owned(), what }
}

fn refused(error: &wasmtime::Error) -> LoadError {
    LoadError::Engine(crate::visible_lines(&format!("{error:#}")))
}
