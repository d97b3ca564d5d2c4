//! Isolated code without a policy: any function, any host.
//!
//! It runs in the engine and in the memories that plugins have. Tests of the language and its
//! benchmarks use it; whatever the code does, its call ends and the host lives.
//!
//! ```
//! use ecode::{Input, NoHost, compile};
//! use plugin_host::bare::{IsolatedEngine, IsolatedOptions};
//! use std::time::Duration;
//!
//! let compiled = compile(&Input::new("twice.e", "int twice(int n) { return 2 * n; }"))?;
//! let engine = IsolatedEngine::new(IsolatedOptions::default())?;
//! let mut plugin = engine.compile(&compiled.module)?.instantiate(Box::new(NoHost))?;
//! let twice = plugin.entry::<(i32,), i32>("twice")?;
//! assert_eq!(plugin.enter(&twice, (21,), Duration::from_millis(10))?, 42);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod entry;

pub use entry::{EntryArgs, EntryReply};

use crate::engine::engine;
use ecode::{
    CallError, Host, Memory, Value,
    ir::{Module, Signature, TrapCode, Ty},
    wasm::{self, DEWAR, EmitError, HOST, WasmOptions},
};
use std::{
    marker::PhantomData,
    time::{Duration, Instant},
};
use wasmtime::{
    Caller, Engine, FuncType, InstancePre, Linker, Store, StoreLimits, StoreLimitsBuilder, Trap,
    TypedFunc, Val, ValType,
};

/// Bytes in a page of WebAssembly.
const PAGE: u64 = 1 << 16;
/// Arguments of host functions that need no allocation.
const MAX_INLINE_ARGS: usize = 8;

/// Limits of isolated plugins.
#[derive(Clone, Copy, Debug)]
pub struct IsolatedOptions {
    /// Sizes of memory.
    pub memory: WasmOptions,
    /// Machine stack that a call may use.
    pub call_stack_bytes: usize,
    /// Instances that may exist at a time.
    pub instances: usize,
}

impl Default for IsolatedOptions {
    fn default() -> Self {
        Self { memory: WasmOptions::default(), call_stack_bytes: 256 << 10, instances: 64 }
    }
}

/// Why there is no isolated code.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IsolateError {
    /// The module does not fit its limits.
    #[error(transparent)]
    Emit(#[from] EmitError),
    /// The engine refused.
    #[error("the WebAssembly engine refused: {0}")]
    Engine(String),
}

impl From<wasmtime::Error> for IsolateError {
    fn from(error: wasmtime::Error) -> Self {
        Self::Engine(format!("{error:#}"))
    }
}

/// Compiles and runs isolated plugins.
#[derive(Clone)]
pub struct IsolatedEngine {
    engine: Engine,
    options: IsolatedOptions,
}

/// Code of one plugin, which any number of instances share.
#[derive(Clone)]
pub struct IsolatedCode {
    pre: InstancePre<State>,
    options: IsolatedOptions,
}

/// A plugin's memory and the host it may call.
pub struct IsolatedInstance {
    store: Store<State>,
    instance: wasmtime::Instance,
}

/// A function of one instance, its name and types resolved.
pub struct IsolatedEntry<A: EntryArgs, R: EntryReply> {
    func: TypedFunc<A::Wasm, R::Wasm>,
    types: PhantomData<fn(A) -> R>,
}

struct State {
    host: Box<dyn Host>,
    memory: Option<wasmtime::Memory>,
    /// What the running call may take, and when that is used up: known from its first look at the
    /// clock.
    time: Duration,
    deadline: Option<Instant>,
    limits: StoreLimits,
}

impl IsolatedEngine {
    /// An engine for plugins within `options`.
    ///
    /// # Errors
    ///
    /// [`IsolateError::Engine`] when the machine lacks what it needs, address space above all.
    pub fn new(options: IsolatedOptions) -> Result<Self, IsolateError> {
        let (engine, _) = engine(options.instances, options.call_stack_bytes, false)?;
        Ok(Self { engine, options })
    }

    /// Code for `module`. Host functions are resolved when they are called.
    ///
    /// # Errors
    ///
    /// [`IsolateError`] when the module does not fit its limits.
    pub fn compile(&self, module: &Module) -> Result<IsolatedCode, IsolateError> {
        let bytes = wasm::emit(module, &self.options.memory)?;
        let compiled = wasmtime::Module::new(&self.engine, bytes)?;
        let mut linker = Linker::new(&self.engine);
        linker.func_wrap(DEWAR, "tick", tick)?;
        for func in module.funcs.iter().filter(|f| f.body.is_none()) {
            let sig = &module.sigs[func.sig.0 as usize];
            self.link_host(&mut linker, &func.name, sig)?;
        }
        Ok(IsolatedCode { pre: linker.instantiate_pre(&compiled)?, options: self.options })
    }

