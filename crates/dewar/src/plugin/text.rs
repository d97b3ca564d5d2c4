//! A plugin's text: reading and compiling it, and showing what is doubtful in it.

use anyhow::Context as _;
use ecode::{Compiled, Input, compile};
use plugin_host::HOST_DECLARATIONS;
use std::{fs, path::Path};

/// Compiles the text in `file`; warnings go to standard error.
pub(super) fn compile_file(file: &Path) -> anyhow::Result<Compiled> {
    let text =
        fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let name = file.display().to_string();
    let input = Input { host: HOST_DECLARATIONS, ..Input::new(&name, &text) };
    let compiled = compile(&input)?;
    for warning in &compiled.warnings {
        eprintln!("{:?}", miette::Report::new(warning.clone()));
    }
    Ok(compiled)
}
