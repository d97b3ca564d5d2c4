//! What came of it, as tables and JSON.

use super::KERNELS;
use crate::{
    machine::Machine,
    statistics::{Summary, median_of},
    table::{self, Style},
    turns::Turns,
};
use serde::Serialize;

/// One kernel on one size of request in one implementation.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// The kernel.
    pub kernel: &'static str,
    /// Bytes of request.
    pub size: usize,
    /// The implementation.
    pub implementation: String,
    /// Nanoseconds of processor time of a call.
    pub ns: Option<Summary>,
    /// The same of every round.
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
        Self { kernel, size, implementation, ns, runs, instructions, failure }
    }
}

/// Bytes of machine code of a kernel.
#[derive(Clone, Debug, Serialize)]
pub struct CodeSize {
    /// The kernel.
    pub kernel: &'static str,
    /// The implementation.
    pub implementation: String,
    /// Bytes.
    pub bytes: usize,
}

/// How many times as long one implementation takes as another: the geometric mean over kernels and sizes.
#[derive(Clone, Debug, Serialize)]
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
#[derive(Clone, Debug, Serialize)]
pub struct KernelReport {
    /// Where and when.
    pub machine: Machine,
    /// How often.
    pub turns: Turns,
    /// The implementations, in the order of columns.
    pub names: Vec<String>,
    /// Sizes of requests in bytes.
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
    /// The tables: nanoseconds per byte, instructions per byte where counted, bytes of code, ratios.
    #[must_use]
    pub fn table(&self, style: Style) -> String {
        let per_byte = |cell: &Cell| Some(cell.ns?.median / cell.size as f64);
        let mut text =
            "kernels, nanoseconds of processor time per byte of request, ± median deviation\n"
                .to_owned();
        text += &self.grid(style, |cell| {
            let spread = 100.0 * cell.ns?.mad / cell.ns?.median;
            Some(format!("{:.3} ±{spread:.0} %", per_byte(cell)?))
        });
        text += "\n";
        match &self.instructions {
            Some(why) => text += &format!("instructions were not counted: {why}\n"),
            None => {
                text += "instructions per byte\n";
                text += &self.grid(style, |cell| {
                    Some(format!("{:.2}", cell.instructions? as f64 / cell.size as f64))
                });
                text += "\n";
            }
        }
        text += "bytes of code\n";
        text += &self.code_table(style);
        text +=
            "\n\ngeometric means over kernels and sizes, with the least and greatest of a round\n";
        for mean in &self.means {
            let Mean { over, under, value, low, high, pairs } = mean;
            text += &format!("{over} ÷ {under}: {value:.3} ({low:.3} … {high:.3}) of {pairs}\n");
        }
        for why in self.failures() {
            text += &format!("{why}\n");
        }
        let rounds = self.turns.rounds;
        text + &format!(
            "{rounds} rounds in changing order, replies compared in each; {}\n",
            self.machine
        )
    }

    fn grid(&self, style: Style, show: impl Fn(&Cell) -> Option<String>) -> String {
        let mut headings = vec!["kernel".to_owned(), "bytes".to_owned()];
        headings.extend(self.names.iter().cloned());
        let mut rows: Vec<Vec<String>> = Vec::new();
        for kernel in KERNELS.iter().map(|kernel| kernel.name) {
            for &size in &self.sizes {
                let here = |cell: &&Cell| cell.kernel == kernel && cell.size == size;
                let cells: Vec<&Cell> = self.cells.iter().filter(here).collect();
                if cells.is_empty() {
                    continue;
                }
                let mut row = vec![kernel.to_owned(), size.to_string()];
                row.extend(cells.iter().map(|cell| show(cell).unwrap_or_else(|| "–".to_owned())));
                rows.push(row);
            }
        }
        table::draw(style, &headings, rows)
    }

    fn code_table(&self, style: Style) -> String {
        let names: Vec<&String> = self
            .names
            .iter()
            .filter(|name| self.code.iter().any(|c| c.implementation == **name))
            .collect();
        let mut headings = vec!["kernel".to_owned()];
        headings.extend(names.iter().map(|name| (*name).clone()));
        let rows = KERNELS.iter().filter_map(|kernel| {
            let of = |name: &str| {
                let same =
                    |code: &&CodeSize| code.kernel == kernel.name && code.implementation == name;
                self.code.iter().find(same).map(|code| code.bytes.to_string())
            };
            let sizes: Vec<Option<String>> = names.iter().map(|name| of(name)).collect();
            sizes.iter().any(Option::is_some).then(|| {
                let sizes = sizes.into_iter().map(|size| size.unwrap_or_else(|| "–".to_owned()));
                std::iter::once(kernel.name.to_owned()).chain(sizes).collect()
            })
        });
        table::draw(style, &headings, rows.collect())
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
