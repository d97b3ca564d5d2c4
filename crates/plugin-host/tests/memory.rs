//! The memories of isolated plugins: requests mapped into them, and nothing left of one for the next.

mod common;

use common::{NATIVE, host_of, server, spec, targets};
use plugin_host::{CallFailure, LoadError, PLUGIN_CONTEXT, PluginHost, PluginSpec, Request};

const LONG: usize = Request::MAPPED_FROM;
/// Copies its request, overwrites it byte by byte, and its end by a record.
const SPOIL: &str = "struct block { char bytes[64]; };
    long handle(char *in, long n, char *out, long room) {
        for (long i = 0; i < n; i++) { out[i] = in[i]; in[i] = 'x'; }
        *(struct block *)(in + n - 64) = *(struct block *)in;
        return n; }";
/// How many bytes from its request on, up to the end of its memory, are not 0.
const COUNT: &str = "long handle(const unsigned char *in, long n, char *out, long room) {
        long found = 0;
        for (const unsigned char *p = in + n; p < (unsigned char *)out + room; p++) found += *p != 0;
        for (int i = 0; i < 8; i++) out[i] = found >> 8 * i;
        return 8; }";

fn host() -> PluginHost {
    host_of(&server(NATIVE), None)
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i % 251) as u8 + 1).collect()
}

fn count(reply: &[u8]) -> u64 {
    u64::from_le_bytes(reply.try_into().unwrap())
}

#[test]
fn a_request_is_the_same_mapped_or_copied_and_no_plugin_changes_it() {
    for target in targets() {
        let host = host();
        host.load(&PluginSpec { target, ..spec("spoil", SPOIL) }).unwrap();
        for len in [64, LONG - 1, LONG, LONG + 1, LONG + 4095, 1 << 20] {
            let want = bytes(len);
            let request = Request::new(&want).unwrap();
            for turn in 0..3 {
                let reply = host.call_with("spoil", &request).unwrap();
                assert!(reply == want, "{target}, {len} bytes, turn {turn}");
            }
            assert!(request.bytes() == want, "{target}, {len} bytes");
            assert!(host.call("spoil", &want).unwrap() == want, "{target}, {len} bytes, copied");
        }
    }
}

#[test]
fn two_sessions_share_a_request_and_not_what_they_make_of_it() {
    let host = host();
    host.load(&spec("spoil", SPOIL)).unwrap();
    let request = Request::new(&bytes(LONG)).unwrap();
    let mut sessions: Vec<_> = (0..3).map(|_| host.session("spoil").unwrap()).collect();
    for session in &mut sessions {
        session.fill_with(&request).unwrap();
    }
    for session in &mut sessions {
        assert_eq!(session.run(), Ok(LONG));
        assert!(session.reply(LONG) == bytes(LONG));
        // Its own copy is the one that it has spoilt.
        assert_eq!(session.run(), Ok(LONG));
        assert!(session.reply(LONG).iter().all(|byte| *byte == b'x'));
    }
}

#[test]
fn nothing_is_left_of_a_mapped_request_for_the_next() {
    let host = host();
    host.load(&spec("count", COUNT)).unwrap();
    let request = Request::new(&bytes(LONG + 100)).unwrap();
    let mut session = host.session("count").unwrap();
    session.fill(b"").unwrap();
    assert_eq!(session.run(), Ok(8));
    session.fill_with(&request).unwrap();
    assert_eq!((session.run(), count(session.reply(8))), (Ok(8), 0), "behind the request");
    session.fill(b"short").unwrap();
    assert_eq!(session.run(), Ok(8));
    // What is left is the reply of the call before.
    assert!(count(session.reply(8)) <= 8, "{} bytes of it", count(session.reply(8)));
}

#[test]
fn a_fresh_instance_sees_nothing_of_those_before() {
    const FILL: &str = "static char own[100000];
        long handle(char *in, long n, char *out, long room) {
            for (int i = 0; i < 100000; i++) own[i] = 1;
            for (long i = 0; i < room; i++) out[i] = 1;
            for (long i = 0; i < n; i++) in[i] = 1;
            return n ? room : -1; }";
    let host = host();
    host.load(&spec("fill", FILL)).unwrap();
    let long = Request::new(&bytes(LONG)).unwrap();
    // A fault, a request that was copied, and one that is mapped still when its instance ends.
    assert_eq!(host.call("fill", b""), Err(CallFailure::BadReply(-1)));
    assert!(host.call("fill", &bytes(LONG)).is_ok());
    assert!(host.call_with("fill", &long).is_ok());
    host.unload("fill");
    for _ in 0..3 {
        host.load(&spec("count", COUNT)).unwrap();
        let mut sessions: Vec<_> = (0..4).map(|_| host.session("count").unwrap()).collect();
        for session in &mut sessions {
            session.fill(b"").unwrap();
            assert_eq!((session.run(), count(session.reply(8))), (Ok(8), 0));
        }
        host.unload("count");
    }
}

#[test]
fn there_are_as_many_instances_as_there_may_be_and_room_again_when_they_end() {
    let host = host();
    host.load(&spec("count", COUNT)).unwrap();
    let mut sessions = Vec::new();
    let full = loop {
        match host.session("count") {
            Ok(session) => sessions.push(session),
            Err(failure) => break failure,
        }
    };
    assert!(matches!(full, CallFailure::NoRoom(_)), "{full}");
    assert_eq!(sessions.len(), 128);
    sessions.truncate(60);
    assert!(host.session("count").is_ok());
}

#[test]
fn a_module_has_one_memory_of_a_size_within_its_limit() {
    let host = host();
    let load = |name: &str, memories: &str| {
        let wat = format!(
            "(module {memories} (func (export \"handle\") (param i32 i64 i32 i64) (result i64) i64.const 0))"
        );
        host.load(&PluginSpec::wasm(name, PLUGIN_CONTEXT, &wat::parse_str(wat).unwrap()))
    };
    assert!(load("one", "(memory (export \"memory\") 1)").is_ok());
    for (name, memories) in [
        ("two", "(memory (export \"memory\") 1) (memory 1)"),
        ("large", "(memory (export \"memory\") 257)"),
        ("wide", "(memory (export \"memory\") i64 65536)"),
        ("tables", "(memory (export \"memory\") 1) (table 1 funcref) (table 1 funcref)"),
    ] {
        let refused = load(name, memories);
        assert!(matches!(refused, Err(LoadError::Interface { .. })), "{name}: {refused:?}");
    }
}
