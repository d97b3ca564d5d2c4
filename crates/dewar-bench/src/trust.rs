//! `dewar bench trust`: recorded noise, drawn anew as experiments of which the truth is known.

use crate::show;
use bench::pairs::{self, Draws, LEAST_RECORDED};
use cli::{args::trust::TrustArgs, failure::Usage};

/// Draws, and prints what was asked for.
pub(crate) fn run(args: &TrustArgs) -> anyhow::Result<()> {
    let draws = Draws {
        repeats: args.repeats as usize,
        plant: args.plant / 100.0,
        half_width: args.within / 100.0,
    };
    let mut all = Vec::new();
    for file in &args.files {
        let kept = pairs::read(file).map_err(|error| Usage(error.to_string()))?;
        all.extend(pairs::trust(&kept, draws));
    }
    anyhow::ensure!(
        !all.is_empty(),
        "no comparison has the {LEAST_RECORDED} pairs that it takes: measure more rounds, with --keep DIR"
    );
    show::sheets(&[pairs::trust_sheet(&all, draws)], &all, &args.show)
}
