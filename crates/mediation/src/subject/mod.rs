//! Whose label a process has, and what is decided about it where a file or a connection shows it.
//!
//! - files of `/proc` show processes: [`proc_files`];
//! - a connection to a service outside is made by a process: [`connection`].

pub mod connection;
mod lineage;
mod mark;
pub mod proc_files;
mod processes;

pub use lineage::{
    Entering, are_marked, brings_nothing, enter, enter_inside, has_stayed, is_gone,
    label_generation, label_of, may_execute_unseen, on_new_label, outer_label_of, subject_of,
    watch,
};
pub use processes::{LabelGeneration, Lineage, Processes, Tell};
