//! placeholder
pub mod comparison;
pub mod config;
mod floor;
mod interrupt;
pub mod machine;
mod operation;
pub mod peers;
pub mod process;
pub mod progress;
mod random;
pub mod runner;
pub mod sample;
pub mod statistics;
mod sys;
pub mod table;
mod walk;
pub mod worker;
pub mod workload;
