//! No text makes the compiler panic, and what it accepts is well formed.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(compiled) = ecode::compile(&ecode::Input::new("fuzz", text)) {
        compiled.module.verify().expect("well formed");
        let _ = ecode::wasm::emit(&compiled.module, &ecode::wasm::WasmOptions::default());
    }
});
