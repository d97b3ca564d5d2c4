//! The `dewar` command.
fn main() {}
