//! Random programs give the same results on every target and as C by gcc, unoptimised and optimised.
//! `ECODE_PROGRAMS` says how many (10,000 in CI); `ECODE_SEED` where to start; with `ECODE_UBSAN` gcc's
//! sanitizers watch the programs too.

#[path = "common/arrays.rs"]
mod arrays;
mod common;
#[path = "common/gcc.rs"]
mod gcc;
#[path = "common/generate.rs"]
mod generate;

use common::{TARGETS, engine, engine_of_short_strips};
use ecode::{CallError, NativeCode, NoHost, Protection, Value, ir::Module};
use generate::{Rng, program};
use std::{
    env,
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

const BATCH: usize = 100;
static VECTORS: AtomicUsize = AtomicUsize::new(0);

#[test]
fn random_programs_agree_with_gcc_on_every_target() {
    let number = |name: &str, default: u64| {
        env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
    };
    let (count, seed) = (number("ECODE_PROGRAMS", 200) as usize, number("ECODE_SEED", 20_261_121));
    let folder = tempfile::tempdir().unwrap();
    let mut done = 0;
    while done < count {
        let size = BATCH.min(count - done);
        batch(folder.path(), seed + done as u64, size);
        done += size;
        println!("{done} programs");
    }
    println!("{} loops over arrays ran by vectors", VECTORS.load(Ordering::Relaxed));
    println!("{done} programs agree on {TARGETS:?} and gcc -O0, -O2");
}

fn batch(folder: &Path, seed: u64, size: usize) {
    let mut rng = Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let text: String = (0..size).map(|id| program(&mut rng, id)).collect();
    let module = common::module(&text, "");
    let vectors = module.with_vectors();
    vectors.verify().unwrap_or_else(|e| panic!("seed {seed}: {e}"));
    VECTORS.fetch_add(vectors.to_string().matches("  spent\n").count(), Ordering::Relaxed);
    let (wanted, optimised) = std::thread::scope(|scope| {
        let optimised = scope.spawn(|| gcc::results(folder, &text, size, &["-O2"]));
        (gcc::results(folder, &text, size, &["-O0"]), optimised.join().unwrap())
    });
    assert_eq!(wanted, optimised, "seed {seed}: gcc disagrees with itself");
    if env::var_os("ECODE_UBSAN").is_some() {
        let flags = ["-O1", "-fsanitize=undefined,address", "-fno-sanitize-recover"];
        assert_eq!(
            wanted,
            gcc::results(folder, &text, size, &flags),
            "seed {seed}: undefined behaviour"
        );
    }
    for (name, engine) in [("isolated", engine()), ("short strips", engine_of_short_strips())] {
        let code = engine.compile(&module).unwrap();
        let mut instance = code.instantiate(Box::new(NoHost)).unwrap();
        check(name, seed, &wanted, &text, &module, |name| {
            instance.call(name, &[], Duration::from_secs(10))
        });
    }
    for protection in [Protection::None, Protection::Stack] {
        let code = NativeCode::compile(&module, protection).unwrap();
        // SAFETY: the generator makes no access outside of the program's own objects.
        let mut instance = unsafe { code.instantiate(Box::new(NoHost)) };
        let name = format!("native, {protection:?}");
        check(&name, seed, &wanted, &text, &module, |name| instance.call(name, &[]));
    }
}

fn check(
    target: &str,
    seed: u64,
    wanted: &[i64],
    text: &str,
    module: &Module,
    mut call: impl FnMut(&str) -> Result<Option<Value>, CallError>,
) {
    for (id, wanted) in wanted.iter().enumerate() {
        let got = call(&format!("test_{id}"));
        if got != Ok(Some(Value::I64(*wanted))) {
            let start = text.find(&format!("struct S_{id} {{")).unwrap();
            let end = text.find(&format!("struct S_{} {{", id + 1)).unwrap_or(text.len());
            panic!(
                "seed {seed}, program {id}: {target} gives {got:?}, gcc {wanted}\n{}\n{} functions",
                &text[start..end],
                module.funcs.len()
            );
        }
    }
}
