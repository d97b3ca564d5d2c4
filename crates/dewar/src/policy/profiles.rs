//! Profiles, as the policy subcommands see them.

use crate::machine;
use cli::look::{columns, fill};
use profile::{Compiled, Documents, Source, Variables, shipped};
use serde_json::json;
use std::{fmt::Write as _, path::Path};

/// A profile under the variables of this machine.
pub(super) struct Read {
    pub(super) compiled: Compiled,
    pub(super) documents: Documents,
    pub(super) variables: Variables,
}

/// A profile under the variables of this machine. Without `resolve`, names of hosts stay names.
pub(super) fn read(name: &str, workspace: Option<&Path>, resolve: bool) -> anyhow::Result<Read> {
    let variables = machine::variables(workspace, "/tmp".into())?;
    let source = Source::from_argument(name);
    let mut resolver = if resolve { machine::resolve } else { profile::unresolved };
    let (compiled, documents) = profile::load_with_documents(&source, &variables, &mut resolver)?;
    Ok(Read { compiled, documents, variables })
}

/// The same, compiled.
pub(super) fn compile(
    name: &str,
    workspace: Option<&Path>,
    resolve: bool,
) -> anyhow::Result<Compiled> {
    Ok(read(name, workspace, resolve)?.compiled)
}

/// The shipped profiles with their descriptions, one a line; on a terminal, none is cut in a word.
pub(super) fn list(json: bool) -> anyhow::Result<String> {
    let mut text = String::new();
    let variables = Variables {
        workspace: "/workspace".into(),
        home: "/home".into(),
        tmp: "/tmp".into(),
        ..Variables::default()
    };
    for (name, _) in shipped() {
        let source = Source::Shipped((*name).to_owned());
        // What it says of itself depends on no home and no working directory.
        let compiled = profile::load(&source, &variables, &mut profile::unresolved)?;
        let description = compiled.description.unwrap_or_default();
        if json {
            writeln!(text, "{}", json!({"name": name, "description": description}))?;
        } else {
            let columns = columns().unwrap_or(usize::MAX);
            writeln!(text, "{name:12}{}", fill(description.split(' '), 12, columns))?;
        }
    }
    Ok(text)
}

/// The policy with the place of each rule behind it.
pub(super) fn with_origins(compiled: &Compiled) -> String {
    let line = |(index, line): (usize, &str)| match compiled.origin(index + 1) {
        Some(origin) => format!("{line}  ; {}:{}: {}\n", origin.file, origin.line, origin.text),
        None => format!("{line}\n"),
    };
    compiled.cil.lines().enumerate().map(line).collect()
}
