//! Bad input.

use super::{dewar, dewar_in};
use std::{fs, path::Path};

/// A directory with a file `x.toml`, and a command that would leave a trace there.
fn with_profile(text: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("x.toml"), text).unwrap();
    dir
}

const RUN: [&str; 7] = ["run", "-p", "./x.toml", "--", "touch", "trace", "--"];

fn started(dir: &Path) -> bool {
    dir.join("trace").exists()
}

#[test]
fn a_broken_profile_is_shown_with_place_and_help_and_nothing_is_started() {
    for (text, message, place, help) in [
        ("files = [\n", "not valid TOML", "x.toml:", ""),
        (
            "mode = 'fast'\nfile.read = []\n",
            "unknown key `file`",
            "x.toml:2:1",
            "did you mean `files`?",
        ),
        (
            "files.read = ['src']\n",
            "`src` is not an absolute path",
            "x.toml:1:15",
            "${workspace}/src",
        ),
        ("network.connect = ['x.org']\n", "no port is named", "x.toml:1:20", "`x.org:443`"),
        (
            "extends = 'workspaec'\n",
            "no profile is called `workspaec`",
            "x.toml:1:11",
            "`workspace`",
        ),
        ("extends = 'x.toml'\n", "`extends` goes in a circle", "x.toml:1:11", "take one"),
        ("limits.memory = 'much'\n", "`much` is not a size", "x.toml:1:17", "`512M`"),
    ] {
        let dir = with_profile(text);
        let said = dewar_in(dir.path(), &RUN);
        for part in [message, place, help] {
            assert!(said.err.contains(part), "{text}: no `{part}` in\n{}", said.err);
        }
        assert_eq!((said.status, said.out.as_str()), (2, ""), "{text}");
        assert!(!said.err.contains("has 1 error"), "{text}: a headline over one mistake");
        assert!(!started(dir.path()), "{text}");
    }
}

#[test]
fn a_benchmark_of_nothing_fails() {
    let said =
        dewar(&["bench", "build", "--rounds", "1", "--no-peers", "--no-disk", "--", "no-such"]);
    assert!(said.out.contains("cannot run `no-such`"), "{}", said.out);
    assert!(said.err.ends_with("dewar: nothing could be measured\n"), "{}", said.err);
    assert_eq!(said.status, 125);
}

#[test]
fn every_mistake_of_a_profile_is_reported_at_once() {
    let dir = with_profile("mode = 1\nfiles.read = ['a', 'b']\n");
    let said = dewar_in(dir.path(), &RUN);
    assert!(said.err.contains("./x.toml has 3 errors"), "{}", said.err);
    assert_eq!(said.err.matches("x.toml:").count(), 3, "{}", said.err);
    assert!(said.err.lines().all(|line| line.trim_end() == line), "{:?}", said.err);
}

#[test]
fn a_profile_that_is_not_there_is_wrong_use() {
    for (profile, message) in [
        ("nothing", "no profile is called `nothing`"),
        ("biuld", "did you mean `build`?"),
        ("./nothing.toml", "cannot read profile `./nothing.toml`: No such file or directory"),
        ("nothing.toml", "cannot read profile `nothing.toml`"),
        ("/", "cannot read profile `/`"),
        ("", "the name of the profile is empty"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let said = dewar_in(dir.path(), &["run", "-p", profile, "touch", "trace"]);
        assert!(said.err.contains(message), "{profile}: {}", said.err);
        assert_eq!(said.status, 2, "{profile}");
        assert!(!started(dir.path()));
    }
}

#[test]
fn a_workspace_that_a_policy_cannot_name_is_wrong_use() {
    use std::os::unix::ffi::OsStrExt as _;
    for name in [&b"new\nline"[..], b"a\"quote", b"esc\x1b", b"latin\xe9"] {
        let dir = tempfile::tempdir().unwrap();
        let workspace = dir.path().join(std::ffi::OsStr::from_bytes(name));
        std::fs::create_dir(&workspace).unwrap();
        let said = dewar_in(&workspace, &["run", "true"]);
        assert!(said.err.contains("a policy cannot name a path with"), "{}", said.err);
        assert!(!said.err.contains(['\x1b']) && said.err.lines().count() == 1, "{:?}", said.err);
        assert_eq!(said.status, 2);
    }
}

#[test]
fn a_workspace_that_is_no_directory_is_wrong_use() {
    for (workspace, message) in [("./nothing", "No such file"), ("/dev/null", "not a directory")] {
        let said = dewar(&["policy", "show", "-w", workspace]);
        assert!(
            said.err.contains("cannot use workspace") && said.err.contains(message),
            "{}",
            said.err
        );
        assert_eq!(said.status, 2);
    }
}

#[test]
fn a_wrong_command_line_is_explained_and_starts_nothing() {
    for (args, message) in [
        (&[][..], "Usage: dewar"),
        (&["run"], "<COMMAND>..."),
        (&["runn", "true"], "unrecognized subcommand 'runn'"),
        (&["run", "--stat", "--", "touch", "trace"], "--stats"),
        (&["run", "--mode", "slow", "touch", "trace"], "possible values: all, fast"),
        (&["doctor", "--without", "magic"], "`magic` is no layer; layers are user, mount"),
        (&["run", "--enforce", "file", "touch", "trace"], "`file` is no object manager"),
        (&["policy", "show", "--origins"], "--cil"),
        (&["completions", "tcsh"], "possible values: bash"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let said = dewar_in(dir.path(), args);
        assert!(said.err.contains(message), "{args:?}: {}", said.err);
        assert_eq!(said.status, 2, "{args:?}");
        assert!(!started(dir.path()), "{args:?}");
    }
}

#[test]
fn explaining_before_any_run_says_how_to_make_one() {
    let said = dewar(&["explain"]);
    assert!(said.err.contains("dewar run -- COMMAND"), "{}", said.err);
    assert_eq!(said.status, 2);
}
