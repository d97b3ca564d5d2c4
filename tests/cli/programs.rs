//! Commands that are programs of their own.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};
use test_support::copy_program;

/// Calls the `dewar` at this path with `PATH` that leads to `path`.
fn call(dewar: &Path, path: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(dewar);
    command.args(args).env("PATH", path).env("NO_COLOR", "1").env_remove("COLUMNS");
    command.env("XDG_STATE_HOME", "/nonexistent").env("XDG_CACHE_HOME", "/nonexistent");
    command.output().expect("it starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_program_that_is_missing_is_named_and_is_not_looked_for_by_path() {
    let (place, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let dewar = test_support::install(place.path(), &["dewar"]);
    for (args, program) in [
        (&["bench", "sample", "/nonexistent"][..], "dewar-bench"),
        (&["plugin", "list"], "dewar-plugin"),
        (&["bench", "plugin"], "dewar-plugin"),
        (&["daemon", "--runs"], "dewar-daemon"),
        (&["audit"], "dewar-daemon"),
        (&["selftest", "list"], "dewar-selftest"),
    ] {
        copy_program(Path::new("/bin/true"), &elsewhere.path().join(program));
        let output = call(&dewar, elsewhere.path(), args);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(125), "{args:?}: {said}");
        let missing = format!("`{program}` is missing beside `{}`", dewar.display());
        assert!(said.contains(&missing) && said.contains("make install"), "{said}");
    }
}

#[test]
fn help_completions_and_manual_pages_need_no_other_program() {
    let place = tempfile::tempdir().unwrap();
    let dewar = test_support::install(place.path(), &["dewar"]);
    for (args, part) in [
        (&["help", "bench", "plugin"][..], "--no-kernels"),
        (&["plugin", "run", "--help"], "--or-isolated"),
        (&["daemon", "--help"], "--journal-size"),
        (&["completions", "bash"], "--journal-size"),
    ] {
        let output = call(&dewar, place.path(), args);
        assert!(text(&output.stdout).contains(part), "{args:?}: {}", text(&output.stderr));
    }
    let wrong = call(&dewar, place.path(), &["bench", "build", "--rounds", "none"]);
    assert_eq!(wrong.status.code(), Some(2), "{}", text(&wrong.stderr));
    let pages = place.path().display().to_string();
    let written = call(&dewar, place.path(), &["man", &pages]);
    assert!(written.status.success(), "{}", text(&written.stderr));
    for page in ["dewar-bench-plugin.1", "dewar-plugin-run.1", "dewar-audit.1"] {
        assert!(place.path().join(page).exists(), "{page}");
    }
}

#[test]
fn a_link_to_dewar_finds_the_programs_beside_the_file_that_it_leads_to() {
    let (place, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let dewar = test_support::install(place.path(), &["dewar", "dewar-daemon"]);
    let link = elsewhere.path().join("dewar");
    std::os::unix::fs::symlink(dewar, &link).unwrap();
    let output = call(&link, elsewhere.path(), &["audit"]);
    assert!(text(&output.stderr).contains("there is no journal"), "{}", text(&output.stderr));
}

/// A help text without `--json-schema`, which takes one line, or two and an empty one.
fn without_schema(help: &str) -> String {
    let entry = help.find("      --json-schema");
    let Some((before, entry)) = entry.map(|at| help.split_at(at)) else { return help.to_owned() };
    let end = if entry.starts_with("      --json-schema\n") { "\n\n" } else { "\n" };
    before.to_owned() + entry.split_once(end).map_or("", |(_, after)| after)
}

#[test]
fn programs_parse_the_same_words_as_dewar_and_call_themselves_so() {
    for (program, args) in [
        ("dewar-daemon", &["audit", "--help"][..]),
        ("dewar-daemon", &["daemon", "--help"]),
        ("dewar-bench", &["bench", "walk", "--help"]),
        ("dewar-selftest", &["selftest", "--help"]),
        ("dewar-plugin", &["plugin", "run", "--help"]),
        ("dewar-plugin", &["bench", "plugin", "--help"]),
    ] {
        let dewar = test_support::dewar();
        let (own, its) = (dewar.to_owned(), dewar.with_file_name(program));
        let [own, its] = [own, its].map(|path| call(&path, Path::new("/"), args));
        assert!(own.status.success() && !own.stdout.is_empty(), "{args:?}");
        // Schemas are printed by `dewar` itself, whoever prints the documents.
        let own = without_schema(&text(&own.stdout));
        assert_eq!(own, text(&its.stdout), "{program} {args:?}");
    }
}

#[test]
fn dewar_links_no_compiler_and_no_database() {
    let dewar = fs::read(test_support::dewar()).unwrap();
    let has = |word: &str| dewar.windows(word.len()).any(|window| window == word.as_bytes());
    assert!(has("seccomp"), "words of what it does link are found");
    for word in ["wasmtime", "cranelift", "sqlite3", "plotters"] {
        assert!(!has(word), "{word}");
    }
}
