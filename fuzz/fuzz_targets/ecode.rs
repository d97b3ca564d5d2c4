//! No text makes the compiler panic, and what it accepts is well formed, on every target.
#![no_main]

use ecode::{Input, compile, wasm};
use ecode_kernel::{KernelCode, KernelOptions};
use ecode_native::{NativeCode, Protection};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(compiled) = compile(&Input::new("fuzz", text)) else { return };
    let module = compiled.module;
    module.verify().expect("well formed");
    module.with_vectors().verify().expect("well formed with vectors");
    if let Ok(code) = wasm::emit(&module, &wasm::WasmOptions::default()) {
        wasmparser::validate(&code).expect("valid WebAssembly");
    }
    // Programs are checked by the kernel when they are loaded; here they are only made.
    let _ = KernelCode::compile(&module, KernelOptions::default());
    for protection in [Protection::None, Protection::Stack] {
        NativeCode::compile(&module, protection).expect("machine code");
    }
});
