//! E-code on every target. One program, so that its compilers are linked once.

mod addresses;
mod arrays;
mod batches;
mod cod;
mod common;
mod counters;
mod differential;
mod edges;
mod entry;
mod foreign_suites;
mod fuel;
mod gcc;
mod generate;
mod kernel;
mod language;
mod limits;
mod loops;
mod programs;
mod sys;
mod vector;
