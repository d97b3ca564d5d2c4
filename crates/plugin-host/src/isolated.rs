//! A running instance in a memory of its own.

use crate::{
    calls::{Calls, EACCES, Timeout},
    compile::MAX_MEMORY,
    imports::Running,
    instance::{CallFailure, reply_length},
    plugin::Plugin,
};
use std::sync::Arc;
use wasmtime::{
    Extern, InstancePre, Linker, Memory, Module, ModuleExport, Store, StoreLimitsBuilder, Trap,
    TypedFunc, UpdateDeadline,
};

/// Bytes in a page of WebAssembly.
const PAGE: usize = 1 << 16;
/// Entries that a plugin's tables may have.
const TABLE_ELEMENTS: usize = 10_000;

/// `(in, in_len, out, out_room)`
type Args = (i32, i64, i32, i64);

/// Code that instances are made of, linked, its exports looked up.
pub(crate) struct IsolatedCode {
    pre: InstancePre<Running>,
    memory: ModuleExport,
    handle: ModuleExport,
    /// Where E-code says that its own data ends.
    heap_base: Option<ModuleExport>,
    /// It does not count its own turns: the engine's epoch interrupts it.
    foreign: bool,
}

impl IsolatedCode {
    /// Links `module`; on failure, what does not fit.
    pub(crate) fn new(
        linker: &Linker<Running>,
        module: &Module,
        foreign: bool,
    ) -> Result<Self, String> {
        let pre = linker.instantiate_pre(module).map_err(|error| format!("{error:#}"))?;
        let export = |name| {
            let found = module.get_export_index(name);
            found.ok_or_else(|| format!("it does not export `{name}`"))
        };
        let (memory, handle) = (export("memory")?, export("handle")?);
        // Whatever another compiler's allocator may think is its own, it does not think so of pages that the host adds.
        let heap_base = if foreign { None } else { module.get_export_index("__heap_base") };
        Ok(Self { pre, memory, handle, heap_base, foreign })
    }
}

pub(crate) struct Isolated {
    store: Store<Running>,
    memory: Memory,
    handle: TypedFunc<Args, i64>,
    /// What of its memory the host uses for requests and replies: nothing of the plugin's lies there.
    buffers: std::ops::Range<usize>,
    request: std::ops::Range<usize>,
    /// What `handle` is called with, if the plugin may see the request.
    args: Args,
    reply_at: usize,
    reply_room: usize,
}

impl Isolated {
    /// A fresh instance.
    pub(crate) fn new(code: &IsolatedCode, plugin: &Arc<Plugin>) -> Result<Self, CallFailure> {
        let most = (plugin.limits.memory_bytes as usize).min(MAX_MEMORY);
        let limits = StoreLimitsBuilder::new()
            .memory_size(most)
            .table_elements(TABLE_ELEMENTS)
            .memories(1)
            .tables(1)
            .build();
        let calls = Calls::new(Arc::clone(plugin));
        let running = Running { calls, memory: None, limits };
        let mut store = Store::new(code.pre.module().engine(), running);
        store.limiter(|running| &mut running.limits);
        if code.foreign {
            store.epoch_deadline_callback(|mut store| {
                store.data_mut().calls.look_at_clock()?;
                Ok(UpdateDeadline::Continue(1))
            });
            store.set_epoch_deadline(1);
            // Its start function, if it has one, has the time of one call. Nothing of a request is there.
            let _ = store.data_mut().calls.begin();
        }
        let instance = code.pre.instantiate(&mut store);
        let instance = instance.map_err(|error| failure_at_start(&error))?;
        let mut export = |export| instance.get_module_export(&mut store, export);
        let memory = export(&code.memory).and_then(Extern::into_memory);
        let handle = export(&code.handle).and_then(Extern::into_func);
        let base = code.heap_base.as_ref().and_then(export).and_then(Extern::into_global);
        let fault = |what: &str| CallFailure::Fault(what.to_owned());
        let memory = memory.ok_or_else(|| fault("its `memory` is no memory"))?;
        let handle = handle.ok_or_else(|| fault("its `handle` is no function"))?.typed(&store);
        let handle =
            handle.map_err(|error| fault(&format!("its `handle` is another: {error:#}")))?;
        store.data_mut().memory = Some(memory);
        let size = memory.data_size(&store);
        let base = base.and_then(|base| base.get(&mut store).i32());
        let base = base.map_or(size, |base| base as u32 as usize).min(size);
        let (buffers, request) = (base..size, base..base);
        let args = (addr(base), 0, addr(base), 0);
        Ok(Self { store, memory, handle, buffers, request, args, reply_at: base, reply_room: 0 })
    }

