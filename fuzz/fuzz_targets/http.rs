//! Requests as they come from anybody: heads, bodies in chunks, paths, ranges, conditions,
//! preferences.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::time::UNIX_EPOCH;
use web::http::{
    accept::{Coding, quality, takes},
    chunked::Chunks,
    conditional,
    head::{MAX_FIELDS, MAX_HEAD, parse},
    path,
    range::Range,
};

fuzz_target!(|bytes: &[u8]| {
    let mut room = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let Ok(Some(head)) = parse(bytes, &mut room) else { return };
    assert!(head.len <= bytes.len() && head.len <= MAX_HEAD);
    // What a proxy could take for the end of a message is none of ours.
    assert!(!bytes[..head.len].windows(2).any(|pair| pair[1] == b'\n' && pair[0] != b'\r'));
    if let Ok(target) = path::decode(head.target.split('?').next().unwrap_or_default().as_bytes()) {
        let parts = target.path.split(|byte| *byte == b'/');
        if !target.path.is_empty() {
            parts.for_each(|part| assert!(!part.is_empty() && part != b"." && part != b".."));
        }
        assert!(!target.path.contains(&0));
        let again = format!("/{}", path::encode(&target.path));
        assert_eq!(path::decode(again.as_bytes()).unwrap().path, target.path);
    }
    for field in head.fields {
        if let Range::Part(from, to) = Range::parse(field.value, 1000) {
            assert!(from < to && to <= 1000);
        }
        let _ = (quality(field.value, "text/html"), takes(field.value, Coding::Gzip));
    }
    let _ = conditional::outcome(head.fields, "\"a\"", UNIX_EPOCH);
    // Chunks are the same, however they are cut.
    let body = &bytes[head.len..];
    let mut whole = Chunks::default();
    let all = whole.feed(body, 1 << 16);
    let mut pieces = Chunks::default();
    let mut fed = 0;
    let cut = body.chunks(3).try_fold(false, |done, piece| {
        if done {
            return Ok(true);
        }
        let (taken, done) = pieces.feed(piece, 1 << 16)?;
        fed += taken;
        Ok(done)
    });
    match (all, cut) {
        (Ok((taken, done)), Ok(cut)) => {
            assert_eq!((taken, done), (fed, cut));
            assert_eq!(whole.into_body(), pieces.into_body());
        }
        (all, cut) => assert_eq!(all.map(|it| it.1), cut),
    }
});
