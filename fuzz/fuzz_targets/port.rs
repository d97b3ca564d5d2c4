//! A process at the other end of a port that does not keep to the protocol, as a client and as a
//! service: what it sends and writes to the shared memory is read as the protocol says, or ends the
//! connection.
//!
//! An input is one byte that says what the process is, and what it does, one step after the other:
//! see `hostile.rs`.
#![no_main]

use libfuzzer_sys::fuzz_target;

mod client;
mod hostile;
mod service;

use hostile::Script;

fuzz_target!(|bytes: &[u8]| {
    let Some((what, steps)) = bytes.split_first() else { return };
    let memory = what & 2 != 0;
    service::prepare();
    client::prepare();
    let free = lowest_free_descriptor();
    match what & 1 {
        0 if what & 8 != 0 => service::greeted(Script(steps)),
        0 => service::attacked(Script(steps), memory, what & 4 != 0),
        _ => client::attacked(Script(steps), memory, what & 4 == 0),
    }
    assert_eq!(lowest_free_descriptor(), free, "a descriptor stays open");
});

/// If one more is open than before, somebody has forgotten to close it.
fn lowest_free_descriptor() -> i32 {
    use std::os::fd::AsRawFd as _;
    std::fs::File::open("/dev/null").expect("a descriptor").as_raw_fd()
}
