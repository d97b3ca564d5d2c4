//! Random loops, against a walk over them iteration by iteration: one that ends gives the same, and
//! needs no more looks at the clock than it takes iterations; one that goes on looks at the clock
//! again and again. In the kernel, whose clock cannot be replaced, the one gives the same and the
//! other ends soon. `ECODE_PROGRAMS` and `ECODE_SEED` as in `differential.rs`.

use crate::batches::Batch;
use crate::generate::Rng;
use crate::loops::{Function, Walk};
use ecode::{
    CallError, NoHost, Value,
    wasm::{self, DEWAR, WasmOptions},
};
use ecode_kernel::{KernelCode, KernelError, KernelOptions};
use std::{
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};
use wasmtime::{Config, Engine, Linker, Store, Trap};

/// A walk of more iterations than this goes on for ever, or nearly.
const MOST_ITERATIONS: u64 = 60_000;
/// Iterations between two looks at the clock, and how many looks there are at least in so many
/// iterations: between two of them lie at most twice the iterations of a strip (growth and weights
/// are powers of two) and those of a few loops of at most 2,048 iterations, which are counted at
/// their beginning.
const STRIPS: [(i32, u64); 3] = [(1, 6), (3, 6), (8192, 1)];
/// What ends a run that never looks at the clock, in tenths of a second.
const KILL: u64 = 50;

/// How a run ended.
#[derive(Debug, PartialEq)]
enum End {
    Value(i64),
    /// It has looked at the clock as often as it may.
    Stopped,
    /// It never looked.
    Killed,
}

#[derive(Debug, thiserror::Error)]
#[error("no looks at the clock left")]
struct NoneLeft;

#[test]
fn loops_end_by_their_limit_and_never_before() {
    let (ended, endless) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let mut config = Config::new();
    config.epoch_interruption(true);
    let engine = Engine::new(&config).unwrap();
    let clock = engine.weak();
    thread::spawn(move || {
        while let Some(engine) = clock.upgrade() {
            thread::sleep(Duration::from_millis(100));
            engine.increment_epoch();
        }
    });
    let count = crate::batches::run(1_000, |batch| {
        let counts = check(batch, &engine);
        ended.fetch_add(counts.0, Ordering::Relaxed);
        endless.fetch_add(counts.1, Ordering::Relaxed);
    });
    let (ended, endless) = (ended.into_inner(), endless.into_inner());
    println!("{count} functions: {ended} calls end, {endless} go on");
    assert!(ended > count / 4 && endless > count / 4, "the generator makes one kind only");
}

/// Each returns about how many iterations it takes; `n` is a number.
const COUNTED: [&str; 13] = [
    "for (;;) { t++; if (t == 50 * n) break; }",
    "for (long i = 0; i < 50 * n; i++) t++;",
    "for (int i = 50 * n; i > 0; i--) t++;",
    "for (long i = 0; i <= 350 * n; i += 7) t++;",
    "for (long i = 0; i < 20 * n; i++) for (long k = 0; k < n; k++) { t++; if (k == 7) break; }",
    "for (long i = 0; i < 20 * n; i++) { for (long k = n; k >= 0; k--) { t++; if (k == n - 7) goto next; } next: ; }",
    "for (long i = 0; i < 20 * n; i++) { long k = 0; do { t++; if (k == 7) break; k += 2; } while (k < n); }",
    "for (long i = 0; i < 20 * n; i++) { t++; f(n); }",
    "for (long i = 0; i < 50 * n; i += t & 1 ? 1 : 2) t++;",
    "for (long i = 0; i < 20 * n; i++) { long k = i; t++; while (k & 3) { t++; k--; } }",
    "for (long i = 0; i < n; i++) { long m = 40; if (i % 8 == 0) m = 2; for (long k = 0; k < m; k++) t++; }",
    "for (long i = 0; i < 60; i++) { long m = 3; if (i & 1) m = n; for (long k = 0; k < m; k++) t++; }",
    "if (n < 0) n = 5; for (long i = 0; i < 60; i++) for (long k = 0; k < n; k++) t++;",
];

#[test]
fn looks_at_the_clock_are_as_many_as_strips_of_iterations() {
    const STRIP: u64 = wasm::STRIP as u64;
    let engine = Engine::default();
    for text in COUNTED {
        let text = format!(
            "long f(long n) {{ return n; }} long proc(long n) {{ long t = 0; {text} return t; }}"
        );
        let bytes = wasm::emit(&crate::common::module(&text, ""), &WasmOptions::default()).unwrap();
        let code = wasmtime::Module::new(&engine, bytes).unwrap();
        let (End::Value(iterations), looks) = run(&engine, &code, "proc", 9000, u64::MAX) else {
            panic!("{text}: it does not end");
        };
        let strips = iterations as u64 / STRIP;
        assert!(strips >= 20, "{text}: {iterations} iterations");
        assert!(
            (strips / 2..=2 * strips + 2).contains(&looks),
            "{text}: {iterations} iterations, {looks} looks"
        );
    }
}

