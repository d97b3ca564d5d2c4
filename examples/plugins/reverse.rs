//! A plugin in Rust: replies with the request, its characters in reverse order.
//!
//! ```text
//! rustup target add wasm32-unknown-unknown
//! rustc --target wasm32-unknown-unknown -O --crate-type cdylib -C strip=symbols \
//!     reverse.rs -o reverse.wasm
//! echo -n 'drawer' | dewar plugin run reverse.wasm
//! ```
//!
//! Continuous integration does not build it: its machines need not have that target. `rot13.wat`
//! shows there that modules from other compilers run.

use std::slice;

#[link(wasm_import_module = "host")]
extern "C" {
    fn host_log(text: *const u8, len: i64) -> i32;
}

/// # Safety
///
/// Called by the host alone, with `n` readable bytes at `request` and `room` writable ones at
/// `reply`.
#[no_mangle]
pub unsafe extern "C" fn handle(request: *const u8, n: i64, reply: *mut u8, room: i64) -> i64 {
    if n < 0 || n > room {
        return 0;
    }
    let request = slice::from_raw_parts(request, n as usize);
    let reply = slice::from_raw_parts_mut(reply, n as usize);
    match std::str::from_utf8(request) {
        Ok(text) => {
            let reversed: String = text.chars().rev().collect();
            reply.copy_from_slice(reversed.as_bytes());
            n
        }
        Err(_) => {
            let why = "the request is not a text in UTF-8";
            host_log(why.as_ptr(), why.len() as i64);
            0
        }
    }
}
