//! From a plugin's text or module to code that instances can be made of.

use crate::{
    cache::{Cache, Lookup},
    calls::HOST_DECLARATIONS,
    imports::{self, Running},
    instance::{CallFailure, Instance},
    isolated::{Isolated, IsolatedCode},
    kernel::Kernel,
    native::Native,
    plugin::Plugin,
    spec::{LoadError, PluginSpec, Source},
    sys::{self, Slots, Trusted},
    target::Target,
};
use ecode::{Input, KernelCode, KernelOptions, NativeCode, Protection, ir, wasm::WasmOptions};
use std::{
    sync::{Arc, OnceLock},
    thread,
    time::Duration,
};
use wasmtime::{Config, Engine, Linker, Module};

/// Instances that may exist at a time, of all plugins of one engine together.
const INSTANCES: usize = 128;
/// No plugin's memory may exceed this.
pub(crate) const MAX_MEMORY: usize = 64 << 20;
/// Bytes for the frames of a plugin's functions.
const STACK_BYTES: u32 = 256 << 10;
/// Machine stack that a call may use.
const CALL_STACK_BYTES: usize = 256 << 10;
/// WebAssembly beyond this size is refused.
const MAX_WASM: usize = 4 << 20;
/// How often modules that do not count their own turns are made to look at the clock.
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
    Kernel { code: KernelCode },
}

impl Code {
    /// A fresh instance.
    pub(crate) fn instantiate(&self, plugin: &Arc<Plugin>) -> Result<Instance, CallFailure> {
        Ok(match self {
            Self::Isolated(code) => Instance::Isolated(Box::new(Isolated::new(code, plugin)?)),
            Self::Native { code, trusted } => {
                Instance::Native(Box::new(Native::new(code, *trusted, plugin)?))
            }
            Self::Kernel { code } => Instance::Kernel(Box::new(Kernel::new(code, plugin)?)),
        })
    }
}

/// An engine and the host functions for it.
struct Isolation {
    engine: Engine,
    linker: Linker<Running>,
}

impl Isolation {
    fn new(foreign: bool) -> wasmtime::Result<Self> {
        let mut config = Config::new();
        config
            .with_host_memory(Arc::new(Slots::new(INSTANCES)))
            // A slot stays where it is, and has no image mapped to it.
            .memory_may_move(false)
            .memory_init_cow(false)
            .max_wasm_stack(CALL_STACK_BYTES)
            .epoch_interruption(foreign)
            .wasm_backtrace_max_frames(None);
        let engine = Engine::new(&config)?;
        let mut linker = Linker::new(&engine);
        imports::link(&mut linker)?;
        Ok(Self { engine, linker })
    }
}

/// Compiles and links.
pub(crate) struct Compiler {
    own: Isolation,
    /// For modules that do not count their own turns; made when the first one comes.
    foreign: OnceLock<Isolation>,
    cache: Option<Cache>,
}

impl Compiler {
    pub(crate) fn new(cache: Option<Cache>) -> Result<Self, LoadError> {
        let own = Isolation::new(false).map_err(|error| refused(&error))?;
        Ok(Self { own, foreign: OnceLock::new(), cache })
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
            (Source::Text(text), Target::Isolated) => {
                let compiled = self.front(spec, text)?;
                let wasm = ecode::wasm::emit(&compiled.module, &memory(spec))
                    .map_err(|error| interface(spec, error.to_string()))?;
                let (code, loaded) = self.isolated(spec, &self.own, &wasm, false)?;
                Ok((code, Loaded { remarks: compiled.warnings, ..loaded }))
            }
            (Source::Text(text), target) => {
                let compiled = self.front(spec, text)?;
                offered(spec, &compiled.module)?;
                let (code, code_bytes) = if target == Target::Kernel {
                    let code = in_kernel(spec, &compiled.module)?;
                    let bytes = code.code_bytes();
                    (Code::Kernel { code }, bytes)
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
                self.isolated(spec, self.foreign()?, wasm, true)
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

    /// The engine for modules that come as WebAssembly, and the thread that makes them look at the clock. Both end
    /// with the host.
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

    fn isolated(
        &self,
        spec: &PluginSpec<'_>,
        isolation: &Isolation,
        wasm: &[u8],
        foreign: bool,
    ) -> Result<(Code, Loaded), LoadError> {
        let (module, mut loaded) = self.module(&isolation.engine, wasm, spec.name, foreign)?;
        for import in module.imports().filter(|import| import.module() == ecode::wasm::HOST) {
            if !spec.offers(import.name()) {
                return Err(interface(spec, not_offered(import.name())));
            }
        }
        loaded.code_bytes = module.functions().map(|function| function.len).sum();
        let code = IsolatedCode::new(&isolation.linker, &module, foreign);
        Ok((Code::Isolated(code.map_err(|what| interface(spec, what))?), loaded))
    }

    /// The module, from the cache if it is there.
    fn module(
        &self,
        engine: &Engine,
        wasm: &[u8],
        name: &str,
        foreign: bool,
    ) -> Result<(Module, Loaded), LoadError> {
        // A foreign module may be refused, which is its fault; our own may not.
        let failed = |error: wasmtime::Error| match foreign {
            true => LoadError::Interface { name: name.to_owned(), what: format!("{error:#}") },
            false => refused(&error),
        };
        let mut loaded = Loaded::default();
        let Some(cache) = &self.cache else {
            return Ok((Module::from_binary(engine, wasm).map_err(failed)?, loaded));
        };
        let key = Cache::key(engine, wasm);
        match cache.find(&key) {
            Lookup::Found(code) => {
                if let Some(module) = sys::deserialize(engine, &code) {
                    loaded.from_cache = true;
                    return Ok((module, loaded));
                }
                let path = cache.path().display();
                loaded.cache_warning = Some(format!(
                    "the code of `{name}` in {path} does not fit this engine; it is compiled anew"
                ));
            }
            Lookup::Altered => {
                let path = cache.path().display();
                loaded.cache_warning = Some(format!(
                    "the code of `{name}` in {path} was altered; it is compiled anew"
                ));
            }
            Lookup::Missing => {}
        }
        let module = Module::from_binary(engine, wasm).map_err(failed)?;
        let kept = module.serialize().map_err(|error| format!("{error:#}"));
        let kept =
            kept.and_then(|code| cache.keep(&key, name, &code).map_err(|error| error.to_string()));
        if let Err(error) = kept {
            let path = cache.path().display();
            loaded.cache_warning = Some(format!("{path} cannot be written: {error}"));
        }
        Ok((module, loaded))
    }
}

/// Whether the host offers every function that the text declares and does not define.
fn offered(spec: &PluginSpec<'_>, module: &ir::Module) -> Result<(), LoadError> {
    for func in module.funcs.iter().filter(|func| func.body.is_none()) {
        // In the declarations a name stands behind its type and before its parameters, as in the text.
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
    code.map_err(|error| LoadError::Engine(error.to_string()))
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
    LoadError::Engine(format!("{error:#}"))
}
