//! A plugin's text: reading and compiling it, and showing what is wrong with it.

use anyhow::Context;
use ecode::{Compiled, Input, compile};
use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme};
use plugin_host::HOST_DECLARATIONS;
use std::{fs, io::IsTerminal, path::Path};

/// Compiles the text in `file`. Errors and warnings go to standard error; `None` after an error.
pub(super) fn compile_file(file: &Path) -> anyhow::Result<Option<Compiled>> {
    let text =
        fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let name = file.display().to_string();
    let input = Input { host: HOST_DECLARATIONS, ..Input::new(&name, &text) };
    match compile(&input) {
        Ok(compiled) => {
            compiled.warnings.iter().for_each(|warning| show(warning));
            Ok(Some(compiled))
        }
        Err(errors) => {
            errors.messages.iter().for_each(|error| show(error));
            Ok(None)
        }
    }
}

fn show(message: &dyn Diagnostic) {
    let plain = !std::io::stderr().is_terminal() || std::env::var_os("NO_COLOR").is_some();
    let theme = if plain { GraphicalTheme::unicode_nocolor() } else { GraphicalTheme::unicode() };
    let mut shown = String::new();
    match GraphicalReportHandler::new_themed(theme).render_report(&mut shown, message) {
        Ok(()) => eprint!("{shown}"),
        Err(_) => eprintln!("{message}"),
    }
}
