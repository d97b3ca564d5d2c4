//! `dewar doctor`: what this machine can enforce.

use anyhow::bail;
use clap::Args;

/// Tell what this machine can enforce, layer by layer, and what is lost without it.
///
/// Exit status: 0 if every layer is there, 1 if one is missing.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Print the layers as JSON
    #[arg(long)]
    json: bool,
}

/// Carries out `dewar doctor`.
pub(crate) fn run(args: &DoctorArgs) -> anyhow::Result<()> {
    bail!("the layers are not probed yet (json: {})", args.json)
}
