//! Each attack on each target that keeps plugins apart: the call ends or is denied, the host lives,
//! and no other plugin is harmed.

mod common;

use common::{NATIVE, PATIENCE, UPPER, host_of, server, spec, targets};
use plugin_host::{CallFailure, Limits, LoadError, PluginHost, PluginSpec, Session, Target};
use std::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::{Duration, Instant},
};

/// The targets that keep plugins apart, of those that this machine permits.
fn isolating() -> impl Iterator<Item = Target> {
    targets().into_iter().filter(|target| matches!(target, Target::Isolated | Target::Kernel))
}

fn host() -> PluginHost {
    host_of(&server(NATIVE), None)
}

/// The body of `handle`, as a text.
fn handle(body: &str) -> String {
    format!("long handle(const char *in, long n, char *out, long room) {{ {body} }}")
}

fn load(host: &PluginHost, name: &str, target: Target, limits: Limits, text: &str) {
    let loaded = host.load(&PluginSpec { target, limits, ..spec(name, text) });
    loaded.unwrap_or_else(|error| panic!("{name} on {target}: {error}"));
}

fn patient() -> Limits {
    Limits { call_time: PATIENCE, faults: 100, ..Limits::default() }
}

/// For what never ends by itself.
fn short() -> Limits {
    Limits { call_time: Duration::from_millis(30), ..patient() }
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Memory,
    Time,
    Stack,
    Reply,
    Division,
    Function,
}

fn end(failure: &CallFailure) -> End {
    let CallFailure::Fault(what) = failure else {
        return match failure {
            CallFailure::Timeout(_) => End::Time,
            CallFailure::BadReply(_) => End::Reply,
            other => panic!("{other:?}"),
        };
    };
    let names = [
        ("not its own", End::Memory),
        ("stack", End::Stack),
        ("divided", End::Division),
        ("no function", End::Function),
        ("indirect call", End::Function),
    ];
    let name = names.iter().find(|(part, _)| what.contains(part));
    name.unwrap_or_else(|| panic!("{what}")).1
}

const HOSTILE: &[(&str, End)] = &[
    ("return *(char *)0x7fffffff;", End::Memory),
    ("return *(long *)0xffffffffu;", End::Memory),
    ("*(long *)0xfffffff0u = 1; return 0;", End::Memory),
    ("const char *p = in; while (*(p += 4096) != 77) ; return n;", End::Memory),
    ("const char *p = in; while (*(p -= 4096) != 77) ; return n;", End::Memory),
    ("long i = 0; while (in[i] != 77) i++; return i;", End::Memory),
    ("char *p = out; for (;;) *(p += 4096) = 1;", End::Memory),
    ("char *p = out; for (;;) *(p -= 4096) = 1;", End::Memory),
    ("for (long i = 0; ; i++) out[i] = 1;", End::Memory),
    ("for (long i = 0; ; i--) out[i] = 1;", End::Memory),
    ("char a[4]; for (long i = 0; ; i++) a[i] = 1;", End::Memory),
    (
        "struct b { char c[1 << 20]; }; *(struct b *)0x7ff00000 = *(struct b *)out; return 0;",
        End::Memory,
    ),
    (
        "struct b { char c[1 << 20]; }; *(struct b *)out = *(struct b *)0x7ff00000; return 0;",
        End::Memory,
    ),
    ("for (;;) ;", End::Time),
    ("a: goto b; b: goto a;", End::Time),
    ("for (;;) host_log(in, 0);", End::Time),
    ("for (;;) host_set(\"k\", 1, in, 1000000);", End::Time),
    ("for (;;) host_get(\"k\", 1, out, room);", End::Time),
    ("for (;;) host_open(\"/etc/passwd\", 11);", End::Time),
    ("return handle(in, n, out, room) + 1;", End::Stack),
    ("char a[100000]; a[n] = 1; return handle(a, n, out, room) + a[n];", End::Stack),
    ("return room + 1;", End::Reply),
    ("return 0x7fffffffffffffff;", End::Reply),
    ("return -1;", End::Reply),
    ("return 1 / (n - n);", End::Division),
    ("return ((long (*)(long))(n + 12345))(n);", End::Function),
    ("return ((long (*)(long))handle)(n);", End::Function),
];

/// Counts its calls in its own memory, all of which it checks.
const WITNESS: &str = "static long count; static char own[50000];
    long handle(const char *in, long n, char *out, long room) {
        for (long i = 0; i < 50000; i++) { if (own[i] != (char)count) return 0; own[i]++; }
        out[0] = ++count; return 1; }";

struct Witness {
    session: Session,
    calls: u8,
}

impl Witness {
    fn new(host: &PluginHost, target: Target) -> Self {
        load(host, "witness", target, patient(), WITNESS);
        let mut session = host.session("witness").unwrap();
        session.fill(b"").unwrap();
        Self { session, calls: 0 }
    }

