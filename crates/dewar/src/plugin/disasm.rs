//! `dewar plugin disasm`

use super::text;
use std::{path::PathBuf, process::ExitCode};

#[derive(Debug, clap::Args)]
pub(super) struct DisasmArgs {
    /// The plugin's text
    file: PathBuf,
}

pub(super) fn run(args: &DisasmArgs) -> anyhow::Result<ExitCode> {
    let Some(compiled) = text::compile_file(&args.file)? else { return Ok(ExitCode::FAILURE) };
    print!("{}", compiled.module);
    Ok(ExitCode::SUCCESS)
}
