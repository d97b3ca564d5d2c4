//! `dewar plugin run`

use crate::{
    host::{self, limits},
    source::SourceFile,
    target::chosen,
};
use anyhow::Context as _;
use cli::{
    args::plugin::{RunArgs, TargetArg},
    failure::{Failed, Usage},
    output::{self, tell},
    output_file,
};
use plugin_host::{CallFailure, Target};
use serde_json::json;
use std::{
    io::{self, IsTerminal as _, Read as _},
    time::Instant,
};

/// What came of one target.
struct TargetRun {
    target: Target,
    load_ms: f64,
    call_ms: f64,
    code_bytes: usize,
    from_cache: bool,
    reply: Result<Vec<u8>, CallFailure>,
}

pub(crate) fn run(args: &RunArgs) -> anyhow::Result<()> {
    let source = SourceFile::read(&args.file)?;
    let request = request(limits(&args.host).memory_bytes)?;
    let targets = chosen(args.target, source.targets());
    let (mut outcomes, mut left_out) = (Vec::new(), Vec::new());
    for target in targets {
        match on_target(args, &source, target, &request) {
            Err(why) if args.or_isolated && args.target == TargetArg::Kernel => {
                tell!("dewar: {why}; it runs isolated instead");
                outcomes.push(on_target(args, &source, Target::Isolated, &request)?);
            }
            // Not every machine and user may have plugins in the kernel, and not every plugin can
            // run there.
            Err(why) if args.target == TargetArg::All && target == Target::Kernel => {
                left_out.push((target, why.to_string()));
            }
            outcome => outcomes.push(outcome?),
        }
    }
    report(args, &outcomes, &left_out)?;
    let first = outcomes.first().context("the plugin runs on no target")?;
    for outcome in &outcomes {
        if let Err(failure) = &outcome.reply {
            return Err(Failed(format!("{} on {}: {failure}", source.name, outcome.target)).into());
        }
        if outcome.reply != first.reply {
            let (name, other) = (&source.name, outcome.target);
            let why = format!("{name} replies differently on {other} and on {}", first.target);
            return Err(Failed(why).into());
        }
    }
    let Ok(reply) = &first.reply else { return Ok(()) };
    match &args.output {
        Some(path) => output_file::replace(path, reply)
            .with_context(|| format!("cannot write `{}`", path.display())),
        None if args.json => Ok(()),
        None => Ok(output::print(reply)?),
    }
}

/// Standard input, of which no plugin takes more than its memory holds.
fn request(most: u32) -> anyhow::Result<Vec<u8>> {
    let (stdin, mut request) = (io::stdin().lock(), Vec::new());
    if stdin.is_terminal() {
        tell!("dewar: the request is what you type; Ctrl-D ends it");
    }
    let read = stdin.take(u64::from(most) + 1).read_to_end(&mut request);
    if read.context("cannot read standard input")? > most as usize {
        let why = format!("standard input is longer than the plugin's memory, {most} bytes");
        return Err(Usage(why + ": give it more by --memory-bytes").into());
    }
    Ok(request)
}

fn on_target(
    args: &RunArgs,
    source: &SourceFile,
    target: Target,
    request: &[u8],
) -> anyhow::Result<TargetRun> {
    let host = host::host(&args.host, &[target])?;
    let start = Instant::now();
    let loaded = host.load(&source.spec(target, limits(&args.host)))?;
    let load_ms = start.elapsed().as_secs_f64() * 1e3;
    let start = Instant::now();
    let reply = host.plugins.call(&source.name, request);
    let call_ms = start.elapsed().as_secs_f64() * 1e3;
    host.show_log(&source.name);
    host.show_denials();
    let (code_bytes, from_cache) = (loaded.code_bytes, loaded.from_cache);
    Ok(TargetRun { target, load_ms, call_ms, code_bytes, from_cache, reply })
}

fn report(
    args: &RunArgs,
    outcomes: &[TargetRun],
    left_out: &[(Target, String)],
) -> anyhow::Result<()> {
    if args.json {
        let rows = outcomes.iter().map(|outcome| {
            json!({
                "target": outcome.target.name(),
                "load_ms": outcome.load_ms,
                "call_ms": outcome.call_ms,
                "code_bytes": outcome.code_bytes,
                "from_cache": outcome.from_cache,
                "reply_bytes": outcome.reply.as_ref().ok().map(Vec::len),
                "failure": outcome.reply.as_ref().err().map(ToString::to_string),
            })
        });
        let left_out = (left_out.iter())
            .map(|(target, why)| json!({ "target": target.name(), "left_out": why }));
        let rows: Vec<_> = rows.chain(left_out).collect();
        return Ok(output::print(output::json(&rows)?.as_bytes())?);
    }
    if args.target == TargetArg::All {
        for outcome in outcomes {
            let TargetRun { target, load_ms, call_ms, code_bytes, from_cache, reply } = outcome;
            let loaded = if *from_cache { "from cache" } else { "compiled" };
            let reply = match reply {
                Ok(reply) => format!("{} bytes of reply", reply.len()),
                Err(failure) => failure.to_string(),
            };
            tell!(
                "{target:<13} {loaded} in {load_ms:.2} ms, {code_bytes} bytes of code; \
                 call {call_ms:.3} ms, {reply}"
            );
        }
        for (target, why) in left_out {
            tell!("{target:<13} left out: {why}");
        }
    }
    Ok(())
}
