//! What a call between two processes costs, and what checking it adds: the founding tables of
//! interprocess communication and of decisions, with ours and the kernel's own means beside them.
//!
//! The calling process forks the one that is called; each is pinned to a processor. All ways take
//! turns in short batches, so that what disturbs one disturbs all.

mod measure;
mod peers;
mod placement;
mod ports;
mod ways;

pub use placement::Placement;

use crate::{
    machine::Machine,
    pairs::show::slowdown,
    report::Section,
    sheet::Sheet,
    statistics::{Ratio, Summary},
    table,
};
use ipc::Transport;
use measure::{Caller, in_turn};
use peers::Peers;
use placement::{Child, Pinned, pin};
use ports::{BASE, Variant, World};
use serde::{Deserialize, Serialize};
use std::{io, path::Path, thread};
use ways::{BARE, SLEEPING_FLOOR, SPINNING_FLOOR, Ways};

/// Sizes of messages, in bytes: those of the founding table.
const SIZES: [usize; 7] = [8, 16, 128, 1 << 10, 4 << 10, 8 << 10, 64 << 10];

/// What was found for Flask on Fluke, by size: base in µs, then what the three kinds of call add,
/// in percent.
const FOUNDING_CALLS: [[&str; 4]; 7] = [
    ["13.5 µs", "+2 %", "+9 %", "+6 %"],
    ["15.0 µs", "+2 %", "+4 %", "+6 %"],
    ["15.8 µs", "+1 %", "+2 %", "+5 %"],
    ["21.9 µs", "+2 %", "+2 %", "+4 %"],
    ["42.9 µs", "+1 %", "+1 %", "+2 %"],
    ["78.5 µs", "+1 %", "+5 %", "+1 %"],
    ["503 µs", "+0 %", "+6 %", "+0 %"],
];

/// The same for decisions, at the smallest size.
const FOUNDING_DECISIONS: [&str; 5] = ["13.5 µs", "+2 %", "+7 %", "+221 %", "+511 %"];

/// What is not measured, and why.
const ABSENT: &str = "not measured: D-Bus, gRPC, iceoryx2: build `peers/` of the sources (`cargo build --release`), and name \
    the program by --peers";

/// Which table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Subject {
    /// Kinds of call, by size.
    Calls,
    /// Where a decision is found.
    Decisions,
}

/// One figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Cell {
    /// The placement's name.
    pub placement: String,
    /// How the bytes travel.
    pub way: String,
    /// What is checked.
    pub variant: String,
    /// Bytes there, and as many back.
    pub bytes: usize,
    /// Nanoseconds of a round trip, over the rounds.
    pub ns: Summary,
    /// Against the same way without checks, within rounds.
    pub vs_base: Option<Ratio>,
    /// Against the faster of the two futex floors, within rounds; for the smallest message.
    pub vs_floor: Option<Ratio>,
    /// Every round as it was.
    pub rounds_ns: Vec<f64>,
}

/// What came of it.
#[derive(Clone, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CallReport {
    /// Which table.
    pub subject: Subject,
    /// Where and when.
    pub machine: Machine,
    /// How often.
    pub rounds: usize,
    /// Where the two ends ran.
    pub placements: Vec<Placement>,
    /// Whether other ways than this program's own were measured.
    pub peers: bool,
    /// By placement, size, way and variant.
    pub cells: Vec<Cell>,
}

/// Measures all of it, with the ways of the program `peers` (see `peers/` in the sources) beside
/// it; tells `progress` what comes. Meant for a process with one thread.
///
/// # Errors
///
/// Whatever the system says, and when the other process does not answer.
pub fn run(
    subject: Subject,
    rounds: usize,
    peers: Option<&Path>,
    progress: &mut dyn FnMut(&str),
) -> io::Result<CallReport> {
    let (machine, placements) = (Machine::here(), Placement::all()?);
    let mut cells = Vec::new();
    for placement in &placements {
        progress(&placement.name);
        cells.extend(at(placement, subject, rounds, peers)?);
    }
    Ok(CallReport { subject, machine, rounds, placements, peers: peers.is_some(), cells })
}

