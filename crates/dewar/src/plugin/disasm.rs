//! `dewar plugin disasm`

use super::text;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(super) struct DisasmArgs {
    /// The plugin's text
    file: PathBuf,
}

pub(super) fn run(args: &DisasmArgs) -> anyhow::Result<()> {
    let compiled = text::compile_file(&args.file)?;
    print!("{}", compiled.module.with_vectors());
    Ok(())
}
