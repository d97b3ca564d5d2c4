//! What protection costs: the same work natively and under every configuration, in turn, with
//! intervals.
//!
//! ```text
//!  study::Conditions ──▶ Study ──▶ pairs::engine ──▶ ExperimentResult ──▶ Sheet │ Figure ──▶ page
//!    configs, medium       units and runners    │
//!                                                └──▶ JSON lines, from which it is continued
//! ```
//!
//! A [`config::Config`] is a way to run something: natively, under Dewar, under a [`peers`] tool. A
//! [`study::Study`] has the units of work and a runner for each configuration; the engine in
//! [`pairs`] alternates them.
//!
//! # Example
//!
//! ```
//! use bench::{
//!     config::{Config, Kind}, interrupt::Interrupt, medium::Medium, pairs::Aim, sheet::Width,
//!     study::Conditions, table::Style, worker::Worker,
//! };
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let conditions = Conditions {
//!     configs: vec![Config::native(), Config::new("env", Kind::Peer, &["env"], "for scale")],
//!     worker: Worker { program: "/proc/self/exe".into(), arguments: vec!["worker".into()] },
//!     medium: Medium::memory(),
//!     aim: Aim { most: Some(8), ..Aim::default() },
//! };
//! let outcome = conditions.start()?.run(None, &Interrupt::notice()?, &mut |_| {})?;
//! for sheet in outcome.sheets() {
//!     println!("{}", sheet.draw(Style::Plain, Width::Narrow));
//! }
//! # Ok(())
//! # }
//! ```
pub mod calls;
pub mod classic;
pub mod config;
pub mod figure;
pub mod guest;
pub mod harden;
pub mod held_resource;
pub mod interleaved;
pub mod interrupt;
pub mod kernels;
pub mod layer;
pub mod library;
pub mod machine;
pub mod medium;
mod operation;
pub mod pairs;
pub mod peers;
pub mod plot;
pub mod process;
pub mod progress;
pub mod project;
mod random;
pub mod report;
pub mod revocation;
pub mod sample;
pub mod sheet;
pub mod statistics;
pub mod study;
mod sys;
pub mod table;
mod walk;
pub mod web;
pub mod worker;
