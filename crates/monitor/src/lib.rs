//! The monitor.
mod audit;
mod bpf;
mod caller;
mod file;
mod filter;
mod gate;
mod label;
pub mod launch;
mod manager;
mod plan;
mod process;
mod resolve;
mod socket;
mod sys;
