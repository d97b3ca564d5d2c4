//! `dewar plugin build`

use super::text;
use anyhow::Context;
use ecode::wasm::{WasmOptions, emit};
use std::{fs, path::PathBuf, time::Instant};

#[derive(Debug, clap::Args)]
pub(super) struct BuildArgs {
    /// The plugin's text
    file: PathBuf,
    /// Where to write it as WebAssembly
    #[arg(short, long)]
    output: Option<PathBuf>,
}

pub(super) fn run(args: &BuildArgs) -> anyhow::Result<()> {
    let start = Instant::now();
    let compiled = text::compile_file(&args.file)?;
    let wasm = emit(&compiled.module, &WasmOptions::default())?;
    let (functions, time) = (compiled.module.funcs.len(), start.elapsed());
    eprintln!("{functions} functions, {} bytes of WebAssembly, {time:.1?}", wasm.len());
    if let Some(output) = &args.output {
        fs::write(output, wasm).with_context(|| format!("cannot write {}", output.display()))?;
    }
    Ok(())
}
