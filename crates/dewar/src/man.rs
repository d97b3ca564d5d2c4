//! `dewar man`: manual pages, made from the same text as `--help`.

use crate::{commands::Dewar, schema};
use anyhow::Context as _;
use clap::{Args, CommandFactory as _};
use clap_mangen::Man;
use cli::output;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  dewar man | man -l -
  dewar man ~/.local/share/man/man1";

/// Print the manual page, or write all of them to a directory.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ManArgs {
    /// Write `dewar.1` and one page for each subcommand to DIR
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Carries out `dewar man`.
pub(crate) fn run(args: &ManArgs) -> anyhow::Result<()> {
    let Some(dir) = &args.dir else {
        let mut page = Vec::new();
        Man::new(schema::offered(Dewar::command())).render(&mut page)?;
        return Ok(output::print(&page)?);
    };
    clap_mangen::generate_to(schema::offered(Dewar::command()), dir)
        .with_context(|| format!("cannot write manual pages to `{}`", dir.display()))
}
