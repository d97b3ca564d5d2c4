//! Typed entries.

use crate::{
    common::{engine, module},
    sys,
};
use ecode::{Address, CallError, Host, Memory, NoHost, Value, ir::Module};
use ecode_native::{NativeCode, NativeInstance, Protection};
use plugin_host::bare::IsolatedInstance;
use std::time::{Duration, Instant};

const SECOND: Duration = Duration::from_secs(1);
const TEXT: &str =
    "double mix(int a, long b, float c, double d, char *p) { return d + a + b + c + (long)p; }
    int kept; void keep(int n) { kept = n; } int read(void) { return kept; }
    unsigned char small(int n) { return n; }
    long spin(void) { for (;;) ; }";

fn isolated(module: &Module) -> IsolatedInstance {
    engine().compile(module).unwrap().instantiate(Box::new(NoHost)).unwrap()
}

fn native(module: &Module) -> NativeInstance {
    let code = NativeCode::compile(module, Protection::Stack).unwrap();
    sys::native(&code, Box::new(NoHost))
}

#[test]
fn entries_take_and_return_every_type() {
    let module = module(TEXT, "");
    let (mut isolated, mut native) = (isolated(&module), native(&module));
    type Mix = (i32, i64, f32, f64, Address);
    let args: Mix = (-1, 1 << 40, 0.5, -0.25, Address(1000));
    let want = -1.0 + (1_u64 << 40) as f64 + 0.5 - 0.25 + 1000.0;
    let mix = isolated.entry::<Mix, f64>("mix").unwrap();
    assert_eq!(isolated.enter(&mix, args, SECOND), Ok(want));
    let mix = native.entry::<Mix, f64>("mix").unwrap();
    assert_eq!(native.enter(&mix, args), Ok(want));

    let keep = isolated.entry::<(i32,), ()>("keep").unwrap();
    let read = isolated.entry::<(), i32>("read").unwrap();
    assert_eq!(isolated.enter(&keep, (-7,), SECOND), Ok(()));
    assert_eq!(isolated.enter(&read, (), SECOND), Ok(-7));
    let small = native.entry::<(i32,), i32>("small").unwrap();
    assert_eq!(native.enter(&small, (-1,)), Ok(255));
}

#[test]
fn an_entry_with_other_types_is_not_found() {
    let module = module(TEXT, "");
    let (mut isolated, native) = (isolated(&module), native(&module));
    let missing = |name: &str| Some(CallError::NoFunction(name.into()));
    assert_eq!(isolated.entry::<(i64,), ()>("keep").err(), missing("keep"));
    assert_eq!(isolated.entry::<(i32,), i64>("keep").err(), missing("keep"));
    assert_eq!(isolated.entry::<(), i32>("memory").err(), missing("memory"));
    assert_eq!(native.entry::<(i64,), ()>("keep").err(), missing("keep"));
    assert_eq!(native.entry::<(i32,), i64>("keep").err(), missing("keep"));
    assert_eq!(native.entry::<(), i32>("nothing").err(), missing("nothing"));
}

#[test]
fn every_call_has_its_own_time() {
    let module = module(TEXT, "");
    let mut isolated = isolated(&module);
    let read = isolated.entry::<(), i32>("read").unwrap();
    let spin = isolated.entry::<(), i64>("spin").unwrap();
    // What an earlier call had left is not what this one has.
    assert_eq!(isolated.enter(&read, (), 100 * SECOND), Ok(0));
    let start = Instant::now();
    assert_eq!(isolated.enter(&spin, (), SECOND / 20), Err(CallError::Timeout));
    assert!(
        start.elapsed() >= SECOND / 20 && start.elapsed() < 30 * SECOND,
        "{:?}",
        start.elapsed()
    );
}

#[test]
#[should_panic(expected = "wrong store")]
fn an_entry_of_another_instance_is_refused() {
    let module = module(TEXT, "");
    let (mut one, mut other) = (isolated(&module), isolated(&module));
    let read = one.entry::<(), i32>("read").unwrap();
    let _ = other.enter(&read, (), SECOND);
}

#[test]
#[should_panic(expected = "another plugin")]
fn a_native_entry_of_another_plugin_is_refused() {
    let module = module(TEXT, "");
    let (one, mut other) = (native(&module), native(&module));
    let read = one.entry::<(), i32>("read").unwrap();
    let _ = other.enter(&read, ());
}

/// Adds up whatever it is given.
struct Adder;

impl Host for Adder {
    fn call(&mut self, _: &str, args: &[Value], _: &mut dyn Memory) -> Result<u64, String> {
        Ok(args.iter().map(|arg| arg.bits()).sum())
    }
}

#[test]
fn host_functions_take_any_number_of_arguments_on_every_target() {
    let host = "long add(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j); long none(void);";
    let text = "long proc() { return add(1, 2, 3, 4, 5, 6, 7, 8, 9, 10) + none(); }";
    let module = module(text, host);
    for target in crate::common::TARGETS {
        let got = crate::common::run(&module, target, Box::new(Adder), "proc", &[]);
        assert_eq!(got, Ok(Some(Value::I64(55))), "{target:?}");
    }
}
