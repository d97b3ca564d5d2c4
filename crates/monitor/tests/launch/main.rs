//! Launches real commands. Each test starts this program again as a small Dewar
//! (`launch --as-dewar PLAN COMMAND…`), as a sandbox can be started only from a process with a
//! single thread, and looks at it from the outside, as a user would.

mod dewar;

fn main() {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == "--as-dewar") {
        dewar::main(arguments);
    }
}
