//! A running instance in a memory of its own.

use crate::{
    call_failure::{CallFailure, at, reply_length},
    calls::{Calls, Timeout},
    imports::Running,
    interface::EACCES,
    limits::MAX_MEMORY,
    mapped_images::MappedImages,
    plugin::Plugin,
    spots::Spots,
    sys::{Image, Slots},
};
use std::sync::Arc;
use wasmtime::{
    Extern, InstancePre, Linker, Memory, Module, ModuleExport, Store, StoreLimitsBuilder, Trap,
    TypedFunc, UpdateDeadline, WasmBacktrace,
};

/// Bytes in a page of WebAssembly.
const PAGE: usize = 1 << 16;
/// Entries that a plugin's tables may have.
const TABLE_ELEMENTS: usize = 10_000;

/// Bytes in front of a reply for what goes out before it.
pub(crate) const HEAD_ROOM: usize = 1024;

/// `(in, in_len, out, out_room)`
type Args = (i32, i64, i32, i64);

/// Code that instances are made of, linked, its exports looked up.
pub(crate) struct IsolatedCode {
    pre: InstancePre<Running>,
    memory: ModuleExport,
    handle: ModuleExport,
    /// Where E-code says that its own data ends.
    heap_base: Option<ModuleExport>,
    /// It does not count its own iterations: the engine's epoch interrupts it.
    foreign: bool,
    slots: Arc<Slots>,
    spots: Arc<Spots>,
}

impl IsolatedCode {
    /// Links `module`; on failure, what does not fit.
    pub(crate) fn new(
        linker: &Linker<Running>,
        slots: &Arc<Slots>,
        module: &Module,
        spots: Spots,
    ) -> Result<Self, String> {
        let foreign = spots.is_foreign();
        let pre = linker.instantiate_pre(module).map_err(|error| format!("{error:#}"))?;
        let export = |name| {
            let found = module.get_export_index(name);
            found.ok_or_else(|| format!("it does not export `{name}`"))
        };
        let (memory, handle) = (export("memory")?, export("handle")?);
        // Whatever another compiler's allocator may think is its own, it does not think so of pages
        // that the host adds.
        let heap_base = if foreign { None } else { module.get_export_index("__heap_base") };
        let (slots, spots) = (Arc::clone(slots), Arc::new(spots));
        Ok(Self { pre, memory, handle, heap_base, foreign, slots, spots })
    }
}

