//! What the `dewar` command says and returns; above all for bad input: a clear message, the right
//! exit status, and nothing started.

mod account;
mod adversity;
mod agents;
mod answers;
mod ask;
mod bench;
mod cargo;
mod completion;
mod daemon;
mod deputies;
mod domains;
mod ended;
mod floor;
mod followed;
mod given;
mod guarded;
mod held_up;
mod help;
mod hints;
mod hostile;
mod input;
mod inside;
mod install;
mod keyboard;
mod learn;
mod learned;
mod left;
mod live;
mod mistakes;
mod once;
mod own_files;
mod own_tmp;
mod plugin;
mod policy;
mod programs;
mod propose;
mod ready;
mod registries;
mod resolving;
mod runs;
mod schemas;
mod seeing;
mod servers;
mod shell;
mod spelling;
mod standin;
mod starting;
mod starved;
mod statuses;
mod suspended;
mod taken;
mod terminal;
mod told;
mod top;
mod trust;
mod undone;
mod untrusted;
mod way;

use assert_cmd::Command;
use std::path::Path;

/// What a call of `dewar` came to.
struct Said {
    status: i32,
    out: String,
    err: String,
}

/// A message in one line, wherever it was broken: that depends on the length of paths.
fn in_a_line(message: &str) -> String {
    let words = message.split([' ', '\n', '│']).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

/// Calls `dewar` in a directory.
fn dewar_in(dir: &Path, args: &[&str]) -> Said {
    dewar_with(dir, args, "")
}

/// Calls `dewar` in a directory, with something on standard input.
fn dewar_with(dir: &Path, args: &[&str], input: &str) -> Said {
    let mut command = Command::new(test_support::dewar());
    let output = command
        .args(args)
        .current_dir(dir)
        .env("NO_COLOR", "1")
        .env("XDG_STATE_HOME", dir.join("state"))
        .env("XDG_CACHE_HOME", dir.join("cache"))
        .env("XDG_RUNTIME_DIR", dir.join("runtime"))
        .write_stdin(input)
        .env_remove("COLUMNS")
        .output()
        .expect("the command starts");
    Said {
        status: output.status.code().expect("no signal"),
        out: String::from_utf8(output.stdout).expect("Unicode"),
        err: String::from_utf8(output.stderr).expect("Unicode"),
    }
}

/// Calls `dewar` in an empty directory.
fn dewar(args: &[&str]) -> Said {
    let dir = tempfile::tempdir().expect("a directory");
    dewar_in(dir.path(), args)
}
