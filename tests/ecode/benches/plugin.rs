//! What compiling and calling a plugin costs: `cargo bench -p ecode-tests`. Prints the best and the
//! median of many runs, beside the same text through gcc.

#[path = "../tests/it/sys.rs"]
mod sys;

use ecode::{Address, Input, NoHost, Value, compile};
use ecode_kernel::{KernelCode, KernelOptions};
use ecode_native::{NativeCode, Protection};
use plugin_host::bare::{IsolatedEngine, IsolatedOptions};
use std::{
    fs,
    process::Command,
    time::{Duration, Instant},
};

/// The grayscaler of "Kernel Plugins" (VM'04): header, then three bytes to one.
const GRAY: &str = include_str!("gray.e");
const SIZES: [usize; 4] = [9_747, 101_568, 280_908, 3_499_200];

fn main() {
    if std::env::args().any(|arg| arg == "--test") {
        return;
    }
    let input = Input::new("gray.e", GRAY);
    let engine = IsolatedEngine::new(IsolatedOptions::default()).expect("address space");
    let module = compile(&input).expect("it compiles").module;
    report("text to form", 300, || drop(compile(&input)));
    report("form to WebAssembly", 300, || drop(ecode::wasm::emit(&module, &Default::default())));
    report("isolated: form to code", 100, || drop(engine.compile(&module)));
    report("native: form to code", 100, || drop(NativeCode::compile(&module, Protection::None)));
    report("native+stack: form to code", 100, || {
        drop(NativeCode::compile(&module, Protection::Stack));
    });
    let code = engine.compile(&module).expect("it compiles");
    report("isolated: instantiate", 1000, || drop(code.instantiate(Box::new(NoHost))));
    let mut isolated = code.instantiate(Box::new(NoHost)).expect("there is room");
    report("isolated: call by name and values", 10_000, || {
        let _ = isolated.call("empty", &[], Duration::from_secs(1));
    });
    calls(&mut isolated, &module);
    gray(&mut isolated, &module);
    kernel(&module);
    gcc();
}

/// Calls into a plugin by a typed entry, and from it to its host.
fn calls(isolated: &mut plugin_host::bare::IsolatedInstance, module: &ecode::ir::Module) {
    const ITERATIONS: u32 = 10_000;
    let second = Duration::from_secs(1);
    let each = |name: &str, run: &mut dyn FnMut()| {
        let times = samples(100, run);
        let nanos = |time: Duration| time.as_nanos() as f64 / f64::from(ITERATIONS);
        let (best, median) = (nanos(times[0]), nanos(times[times.len() / 2]));
        println!("{name:<34} best {best:>7.2} ns, median {median:>7.2} ns");
    };
    let empty = isolated.entry::<(), i64>("empty").expect("it is there");
    each("isolated: enter", &mut || {
        for _ in 0..ITERATIONS {
            let _ = isolated.enter(&empty, (), second);
        }
    });
    let code = NativeCode::compile(module, Protection::None).expect("it compiles");
    let mut native = sys::native(&code, Box::new(NoHost));
    let empty = native.entry::<(), i64>("empty").expect("it is there");
    each("native: enter", &mut || {
        for _ in 0..ITERATIONS {
            let _ = native.enter(&empty, ());
        }
    });
    let text = "int next(int n); int proc(int iterations) { int n = 0; while (iterations--) n = next(n); return n; }";
    let module = compile(&Input::new("next.e", text)).expect("it compiles").module;
    let engine = IsolatedEngine::new(IsolatedOptions::default()).expect("address space");
    let code = engine.compile(&module).expect("it compiles");
    let mut caller = code.instantiate(Box::new(Next)).expect("there is room");
    let proc = caller.entry::<(i32,), i32>("proc").expect("it is there");
    each("isolated: host call", &mut || {
        let _ = caller.enter(&proc, (ITERATIONS as i32,), second);
    });
}

struct Next;

impl ecode::Host for Next {
    fn call(&mut self, _: &str, args: &[Value], _: &mut dyn ecode::Memory) -> Result<u64, String> {
        match args {
            [Value::I32(n)] => Ok(*n as u64 + 1),
            _ => Err("next takes an int".into()),
        }
    }
}

