//! What one client cannot take of the server's memory, by the memory of this process: one test at a
//! time, and no others beside them.

mod common;

use common::{
    Site, connect,
    h2::{END_HEADERS, END_STREAM, HEADERS, SETTINGS, WINDOW_UPDATE, frame},
};
use std::{
    fs,
    io::{Read as _, Write as _},
    sync::Mutex,
};

static ALONE: Mutex<()> = Mutex::new(());

/// KiB of memory that this process has.
fn resident_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn who_asks_for_much_at_once_over_http_2_and_takes_nothing_is_kept_little_for() {
    let _alone = ALONE.lock();
    let mut site = Site::new();
    fs::write(site.root().join("index.html"), vec![b'7'; 4 << 20]).unwrap();
    (site.config.workers, site.config.limits.grace_ms) = (1, 100);
    let server = site.start();
    let address = server.addresses()[0];
    // Windows as wide as there are, and 64 streams of 4 MiB each: 2 GiB were asked for in all.
    let mut asked = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    asked.extend(frame(SETTINGS, 0, 0, &[0, 4, 0x7f, 0xff, 0xff, 0xff]));
    asked.extend(frame(WINDOW_UPDATE, 0, 0, &[0x7f, 0xfe, 0, 0]));
    let get = [0x82, 0x86, 0x84, 0x01, 1, b't'];
    asked.extend((0..64).flat_map(|at| frame(HEADERS, END_STREAM | END_HEADERS, 2 * at + 1, &get)));
    let before = resident_kib();
    let deaf: Vec<_> = (0..8)
        .map(|_| {
            let mut stream = connect(address);
            stream.write_all(&asked).unwrap();
            // The first answer comes when all of them were asked for.
            stream.read_exact(&mut [0; 1 << 16]).unwrap();
            stream
        })
        .collect();
    assert_eq!(common::get(address, "/numbers.txt").text(), "0123456789");
    std::thread::sleep(std::time::Duration::from_millis(500));
    let grown = resident_kib().saturating_sub(before);
    assert!(grown < 120 << 10, "{grown} KiB for {} connections", deaf.len());
    drop(deaf);
    server.end();
}

/// A head of `bytes` whose stream does not end.
fn long_head(stream: u32, bytes: usize) -> Vec<u8> {
    // `:method: POST`, and the rest as in `get`; then a field of that many bytes, not remembered.
    let mut block = vec![0x83, 0x86, 0x84, 0x01, 1, b't', 0x00, 1, b'x', 0x7f];
    let mut left = bytes - 127;
    while left >= 128 {
        block.push((left % 128) as u8 | 0x80);
        left /= 128;
    }
    block.push(left as u8);
    block.extend(std::iter::repeat_n(b'v', bytes));
    frame(HEADERS, END_HEADERS, stream, &block)
}

#[test]
fn heads_over_http_2_whose_streams_never_end_take_no_more_memory_than_they_may() {
    let _alone = ALONE.lock();
    let mut site = Site::new();
    (site.config.workers, site.config.limits.grace_ms) = (1, 100);
    site.config.limits.waiting_bytes = 1 << 20;
    let server = site.start();
    let address = server.addresses()[0];
    let mut asked = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    asked.extend(frame(SETTINGS, 0, 0, &[]));
    asked.extend((0..64).flat_map(|at| long_head(2 * at + 1, 15 << 10)));
    let before = resident_kib();
    let begun: Vec<_> = (0..32)
        .map(|_| {
            let mut stream = connect(address);
            stream.write_all(&asked).unwrap();
            stream
        })
        .collect();
    std::thread::sleep(std::time::Duration::from_millis(1500));
    assert_eq!(common::get(address, "/numbers.txt").text(), "0123456789");
    let grown = resident_kib().saturating_sub(before);
    println!("{} KiB for each of {} connections", grown / begun.len() as u64, begun.len());
    assert!(grown < 36 << 10, "{grown} KiB for {} connections", begun.len());
    drop(begun);
    server.end();
}
