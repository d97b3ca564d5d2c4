//! Running one program on every target.
#![allow(dead_code)]

use crate::sys;
use ecode::{
    CallError, Host, Input, Value, compile,
    ir::{Module, TrapCode},
};
use ecode_kernel::{KernelCode, KernelOptions};
use ecode_native::{NativeCode, Protection};
use plugin_host::bare::{IsolatedEngine, IsolatedOptions};
use std::{sync::OnceLock, time::Duration};

/// A target that runs here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Isolated,
    Native,
    NativeStack,
    /// Where the machine permits it, and without floating point.
    Kernel,
}

/// Those that run everywhere.
pub(crate) const TARGETS: [Target; 3] = [Target::Isolated, Target::Native, Target::NativeStack];

pub(crate) fn engine() -> &'static IsolatedEngine {
    static ENGINE: OnceLock<IsolatedEngine> = OnceLock::new();
    ENGINE.get_or_init(|| IsolatedEngine::new(IsolatedOptions::default()).unwrap())
}

/// An engine whose code looks at the clock every 3 iterations, so that loops of few iterations do
/// that too.
pub(crate) fn engine_of_short_strips() -> &'static IsolatedEngine {
    static ENGINE: OnceLock<IsolatedEngine> = OnceLock::new();
    ENGINE.get_or_init(|| {
        let mut options = IsolatedOptions::default();
        options.memory.strip_iterations = 3;
        IsolatedEngine::new(options).unwrap()
    })
}

/// Programs whose call ends by a trap, and by which.
pub(crate) const TRAPS: &[(&str, TrapCode)] = &[
    ("int z; long proc() { return 1 / z; }", TrapCode::DivideByZero),
    ("long z; long proc() { return 1 % z; }", TrapCode::DivideByZero),
    ("unsigned z; long proc() { return 1u / z; }", TrapCode::DivideByZero),
    ("long proc() { return 7 % 0; }", TrapCode::DivideByZero),
    ("int (*f)(int); long proc() { return f(1); }", TrapCode::BadCall),
    (
        "long g(long n) { return n; } long proc() { int (*f)(int) = (int (*)(int))g; return f(1); }",
        TrapCode::BadCall,
    ),
    // The same called at once: the type that the cast gives counts, not that of the function.
    (
        "long g(long n) { return n; } long proc() { return ((int (*)(int))g)(1); }",
        TrapCode::BadCall,
    ),
    (
        "long g(long n) { return n; } long proc() { return ((long (*)(void))g)(); }",
        TrapCode::BadCall,
    ),
    (
        "int h(int n) { return n; } long proc() { int (*f)(int) = h; f = (int (*)(int))((long)f + 1000); return f(1); }",
        TrapCode::BadCall,
    ),
];

/// Compiles, or panics with the messages.
pub(crate) fn module(text: &str, host: &str) -> Module {
    let input = Input { host, ..Input::new("test.e", text) };
    let compiled = compile(&input).unwrap_or_else(|errors| panic!("{text}\n{errors}"));
    compiled.module.verify().unwrap_or_else(|e| panic!("{text}\n{e}\n{}", compiled.module));
    compiled.module
}

/// Calls `function` once in a fresh instance.
pub(crate) fn run(
    module: &Module,
    target: Target,
    host: Box<dyn Host>,
    function: &str,
    args: &[Value],
) -> Result<Option<Value>, CallError> {
    let protection = match target {
        Target::Isolated => {
            let code = engine().compile(module).unwrap_or_else(|e| panic!("{e}\n{module}"));
            let mut instance = code.instantiate(host).unwrap();
            return instance.call(function, args, Duration::from_secs(20));
        }
        Target::Kernel => {
            let code = KernelCode::compile(module, KernelOptions::default());
            let instance = code.and_then(|code| code.instantiate(host));
            let other = |error: ecode_kernel::KernelError| CallError::Other(error.to_string());
            return instance.map_err(other)?.call(function, args, Duration::from_secs(20));
        }
        Target::Native => Protection::None,
        Target::NativeStack => Protection::Stack,
    };
    let code = NativeCode::compile(module, protection).unwrap_or_else(|e| panic!("{e}\n{module}"));
    let mut instance = sys::native(&code, host);
    instance.call(function, args)
}
