//! A running instance in a memory of its own.

use crate::{
    calls::{Calls, Timeout},
    compile::MAX_MEMORY,
    imports::Running,
    instance::CallFailure,
    plugin::Plugin,
};
use std::sync::Arc;
use wasmtime::{InstancePre, Memory, Store, StoreLimitsBuilder, Trap, TypedFunc, UpdateDeadline};

/// Bytes in a page of WebAssembly.
const PAGE: usize = 1 << 16;
/// Entries that a plugin's tables may have.
const TABLE_ELEMENTS: usize = 10_000;

/// `(in, in_len, out, out_room)`
type Args = (i32, i64, i32, i64);

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
    /// A fresh instance. One that does not count its own turns (`foreign`) is interrupted by the engine's epoch.
    pub(crate) fn new(
        pre: &InstancePre<Running>,
        plugin: &Arc<Plugin>,
        foreign: bool,
    ) -> Result<Self, CallFailure> {
        let most = (plugin.limits.memory_bytes as usize).min(MAX_MEMORY);
        let limits = StoreLimitsBuilder::new()
            .memory_size(most)
            .table_elements(TABLE_ELEMENTS)
            .memories(1)
            .tables(1)
            .build();
        let calls = Calls::new(Arc::clone(plugin));
        let mut store = Store::new(pre.module().engine(), Running { calls, memory: None, limits });
        store.limiter(|running| &mut running.limits);
        if foreign {
            store.epoch_deadline_callback(|mut store| {
                store.data_mut().calls.look_at_clock()?;
                Ok(UpdateDeadline::Continue(1))
            });
            store.set_epoch_deadline(1);
            // Its start function, if it has one, has the time of one call. Nothing of a request is there.
            let _ = store.data_mut().calls.begin();
        }
        let instance = pre.instantiate(&mut store).map_err(|error| failure_at_start(&error))?;
        let missing = |what: &str| CallFailure::Fault(format!("it does not export `{what}`"));
        let memory = instance.get_memory(&mut store, "memory").ok_or_else(|| missing("memory"))?;
        let handle = instance.get_typed_func(&mut store, "handle");
        let handle = handle.map_err(|error| CallFailure::Fault(format!("{error:#}")))?;
        store.data_mut().memory = Some(memory);
        let size = memory.data_size(&store);
        // E-code says where its own data ends. Whatever another compiler's allocator may think is its own, it does
        // not think so of pages that the host adds.
        let base = instance.get_global(&mut store, "__heap_base").filter(|_| !foreign);
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
        let mut args = self.args;
        if !self.calls().begin() {
            self.memory.data_mut(&mut self.store)[self.request.clone()].fill(0);
            args.1 = i64::from(crate::EACCES);
        }
        let length = self.handle.call(&mut self.store, args);
        let may_write = self.calls().end();
        // Written out, so that a good length goes straight to the caller: moving a `Result` costs more than the rest.
        match length {
            Ok(length) if length as u64 <= self.reply_room as u64 => {
                Ok(if may_write { length as usize } else { 0 })
            }
            Ok(length) => Err(CallFailure::BadReply(length)),
            Err(error) => Err(failure(&error)),
        }
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
