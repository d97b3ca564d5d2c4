//! Code in the process and in the kernel: only by the policy's leave, and what holds there.

mod common;

use common::{NATIVE, UPPER, host_of, server, spec, targets};
use plugin_host::{CallFailure, LoadError, PluginSpec, Target};

const NATIVES: [Target; 2] = [Target::Native, Target::NativeStack];

#[test]
fn the_kernel_needs_the_permission() {
    let host = host_of(&server(""), None);
    let error = host.load(&PluginSpec { target: Target::Kernel, ..spec("p", UPPER) }).unwrap_err();
    assert!(matches!(error, LoadError::Denied { permission: "load_kernel", .. }), "{error}");
    if !targets().contains(&Target::Kernel) {
        return;
    }
    let host = host_of(&server(NATIVE), None);
    host.load(&PluginSpec { target: Target::Kernel, ..spec("good", UPPER) }).unwrap();
    assert_eq!(host.call("good", &vec![b'x'; 270_000]), Ok(vec![b'X'; 270_000]));
}

#[test]
fn native_code_needs_the_permission_that_is_named() {
    let host = host_of(&server(""), None);
    for target in NATIVES {
        let error = host.load(&PluginSpec { target, ..spec("upper", UPPER) }).unwrap_err();
        assert!(matches!(error, LoadError::Denied { permission: "load_native", .. }), "{error}");
    }
    assert_eq!(host.denials()[0].permissions().collect::<Vec<_>>(), ["load_native"]);
    let host = host_of(&server(NATIVE), None);
    for target in NATIVES {
        let name = target.name();
        host.load(&PluginSpec { target, ..spec(name, UPPER) }).unwrap();
        assert_eq!(host.call(name, b"ok").unwrap(), b"OK");
        assert_eq!(host.call(name, &vec![b'x'; 270_000]).unwrap(), vec![b'X'; 270_000]);
    }
}

#[test]
fn host_functions_are_the_same_on_every_target() {
    let text = "long handle(const char *in, long n, char *out, long room) {
        long count = 0;
        int bad = host_log(\"x\", -1) != -22 || host_set(\"k\", -1, in, 1) != -22 || host_close(3) != -9;
        host_get(\"n\", 1, &count, sizeof count);
        count++;
        out[0] = '0' + count; out[1] = host_set(\"n\", 1, &count, sizeof count) ? 'd' : 's';
        out[2] = host_log(\"called\", 6) == 0 ? 'l' : 'd';
        out[3] = host_open(\"/etc/passwd\", 11) == -13 ? 'd' : 'o';
        out[4] = bad ? 'b' : 'g';
        return 5;
    }";
    let host = host_of(&server(NATIVE), None);
    for target in targets() {
        let name = target.name();
        host.load(&PluginSpec { target, ..spec(name, text) }).unwrap();
        assert_eq!(host.call(name, b"").unwrap(), b"1sldg", "{name}");
        assert_eq!(host.call(name, b"").unwrap(), b"2sldg", "{name}");
        assert_eq!(host.log(name), ["called", "called"], "{name}");
    }
}

#[test]
fn a_smashed_stack_ends_the_call_and_names_the_function() {
    let text = "static void copy(const char *from, long n) {
            char buffer[16]; long i;
            for (i = 0; i < n; i++) buffer[i] = from[i];
        }
        long handle(const char *in, long n, char *out, long room) { copy(in, n); return 0; }";
    let host = host_of(&server(NATIVE), None);
    host.load(&PluginSpec { target: Target::NativeStack, ..spec("smash", text) }).unwrap();
    host.load(&spec("good", UPPER)).unwrap();
    assert_eq!(host.call("smash", &[b'a'; 16]), Ok(Vec::new()));
    let failure = host.call("smash", &[b'a'; 48]).unwrap_err();
    assert!(matches!(&failure, CallFailure::Fault(what) if what.contains("`copy`")), "{failure}");
    assert_eq!(host.call("smash", b"again"), Ok(Vec::new()));
    assert_eq!(host.call("good", b"ok").unwrap(), b"OK");
}

#[test]
fn a_symbol_outside_of_the_plugin_s_table_is_not_linked() {
    let text =
        "long handle(const char *in, long n, char *out, long room) { return host_log(in, n); }";
    let host = host_of(&server(NATIVE), None);
    for target in targets() {
        let refused =
            host.load(&PluginSpec { symbols: Some(&["host_get"]), target, ..spec("p", text) });
        let Err(LoadError::Interface { what, .. }) = refused else { panic!("{refused:?}") };
        assert!(what.contains("`host_log`"), "{what}");
        let name = target.name();
        let offered = PluginSpec { symbols: Some(&["host_log"]), target, ..spec(name, text) };
        host.load(&offered).unwrap();
        assert_eq!(host.call(name, b"x"), Ok(Vec::new()));
    }
}