/// Checks all functions of a batch; how many calls end and how many do not.
fn check(batch: Batch, engine: &Engine) -> (usize, usize) {
    let mut rng = Rng(batch.random());
    let functions: Vec<Function> =
        (0..batch.size).map(|id| crate::loops::function(&mut rng, id)).collect();
    let texts: Vec<String> = functions.iter().enumerate().map(|(id, f)| f.text(id)).collect();
    let module = crate::common::module(&texts.concat(), "");
    let (mut ended, mut endless) = (0, 0);
    let walks: Vec<_> = (0..batch.size)
        .map(|id| {
            let argument = *rng.pick(&[0, 1, 2, 5, 40, 1000, -3, i64::MAX]);
            let mut walk = Walk::new(&functions, MOST_ITERATIONS);
            (argument, walk.call(id, argument), walk.iterations)
        })
        .collect();
    for (strip_iterations, least) in STRIPS {
        let options = WasmOptions { strip_iterations, ..WasmOptions::default() };
        let bytes = wasm::emit(&module, &options).unwrap();
        let code = wasmtime::Module::new(engine, bytes).unwrap();
        for (id, (argument, value, iterations)) in walks.iter().enumerate() {
            let (wanted, looks) = match value {
                Some(value) => (End::Value(*value), *iterations),
                None => (End::Stopped, least),
            };
            *(if value.is_some() { &mut ended } else { &mut endless }) += 1;
            let (got, _) = run(engine, &code, &format!("loop_{id}"), *argument, looks);
            assert_eq!(
                got, wanted,
                "seed {}, loop_{id}({argument}), {iterations} iterations, strips of {strip_iterations}, {looks} looks\n{}",
                batch.seed, texts[id]
            );
        }
    }
    (ended / STRIPS.len(), endless / STRIPS.len())
}

/// Calls a function that may look at the clock so often; how often it did.
fn run(
    engine: &Engine,
    code: &wasmtime::Module,
    name: &str,
    argument: i64,
    looks: u64,
) -> (End, u64) {
    let mut linker = Linker::new(engine);
    linker
        .func_wrap(DEWAR, "tick", |mut caller: wasmtime::Caller<'_, u64>| {
            let left = caller.data_mut();
            *left = left.checked_sub(1).ok_or_else(|| wasmtime::Error::new(NoneLeft))?;
            Ok(())
        })
        .unwrap();
    let mut store = Store::new(engine, looks);
    store.set_epoch_deadline(KILL);
    let instance = linker.instantiate(&mut store, code).unwrap();
    let function = instance.get_typed_func::<i64, i64>(&mut store, name).unwrap();
    let end = match function.call(&mut store, argument) {
        Ok(value) => End::Value(value),
        Err(error) if error.downcast_ref::<NoneLeft>().is_some() => End::Stopped,
        Err(error) if error.downcast_ref::<Trap>() == Some(&Trap::Interrupt) => End::Killed,
        Err(error) => panic!("{name}: {error:#}"),
    };
    (end, looks - store.data())
}

#[test]
fn loops_end_by_their_limit_in_the_kernel() {
    let mut rng = Rng(20_261_121);
    let (mut ended, mut endless) = (0, 0);
    for _ in 0..200 {
        let function = [crate::loops::function(&mut rng, 0)];
        let text = function[0].text(0);
        let code = KernelCode::compile(&crate::common::module(&text, ""), KernelOptions::default());
        let mut instance = match code.and_then(|code| code.instantiate(Box::new(NoHost))) {
            Ok(instance) => instance,
            Err(error @ (KernelError::NotPermitted | KernelError::NoArena)) => {
                return eprintln!("NOT TESTED: {error}");
            }
            Err(error) => panic!("{error}\n{text}"),
        };
        let argument = *rng.pick(&[0, 1, 5, 1000]);
        let value = Walk::new(&function, MOST_ITERATIONS).call(0, argument);
        let (start, time) =
            (Instant::now(), Duration::from_millis(if value.is_some() { 5000 } else { 2 }));
        let got = instance.call("loop_0", &[Value::I64(argument)], time);
        match value {
            Some(value) => {
                assert_eq!(got, Ok(Some(Value::I64(value))), "{argument}\n{text}");
                ended += 1;
            }
            // What only takes long may have ended in time.
            None => {
                assert!(matches!(got, Ok(_) | Err(CallError::Timeout)), "{got:?}\n{text}");
                assert!(start.elapsed() < Duration::from_secs(20), "{text}");
                endless += usize::from(got.is_err());
            }
        }
    }
    assert!(ended > 50 && endless > 50, "the generator makes one kind only: {ended} and {endless}");
}
