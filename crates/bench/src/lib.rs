//! What protection costs: the same work natively and under every configuration, in turn, with the spread.
//!
//! ```text
//!  Workload ─┐
//!  Config… ──┼──▶ Comparison ──▶ runner ──▶ Report ──▶ table │ export
//!  Medium… ──┘                   (rounds)    rows: median, spread, ratios
//!                                            runs: every one of them
//!  Worker ──────▶ Syscalls ────▶ runner ──▶ SyscallReport, with the floor of the same run
//! ```
//!
//! A [`workload::Workload`] is a command: the build of the [`sample`] application, the walk, the start of `true`,
//! or any other. A [`config::Config`] is a way to run it: natively, under Dewar, under a [`peers`] tool. The runner
//! interleaves all of them, ignores the first round, and keeps each run.
//!
//! # Example
//!
//! ```
//! use bench::{comparison::{Comparison, Medium}, config::{Config, Kind}, runner::Plan, table, workload::Workload};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let comparison = Comparison {
//!     workload: Workload::start(),
//!     configs: vec![Config::native(), Config::new("env", Kind::Peer, &["env"], "for scale")],
//!     media: vec![Medium::memory()],
//!     plan: Plan { rounds: 3, ..Plan::default() },
//! };
//! let report = comparison.run(&mut |_| {})?;
//! println!("{}", table::comparison(&report, table::Style::Plain));
//! # Ok(())
//! # }
//! ```
pub mod calls;
pub mod classic;
pub mod comparison;
pub mod config;
pub mod export;
pub mod figure;
mod floor;
pub mod harden;
pub mod holding;
pub mod interrupt;
pub mod kernels;
pub mod machine;
mod operation;
pub mod pairs;
pub mod peers;
pub mod plot;
pub mod process;
pub mod progress;
mod random;
pub mod report;
pub mod revocation;
pub mod runner;
pub mod sample;
pub mod sheet;
pub mod statistics;
pub mod study;
mod sys;
pub mod syscalls;
pub mod table;
pub mod turns;
mod walk;
pub mod web;
pub mod worker;
pub mod workload;
