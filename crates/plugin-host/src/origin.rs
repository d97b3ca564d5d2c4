//! What machine code in the cache was made of: the text and the compiler with its options, or the
//! WebAssembly; and the engine with its version, options and processor features.

use crate::cache::Key;
use ecode::wasm::WasmOptions;
use std::hash::{Hash, Hasher};
use wasmtime::Engine;

/// What machine code was made of: with the engine, everything that it depends on.
#[derive(Hash)]
pub(crate) enum Origin<'s> {
    Wasm(&'s [u8]),
    Text {
        /// [`ecode::SOURCE_HASH`], and what the compiler is given beside the text.
        compiler: &'static str,
        declarations: &'static str,
        memory: WasmOptions,
        text: &'s str,
    },
}

impl Origin<'_> {
    /// The key of the code that `engine` makes of it.
    pub(crate) fn key(&self, engine: &Engine) -> Key {
        let mut digest = Digest(blake3::Hasher::new());
        engine.precompile_compatibility_hash().hash(&mut digest);
        self.hash(&mut digest);
        Key(digest.0.finalize())
    }
}

/// A hash of what implements [`Hash`], as a cryptographic one.
struct Digest(blake3::Hasher);

impl Hasher for Digest {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        0
    }
}
