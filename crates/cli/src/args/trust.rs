//! `dewar bench trust`

use super::show::ShowArgs;
use clap::Args;
use std::path::PathBuf;

/// Which recorded pairs, and what is made of them.
#[derive(Debug, Args)]
pub struct TrustArgs {
    /// Samples that `--keep DIR` has kept: `DIR/*.jsonl`
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Experiments of each kind for each comparison
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    pub repeats: u32,

    /// The effect that is planted, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 2.0)]
    pub plant: f64,

    /// Experiments end when their interval is within so many percent to each side
    #[arg(long, value_name = "PERCENT", value_parser = super::positive, default_value_t = 1.0)]
    pub within: f64,

    #[command(flatten)]
    pub show: ShowArgs,
}