pub(crate) struct Isolated {
    store: Store<Running>,
    memory: Memory,
    handle: TypedFunc<Args, i64>,
    /// What of its memory the host uses for requests and replies: nothing of the plugin's lies
    /// there.
    buffers: std::ops::Range<usize>,
    request: std::ops::Range<usize>,
    /// What `handle` is called with, if the plugin may see the request.
    args: Args,
    reply_at: usize,
    reply_room: usize,
    /// What was put in front of the last reply.
    head: std::ops::Range<usize>,
    /// Images that lie in its memory; `None` for a module whose compiler may move bytes by
    /// instructions that know nothing of them.
    images: Option<MappedImages>,
    spots: Arc<Spots>,
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
        let running = Running { calls, memory: None, limits, view: None };
        let mut store = Store::new(code.pre.module().engine(), running);
        store.limiter(|running| &mut running.limits);
        if code.foreign {
            store.epoch_deadline_callback(|mut store| {
                store.data_mut().calls.look_at_clock()?;
                Ok(UpdateDeadline::Continue(1))
            });
            store.set_epoch_deadline(1);
            // Its start function, if it has one, has the time of one call. Nothing of a request is
            // there.
            let _ = store.data_mut().calls.begin();
        }
        let instance = code.pre.instantiate(&mut store);
        let instance = instance.map_err(|error| failure_at_start(&error, &code.spots))?;
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
        let images = (!code.foreign)
            .then(|| MappedImages::new(&code.slots, memory.data_ptr(&store).expose_provenance()));
        let (reply_at, reply_room) = (base, 0);
        let spots = Arc::clone(&code.spots);
        Ok(Self {
            store,
            memory,
            handle,
            buffers,
            request,
            args,
            reply_at,
            reply_room,
            head: 0..0,
            images,
            spots,
        })
    }

    /// Puts `request` where the plugin will find it, and makes room for its reply.
    pub(crate) fn fill(&mut self, request: &[u8]) -> Result<(), CallFailure> {
        self.clear_head();
        let limits = self.store.data().calls.plugin.limits;
        let wanted = limits.output_bytes.min(i32::MAX as usize);
        let need = (32 + HEAD_ROOM).saturating_add(request.len());
        self.reach(need.saturating_add(wanted), need)?;
        let start = self.buffers.start.next_multiple_of(16);
        self.request = start..start + request.len();
        self.reply_at = (self.request.end + HEAD_ROOM).next_multiple_of(16);
        self.store.data_mut().view = None;
        self.reply_room = self.buffers.end.saturating_sub(self.reply_at).min(wanted);
        self.args =
            (addr(start), request.len() as i64, addr(self.reply_at), self.reply_room as i64);
        self.memory.data_mut(&mut self.store)[self.request.clone()].copy_from_slice(request);
        Ok(())
    }

    /// Has the plugin find `image` as its request, where it lies if that is possible.
    pub(crate) fn view(&mut self, image: &Arc<Image>) -> Result<(), CallFailure> {
        self.clear_head();
        let seqno = self.calls().policy();
        let at = self.images.as_mut().and_then(|images| images.show(image, seqno));
        let Some(at) = at else { return self.fill(image.bytes()) };
        let wanted = self.store.data().calls.plugin.limits.output_bytes.min(i32::MAX as usize);
        let need = 64 + HEAD_ROOM;
        self.reach(need.saturating_add(wanted), need)?;
        let start = self.buffers.start;
        self.request = start..start;
        self.reply_at = (start + HEAD_ROOM).next_multiple_of(64);
        self.reply_room = self.buffers.end.saturating_sub(self.reply_at).min(wanted);
        let len = image.bytes().len() as i64;
        self.args = (at as i32, len, addr(self.reply_at), self.reply_room as i64);
        self.store.data_mut().view = Some((u64::from(at), Arc::clone(image)));
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

    /// Runs the plugin on the request that is there; the length of its reply. After an error the
    /// instance is not used again.
    #[inline]
    pub(crate) fn run(&mut self) -> Result<usize, CallFailure> {
        self.clear_head();
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

    /// Takes away what was put in front of the last reply, before anything else is put there: it is
    /// of an answer that others made, too.
    #[inline]
    fn clear_head(&mut self) {
        let head = std::mem::take(&mut self.head);
        if head.is_empty() {
            return;
        }
        if let Some(place) = self.memory.data_mut(&mut self.store).get_mut(head) {
            place.fill(0);
        }
    }

    /// Calls the plugin without its request.
    #[cold]
    fn call_blind(&mut self) -> wasmtime::Result<i64> {
        self.memory.data_mut(&mut self.store)[self.request.clone()].fill(0);
        self.store.data_mut().view = None;
        if let Some(images) = &mut self.images {
            images.hide().map_err(|error| wasmtime::Error::msg(error.to_string()))?;
        }
        let (_, _, reply, room) = self.args;
        let request = addr(self.request.start);
        self.handle.call(&mut self.store, (request, i64::from(EACCES), reply, room))
    }

    /// What a call comes to that failed, or whose reply may not be used.
    #[cold]
    fn without_reply(&self, returned: wasmtime::Result<i64>) -> Result<usize, CallFailure> {
        let returned = returned.map_err(|error| failure(&error, &self.spots))?;
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

    /// `head`, and the first `len` bytes of the reply, in one piece; `None` if there is no room for
    /// it.
    pub(crate) fn reply_behind(&mut self, head: &[u8], len: usize) -> Option<&[u8]> {
        if head.len() > HEAD_ROOM || len > self.reply_room {
            return None;
        }
        let from = self.reply_at.checked_sub(head.len()).filter(|at| *at >= self.request.end)?;
        let end = self.reply_at + len;
        self.clear_head();
        self.head = from..self.reply_at;
        let place = self.memory.data_mut(&mut self.store).get_mut(from..end)?;
        place[..head.len()].copy_from_slice(head);
        Some(place)
    }
}

fn addr(at: usize) -> i32 {
    at as u32 as i32
}

#[cold]
fn failure(error: &wasmtime::Error, spots: &Spots) -> CallFailure {
    let spot = spots.spot(error);
    if error.is::<Timeout>() {
        return CallFailure::Timeout(spot);
    }
    let why = match error.downcast_ref::<Trap>() {
        Some(Trap::MemoryOutOfBounds | Trap::HeapMisaligned) => {
            "it used memory that is not its own"
        }
        Some(Trap::IntegerDivisionByZero) => "it divided by zero",
        Some(Trap::IntegerOverflow | Trap::BadConversionToInteger) => {
            "it made a number that has no room"
        }
        Some(Trap::StackOverflow) => "its stack is used up",
        // E-code's own check of its frames: it has no other places that must not be reached.
        Some(Trap::UnreachableCodeReached) if !spots.is_foreign() => "its stack is used up",
        Some(Trap::UnreachableCodeReached) => "it reached a place that it declared impossible",
        Some(Trap::IndirectCallToNull | Trap::BadSignature | Trap::TableOutOfBounds) => {
            "it called an address that is no function of that type"
        }
        Some(_) => "it did what has no meaning",
        None => return CallFailure::Fault(flask::visible(&format!("{error:#}"))),
    };
    let place = match &spot {
        Some(spot) => at(Some(spot)),
        None => function(error),
    };
    CallFailure::Fault(format!("{why}{place}"))
}

/// In which function that was, if its module says what functions are called.
fn function(error: &wasmtime::Error) -> String {
    let trace = error.downcast_ref::<WasmBacktrace>();
    let name = trace.and_then(|trace| trace.frames().first()?.func_name());
    // Another compiler's names are as long as it likes, and hold what it likes.
    let shown = |name: &str| flask::visible(&name.chars().take(200).collect::<String>());
    name.map_or(String::new(), |name| format!(" in {}", shown(name)))
}

/// What keeps an instance from being made is its own start function, or the lack of room.
fn failure_at_start(error: &wasmtime::Error, spots: &Spots) -> CallFailure {
    if error.is::<Timeout>() || error.is::<Trap>() {
        return failure(error, spots);
    }
    CallFailure::NoRoom(flask::visible(&format!("{error:#}")))
}
