//! The engine that isolated code runs in, whether a policy is asked about it or not.

use crate::sys::Slots;
use std::{num::NonZeroUsize, sync::Arc};
use wasmtime::{Config, Engine, MemoryCreator};

/// An engine, and where the memories of its instances lie: at most so many at a time. Code that
/// does not count its own iterations (`foreign`) is interrupted by the engine's epoch.
pub(crate) fn engine(
    instances: usize,
    call_stack_bytes: usize,
    foreign: bool,
) -> wasmtime::Result<(Engine, Arc<Slots>)> {
    let slots = Arc::new(Slots::new(instances));
    let memories: Arc<dyn MemoryCreator> = slots.clone();
    let mut config = Config::new();
    config
        .with_host_memory(memories)
        // A slot stays where it is, and has no image mapped to it.
        .memory_may_move(false)
        .memory_init_cow(false)
        .max_wasm_stack(call_stack_bytes)
        .epoch_interruption(foreign)
        // The place that failed, by its function and, of E-code, the offset in it.
        .wasm_backtrace_max_frames(NonZeroUsize::new(1))
        // The way to a look at the clock lies apart. Hints say no more than that.
        .wasm_branch_hinting(true)
        .generate_address_map(!foreign)
        // For debuggers only; it takes room in the cache.
        .native_unwind_info(false);
    Ok((Engine::new(&config)?, slots))
}
