//! What the compiler cannot check: machine code from a file and in the process, and the address
//! space of memories.

#![allow(unsafe_code)]

mod image;
mod slots;

pub use image::Image;
pub(crate) use slots::{Slots, VIEW_BYTES};

use crate::cache::Authentic;
use ecode::Host;
use ecode_native::{NativeCode, NativeInstance};
use wasmtime::{Engine, Module};

/// The module whose machine code `artefact` is; `None` when it is for another engine or machine.
pub(crate) fn deserialize(engine: &Engine, artefact: &Authentic) -> Option<Module> {
    // SAFETY: the bytes must come from `Module::serialize` and be unchanged. An `Authentic` is made
    // only by the cache, after a keyed hash over these very bytes (in memory, not in a file that
    // may still change) was found right; the key lies in a file that only this user can read, and
    // the cache signs only what `Module::serialize` returned. Whether they fit this engine,
    // wasmtime checks itself.
    unsafe { Module::deserialize(engine, artefact.bytes()) }.ok()
}

/// A policy's word that a plugin may be loaded; for a native target, that it may run with all
/// rights of this process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trusted(());

impl Trusted {
    /// To be called only where the policy has granted the host, on the plugin,
    /// [`crate::Target::permission`].
    pub(crate) fn by_policy() -> Self {
        Self(())
    }
}

/// An instance that runs in the process.
pub(crate) fn instantiate<H: Host + 'static>(
    code: &NativeCode,
    _: Trusted,
    host: H,
) -> NativeInstance<H> {
    // SAFETY: `instantiate` demands that the program's text is trusted with everything the process
    // may do. A `Trusted` stands for the policy's grant of exactly that. The addresses passed to
    // `call` are those of buffers that live as long as the instance (`native::Native`).
    unsafe { code.instantiate(host) }
}
