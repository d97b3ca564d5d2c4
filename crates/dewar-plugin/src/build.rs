//! `dewar plugin build`

use crate::{
    host::{self, limits},
    source::{SourceFile, Text},
    target::chosen,
};
use anyhow::Context as _;
use cli::{args::plugin::BuildArgs, output};
use ecode::wasm::{WasmOptions, emit};
use serde_json::json;
use std::time::Instant;

pub(crate) fn run(args: &BuildArgs) -> anyhow::Result<()> {
    let source = SourceFile::read(&args.file)?;
    let targets = chosen(args.target, source.targets());
    let mut built = Vec::new();
    for target in targets {
        let host = host::host(&args.host, &[target])?;
        let start = Instant::now();
        let loaded = host.load(&source.spec(target, limits(&args.host)))?;
        built.push(json!({
            "target": target.name(),
            "code_bytes": loaded.code_bytes,
            "from_cache": loaded.from_cache,
            "ms": start.elapsed().as_secs_f64() * 1e3,
        }));
    }
    if let Some(path) = &args.output {
        let wasm = match (&source.text, source.compile()?) {
            (_, Some(compiled)) => emit(&compiled.module, &WasmOptions::default())?,
            (Text::Wasm(module), None) => module.clone(),
            (Text::ECode(_), None) => Vec::new(),
        };
        cli::output_file::replace(path, &wasm)
            .with_context(|| format!("cannot write `{}`", path.display()))?;
    }
    let text = if args.json {
        output::json(&built)?
    } else {
        let line = |row: &serde_json::Value| {
            let origin = if row["from_cache"] == true { "from the cache" } else { "compiled" };
            let (target, bytes) = (row["target"].as_str().unwrap_or(""), &row["code_bytes"]);
            let ms = row["ms"].as_f64().unwrap_or_default();
            format!("{target:<13} {bytes:>8} bytes of code, {origin} in {ms:.2} ms\n")
        };
        built.iter().map(line).collect()
    };
    Ok(output::print(text.as_bytes())?)
}
