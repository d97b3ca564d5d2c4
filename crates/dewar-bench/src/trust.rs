//! `dewar bench trust`: recorded noise, drawn anew as experiments of which the truth is known.

use crate::show;
use anyhow::Context as _;
use bench::{
    pairs::{self, Draws, LEAST_RECORDED, Trust},
    sheet::{Cell, Sheet},
};
use cli::args::trust::TrustArgs;

/// Draws, and prints what was asked for.
pub(crate) fn run(args: &TrustArgs) -> anyhow::Result<()> {
    let draws = Draws {
        repeats: args.repeats as usize,
        plant: args.plant / 100.0,
        half_width: args.within / 100.0,
    };
    let mut all = Vec::new();
    for file in &args.files {
        let kept = pairs::read(file)
            .with_context(|| format!("cannot read the samples in `{}`", file.display()))?;
        all.extend(pairs::trust(&kept, draws));
    }
    anyhow::ensure!(
        !all.is_empty(),
        "no comparison has the {LEAST_RECORDED} pairs that it takes: measure more rounds, with --keep DIR"
    );
    show::sheets(&[sheet(&all, args)], &all, &args.show)
}

fn sheet(all: &[Trust], args: &TrustArgs) -> Sheet {
    let found = format!("{:+} % found", args.plant);
    let columns = [
        ("what", 0, false),
        ("setting", 0, false),
        ("pairs", 0, true),
        ("holds 1", 0, true),
        ("false finds", 0, true),
        (found.as_str(), 0, true),
        ("holds it", 1, true),
        ("±", 0, true),
    ];
    let mut sheet = Sheet::new("Experiments drawn from recorded noise", &columns);
    let mut by_width: Vec<&Trust> = all.iter().collect();
    by_width.sort_by(|a, b| a.half_width.total_cmp(&b.half_width));
    for trust in by_width {
        let share = |count: usize| {
            let share = 100.0 * count as f64 / trust.repeats as f64;
            Cell::number(format!("{share:.1} %"), share)
        };
        sheet.push(vec![
            trust.subject.clone().into(),
            trust.setting.clone().into(),
            Cell::number(trust.recorded.to_string(), trust.recorded as f64),
            share(trust.held),
            share(trust.ranked),
            share(trust.found),
            share(trust.held_planted),
            Cell::number(format!("{:.1} %", 100.0 * trust.half_width), trust.half_width),
        ]);
    }
    sheet.notes.push(format!(
        "{} experiments of each kind, of rounds drawn by eight neighbours from the recorded ones, whose median was taken out: \
         the truth is known. Each was looked at and ended as the engine does it, within ±{} % or when it had as many pairs as \
         were recorded. An interval should hold the truth in 95 %.",
        args.repeats, args.within
    ));
    sheet
}
