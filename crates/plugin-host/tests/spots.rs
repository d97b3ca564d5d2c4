//! A call that fails names the line that it failed in, on every target, whether its code was
//! compiled just now or lay in the cache, and whatever loops and functions were made of the text.

mod common;

use common::{NATIVE, PATIENCE, host_of, server, spec, targets};
use plugin_host::{Cache, CallFailure, Limits, PluginHost, PluginSpec, Target};
use std::time::Duration;

/// A text, what is said of its failure, in which function, and whether native code ends by it as
/// well; native code is trusted with its memory and its time. The line is the one that ends by `//
/// here`.
struct Case {
    name: &'static str,
    text: &'static str,
    says: &'static str,
    function: &'static str,
    native: bool,
}

const CASES: &[Case] = &[
    Case {
        name: "division",
        text: "long handle(const char *in, long n, char *out, long room) {
            long zero = n - n;
            long one = n +
                1;
            return one / zero; // here
        }",
        says: "divided by zero",
        function: "handle",
        native: true,
    },
    Case {
        name: "remainder, in a function that is written out where it is called",
        text: "static int part(int a, int b) {
            if (a == 77)
                return 3;
            return a % b; // here
        }
        static int other(int a, int b) { return a / b; }
        long handle(const char *in, long n, char *out, long room) {
            int zero = n - n;
            return other(9, 3) + part(4, 2) +
                part(n, zero);
        }",
        says: "divided by zero",
        function: "part",
        native: true,
    },
    Case {
        name: "the second of two divisions",
        text: "long handle(const char *in, long n, char *out, long room) {
            long a = 100 / (n + 1);
            long b = 100 / (n - n); // here
            return a + b;
        }",
        says: "divided by zero",
        function: "handle",
        native: true,
    },
    Case {
        name: "a store",
        text: "long handle(const char *in, long n, char *out, long room) {
            char *far = (char *)0x7fff0000u;
            out[0] = 1;
            far[n] = 1; // here
            return 1;
        }",
        says: "memory that is not its own",
        function: "handle",
        native: false,
    },
    Case {
        name: "a load in a loop that becomes vectors",
        text: "static unsigned char own[64];
        long handle(const char *in, long n, char *out, long room) {
            const unsigned char *from = own;
            if (n > 0) from = (const unsigned char *)0x7fff0000u;
            for (long i = 0; i < 4096; i++)
                out[i] = from[i] + 1; // here
            return 1;
        }",
        says: "memory that is not its own",
        function: "handle",
        native: false,
    },
    Case {
        name: "a record",
        text: "struct many { long a[100]; };
        long handle(const char *in, long n, char *out, long room) {
            struct many own, *far = (struct many *)0x7fff0000u;
            own.a[n] = 1;
            *far = own; // here
            return 0;
        }",
        says: "memory that is not its own",
        function: "handle",
        native: false,
    },
    Case {
        name: "the stack",
        text: "static long down(long n) { // here
            volatile char much[1000];
            much[n % 1000] = n;
            return n < 0 ? 0 : down(n + 1) + much[5];
        }
        long handle(const char *in, long n, char *out, long room) {
            return down(n);
        }",
        says: "stack is used up",
        function: "down",
        native: true,
    },
    Case {
        name: "a call of what is no function",
        text: "long handle(const char *in, long n, char *out, long room) {
            long (*call)(long);
            call = (long (*)(long))(n + 12345);
            return call(n); // here
        }",
        says: "no function",
        function: "handle",
        native: true,
    },
];

fn load(host: &PluginHost, name: &str, target: Target, time: Duration, text: &str) {
    let limits = Limits { call_time: time, faults: 100, ..Limits::default() };
    let loaded = host.load(&PluginSpec { target, limits, ..spec(name, text) });
    loaded.unwrap_or_else(|error| panic!("{name} on {target}: {error}"));
}

/// The number of the line that ends by `// here`.
fn here(text: &str) -> usize {
    1 + text.lines().position(|line| line.ends_with("// here")).expect("a line")
}

fn check(host: &PluginHost, case: &Case, target: Target) {
    let failure = host.call("wrong", b"x").unwrap_err().to_string();
    let place = format!(" at wrong:{}, in `{}`", here(case.text), case.function);
    let told = failure.contains(case.says) && failure.ends_with(&place);
    assert!(told, "{}, {target}: {failure:?} lacks {place:?}", case.name);
    assert!(host.unload("wrong"));
}

#[test]
fn what_fails_names_its_line_on_every_target() {
    let host = host_of(&server(NATIVE), None);
    for target in targets() {
        let apart = matches!(target, Target::Isolated | Target::Kernel);
        for case in CASES.iter().filter(|case| apart || case.native) {
            load(&host, "wrong", target, PATIENCE, case.text);
            check(&host, case, target);
        }
    }
}

#[test]
fn code_from_the_cache_names_the_same_line() {
    let dir = tempfile::tempdir().unwrap();
    for from_cache in [false, true] {
        for case in CASES {
            let cache = Cache::open(&dir.path().join("own"), Cache::DEFAULT_BYTES).unwrap();
            let host = host_of(&server(""), Some(cache));
            let loaded = host.load(&spec("wrong", case.text)).unwrap();
            assert_eq!(loaded.from_cache, from_cache, "{}", case.name);
            check(&host, case, Target::Isolated);
        }
    }
}

#[test]
fn a_call_whose_time_is_used_up_names_a_line_of_the_loop() {
    const ENDLESS: &str = "static long count(const char *in, long n) {
        long found = 0;
        for (long i = 0; n > 0; i++)
            found += in[0] == i % 7; // here
        return found;
    }
    long handle(const char *in, long n, char *out, long room) {
        long first = 0;
        for (long i = 0; i < n; i++)
            first += in[i];
        return first + count(in, n);
    }";
    let host = host_of(&server(NATIVE), None);
    for target in targets() {
        if matches!(target, Target::Isolated | Target::Kernel) {
            load(&host, "endless", target, Duration::from_millis(30), ENDLESS);
            let failure = host.call("endless", b"x").unwrap_err();
            let CallFailure::Timeout(Some(spot)) = &failure else { panic!("{failure}") };
            let line = here(ENDLESS) as u32;
            assert!((line - 1..=line).contains(&spot.line), "{target}: {failure}");
            assert_eq!((&*spot.file, &*spot.function), ("endless", "count"), "{target}");
            assert!(host.unload("endless"));
        }
    }
}

#[test]
fn a_host_function_that_takes_too_long_is_named_by_the_line_that_calls_it() {
    let text = "long handle(const char *in, long n, char *out, long room) {
        for (;;)
            host_set(\"k\", 1, in, 1000000); // here
        return 0;
    }";
    let host = host_of(&server(NATIVE), None);
    load(&host, "slow", Target::Isolated, Duration::from_millis(30), text);
    let request = vec![1; 1_000_000];
    let failure = host.call("slow", &request).unwrap_err();
    let CallFailure::Timeout(Some(spot)) = &failure else { panic!("{failure}") };
    assert_eq!(spot.line as usize, here(text), "{failure}");
}