    fn link_host(
        &self,
        linker: &mut Linker<State>,
        name: &str,
        sig: &Signature,
    ) -> Result<(), IsolateError> {
        let params = sig.params.iter().map(|ty| val_type(*ty));
        let ty = FuncType::new(&self.engine, params, sig.ret.map(val_type));
        let (sig, own_name) = (sig.clone(), name.to_owned());
        linker.func_new(HOST, name, ty, move |caller, args, results| {
            let value = host_call(caller, &own_name, &sig, args)?;
            if let (Some(result), Some(ty)) = (results.first_mut(), sig.ret) {
                *result = to_wasm(Value::from_bits(ty, value));
            }
            Ok(())
        })?;
        Ok(())
    }
}

impl IsolatedCode {
    /// A fresh instance.
    ///
    /// # Errors
    ///
    /// [`IsolateError::Engine`] when there are as many instances as there may be.
    pub fn instantiate(&self, host: Box<dyn Host>) -> Result<IsolatedInstance, IsolateError> {
        let most = self.options.memory.max_memory_bytes as usize;
        let limits = StoreLimitsBuilder::new().memory_size(most).build();
        let state = State { host, memory: None, time: Duration::ZERO, deadline: None, limits };
        let mut store = Store::new(self.pre.module().engine(), state);
        store.limiter(|state| &mut state.limits);
        let instance = self.pre.instantiate(&mut store)?;
        store.data_mut().memory = instance.get_memory(&mut store, "memory");
        Ok(IsolatedInstance { store, instance })
    }
}

impl IsolatedInstance {
    /// The function `name`, to be called by [`IsolatedInstance::enter`].
    ///
    /// # Errors
    ///
    /// [`CallError::NoFunction`] when there is none with these parameters and this result.
    pub fn entry<A: EntryArgs, R: EntryReply>(
        &mut self,
        name: &str,
    ) -> Result<IsolatedEntry<A, R>, CallError> {
        let found = self.instance.get_typed_func(&mut self.store, name);
        let func = found.map_err(|_| CallError::NoFunction(name.to_owned()))?;
        Ok(IsolatedEntry { func, types: PhantomData })
    }

    /// Calls `entry`, for at most `time`: the clock starts with the call's first look at it, after
    /// at most [`wasm::STRIP`] iterations.
    ///
    /// # Errors
    ///
    /// [`CallError`] says why there is no result. Do not use the instance again.
    ///
    /// # Panics
    ///
    /// When `entry` is another instance's.
    #[inline]
    pub fn enter<A: EntryArgs, R: EntryReply>(
        &mut self,
        entry: &IsolatedEntry<A, R>,
        args: A,
        time: Duration,
    ) -> Result<R, CallError> {
        self.start_clock(time);
        let result = entry.func.call(&mut self.store, args.to_wasm());
        result.map(R::from_wasm).map_err(|error| call_error(&error))
    }

    fn start_clock(&mut self, time: Duration) {
        let state = self.store.data_mut();
        (state.time, state.deadline) = (time, None);
    }

    /// Calls `function` by its name and with values whose types are checked: slower than
    /// [`IsolatedInstance::enter`].
    ///
    /// # Errors
    ///
    /// [`CallError`] says why there is no result. Do not use the instance again.
    pub fn call(
        &mut self,
        function: &str,
        args: &[Value],
        time: Duration,
    ) -> Result<Option<Value>, CallError> {
        let missing = || CallError::NoFunction(function.to_owned());
        let func = self.instance.get_func(&mut self.store, function).ok_or_else(missing)?;
        let ty = func.ty(&self.store);
        let args: Vec<Val> = args.iter().map(|arg| to_wasm(*arg)).collect();
        let fits = args.len() == ty.params().len()
            && ty
                .params()
                .zip(&args)
                .all(|(ty, arg)| arg.ty(&self.store).is_ok_and(|own| own.matches(&ty)));
        if !fits {
            return Err(missing());
        }
        let mut results: Vec<Val> = ty.results().map(|_| Val::I32(0)).collect();
        self.start_clock(time);
        func.call(&mut self.store, &args, &mut results).map_err(|error| call_error(&error))?;
        Ok(results.first().and_then(from_wasm))
    }

    /// Copies `bytes` into the plugin's memory at `addr`.
    #[must_use]
    pub fn write(&mut self, addr: u64, bytes: &[u8]) -> bool {
        let memory = self.instance.get_memory(&mut self.store, "memory");
        let data = memory.map(|memory| memory.data_mut(&mut self.store));
        data.is_some_and(|data| LinearMemory(data).write(addr, bytes))
    }

    /// Copies `len` bytes out of the plugin's memory.
    #[must_use]
    pub fn read(&mut self, addr: u64, len: u64) -> Option<Vec<u8>> {
        let memory = self.instance.get_memory(&mut self.store, "memory")?;
        LinearMemory(memory.data_mut(&mut self.store)).read(addr, len)
    }

