//! What came of it, as tables and JSON.

use super::KERNELS;
use crate::{
    figure::{Bar, Drawing, Figure},
    interleaved::Interleaved,
    machine::Machine,
    sheet::{Cell as Number, Sheet},
    statistics::{Summary, median_of},
};
use serde::{Deserialize, Serialize};

/// Implementations that are never left out of a table: our own targets, which come first.
const OWN: usize = 4;

/// One kernel on one size of request in one implementation.
#[derive(Clone, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Cell {
    /// The kernel.
    pub kernel: String,
    /// Bytes of request.
    #[serde(rename = "size_bytes")]
    pub size: usize,
    /// The implementation.
    pub implementation: String,
    /// Nanoseconds of processor time of a call.
    pub ns: Option<Summary>,
    /// The same of every round.
    #[serde(rename = "rounds_ns")]
    pub runs: Vec<f64>,
    /// Instructions of a call, where the machine counts them.
    pub instructions: Option<u64>,
    /// Why it was not measured.
    pub failure: Option<String>,
}

impl Cell {
    pub(super) fn new(
        kernel: &'static str,
        size: usize,
        implementation: String,
        result: Result<(Summary, Vec<f64>), String>,
        instructions: Option<u64>,
    ) -> Self {
        let (ns, runs, failure) = match result {
            Ok((ns, runs)) => (Some(ns), runs, None),
            Err(why) => (None, Vec::new(), Some(why)),
        };
        let kernel = kernel.to_owned();
        Self { kernel, size, implementation, ns, runs, instructions, failure }
    }
}

/// Bytes of machine code of a kernel.
#[derive(Clone, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CodeSize {
    /// The kernel.
    pub kernel: String,
    /// The implementation.
    pub implementation: String,
    /// Bytes.
    pub bytes: usize,
}

/// How many times as long one implementation takes as another: the geometric mean over kernels and
/// sizes.
#[derive(Clone, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Mean {
    /// What is compared.
    pub over: String,
    /// What it is compared with.
    pub under: String,
    /// Median of the rounds' means.
    pub value: f64,
    /// The least mean of a round.
    pub low: f64,
    /// The greatest mean of a round.
    pub high: f64,
    /// Pairs of kernel and size that it is taken over.
    pub pairs: usize,
}

impl Mean {
    /// The ratio over all kernels and sizes that both were measured on.
    pub(super) fn of(cells: &[Cell], over: &str, under: &str) -> Option<Self> {
        let of = |name: &str, like: &Cell| {
            let same = |cell: &&Cell| {
                cell.implementation == name && cell.kernel == like.kernel && cell.size == like.size
            };
            cells.iter().find(same).map(|cell| &cell.runs).filter(|runs| !runs.is_empty())
        };
        let pairs: Vec<(&Vec<f64>, &Vec<f64>)> = (cells.iter())
            .filter(|cell| cell.implementation == over)
            .filter_map(|cell| of(over, cell).zip(of(under, cell)))
            .collect();
        let rounds = pairs.iter().map(|(a, b)| a.len().min(b.len())).min()?;
        let mean = |round: usize| {
            let logs: f64 = pairs.iter().map(|(a, b)| (a[round] / b[round]).ln()).sum();
            (logs / pairs.len() as f64).exp()
        };
        let means: Vec<f64> = (0..rounds).map(mean).collect();
        Some(Self {
            over: over.to_owned(),
            under: under.to_owned(),
            value: median_of(&means)?,
            low: means.iter().copied().fold(f64::INFINITY, f64::min),
            high: means.iter().copied().fold(0.0, f64::max),
            pairs: pairs.len(),
        })
    }
}

/// Everything that was measured.
#[derive(Clone, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct KernelReport {
    /// Where and when.
    pub machine: Machine,
    /// How often.
    pub turns: Interleaved,
    /// The implementations, in the order of columns.
    pub names: Vec<String>,
    /// Sizes of requests in bytes.
    #[serde(rename = "sizes_bytes")]
    pub sizes: Vec<usize>,
    /// The measurements.
    pub cells: Vec<Cell>,
    /// Sizes of code.
    pub code: Vec<CodeSize>,
    /// Ratios over all kernels.
    pub means: Vec<Mean>,
    /// Why instructions were not counted, if they were not.
    pub instructions: Option<String>,
}

impl KernelReport {
    /// The tables: nanoseconds per byte, instructions per byte where counted, bytes of code,
    /// ratios.
    #[must_use]
    pub fn sheets(&self) -> Vec<Sheet> {
        let title =
            "kernels: nanoseconds of processor time per byte of request, ± median deviation";
        let mut sheets = vec![self.grid(title, |cell| {
            let ns = cell.ns?;
            let (value, spread) = (ns.median / cell.size as f64, 100.0 * ns.mad / ns.median);
            Some(Number::number(format!("{value:.3} ±{spread:.0} %"), value))
        })];
        if self.instructions.is_none() {
            sheets.push(self.grid("kernels: instructions per byte of request", |cell| {
                let value = cell.instructions? as f64 / cell.size as f64;
                Some(Number::number(format!("{value:.2}"), value))
            }));
        }
        sheets.push(self.code_sheet());
        let mut means = self.means_sheet();
        if let Some(why) = &self.instructions {
            means.notes.push(format!("instructions were not counted: {why}"));
        }
        means.notes.extend(self.failures());
        let rounds = self.turns.rounds;
        means.notes.push(format!("{rounds} rounds in changing order, replies compared in each"));
        means.notes.push(self.machine.to_string());
        sheets.push(means);
        sheets
    }

