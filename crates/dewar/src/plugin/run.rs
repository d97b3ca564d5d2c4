//! `dewar plugin run`

use super::{host::TrialHost, text};
use anyhow::{Context, bail};
use ecode::{
    CallError, IsolatedEngine, IsolatedOptions, NativeCode, Protection, Value, ir::Module,
    wasm::WasmOptions,
};
use std::{
    io::{Read, Write},
    path::PathBuf,
    time::{Duration, Instant},
};

#[derive(Debug, clap::Args)]
pub(super) struct RunArgs {
    /// The plugin's text
    file: PathBuf,
    /// How it runs; `native` and `native+stack` trust it with everything you may do
    #[arg(long, value_enum, default_value_t = Target::Isolated)]
    target: Target,
    /// Time that the call may take, in milliseconds (isolated)
    #[arg(long, default_value_t = 10_000)]
    time_ms: u64,
    /// Bytes of reply that there is room for
    #[arg(long, default_value_t = 16 << 20)]
    output_bytes: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Target {
    Isolated,
    Native,
    #[value(name = "native+stack")]
    NativeStack,
    /// All of them, with their times; their replies must be equal
    All,
}

/// A reply and what it took.
struct Outcome {
    reply: Vec<u8>,
    compile: Duration,
    call: Duration,
}

pub(super) fn run(args: &RunArgs) -> anyhow::Result<()> {
    let compiled = text::compile_file(&args.file)?;
    let mut request = Vec::new();
    std::io::stdin().lock().read_to_end(&mut request).context("cannot read standard input")?;
    let one = |target| on_target(target, &compiled.module, &request, args);
    let reply = match args.target {
        Target::All => {
            let targets = [Target::Isolated, Target::Native, Target::NativeStack];
            let mut first: Option<Vec<u8>> = None;
            for target in targets {
                let outcome = one(target)?;
                eprintln!("{target:?}: code {:.1?}, call {:.1?}", outcome.compile, outcome.call);
                match &first {
                    Some(reply) if *reply != outcome.reply => {
                        bail!("{target:?} replies differently")
                    }
                    _ => first = Some(outcome.reply),
                }
            }
            first.unwrap_or_default()
        }
        target => one(target)?.reply,
    };
    std::io::stdout().lock().write_all(&reply).context("cannot write standard output")?;
    Ok(())
}

fn on_target(
    target: Target,
    module: &Module,
    request: &[u8],
    args: &RunArgs,
) -> anyhow::Result<Outcome> {
    match target {
        Target::Native => native(module, Protection::None, request, args),
        Target::NativeStack => native(module, Protection::Stack, request, args),
        Target::Isolated | Target::All => isolated(module, request, args),
    }
}

fn isolated(module: &Module, request: &[u8], args: &RunArgs) -> anyhow::Result<Outcome> {
    let memory = WasmOptions { max_memory_bytes: 1 << 30, ..WasmOptions::default() };
    let engine =
        IsolatedEngine::new(IsolatedOptions { memory, instances: 1, ..Default::default() })?;
    let start = Instant::now();
    let code = engine.compile(module)?;
    let compile = start.elapsed();
    let mut instance = code.instantiate(Box::new(TrialHost::default()))?;
    let base = instance.heap_base().context("the module has no heap")?.next_multiple_of(16);
    let out = (base + request.len() as u64).next_multiple_of(16);
    let room = u64::from(args.output_bytes);
    if !instance.grow_to(out + room) || !instance.write(base, request) {
        bail!("the request and the reply do not fit into the plugin's memory");
    }
    let values = handle_args(base, request.len(), out, room);
    let start = Instant::now();
    let result = instance.call("handle", &values, Duration::from_millis(args.time_ms));
    let call = start.elapsed();
    let length = length(result, room)?;
    let reply = instance.read(out, length).context("the reply is outside of the memory")?;
    Ok(Outcome { reply, compile, call })
}

#[expect(unsafe_code, reason = "code that is trusted with everything is called")]
fn native(
    module: &Module,
    protection: Protection,
    request: &[u8],
    args: &RunArgs,
) -> anyhow::Result<Outcome> {
    let start = Instant::now();
    let code = NativeCode::compile(module, protection)?;
    let compile = start.elapsed();
    // SAFETY: whoever runs this command asked by `--target` to trust this text with everything.
    let mut instance = unsafe { code.instantiate(Box::new(TrialHost::default())) };
    let mut request = request.to_vec();
    let mut reply = vec![0; args.output_bytes as usize];
    let room = reply.len() as u64;
    let (from, to) = (request.as_mut_ptr() as u64, reply.as_mut_ptr() as u64);
    let values = handle_args(from, request.len(), to, room);
    let start = Instant::now();
    let result = instance.call("handle", &values);
    let call = start.elapsed();
    reply.truncate(length(result, room)? as usize);
    Ok(Outcome { reply, compile, call })
}

/// `handle(in, in_len, out, out_room)`
fn handle_args(from: u64, len: usize, to: u64, room: u64) -> [Value; 4] {
    [Value::Ptr(from), Value::I64(len as i64), Value::Ptr(to), Value::I64(room as i64)]
}

fn length(result: Result<Option<Value>, CallError>, room: u64) -> anyhow::Result<u64> {
    match result? {
        Some(Value::I64(length)) if u64::try_from(length).is_ok_and(|length| length <= room) => {
            Ok(length as u64)
        }
        other => bail!("the plugin returned {other:?}, which is no length of a reply"),
    }
}