fn at(
    placement: &Placement,
    subject: Subject,
    rounds: usize,
    program: Option<&Path>,
) -> io::Result<Vec<Cell>> {
    let (variants, sizes): (&[Variant], &[usize]) = match subject {
        Subject::Calls => (&ports::KINDS_OF_CALL, &SIZES),
        Subject::Decisions => (&ports::PLACES_OF_DECISION, &SIZES[..1]),
    };
    let (world, ways, directory) = (World::new()?, Ways::new()?, tempfile::tempdir()?);
    let _server = Child::start(|| {
        pin(placement.server_cpu)?;
        ways.answer()?;
        world.serve(directory.path(), variants)?;
        loop {
            thread::park();
        }
    })?;
    let _pinned = Pinned::to(placement.client_cpu)?;
    let mut callers = ways.callers()?;
    for transport in [Transport::Memory, Transport::Socket] {
        callers.extend(world.callers(directory.path(), transport, variants)?);
    }
    let peers = program.map(|program| Peers::start(program, directory.path(), placement));
    let _peers = peers.transpose()?.map(|(peers, others)| {
        callers.extend(others);
        peers
    });
    let _load = placement.load()?;
    let mut cells = Vec::new();
    for bytes in sizes {
        let figures = in_turn(&mut callers, *bytes, rounds)?;
        cells.extend(cells_of(&callers, &figures, *bytes, placement));
    }
    Ok(cells)
}

fn cells_of(
    callers: &[Caller],
    figures: &[Vec<f64>],
    bytes: usize,
    placement: &Placement,
) -> Vec<Cell> {
    let against = |mine: &[f64], other: usize| {
        let pairs: Vec<(f64, f64)> =
            mine.iter().copied().zip(figures[other].iter().copied()).collect();
        Ratio::of(&pairs)
    };
    let base_of = |caller: &Caller| {
        callers.iter().position(|other| other.way == caller.way && other.variant == BASE)
    };
    let median = |place: &usize| Summary::of(&figures[*place]).map_or(f64::MAX, |s| s.median);
    let floor = (0..callers.len())
        .filter(|place| [SLEEPING_FLOOR, SPINNING_FLOOR].contains(&callers[*place].way.as_str()))
        .min_by(|one, two| median(one).total_cmp(&median(two)));
    let cell = |(place, caller): (usize, &Caller)| {
        let mine = &figures[place];
        let compared = base_of(caller).filter(|base| *base != place);
        Some(Cell {
            placement: placement.name.clone(),
            way: caller.way.clone(),
            variant: caller.variant.to_owned(),
            bytes,
            ns: Summary::of(mine)?,
            vs_base: compared.and_then(|base| against(mine, base)),
            vs_floor: floor.filter(|_| bytes == SIZES[0]).and_then(|floor| against(mine, floor)),
            rounds_ns: mine.clone(),
        })
    };
    callers.iter().enumerate().filter_map(cell).collect()
}

impl CallReport {
    /// The tables, one a placement, with the founding figures beside them.
    #[must_use]
    pub fn sheets(&self) -> Vec<Sheet> {
        let mut sheets: Vec<Sheet> = self.placements.iter().map(|it| self.sheet_at(it)).collect();
        if let Some(last) = sheets.last_mut() {
            if !self.peers {
                last.notes.push(ABSENT.to_owned());
            }
            last.notes.push(format!("{} rounds; {}", self.rounds, self.machine));
        }
        sheets
    }

    /// The chapter of a report.
    #[must_use]
    pub fn section(&self) -> Section {
        let (name, title) = match self.subject {
            Subject::Calls => ("ipc", "Calls between processes, and what checking them adds"),
            Subject::Decisions => {
                ("decision", "What a decision adds to a call, by where it is found")
            }
        };
        let mut section = Section::new(name, title, self.headline(), self.sheets());
        section.machine = Some(self.machine.clone());
        section
    }

