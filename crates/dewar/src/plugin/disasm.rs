//! `dewar plugin disasm`

use super::source::SourceFile;
use crate::{failure::Usage, output};
use clap::Args;
use std::path::PathBuf;

/// Show the intermediate form that all targets share.
#[derive(Debug, Args)]
pub(super) struct DisasmArgs {
    /// The plugin's text in E-code
    file: PathBuf,
}

pub(super) fn run(args: &DisasmArgs) -> anyhow::Result<()> {
    let source = SourceFile::read(&args.file)?;
    let name = &source.name;
    let compiled = source.compile()?.ok_or_else(|| {
        Usage(format!(
            "{name} is WebAssembly, which has no intermediate form; try wasm-tools print"
        ))
    })?;
    Ok(output::print(compiled.module.with_vectors().to_string().as_bytes())?)
}
