//! What wasmtime alone takes for the same: no host that runs on it gets below.

use super::{
    jobs::{Jobs, batch, text},
    trial::GRAY,
};
use bench::interleaved::Stopwatch;
use ecode::wasm::WasmOptions;
use plugin_host::HOST_DECLARATIONS;
use std::time::Duration;
use wasmtime::{Caller, Config, Engine, Linker, Module, PoolingAllocationConfig, Store, TypedFunc};

/// Host calls of one call.
const CALLED: u32 = 1000;
/// The same interface as a plugin's.
type Handle = TypedFunc<(i32, i64, i32, i64), i64>;

/// A module whose `handle` does nothing, or `iteration` so many times.
fn module(iteration: Option<&str>) -> String {
    let iterations = iteration.map_or_else(String::new, |iteration| {
        format!(
            "(loop $next {iteration}
                (local.set $i (i32.add (local.get $i) (i32.const 1)))
                (br_if $next (i32.lt_u (local.get $i) (i32.const {CALLED}))))"
        )
    });
    format!(
        "(module (import \"host\" \"log\" (func $log (param i32 i64) (result i32)))
            (memory (export \"memory\") 5)
            (func (export \"handle\") (param i32 i64 i32 i64) (result i64) (local $i i32)
                {iterations} (i64.const 0)))"
    )
}

/// A host function that counts, and may refuse.
fn linker(engine: &Engine) -> wasmtime::Result<Linker<u64>> {
    let mut linker = Linker::new(engine);
    linker.func_wrap("host", "log", |mut caller: Caller<'_, u64>, _: i32, len: i64| {
        let calls = caller.data_mut();
        *calls = calls.checked_add(1).ok_or_else(|| wasmtime::Error::msg("too many calls"))?;
        wasmtime::Result::Ok(len as i32)
    })?;
    Ok(linker)
}

fn handle(store: &mut Store<u64>, iteration: Option<&str>) -> anyhow::Result<Handle> {
    let engine = store.engine().clone();
    let module = Module::new(&engine, wat::parse_str(module(iteration))?).map_err(own)?;
    let instance = linker(&engine).and_then(|linker| linker.instantiate(&mut *store, &module));
    instance.and_then(|made| made.get_typed_func(&mut *store, "handle")).map_err(own)
}

fn own(error: wasmtime::Error) -> anyhow::Error {
    anyhow::anyhow!("{:#}", error.context("wasmtime"))
}

/// Calls in and out, instances from its own pool, and code for the same WebAssembly as the host has
/// made.
pub(super) fn jobs<'a>(jobs: &mut Jobs<'a>) -> anyhow::Result<()> {
    let mut config = Config::new();
    config.wasm_backtrace_max_frames(None);
    let engine = Engine::new(&config).map_err(own)?;
    let input = ecode::Input { host: HOST_DECLARATIONS, ..ecode::Input::new("gray.e", GRAY) };
    let wasm = ecode::wasm::emit(&ecode::compile(&input)?.module, &WasmOptions::default())?;
    let code = engine.clone();
    let compile = move || Module::from_binary(&code, &wasm).map(drop);
    jobs.push(("compile, isolated, wasmtime alone".to_owned(), batch(compile)));

    let mut store = Store::new(&engine, 0);
    let null = handle(&mut store, None)?;
    let call = move || null.call(&mut store, (0, 0, 0, 0)).map(drop);
    jobs.push(("upcall, wasmtime alone".to_owned(), batch(call)));

    let mut store = Store::new(&engine, 0);
    let calls = handle(&mut store, Some("(drop (call $log (local.get $i) (i64.const 0)))"))?;
    let iterations = handle(&mut store, Some("(drop (i32.mul (local.get $i) (local.get $i)))"))?;
    let run = move |times: u32| {
        let mut took = [Duration::ZERO; 2];
        for (handle, took) in [&calls, &iterations].into_iter().zip(&mut took) {
            let start = Stopwatch::start();
            for _ in 0..times {
                handle.call(&mut store, (0, 0, 0, 0)).map_err(text)?;
            }
            *took = start.elapsed();
        }
        Ok(took[0].saturating_sub(took[1]) / CALLED)
    };
    jobs.push(("host call, wasmtime alone".to_owned(), Box::new(run)));

    let mut pool = PoolingAllocationConfig::new();
    pool.max_memory_size(64 << 20).total_core_instances(128).total_memories(128).total_tables(128);
    config.allocation_strategy(pool);
    let engine = Engine::new(&config).map_err(own)?;
    let module = Module::new(&engine, wat::parse_str(module(None))?).map_err(own)?;
    let pre = linker(&engine).and_then(|linker| linker.instantiate_pre(&module)).map_err(own)?;
    let instantiate = move || pre.instantiate(Store::new(&engine, 0)).map(drop);
    jobs.push(("instantiate, wasmtime's own pool".to_owned(), batch(instantiate)));
    Ok(())
}
