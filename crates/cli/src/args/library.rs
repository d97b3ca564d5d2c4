//! `dewar bench library`

use super::show::ShowArgs;
use clap::Args;
use std::path::PathBuf;

/// Which libraries to measure, and what to print.
#[derive(Debug, Args)]
pub struct LibraryArgs {
    /// Rounds; all languages take turns in each
    #[arg(long, value_name = "N", default_value_t = 25, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,

    /// The shared library for C [default: libdewar.so beside this program, or in ../lib]
    #[arg(long, value_name = "FILE")]
    pub library: Option<PathBuf>,

    /// An interpreter that can `import dewar` [default: $DEWAR_PYTHON, or python3]
    #[arg(long, value_name = "PROGRAM")]
    pub python: Option<PathBuf>,

    #[command(flatten)]
    pub show: ShowArgs,
}
