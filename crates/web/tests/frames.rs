//! HTTP/2 frame by frame: requests that no library would send.

mod common;

use common::{
    Site, connect, get,
    h2::{
        DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, RST_STREAM, SETTINGS, WINDOW_UPDATE, frame,
    },
};
use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
};

/// `:method: POST`, `:scheme: http`, `:path: /`, `:authority: t`, by their places in HPACK's table.
const POST: &[u8] = &[0x83, 0x86, 0x84, 0x01, 1, b't'];

fn begin(address: SocketAddr) -> TcpStream {
    let mut stream = connect(address);
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
    stream.write_all(&frame(SETTINGS, 0, 0, &[])).unwrap();
    stream
}

/// The kind and the code of what ends stream 1: its data's end, or an error.
fn end(stream: &mut TcpStream) -> (u8, u32) {
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).expect("a frame");
        let len = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let mut payload = vec![0; len];
        stream.read_exact(&mut payload).unwrap();
        let code = |at: usize| u32::from_be_bytes(payload[at..at + 4].try_into().unwrap());
        match (head[3], head[4]) {
            (RST_STREAM, _) => return (RST_STREAM, code(0)),
            (GOAWAY, _) => return (GOAWAY, code(4)),
            (DATA | HEADERS, flags) if flags & END_STREAM != 0 => return (head[3], 0),
            _ => {}
        }
    }
}

#[test]
fn a_request_whose_rest_is_wrong_is_not_answered_before_the_rest_has_come() {
    let mut site = Site::new();
    site.config.limits.grace_ms = 100;
    let server = site.start();
    let address = server.addresses()[0];
    // A length of 1, and 5 bytes.
    let mut stream = begin(address);
    let sized = [POST, &[0x0f, 0x0d, 1, b'1']].concat();
    stream.write_all(&frame(HEADERS, END_HEADERS, 1, &sized)).unwrap();
    stream.write_all(&frame(DATA, END_STREAM, 1, b"hello")).unwrap();
    let (kind, code) = end(&mut stream);
    assert!(matches!(kind, RST_STREAM | GOAWAY) && code == 1, "a protocol error: {kind} {code}");
    // A window beyond all bounds.
    let mut stream = begin(address);
    stream.write_all(&frame(HEADERS, END_HEADERS, 1, POST)).unwrap();
    for _ in 0..2 {
        stream.write_all(&frame(WINDOW_UPDATE, 0, 1, &0x7fff_ffff_u32.to_be_bytes())).unwrap();
    }
    let (kind, code) = end(&mut stream);
    assert!(matches!(kind, RST_STREAM | GOAWAY) && code == 3, "flow control: {kind} {code}");
    server.end();
}

#[test]
fn a_body_that_nobody_wants_is_passed_over_and_an_endless_one_holds_nobody() {
    let mut site = Site::new();
    (site.config.limits.body_bytes, site.config.limits.grace_ms) = (1000, 100);
    let server = site.start();
    let address = server.addresses()[0];
    let mut stream = begin(address);
    stream.write_all(&frame(HEADERS, END_HEADERS, 1, POST)).unwrap();
    for _ in 0..4 {
        stream.write_all(&frame(DATA, 0, 1, &[b'x'; 500])).unwrap();
    }
    let (kind, _) = end(&mut stream);
    assert!(matches!(kind, DATA | HEADERS | RST_STREAM), "{kind}");
    assert_eq!(get(address, "/numbers.txt").text(), "0123456789");
    server.end();
}