    /// What each implementation takes against the one that it is compared with, as bars.
    #[must_use]
    pub fn figure(&self) -> Figure {
        let bar = |mean: &Mean| Bar {
            group: format!("against {}", mean.under),
            name: mean.over.clone(),
            value: mean.value,
            low: mean.low,
            high: mean.high,
        };
        let mut bars: Vec<Bar> = self.means.iter().map(bar).collect();
        bars.sort_by(|a, b| a.group.cmp(&b.group));
        Figure {
            title: "The same programs, by what makes them run".to_owned(),
            description: "Bars from 1 to the geometric mean of the ratios over kernels and sizes, with the least and the \
                          greatest mean of a round."
                .to_owned(),
            drawing: Drawing::Bars(bars),
        }
    }

    /// What isolation costs, in a sentence.
    #[must_use]
    pub fn headline(&self) -> Option<String> {
        let of = |over: &str| self.means.iter().find(|it| it.over == over && it.under == "native");
        let said = |over: &str| {
            let Mean { value, low, high, .. } = of(over)?;
            Some(format!("{over} {value:.2} ({low:.2} … {high:.2})"))
        };
        let said: Vec<String> =
            ["isolated", "native+stack", "kernel"].into_iter().filter_map(said).collect();
        (!said.is_empty())
            .then(|| format!("Times as long as the same text as native code: {}.", said.join(", ")))
    }

    fn means_sheet(&self) -> Sheet {
        let mut sheet = Sheet::new(
            "geometric means over kernels and sizes, with the least and greatest of a round",
            &[("ratio", 0, false), ("mean", 0, true), ("rounds", 0, false), ("pairs", 1, true)],
        );
        for Mean { over, under, value, low, high, pairs } in &self.means {
            sheet.push(vec![
                format!("{over} ÷ {under}").into(),
                Number::number(format!("{value:.3}"), *value),
                format!("{low:.3} … {high:.3}").into(),
                Number::number(pairs.to_string(), *pairs as f64),
            ]);
        }
        sheet
    }

    /// A row for each kernel and size, a column for each implementation; our own are left out last.
    fn grid(&self, title: &str, show: impl Fn(&Cell) -> Option<Number>) -> Sheet {
        let rank = |place: usize| place.saturating_sub(OWN - 1) as u8;
        let mut columns = vec![("kernel", 0, false), ("bytes", 0, true)];
        columns.extend(self.names.iter().enumerate().map(|(at, it)| (it.as_str(), rank(at), true)));
        let mut sheet = Sheet::new(title, &columns);
        for kernel in KERNELS.iter().map(|kernel| kernel.name) {
            for &size in &self.sizes {
                let here = |cell: &&Cell| cell.kernel == kernel && cell.size == size;
                let cells: Vec<&Cell> = self.cells.iter().filter(here).collect();
                if cells.is_empty() {
                    continue;
                }
                let mut row = vec![kernel.into(), Number::number(size.to_string(), size as f64)];
                row.extend(cells.iter().map(|cell| show(cell).unwrap_or_else(|| "–".into())));
                sheet.push(row);
            }
        }
        sheet
    }

    fn code_sheet(&self) -> Sheet {
        let known = |name: &&String| self.code.iter().any(|it| it.implementation == **name);
        let names: Vec<&String> = self.names.iter().filter(known).collect();
        let mut columns = vec![("kernel", 0, false)];
        columns.extend(names.iter().map(|name| (name.as_str(), 0, true)));
        let mut sheet = Sheet::new("bytes of code", &columns);
        for kernel in &KERNELS {
            let of = |name: &str| {
                let same =
                    |code: &&CodeSize| code.kernel == kernel.name && code.implementation == name;
                let bytes = self.code.iter().find(same)?.bytes;
                Some(Number::number(bytes.to_string(), bytes as f64))
            };
            let sizes: Vec<Option<Number>> = names.iter().map(|name| of(name)).collect();
            if sizes.iter().any(Option::is_some) {
                let sizes = sizes.into_iter().map(|size| size.unwrap_or_else(|| "–".into()));
                sheet.push(std::iter::once(kernel.name.into()).chain(sizes).collect());
            }
        }
        sheet
    }

    /// What was not measured, each reason once for an implementation.
    fn failures(&self) -> Vec<String> {
        let mut failures: Vec<String> = Vec::new();
        for cell in &self.cells {
            let Some(why) = &cell.failure else { continue };
            let text = format!("{}, {}: {why}", cell.implementation, cell.kernel);
            if !failures.contains(&text) {
                failures.push(text);
            }
        }
        failures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_of_known_ratios_is_known() {
        let cell = |kernel, name: &str, runs: &[f64]| {
            let result = Ok((Summary::of(runs).unwrap(), runs.to_vec()));
            Cell::new(kernel, 1, name.to_owned(), result, None)
        };
        let cells = [
            cell("gray", "a", &[2.0, 4.0]),
            cell("gray", "b", &[1.0, 1.0]),
            cell("sort", "a", &[8.0, 4.0]),
            cell("sort", "b", &[1.0, 1.0]),
            cell("fir", "a", &[8.0, 4.0]),
        ];
        let mean = Mean::of(&cells, "a", "b").unwrap();
        assert!((mean.value - 4.0).abs() < 1e-9 && mean.pairs == 2, "{mean:?}");
        assert!(Mean::of(&cells, "a", "c").is_none());
    }
}
