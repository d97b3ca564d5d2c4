//! Help, manual pages, completions.

use super::{dewar, dewar_in};

#[test]
fn help_teaches_by_examples_and_names_the_exit_statuses() {
    let said = dewar(&["--help"]);
    for part in ["dewar run -- make", "dewar explain", "Exit status:", "125", "126", "127"] {
        assert!(said.out.contains(part), "{part}");
    }
    assert_eq!(said.status, 0);
    for subcommand in
        ["run", "explain", "policy", "doctor", "bench", "completions", "man", "daemon", "audit"]
    {
        let said = dewar(&[subcommand, "--help"]);
        assert!(said.out.contains(&format!("Usage: dewar {subcommand}")), "{subcommand}");
        assert_eq!(said.status, 0, "{subcommand}");
    }
}

#[test]
fn nothing_is_coloured_when_the_output_is_no_terminal() {
    for args in [&["--help"][..], &["run"], &["policy", "show", "nothing"]] {
        let said = dewar(args);
        assert!(!(said.out + &said.err).contains('\x1b'), "{args:?}");
    }
}

#[test]
fn every_shell_has_completions() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let said = dewar(&["completions", shell]);
        assert!(said.out.contains("dewar") && said.out.contains("allow-degraded"), "{shell}");
        assert_eq!(said.status, 0, "{shell}");
    }
}

#[test]
fn manual_pages_are_printed_or_written() {
    let said = dewar(&["man"]);
    assert!(said.out.contains(".TH dewar 1"), "{}", said.out);
    let dir = tempfile::tempdir().unwrap();
    let said = dewar_in(dir.path(), &["man", "."]);
    assert_eq!((said.status, said.err.as_str()), (0, ""));
    for page in ["dewar.1", "dewar-run.1", "dewar-policy-show.1"] {
        let text = std::fs::read_to_string(dir.path().join(page)).expect(page);
        assert!(text.contains(".SH DESCRIPTION"), "{page}");
    }
    let made = dewar_in(dir.path(), &["man", "new/man1"]);
    assert!(made.status == 0 && dir.path().join("new/man1/dewar.1").exists(), "{}", made.err);
    let missing = dewar(&["man", "/dev/null/man"]);
    assert!(
        missing.err.contains("cannot write manual pages to `/dev/null/man`"),
        "{}",
        missing.err
    );
    assert_eq!(missing.status, 125);
}

#[test]
fn the_doctor_names_each_layer_and_what_is_lost_without_it() {
    let said = dewar(&["doctor", "--without", "user"]);
    assert!(
        said.out.contains("NO   user  ")
            && said.out.contains("       because: left out on request\n       lost:")
            && said.out.starts_with("Dewar "),
        "{}",
        said.out
    );
    assert_eq!(said.status, 0);
    let said = dewar(&["doctor", "--json"]);
    assert!(said.out.contains("\"name\": \"landlock\""), "{}", said.out);
}
