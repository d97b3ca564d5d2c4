//! HTTP/2 frame by frame.

use super::connect;
use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
};

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const ACK: u8 = 1;
pub(crate) const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;

/// The setting that says how much of a stream may be sent.
const WINDOW: u16 = 4;

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let len = (payload.len() as u32).to_be_bytes();
    [&len[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A connection whose streams have a window of so many bytes.
pub(crate) fn begin(address: SocketAddr, window: u32) -> TcpStream {
    let mut stream = connect(address);
    let setting = [&WINDOW.to_be_bytes()[..], &window.to_be_bytes()].concat();
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
    stream.write_all(&frame(SETTINGS, 0, 0, &setting)).unwrap();
    stream
}

/// A text in HPACK, without Huffman's code.
fn text(text: &str) -> Vec<u8> {
    let (mut out, mut left) = (vec![text.len().min(127) as u8], text.len().saturating_sub(127));
    if text.len() >= 127 {
        while left >= 128 {
            out.push(left as u8 | 0x80);
            left /= 128;
        }
        out.push(left as u8);
    }
    out.extend(text.as_bytes());
    out
}

/// The head of a request: `:method` by its place in HPACK's table.
fn head(method: u8, path: &str) -> Vec<u8> {
    [&[method, 0x86, 0x04][..], &text(path), &[0x01], &text("t")].concat()
}

pub(crate) fn get(stream: u32, path: &str) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | END_STREAM, stream, &head(0x82, path))
}

/// The head of a request with a body of so many bytes, which does not come.
pub(crate) fn post(stream: u32, path: &str, length: usize) -> Vec<u8> {
    let length = [&[0x0f, 0x0d][..], &text(&length.to_string())].concat();
    frame(HEADERS, END_HEADERS, stream, &[head(0x83, path), length].concat())
}

/// A frame: its kind, flags, stream and payload.
pub(crate) fn read(stream: &mut TcpStream) -> std::io::Result<(u8, u8, u32, Vec<u8>)> {
    let mut head = [0; 9];
    stream.read_exact(&mut head)?;
    let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
    stream.read_exact(&mut payload)?;
    let at = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
    Ok((head[3], head[4], at, payload))
}

/// The status that the head of an answer begins with: one of HPACK's table, or digits in its code.
pub(crate) fn status_of(head: &[u8]) -> u16 {
    match head[0] {
        indexed @ 0x88..=0x8e => [200, 204, 206, 304, 400, 404, 500][usize::from(indexed) - 0x88],
        _ => {
            assert_eq!(head[1] & 0x80, 0x80, "{head:02x?}");
            let mut bits =
                head[2..].iter().flat_map(|byte| (0..8).rev().map(move |at| byte >> at & 1));
            let mut next =
                |count| (0..count).fold(0, |all, _| all << 1 | u16::from(bits.next().unwrap()));
            (0..3).fold(0, |status, _| {
                // The codes of 0, 1 and 2 have five bits, the others' begin with 011001 for 3.
                let digit = match next(5) {
                    digit @ 0..=2 => digit,
                    begun => (begun << 1 | next(1)) - 0b011001 + 3,
                };
                status * 10 + digit
            })
        }
    }
}

/// The status and the content of the answer on a stream; what it takes is let come on.
pub(crate) fn answer(stream: &mut TcpStream, at: u32) -> (u16, Vec<u8>) {
    let (mut status, mut content) = (0, Vec::new());
    loop {
        let (kind, flags, on, payload) = read(stream).unwrap();
        if kind == PING && flags & ACK == 0 {
            stream.write_all(&frame(PING, ACK, 0, &payload)).unwrap();
        }
        if on != at {
            continue;
        }
        match kind {
            HEADERS => status = status_of(&payload),
            DATA => {
                let wider = (payload.len() as u32).to_be_bytes();
                content.extend(payload);
                if wider != [0; 4] {
                    stream.write_all(&frame(WINDOW_UPDATE, 0, 0, &wider)).unwrap();
                    stream.write_all(&frame(WINDOW_UPDATE, 0, at, &wider)).unwrap();
                }
            }
            _ => {}
        }
        if matches!(kind, HEADERS | DATA) && flags & END_STREAM != 0 || kind == RST_STREAM {
            return (status, content);
        }
    }
}

/// What somebody else is answered.
pub(crate) fn ask(address: SocketAddr, path: &str) -> (u16, Vec<u8>) {
    let mut stream = begin(address, 65_535);
    stream.write_all(&get(1, path)).unwrap();
    answer(&mut stream, 1)
}
