//! One instance of a plugin, and a call into it.

use crate::plugin::Plugin;
use avc::Hint;
use flask::perm::plugin as perm;
use std::{sync::Arc, time::Instant};
use wasmtime::{
    Engine, InstancePre, Memory, Store, StoreLimits, StoreLimitsBuilder, Trap, TypedFunc,
};

/// Why a call gave no reply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallFailure {
    /// No plugin has this name.
    #[error("there is no plugin `{0}`")]
    Unknown(String),
    /// The policy does not let the host call it.
    #[error("the policy denies the call")]
    Denied,
    /// It failed too often; replace it to have it called again.
    #[error("the plugin is quarantined after repeated faults")]
    Quarantined,
    /// It used up its time.
    #[error("the plugin used up its time")]
    Timeout,
    /// It did something that has no meaning, such as using memory that is not its own.
    #[error("the plugin failed: {0}")]
    Fault(String),
    /// It returned a length that is none, or exceeds its limit.
    #[error("the plugin returned {0}, which is no length of a reply")]
    BadReply(i64),
    /// There is no room for the request or for another instance.
    #[error("no room: {0}")]
    NoRoom(String),
}

/// `tick` found the time used up.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("time is used up")]
pub(crate) struct Timeout;

/// What belongs to a running instance.
pub(crate) struct Running {
    pub(crate) plugin: Arc<Plugin>,
    /// Where the last answers lie: log, get, set, request and reply.
    pub(crate) hints: [Hint; 4],
    pub(crate) deadline: Option<Instant>,
    pub(crate) log_room: usize,
    pub(crate) memory: Option<Memory>,
    limits: StoreLimits,
}

/// `handle(in, in_len, out, out_room)`
type Handle = TypedFunc<(i32, i64, i32, i64), i64>;

pub(crate) struct Instance {
    store: Store<Running>,
    memory: Memory,
    handle: Handle,
    heap_base: usize,
}

impl Instance {
    pub(crate) fn new(
        engine: &Engine,
        pre: &InstancePre<Running>,
        plugin: &Arc<Plugin>,
    ) -> Result<Self, CallFailure> {
        let most = plugin.limits.memory_bytes as usize;
        let limits = StoreLimitsBuilder::new().memory_size(most).build();
        let running = Running {
            plugin: Arc::clone(plugin),
            hints: Default::default(),
            deadline: None,
            log_room: 0,
            memory: None,
            limits,
        };
        let mut store = Store::new(engine, running);
        store.limiter(|running| &mut running.limits);
        let no_room = |error: wasmtime::Error| CallFailure::NoRoom(format!("{error:#}"));
        let instance = pre.instantiate(&mut store).map_err(no_room)?;
        let missing = |what: &str| CallFailure::Fault(format!("it does not export `{what}`"));
        let memory = instance.get_memory(&mut store, "memory").ok_or_else(|| missing("memory"))?;
        let base = instance.get_global(&mut store, "__heap_base");
        let base = base.and_then(|global| global.get(&mut store).i32());
        let heap_base = base.ok_or_else(|| missing("__heap_base"))? as u32 as usize;
        let handle = instance.get_typed_func(&mut store, "handle").map_err(no_room)?;
        store.data_mut().memory = Some(memory);
        Ok(Self { store, memory, handle, heap_base })
    }

    /// Runs the plugin on `request`. After an error the instance is not used again.
    pub(crate) fn call(&mut self, request: &[u8]) -> Result<Vec<u8>, CallFailure> {
        let plugin = Arc::clone(&self.store.data().plugin);
        let running = self.store.data_mut();
        (running.deadline, running.log_room) = (None, plugin.limits.log_bytes);
        let may_read = plugin.may(perm::READ_REQUEST, &running.hints[3]);
        let request = if may_read { request } else { &[] };
        let start = self.heap_base.next_multiple_of(16);
        let reply_at = (start + request.len()).next_multiple_of(16);
        let room = plugin.limits.output_bytes.min(i32::MAX as usize);
        let room = self.room(reply_at, room).ok_or_else(|| {
            CallFailure::NoRoom("the request exceeds the plugin's memory".to_owned())
        })?;
        self.memory.data_mut(&mut self.store)[start..start + request.len()]
            .copy_from_slice(request);
        let in_len = if may_read { request.len() as i64 } else { i64::from(crate::EACCES) };
        let args = (start as u32 as i32, in_len, reply_at as u32 as i32, room as i64);
        let length = self.handle.call(&mut self.store, args).map_err(|error| failure(&error))?;
        let reply = usize::try_from(length).ok().filter(|length| *length <= room);
        let reply = reply.ok_or(CallFailure::BadReply(length))?;
        if reply > 0 && !plugin.may(perm::WRITE_REPLY, &self.store.data().hints[3]) {
            return Ok(Vec::new());
        }
        let data = self.memory.data(&self.store).get(reply_at..reply_at + reply);
        data.map(<[u8]>::to_vec).ok_or(CallFailure::BadReply(length))
    }

    /// Makes memory for `wanted` bytes at `at`, or for fewer; how many.
    fn room(&mut self, at: usize, wanted: usize) -> Option<usize> {
        let most = self.store.data().plugin.limits.memory_bytes as usize;
        let end = at.checked_add(wanted)?.min(most);
        let size = self.memory.data_size(&self.store);
        if end > size {
            let pages = (end - size).div_ceil(1 << 16) as u64;
            // Growth may fail at the limit's last page: what is there is used.
            let _ = self.memory.grow(&mut self.store, pages);
        }
        let size = self.memory.data_size(&self.store).min(end);
        size.checked_sub(at)
    }
}

fn failure(error: &wasmtime::Error) -> CallFailure {
    if error.is::<Timeout>() {
        return CallFailure::Timeout;
    }
    match error.downcast_ref::<Trap>() {
        Some(trap) => CallFailure::Fault(trap.to_string()),
        None => CallFailure::Fault(format!("{error:#}")),
    }
}
