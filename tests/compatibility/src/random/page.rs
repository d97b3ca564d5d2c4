//! `docs/compatibility.md`, made from the lists of what may differ and from the results that are
//! kept.

use crate::known::KNOWN;
use std::path::Path;

/// The page.
pub(crate) fn page() -> String {
    let mut text = String::from(PREFACE);
    for known in KNOWN {
        let calls = known.calls.iter().map(|call| format!("`{call}`")).collect::<Vec<_>>();
        let calls = if calls.is_empty() { "all".to_owned() } else { calls.join(", ") };
        text += &format!("| {calls} | {} | {} | {} |\n", known.native, known.dewar, known.reason);
    }
    text + &suites() + &matrix()
}

/// The table of a file of tab-separated values, in which `row` turns each line into cells.
fn table(file: &str, row: impl Fn(&str) -> Vec<String>) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(file);
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().map(|line| format!("| {} |\n", row(line).join(" | "))).collect()
}

fn cells(line: &str) -> Vec<String> {
    line.split('\t').map(str::to_owned).collect()
}

fn suites() -> String {
    let known = table("suites/known.tsv", |line| {
        let under = |cell: String| match cell.as_str() {
            "open" => "`open` and `workspace`".to_owned(),
            _ => format!("`{cell}`"),
        };
        let cell = |(n, cell)| match n {
            1 => format!("`{cell}`"),
            2 => under(cell),
            _ => cell,
        };
        cells(line).into_iter().enumerate().map(cell).collect()
    });
    format!(
        "{SUITES}{}\n| suite | case | under | why it differs |\n|---|---|---|---|\n{known}",
        table("suites/results.tsv", cells)
    )
}

fn matrix() -> String {
    let rows = table("matrix/expected.tsv", |line| {
        let quoted = |(n, cell): (usize, String)| match (n, cell.strip_prefix("no ")) {
            (0, _) if cell != "profile" => format!("`{cell}`"),
            (_, Some(missing)) => format!("no: `{missing}`"),
            _ => cell,
        };
        cells(line).into_iter().enumerate().map(quoted).collect()
    });
    if rows.is_empty() {
        return String::new();
    }
    let columns = rows.lines().next().map_or(0, |line| line.matches(" | ").count() + 1);
    let (header, rows) = rows.split_once('\n').unwrap_or_default();
    format!("{MATRIX}{header}\n|{}\n{rows}", "---|".repeat(columns))
}

const PREFACE: &str = "# What a program can tell

Written from the lists in `tests/compatibility/src` by the test `the_page_of_known_differences_is_the_list`; with
`DEWAR_WRITE_PAGE=1` it writes this page.

## Random programs

`make compatibility` runs random programs of file, process and socket calls natively and under profile `open`, as root, as an
ordinary user and without namespaces, in both modes, and compares every result, errno for errno, and the files that are left.
Parts of a program run in children, in threads, in programs executed anew, in processes that share descriptors or working
directory, and in turns with what follows them. What they call: files by name and by descriptor, attributes, mappings, pipes, local
and internet sockets with what messages carry, watches, epoll, timers, signals, waiting, tracing, limits and scheduling.
What follows is all that may differ; any other difference fails the test. Names are those of the calls in these programs
(`tests/compatibility/src/random/performer`: `fexec` is `execveat` of a descriptor, `send_fd` is `sendmsg` with one).

Before results are compared, the set-user-ID and set-group-ID bits of regular files are left out: `open` grants nobody to set
them, and calls that ask for them succeed without them (docs/profile.md). Programs read no clock, no inode number and no PID: a
sandbox has PIDs of its own, and a process group or session that began outside is 0 (`getpgrp`, `getsid`). Of a PID that they are told, they tell whose it is. A program of several threads whose results vary natively, too, is compared as the set of its results
over 30 runs. Files of other users than the run's own belong to `nobody` where there is a user namespace.

| call | natively | under Dewar | why |
|---|---|---|---|
";

const SUITES: &str = "
## Suites of others

`make compatibility` runs them natively, under `open` in both modes and under `workspace`, and compares case by case: what
passes natively passes under Dewar, but for what a second table names. Root runs them without capabilities, natively, too.
Of coreutils, there are the tests of programs that make, change, tell about, follow and remove files; of perl, those of
files, processes and sockets; of Redis, those of its types, limits and scripts in part, and of how it listens, forks, saves,
logs and ends; of SQLite, all of `veryquick`; of PostgreSQL, those of the server, with one session and with several; of node,
those of files, connections and child processes; of LTP, those of system calls, where `:whole` says that no part
was left out; of tokio, those of files, sockets, processes and signals. A case of jq or node is a file.

| suite | as | cases that pass natively | under `open` | in mode `fast` | under `workspace` |
|---|---|---|---|---|---|
";

const MATRIX: &str = "
## Shipped profiles and kinds of programs

What comes of each under each profile, as an ordinary user with namespaces: it works as natively, or is denied what is named,
on record. `make test` compares it (`tests/compatibility/src/matrix`).

";
