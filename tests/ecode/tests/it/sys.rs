//! The one way by which tests run native code.
#![allow(unsafe_code)]

use ecode::Host;
use ecode_native::{NativeCode, NativeInstance};

/// An instance of `code`.
pub(crate) fn native<H: Host + 'static>(code: &NativeCode, host: H) -> NativeInstance<H> {
    // SAFETY: the programs of these tests keep to their own objects, to the buffers that they are
    // given with their lengths, and to so much of their own frame as a guard lies behind.
    unsafe { code.instantiate(host) }
}