    /// Puts `request` where the plugin will find it, and makes room for its reply.
    pub(crate) fn fill(&mut self, request: &[u8]) -> Result<(), CallFailure> {
        let limits = self.store.data().calls.plugin.limits;
        let wanted = limits.output_bytes.min(i32::MAX as usize);
        let need = 32_usize.saturating_add(request.len());
        self.reach(need.saturating_add(wanted), need)?;
        let start = self.buffers.start.next_multiple_of(16);
        self.request = start..start + request.len();
        self.reply_at = self.request.end.next_multiple_of(16);
        self.reply_room = self.buffers.end.saturating_sub(self.reply_at).min(wanted);
        self.args =
            (addr(start), request.len() as i64, addr(self.reply_at), self.reply_room as i64);
        self.memory.data_mut(&mut self.store)[self.request.clone()].copy_from_slice(request);
        Ok(())
    }

    /// Makes the buffers `wanted` bytes long, or at least `needed`.
    fn reach(&mut self, wanted: usize, needed: usize) -> Result<(), CallFailure> {
        if self.buffers.len() >= wanted {
            return Ok(());
        }
        let size = self.memory.data_size(&self.store);
        let most = (self.store.data().calls.plugin.limits.memory_bytes as usize).min(MAX_MEMORY);
        // Behind what is there already, unless the plugin has grown its memory itself meanwhile.
        let start = if self.buffers.end == size { self.buffers.start } else { size };
        let end = start.saturating_add(wanted).min(most).next_multiple_of(PAGE);
        let pages = end.saturating_sub(size) / PAGE;
        // Growth may fail at the limit's last page: what is there is used.
        let _ = self.memory.grow(&mut self.store, pages as u64);
        self.buffers = start..self.memory.data_size(&self.store);
        if self.buffers.len() < needed {
            let why = "the request exceeds the plugin's memory".to_owned();
            return Err(CallFailure::NoRoom(why));
        }
        Ok(())
    }

    /// Runs the plugin on the request that is there; the length of its reply. After an error the instance is not
    /// used again.
    #[inline]
    pub(crate) fn run(&mut self) -> Result<usize, CallFailure> {
        let returned = if self.calls().begin() {
            self.handle.call(&mut self.store, self.args)
        } else {
            self.call_blind()
        };
        let may_write = self.calls().end();
        // What nearly every call comes to lies apart from the rest, and is short.
        match returned {
            Ok(length) if may_write && length as u64 <= self.reply_room as u64 => {
                Ok(length as usize)
            }
            returned => self.without_reply(returned),
        }
    }

    /// Calls the plugin without its request.
    #[cold]
    fn call_blind(&mut self) -> wasmtime::Result<i64> {
        self.memory.data_mut(&mut self.store)[self.request.clone()].fill(0);
        let (request, _, reply, room) = self.args;
        self.handle.call(&mut self.store, (request, i64::from(EACCES), reply, room))
    }

    /// What a call comes to that failed, or whose reply may not be used.
    #[cold]
    fn without_reply(&self, returned: wasmtime::Result<i64>) -> Result<usize, CallFailure> {
        let returned = returned.map_err(|error| failure(&error))?;
        reply_length(returned, self.reply_room).map(|_| 0)
    }

    /// Bytes of memory that it has.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.memory.data_size(&self.store)
    }

    #[inline]
    pub(crate) fn calls(&mut self) -> &mut Calls {
        &mut self.store.data_mut().calls
    }

    /// The first `len` bytes of the reply.
    pub(crate) fn reply(&self, len: usize) -> &[u8] {
        let data = self.memory.data(&self.store);
        data.get(self.reply_at..self.reply_at + len).unwrap_or_default()
    }
}

fn addr(at: usize) -> i32 {
    at as u32 as i32
}

#[cold]
fn failure(error: &wasmtime::Error) -> CallFailure {
    if error.is::<Timeout>() {
        return CallFailure::Timeout;
    }
    match error.downcast_ref::<Trap>() {
        Some(trap) => CallFailure::Fault(trap.to_string()),
        None => CallFailure::Fault(format!("{error:#}")),
    }
}

/// What keeps an instance from being made is its own start function, or the lack of room.
fn failure_at_start(error: &wasmtime::Error) -> CallFailure {
    if error.is::<Timeout>() || error.is::<Trap>() {
        return failure(error);
    }
    CallFailure::NoRoom(format!("{error:#}"))
}