fn gray(isolated: &mut plugin_host::bare::IsolatedInstance, module: &ecode::ir::Module) {
    let base = isolated.heap_base().expect("it has a heap");
    assert!(isolated.grow_to(base + 8_000_000));
    for size in SIZES {
        let image: Vec<u8> = (0..size).map(|i| (i * 7 + i / 3) as u8).collect();
        let (src, dst) = (base, base + size as u64);
        assert!(isolated.write(src, &image));
        let args = (Address(src), Address(dst), size as i64);
        let gray = isolated.entry::<_, i64>("gray").expect("it is there");
        per_byte("isolated", size, || {
            let _ = isolated.enter(&gray, args, Duration::from_secs(10));
        });
        for (name, protection) in
            [("native", Protection::None), ("native+stack", Protection::Stack)]
        {
            let code = NativeCode::compile(module, protection).expect("it compiles");
            let mut native = sys::native(&code, Box::new(NoHost));
            let mut out = vec![0_u8; size];
            let (src, dst) = (image.as_ptr() as u64, out.as_mut_ptr() as u64);
            let args = (Address(src), Address(dst), size as i64);
            let gray = native.entry::<_, i64>("gray").expect("it is there");
            per_byte(name, size, || drop(native.enter(&gray, args)));
            let isolated_out = isolated.read(base + size as u64, size as u64 / 3);
            assert_eq!(isolated_out.as_deref(), Some(&out[..size / 3]), "{name}");
        }
    }
}

fn kernel(module: &ecode::ir::Module) {
    let build = || KernelCode::compile(module, KernelOptions::default()).expect("it compiles");
    report("kernel: form to instructions", 300, || drop(build()));
    let code = build();
    println!("kernel: {} bytes of instructions", code.code_bytes());
    let load = || code.instantiate(Box::new(NoHost));
    let mut plugin = match load() {
        Ok(plugin) => plugin,
        Err(error) => return println!("kernel: NOT MEASURED: {error}"),
    };
    // Unloading is left out: the kernel does most of it later.
    let mut loaded = Vec::new();
    report("kernel: load", 100, || loaded.extend(load()));
    drop(loaded);
    report("kernel: call by name and values", 10_000, || {
        let _ = plugin.call("empty", &[], Duration::from_secs(1));
    });
    let base = plugin.heap_base().expect("it has a heap");
    assert!(plugin.grow_to(base + 8_000_000));
    for size in SIZES {
        let image: Vec<u8> = (0..size).map(|i| (i * 7 + i / 3) as u8).collect();
        assert!(plugin.write(base, &image));
        let dst = Value::Ptr(base + size as u64);
        let args = [Value::Ptr(base), dst, Value::I64(size as i64)];
        per_byte("kernel", size, || {
            let _ = plugin.call("gray", &args, Duration::from_secs(10));
        });
    }
}

fn gcc() {
    let folder = std::env::temp_dir();
    let source = folder.join("dewar-gray.c");
    let main = format!(
        "{GRAY}\n#include <stdio.h>\n#include <stdlib.h>\n#include <time.h>\n\
         static double now(void) {{ struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1e9 + t.tv_nsec; }}\n\
         int main(void) {{ long sizes[] = {{ {SIZES:?} }}; for (int k = 0; k < 4; k++) {{ long n = sizes[k];\n\
         unsigned char *a = malloc(n), *b = malloc(n); double best = 1e18; for (long i = 0; i < n; i++) a[i] = i * 7;\n\
         for (int r = 0; r < 200; r++) {{ double t = now(); gray(a, b, n); t = now() - t; if (t < best) best = t; }}\n\
         printf(\"%.4f \", best / n); }} return 0; }}"
    );
    let main = main.replace("{ [", "{ ").replace("] }", " }");
    if fs::write(&source, main).is_err() {
        return;
    }
    for flags in [&["-O0"][..], &["-O2"], &["-O3", "-march=native"]] {
        let binary = folder.join("dewar-gray");
        let built = Command::new("gcc").args(flags).arg("-o").args([&binary, &source]).status();
        if built.is_ok_and(|status| status.success())
            && let Ok(output) = Command::new(&binary).output()
        {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            println!("gcc {:<30} ns/byte at {SIZES:?}: {text}", flags.join(" "));
        }
    }
}

fn per_byte(name: &str, size: usize, mut run: impl FnMut()) {
    let times = samples(200, &mut run);
    let per_byte = |time: Duration| time.as_nanos() as f64 / size as f64;
    println!(
        "gray {name:<14} {size:>8} bytes: best {:.4} ns/byte, median {:.4}",
        per_byte(times[0]),
        per_byte(times[times.len() / 2])
    );
}

fn report(name: &str, runs: usize, mut run: impl FnMut()) {
    let times = samples(runs, &mut run);
    println!("{name:<34} best {:>10.3?}, median {:>10.3?}", times[0], times[times.len() / 2]);
}

/// Times of `runs` runs, sorted.
fn samples(runs: usize, run: &mut (impl FnMut() + ?Sized)) -> Vec<Duration> {
    let mut times: Vec<Duration> = (0..runs)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    times
}
