//! The functions of `dewar.h`, and the structs that they share with C.
#![allow(unsafe_code)]

mod checks;
mod failure;
mod forms;
mod given;
mod labels;
mod open;
mod policy;

pub use checks::{dewar_check, dewar_check_access, dewar_decide, dewar_explain};
pub use failure::dewar_message;
pub use forms::*;
pub use labels::{dewar_class_number, dewar_context, dewar_create, dewar_permission, dewar_sid};
pub use open::{dewar_close, dewar_open, dewar_run};
pub use policy::{dewar_load, dewar_set_boolean, dewar_set_enforcing, dewar_status_page};
