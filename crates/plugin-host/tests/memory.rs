//! The memories of isolated plugins: as many and as large as they may be, and nothing left of one
//! for the next.

mod common;

use common::{NATIVE, host_of, server, spec};
use plugin_host::{CallFailure, Limits, LoadError, PLUGIN_CONTEXT, PluginHost, PluginSpec, Target};

/// How many bytes from its request on, up to the end of its memory, are not 0.
const COUNT: &str = "long handle(const unsigned char *in, long n, char *out, long room) {
        long found = 0;
        for (const unsigned char *p = in + n; p < (unsigned char *)out + room; p++) found += *p != 0;
        for (int i = 0; i < 8; i++) out[i] = found >> 8 * i;
        return 8; }";

fn host() -> PluginHost {
    host_of(&server(""), None)
}

fn count(reply: &[u8]) -> u64 {
    u64::from_le_bytes(reply.try_into().unwrap())
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
    // One instance ends by a fault, the next when it is unloaded.
    assert_eq!(host.call("fill", b""), Err(CallFailure::BadReply(-1)));
    assert!(host.call("fill", &[7; 300_000]).is_ok());
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
fn what_was_sent_before_a_reply_is_gone_before_the_next_request_lies_there() {
    const ECHO: &str = "long handle(const char *in, long n, char *out, long room) {
        for (long i = 0; i < n; i++) out[i] = in[i];
        return n; }";
    let host = host_of(&server(NATIVE), None);
    for target in [Target::Isolated, Target::Native] {
        host.load(&PluginSpec { target, ..spec("echo", ECHO) }).unwrap();
        let mut session = host.session("echo").unwrap();
        for (first, head) in [(9, 200), (0, 1024), (1000, 700), (100, 1)] {
            session.fill(&vec![b'a'; first]).unwrap();
            assert_eq!(session.run(), Ok(first));
            let sent = session.reply_behind(&vec![b'h'; head], first).unwrap().to_vec();
            assert_eq!(sent, [vec![b'h'; head], vec![b'a'; first]].concat());
            // Longer, so that it lies where that was.
            session.fill(&[b'b'; 4000]).unwrap();
            assert_eq!(session.run(), Ok(4000), "{target}");
            assert!(session.reply(4000) == [b'b'; 4000], "{target}: {first} {head}");
        }
        host.unload("echo");
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

#[test]
fn idle_instances_keep_no_more_memory_than_they_may() {
    /// How often this instance was called.
    const TIMES: &str = "static char times;
        long handle(char *in, long n, char *out, long room) { out[0] = ++times; return 1; }";
    for (output_bytes, kept) in [(40 << 20, 3), (1 << 20, 16)] {
        let host = host();
        let small = spec("times", TIMES);
        let limits = Limits { memory_bytes: 64 << 20, output_bytes, ..small.limits };
        host.load(&PluginSpec { limits, ..small }).unwrap();
        for iteration in 0..2 {
            let mut sessions: Vec<_> = (0..20).map(|_| host.session("times").unwrap()).collect();
            let used_before = sessions.iter_mut().filter_map(|session| {
                session.fill(b"").unwrap();
                assert_eq!(session.run(), Ok(1));
                (session.reply(1) == [2]).then_some(())
            });
            assert_eq!(used_before.count(), iteration * kept, "replies of {output_bytes} bytes");
        }
    }
}
