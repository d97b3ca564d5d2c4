//! What comes over the port of a security server, on either side of it: a query, an answer, or refused.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = server_port::decode(bytes);
    // Nearly every input lacks the mark that begins a message.
    let marked: Vec<u8> = [b'Q'].iter().chain(bytes).copied().collect();
    let _ = server_port::decode(&marked);
});