    #[track_caller]
    fn is_unharmed(&mut self) {
        self.calls = self.calls.wrapping_add(1);
        let len = self.session.run();
        assert_eq!((len, self.session.reply(1)), (Ok(1), &[self.calls][..]));
    }
}

#[test]
fn what_a_hostile_plugin_does_ends_its_own_call() {
    for target in isolating() {
        let host = host();
        let mut witness = Witness::new(&host, target);
        for (number, (body, want)) in HOSTILE.iter().enumerate() {
            let name = format!("hostile {number}");
            let limits = if *want == End::Time { short() } else { patient() };
            load(&host, &name, target, limits, &handle(body));
            for _ in 0..2 {
                let start = Instant::now();
                let failure = host.call(&name, b"x").expect_err(body);
                assert_eq!(end(&failure), *want, "{target}: {body}: {failure}");
                assert!(start.elapsed() < Duration::from_secs(20), "{target}: {body}");
                witness.is_unharmed();
            }
            assert_eq!(host.list().iter().find(|p| p.name == name).unwrap().stats.faults, 2);
            host.unload(&name);
        }
    }
}

#[test]
fn a_memory_bomb_is_refused_or_finds_its_limit() {
    for target in isolating() {
        let host = host();
        let mut witness = Witness::new(&host, target);
        let limits = Limits { memory_bytes: 1 << 20, ..patient() };
        for bomb in ["char big[2 << 20];", "char big[1 << 20];"] {
            let text = format!("{bomb} {}", handle("return big[n];"));
            let refused = host.load(&PluginSpec { target, limits, ..spec("bomb", &text) });
            let refused = refused.expect_err(bomb).to_string();
            assert!(refused.contains("bytes"), "{target}: {bomb}: {refused}");
        }
        // Lack of room for a request is not the plugin's fault: no quarantine.
        load(&host, "small", target, Limits { faults: 1, ..limits }, UPPER);
        let failure = host.call("small", &vec![0; 2 << 20]);
        assert!(matches!(failure, Err(CallFailure::NoRoom(_))), "{target}: {failure:?}");
        assert_eq!(host.call("small", b"ok"), Ok(b"OK".to_vec()), "{target}");
        // What is kept for it is not its memory, and has its own limit.
        let hoard = "long kept = 0; for (long k = 0; k < 4096; k++) kept += host_set((char *)&k, 8, in, n) == 0;
            *(long *)out = kept; return 8;";
        let limits = Limits { state_bytes: 100_000, ..patient() };
        load(&host, "hoard", target, limits, &handle(hoard));
        let kept = host.call("hoard", &[1; 1000]).unwrap();
        assert_eq!(i64::from_le_bytes(kept.try_into().unwrap()), 100_000 / (96 + 1008), "{target}");
        witness.is_unharmed();
    }
}

#[test]
fn a_reply_is_never_longer_than_its_limit() {
    for target in isolating() {
        let host = host();
        for (output_bytes, over) in [(1000, 0), (1000, 1), (0, 0), (0, 1), (1 << 30, 1)] {
            let text = handle(&format!("return room + {over};"));
            load(&host, "fill", target, Limits { output_bytes, ..patient() }, &text);
            match (host.call("fill", b""), over) {
                (Ok(reply), 0) => assert_eq!(reply.len(), output_bytes, "{target}"),
                (Err(CallFailure::BadReply(_)), 1) => {}
                (other, _) => panic!("{target}, {output_bytes}: {other:?}"),
            }
            host.unload("fill");
        }
        // A log is no longer than it may be either, and keeps its last lines.
        let text = handle("long n0 = 0; while (host_log(in, n) == 0) n0++; return n0;");
        let limits = Limits { log_bytes: 10_000, ..patient() };
        load(&host, "loud", target, limits, &text);
        assert_eq!(host.call("loud", &[b'x'; 1000]).unwrap().len(), 10, "{target}");
        for _ in 0..40 {
            host.call("loud", &[b'x'; 1000]).unwrap();
        }
        assert_eq!(host.log("loud").len(), 256, "{target}");
    }
}

