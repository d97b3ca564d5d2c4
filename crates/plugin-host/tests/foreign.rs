//! WebAssembly from other compilers: the same interface, the same limits.

mod common;

use common::{PATIENCE, UPPER, host_of, server, spec};
use plugin_host::{CallFailure, Limits, LoadError, PLUGIN_CONTEXT, PluginHost, PluginSpec};
use std::time::{Duration, Instant};

fn load(host: &PluginHost, name: &str, body: &str, call_time: Duration) -> Result<(), LoadError> {
    let text = format!(
        "(module
            (import \"host\" \"host_log\" (func $log (param i32 i64) (result i32)))
            (memory (export \"memory\") 1)
            (table 1 funcref)
            (func $handle (export \"handle\")
                (param $in i32) (param $n i64) (param $out i32) (param $room i64) (result i64)
                {body}))"
    );
    let module = wat::parse_str(&text).unwrap();
    let limits = Limits { call_time, memory_bytes: 64 << 20, faults: 100, ..Limits::default() };
    let spec = PluginSpec { limits, ..PluginSpec::wasm(name, PLUGIN_CONTEXT, &module) };
    host.load(&spec).map(drop)
}

#[test]
fn a_foreign_module_sees_requests_and_replies() {
    let host = host_of(&server(""), None);
    let body = "(memory.copy (local.get $out) (local.get $in) (i32.wrap_i64 (local.get $n)))
        (drop (call $log (local.get $in) (local.get $n))) (local.get $n)";
    load(&host, "copy", body, PATIENCE).unwrap();
    for size in [0, 1, 70_000, 3_300_000, 5] {
        let request = vec![b'x'; size];
        assert_eq!(host.call("copy", &request).unwrap(), request, "{size}");
    }
    assert_eq!(host.log("copy").last().unwrap(), "xxxxx");
}

#[test]
fn what_a_module_calls_its_functions_steers_no_terminal() {
    let host = host_of(&server(""), None);
    let name = r"a\1b]0;x\07\1b[2J\0afoo.e: trusted";
    let text = format!(
        "(module (memory (export \"memory\") 1) (func $\"{name}\" unreachable)
            (func (export \"handle\") (param i32 i64 i32 i64) (result i64)
                (call $\"{name}\") i64.const 0))"
    );
    let module = wat::parse_str(&text).unwrap();
    let spec = PluginSpec::wasm("named", PLUGIN_CONTEXT, &module);
    let said = match host.load(&spec) {
        Ok(_) => host.call("named", b"x").unwrap_err().to_string(),
        Err(error) => error.to_string(),
    };
    assert!(said.contains("foo.e: trusted"), "{said:?}");
    assert!(!said.contains(|c: char| c.is_control()), "{said:?}");
}

#[test]
fn what_the_module_grows_itself_stays_its_own() {
    let host = host_of(&server(""), None);
    // Grows by a page each call, marks it, and finds all earlier marks.
    let body = "(local $p i32) (local $i i32)
        (local.set $p (i32.mul (memory.grow (i32.const 1)) (i32.const 65536)))
        (i32.store (local.get $p) (i32.const 0x5a5a5a5a))
        (i32.store (i32.const 64) (i32.add (i32.load (i32.const 64)) (i32.const 1)))
        (i32.store (i32.add (i32.const 64) (i32.mul (i32.load (i32.const 64)) (i32.const 4))) (local.get $p))
        (block $done (loop $next
            (local.set $i (i32.add (local.get $i) (i32.const 1)))
            (br_if $done (i32.gt_u (local.get $i) (i32.load (i32.const 64))))
            (if (i32.ne (i32.const 0x5a5a5a5a) (i32.load (i32.load
                    (i32.add (i32.const 64) (i32.mul (local.get $i) (i32.const 4))))))
                (then unreachable))
            (br $next)))
        (i64.const 0)";
    load(&host, "grow", body, PATIENCE).unwrap();
    for size in [10, 100_000, 10, 1_000_000, 2_000_000, 10] {
        assert_eq!(host.call("grow", &vec![b'y'; size]), Ok(Vec::new()), "{size}");
    }
}

#[test]
fn hostile_modules_end_their_own_calls() {
    let host = host_of(&server(""), None);
    host.load(&spec("good", UPPER)).unwrap();
    for (name, body, want) in [
        ("spin", "(loop $l (br $l)) (i64.const 0)", "time"),
        ("deep", "(call $handle (local.get 0) (local.get 1) (local.get 2) (local.get 3))", "stack"),
        ("read", "(i64.load (i32.const -8))", "not its own"),
        ("huge", "(i64.add (local.get $room) (i64.const 1))", "no length"),
        ("grow", "(loop $l (drop (memory.grow (i32.const 1))) (br $l)) (i64.const 0)", "time"),
        ("call", "(call_indirect (result i64) (i32.const 0))", "no function"),
        (
            "logs",
            "(loop $l (drop (call $log (i32.const 0) (i64.const -1))) (br $l)) (i64.const 0)",
            "time",
        ),
    ] {
        let time = if want == "time" { Duration::from_millis(30) } else { PATIENCE };
        load(&host, name, body, time).unwrap();
        for _ in 0..3 {
            let start = Instant::now();
            let failure = host.call(name, b"x").expect_err(name);
            assert!(failure.to_string().contains(want), "{name}: {failure}");
            assert!(start.elapsed() < Duration::from_secs(20), "{name}");
            assert_eq!(host.call("good", b"ok"), Ok(b"OK".to_vec()), "{name}");
        }
    }
}

#[test]
fn a_module_that_does_not_fit_is_refused() {
    let host = host_of(&server(""), None);
    let nothing = "(func (export \"handle\") (param i32 i64 i32 i64) (result i64) (i64.const 0))";
    let memory = "(memory (export \"memory\") 1)";
    for (text, want) in [
        (format!("(module {nothing})"), "`memory`"),
        (format!("(module {memory})"), "handle"),
        (format!("(module {memory} (func (export \"handle\")))"), "handle"),
        (format!("(module {memory} {nothing} (func $s (loop $l (br $l))) (start $s))"), "time"),
        (format!("(module (memory (export \"memory\") 2000) {nothing})"), "memory"),
        (format!("(module (import \"wasi\" \"exit\" (func)) {memory} {nothing})"), "wasi"),
        (format!("(module (memory i64 1) {nothing})"), "memory"),
        (format!("(module {memory} (table 100000000 funcref) {nothing})"), "table"),
    ] {
        let module = wat::parse_str(&text).unwrap();
        match host.load(&PluginSpec::wasm("m", PLUGIN_CONTEXT, &module)) {
            Err(LoadError::Interface { what, .. }) => {
                assert!(what.contains(want), "{text}: {what}");
            }
            other => panic!("{text}: {other:?}"),
        }
    }
    assert!(host.load(&PluginSpec::wasm("m", PLUGIN_CONTEXT, b"\0asm nonsense")).is_err());
    assert_eq!(host.call("m", b""), Err(CallFailure::Unknown("m".into())));
}
