//! Random programs give the same results on every target and as C by gcc, of which one batch in
//! twenty is optimised, and watched by gcc's sanitizers, too. `ECODE_PROGRAMS` says how many
//! (10,000 if it is not set), `ECODE_SEED` where to start.

use crate::batches::Batch;
use crate::common::{TARGETS, engine, engine_of_short_strips};
use crate::generate::{Rng, program};
use crate::sys;
use ecode::{CallError, NoHost, Value, ir::Module};
use ecode_native::{NativeCode, Protection};
use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

const SANITIZED: [&str; 3] = ["-O1", "-fsanitize=undefined,address", "-fno-sanitize-recover"];

#[test]
fn random_programs_agree_with_gcc_on_every_target() {
    let vectors = AtomicUsize::new(0);
    let count = crate::batches::run(2_000, |batch| {
        vectors.fetch_add(agree(batch), Ordering::Relaxed);
    });
    println!("{} loops ran by vectors, or were unrolled", vectors.into_inner());
    println!(
        "{count} programs agree on {TARGETS:?} and gcc -O0; one in twenty by gcc -O2 and under its sanitizers, too"
    );
}

/// Compares the results of a batch; how many of its loops became others, by vectors or unrolled.
fn agree(batch: Batch) -> usize {
    let Batch { seed, size, is_sample } = batch;
    let folder = tempfile::tempdir().unwrap();
    let mut rng = Rng(batch.random());
    let text: String = (0..size).map(|id| program(&mut rng, id)).collect();
    let module = crate::common::module(&text, "");
    let vectors = module.with_vectors();
    vectors.verify().unwrap_or_else(|e| panic!("seed {seed}: {e}"));
    let by_gcc = |flags: &[&str]| crate::gcc::results(folder.path(), &text, size, flags);
    let wanted = by_gcc(&["-O0"]);
    if is_sample {
        assert_eq!(wanted, by_gcc(&["-O2"]), "seed {seed}: gcc disagrees with itself");
        assert_eq!(wanted, by_gcc(&SANITIZED), "seed {seed}: undefined behaviour");
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
        let mut instance = sys::native(&code, Box::new(NoHost));
        let name = format!("native, {protection:?}");
        check(&name, seed, &wanted, &text, &module, |name| instance.call(name, &[]));
    }
    vectors.to_string().matches("  spent\n").count()
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