#[test]
fn forged_addresses_lengths_and_handles_are_errors() {
    const FORGE: &str = "
        const char *far[4] = { (char *)0x7fffffff, (char *)-1, (char *)0xfffffff0u, (char *)0x70000000 };
        long lens[4] = { -1, 1L << 62, -1L << 63, 1L << 32 };
        long wrong = 0;
        for (int i = 0; i < 4; i++) {
            wrong += host_log(far[i], 9) != -22;
            wrong += host_log(in, lens[i]) == 0;
            wrong += host_get(far[i], 9, out, 8) != -22;
            wrong += host_get(in, lens[i], out, 8) != -22;
            wrong += host_set(far[i], 9, in, 1) != -22;
            wrong += host_set(in, 1, far[i], 9) != -22;
            wrong += host_set(in, 1, in, lens[i]) == 0;
            wrong += host_set(in, lens[i], in, 1) != -22;
            wrong += host_open(far[i], 9) != -22;
            wrong += host_open(in, lens[i]) != -22;
            wrong += host_connect(far[i], 9) != -22;
            wrong += host_connect(in, lens[i]) != -22;
        }
        wrong += host_set(\"k\", 1, in, n) != 0;
        for (int i = 0; i < 4; i++) wrong += host_get(\"k\", 1, (char *)far[i], 9) != -22;
        for (long h = -5; h < 40; h++)
            wrong += host_read(h, out, 1) != -9 || host_write(h, in, 1) != -9 || host_close(h) != -9;
        wrong += host_read(0x7fffffff, out, 1) != -9 || host_close(-0x7fffffff - 1) != -9;
        return wrong;";
    for target in isolating() {
        let host = host();
        let mut witness = Witness::new(&host, target);
        load(&host, "forge", target, patient(), &handle(FORGE));
        assert_eq!(host.call("forge", b"a request"), Ok(Vec::new()), "{target}");
        witness.is_unharmed();
    }
}

#[test]
fn host_calls_without_permission_are_denied_and_do_nothing() {
    const GUEST: &str = "dewar_u:dewar_r:guest_t";
    const RULES: &str = "(type guest_t) (roletype dewar_r guest_t)
        (allow host_t guest_t (plugin (load load_kernel call)))
        (allow guest_t self (plugin (read_request write_reply)))";
    const ASK: &str =
        "out[0] = host_log(in, n) == -13; out[1] = host_get(in, n, out + 16, 8) == -13;
        out[2] = host_set(in, n, in, n) == -13; out[3] = host_open(\"/etc/passwd\", 11) == -13;
        out[4] = host_connect(\"127.0.0.1:1\", 11) == -13; return 5;";
    for target in isolating() {
        let host = host_of(&server(&(NATIVE.to_owned() + RULES)), None);
        let text = handle(ASK);
        let guest = PluginSpec { target, context: GUEST, ..spec("guest", &text) };
        host.load(&guest).unwrap();
        assert_eq!(host.call("guest", b"x"), Ok(vec![1; 5]), "{target}");
        assert_eq!(host.log("guest"), Vec::<String>::new());
        let denied = host.denials();
        let denied: Vec<_> = denied.iter().flat_map(|denial| denial.permissions()).collect();
        for permission in ["log", "get_state", "set_state", "open", "connect"] {
            assert!(denied.contains(&permission), "{target}: {permission} in {denied:?}");
        }
    }
}

#[test]
fn faults_during_replacement_stay_with_the_calls_that_make_them() {
    for target in isolating() {
        let host = host();
        let bad = handle("for (;;) ;");
        let text = |text, limits| PluginSpec {
            target,
            limits: Limits { faults: 3, ..limits },
            ..spec("swap", text)
        };
        load(&host, "good", target, patient(), UPPER);
        host.load(&text(UPPER, patient())).unwrap();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while !stop.load(Relaxed) {
                        match host.call("swap", b"ok") {
                            Ok(reply) => assert_eq!(reply, b"OK"),
                            Err(CallFailure::Timeout(_) | CallFailure::Quarantined) => {}
                            Err(failure) => panic!("{target}: {failure}"),
                        }
                        assert_eq!(host.call("good", b"ok"), Ok(b"OK".to_vec()), "{target}");
                    }
                });
            }
            for _ in 0..10 {
                host.replace(&text(&bad, short())).unwrap();
                std::thread::sleep(Duration::from_millis(10));
                let broken = host.replace(&text("long handle(", short()));
                assert!(matches!(broken, Err(LoadError::Text(_))));
                host.replace(&text(UPPER, patient())).unwrap();
            }
            stop.store(true, Relaxed);
        });
        assert_eq!(host.call("swap", b"ok"), Ok(b"OK".to_vec()), "{target}");
        assert!(host.list()[1].stats.faults > 0, "{target}");
    }
}

#[test]
fn what_was_quarantined_stays_so_though_a_call_that_still_runs_goes_well() {
    let host = host();
    let text = handle(
        "if (n) return 1 / (n - n);
         long sum = 0; host_log(\"in\", 2);
         for (long i = 0; i < 400000000; i++) sum += i ^ room;
         return sum & 0;",
    );
    let limits = Limits { faults: 2, ..patient() };
    load(&host, "long", Target::Isolated, limits, &text);
    std::thread::scope(|scope| {
        let running = scope.spawn(|| host.call("long", b""));
        while host.log("long").is_empty() {
            std::thread::yield_now();
        }
        for _ in 0..2 {
            assert!(matches!(host.call("long", b"x"), Err(CallFailure::Fault(_))));
        }
        assert_eq!(running.join().unwrap(), Ok(Vec::new()));
    });
    assert_eq!(host.call("long", b""), Err(CallFailure::Quarantined));
}