    /// What is added to the smallest message where the two ends share a processor, or wherever was
    /// measured first.
    fn headline(&self) -> String {
        let first = self.placements.first().map(|it| it.name.as_str()).unwrap_or_default();
        let added = self.cells.iter().filter(|it| it.placement == first && it.bytes == SIZES[0]);
        let said = added.filter_map(|cell| {
            let ratio = cell.vs_base?;
            Some(format!("{}, {}: {}", cell.way, cell.variant, slowdown(ratio.value)))
        });
        format!(
            "Added to a call of {} bytes ({first}): {}.",
            SIZES[0],
            said.collect::<Vec<_>>().join("; ")
        )
    }

    fn sheet_at(&self, placement: &Placement) -> Sheet {
        let here: Vec<&Cell> =
            self.cells.iter().filter(|cell| cell.placement == placement.name).collect();
        let variants: Vec<&str> = match self.subject {
            Subject::Calls => ports::KINDS_OF_CALL.iter().map(|variant| variant.name).collect(),
            Subject::Decisions => {
                ports::PLACES_OF_DECISION.iter().map(|variant| variant.name).collect()
            }
        };
        let mut columns = vec![("way", 0, false), ("bytes", 0, true)];
        columns.extend(variants.iter().enumerate().map(|(rank, name)| (*name, rank as u8, true)));
        columns.push(("vs floor", 9, true));
        let mut sheet = Sheet::new(&self.title(placement), &columns);
        for first in here.iter().filter(|cell| [BASE, BARE].contains(&cell.variant.as_str())) {
            let is_floor = [SLEEPING_FLOOR, SPINNING_FLOOR].contains(&first.way.as_str());
            if is_floor && first.bytes != SIZES[0] {
                continue;
            }
            let mut row = vec![first.way.clone(), first.bytes.to_string(), shown(first)];
            for name in &variants[1..] {
                let same = |cell: &&&Cell| {
                    cell.way == first.way && cell.bytes == first.bytes && cell.variant == *name
                };
                row.push(here.iter().find(same).map_or_else(String::new, |cell| shown(cell)));
            }
            row.push(first.vs_floor.map_or_else(String::new, |r| format!("{:.2} ×", r.value)));
            sheet.push(row.into_iter().map(Into::into).collect());
        }
        for mut row in self.founding() {
            row.push(String::new());
            sheet.push(row.into_iter().map(Into::into).collect());
        }
        sheet
    }

    fn title(&self, placement: &Placement) -> String {
        let (client, server) = (placement.client_cpu, placement.server_cpu);
        let load = if placement.loaded { ", a busy process on each" } else { "" };
        format!("{}: client on CPU {client}, server on CPU {server}{load}", placement.name)
    }

    fn founding(&self) -> Vec<Vec<String>> {
        let row = |bytes: usize, figures: &[&str]| {
            let figures = figures.iter().map(|figure| (*figure).to_owned());
            ["Flask on Fluke".to_owned(), bytes.to_string()].into_iter().chain(figures).collect()
        };
        match self.subject {
            Subject::Calls => SIZES
                .iter()
                .zip(&FOUNDING_CALLS)
                .map(|(bytes, figures)| row(*bytes, figures))
                .collect(),
            Subject::Decisions => vec![row(SIZES[0], &FOUNDING_DECISIONS)],
        }
    }
}

/// A base figure with its spread, or what is added to it with its interval.
fn shown(cell: &Cell) -> String {
    let percent = |ratio: f64| format!("{:+.1}", (ratio - 1.0) * 100.0);
    match cell.vs_base {
        Some(ratio) => {
            let [value, low, high] = [ratio.value, ratio.low, ratio.high].map(percent);
            format!("{value} % ({low} … {high})")
        }
        None => format!(
            "{} ± {}",
            table::seconds(cell.ns.median / 1e9),
            table::seconds(cell.ns.mad / 1e9)
        ),
    }
}