    /// The first address behind the plugin's own data: buffers may lie from there on.
    #[must_use]
    pub fn heap_base(&mut self) -> Option<u64> {
        let global = self.instance.get_global(&mut self.store, "__heap_base")?;
        global.get(&mut self.store).i32().map(|base| u64::from(base as u32))
    }

    /// Makes the memory reach to `end` at least; whether it does.
    pub fn grow_to(&mut self, end: u64) -> bool {
        let Some(memory) = self.instance.get_memory(&mut self.store, "memory") else {
            return false;
        };
        let missing = end.saturating_sub(memory.data_size(&self.store) as u64);
        let pages = missing.div_ceil(PAGE);
        pages == 0 || memory.grow(&mut self.store, pages).is_ok()
    }
}

/// A look at the clock. The first one in a call starts its time.
fn tick(mut caller: Caller<'_, State>) -> wasmtime::Result<()> {
    let state = caller.data_mut();
    let (now, time) = (Instant::now(), state.time);
    match *state.deadline.get_or_insert_with(|| now.checked_add(time).unwrap_or(now)) {
        deadline if now >= deadline => Err(wasmtime::Error::new(CallError::Timeout)),
        _ => Ok(()),
    }
}

fn host_call(
    mut caller: Caller<'_, State>,
    name: &str,
    sig: &Signature,
    args: &[Val],
) -> wasmtime::Result<u64> {
    let mut values = [Value::I32(0); MAX_INLINE_ARGS];
    let mut many = Vec::new();
    let values = match values.get_mut(..args.len()) {
        Some(values) => values,
        None => {
            many.resize(args.len(), Value::I32(0));
            &mut many[..]
        }
    };
    for ((value, arg), ty) in values.iter_mut().zip(args).zip(&sig.params) {
        *value = match (ty, from_wasm(arg)) {
            (Ty::Ptr, Some(Value::I32(addr))) => Value::Ptr(u64::from(addr as u32)),
            (_, other) => other.unwrap_or(*value),
        };
    }
    let Some(memory) = caller.data().memory else {
        return Err(wasmtime::Error::msg("no memory"));
    };
    let (data, state) = memory.data_and_store_mut(&mut caller);
    let result = state.host.call(name, values, &mut LinearMemory(data));
    result.map_err(|why| wasmtime::Error::new(CallError::Host(why)))
}

struct LinearMemory<'m>(&'m mut [u8]);

impl Memory for LinearMemory<'_> {
    fn read(&self, addr: u64, len: u64) -> Option<Vec<u8>> {
        let end = addr.checked_add(len)?;
        self.0.get(usize::try_from(addr).ok()?..usize::try_from(end).ok()?).map(<[u8]>::to_vec)
    }

    fn write(&mut self, addr: u64, bytes: &[u8]) -> bool {
        let range =
            usize::try_from(addr).ok().and_then(|at| Some(at..at.checked_add(bytes.len())?));
        let place = range.and_then(|range| self.0.get_mut(range));
        place.map(|place| place.copy_from_slice(bytes)).is_some()
    }
}

fn call_error(error: &wasmtime::Error) -> CallError {
    if let Some(own) = error.downcast_ref::<CallError>() {
        return own.clone();
    }
    match error.downcast_ref::<Trap>() {
        Some(Trap::IntegerDivisionByZero) => CallError::Trap(TrapCode::DivideByZero),
        Some(Trap::StackOverflow | Trap::UnreachableCodeReached) => {
            CallError::Trap(TrapCode::StackOverflow)
        }
        Some(Trap::MemoryOutOfBounds | Trap::HeapMisaligned) => CallError::OutOfBounds,
        Some(Trap::IndirectCallToNull | Trap::BadSignature | Trap::TableOutOfBounds) => {
            CallError::Trap(TrapCode::BadCall)
        }
        Some(other) => CallError::Other(other.to_string()),
        None => CallError::Other(format!("{error:#}")),
    }
}

fn val_type(ty: Ty) -> ValType {
    match ty {
        Ty::I32 | Ty::Ptr => ValType::I32,
        Ty::I64 => ValType::I64,
        Ty::F32 => ValType::F32,
        Ty::F64 => ValType::F64,
        Ty::V128 => ValType::V128,
    }
}

fn to_wasm(value: Value) -> Val {
    match value {
        Value::I32(value) => Val::I32(value),
        Value::I64(value) => Val::I64(value),
        Value::F32(value) => Val::F32(value.to_bits()),
        Value::F64(value) => Val::F64(value.to_bits()),
        Value::Ptr(value) => Val::I32(value as u32 as i32),
    }
}

fn from_wasm(value: &Val) -> Option<Value> {
    Some(match value {
        Val::I32(value) => Value::I32(*value),
        Val::I64(value) => Value::I64(*value),
        Val::F32(bits) => Value::F32(f32::from_bits(*bits)),
        Val::F64(bits) => Value::F64(f64::from_bits(*bits)),
        _ => return None,
    })
}
