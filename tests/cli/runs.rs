//! Commands about runs, where there are none or what is asked makes no sense.

use super::{dewar, dewar_in};

#[test]
fn where_nothing_runs_the_commands_say_so() {
    let dir = tempfile::tempdir().unwrap();
    for args in [
        &["revoke", "--all"][..],
        &["revoke", "last", "--file", "/x"],
        &["grant", "some", "--net", "example.org:443"],
        &["policy", "load", "workspace"],
        &["policy", "history"],
    ] {
        let said = dewar_in(dir.path(), args);
        assert!(said.err.contains("nothing runs; start something with `dewar run"), "{}", said.err);
        assert_eq!((said.status, said.out.as_str()), (2, ""), "{args:?}");
    }
    let said = dewar_in(dir.path(), &["ps"]);
    assert_eq!((said.status, said.out.as_str()), (0, "nothing runs\n"));
    let said = dewar_in(dir.path(), &["ps", "--json"]);
    assert_eq!((said.status, said.out.as_str()), (0, "[]\n"));
    let said = dewar_in(dir.path(), &["top", "--once", "--json", "--interval", "0.05"]);
    assert!(said.out.contains("\"runs\":[]"), "{}", said.out);
}

#[test]
fn exactly_one_thing_is_taken_at_a_time() {
    for (args, part) in [
        (&["revoke"][..], "required"),
        (&["revoke", "--file", "/x", "--all"], "cannot be used with"),
        (&["revoke", "--net", "x", "--unix", "/y"], "cannot be used with"),
        (&["revoke", "--all", "--write"], "cannot be used with"),
        (&["revoke", "--write"], "required"),
        (&["revoke", "--all", "--kill", "--signal", "TERM"], "cannot be used with"),
        (&["revoke", "--all", "--signal", "NOSUCH"], "write a number up to 64, or one of HUP"),
        (&["grant"], "required"),
        (&["top", "--interval", "0"], "write seconds"),
        (&["run", "--name", "last", "--", "true"], "`last` is taken"),
        (&["run", "--name", "a/b", "--", "true"], "letters, digits"),
        (&["policy", "load"], "required"),
    ] {
        let said = dewar(args);
        assert!(said.err.contains(part), "{args:?}: {}", said.err);
        assert_eq!(said.status, 2, "{args:?}");
    }
}

#[test]
fn the_commands_teach_by_examples() {
    for (command, part) in [
        ("revoke", "dewar revoke last --net github.com"),
        ("grant", "What a running sandbox cannot be given"),
        ("ps", "dewar ps --json"),
        ("top", "--once"),
    ] {
        let said = dewar(&[command, "--help"]);
        assert!(said.out.contains(part) && said.out.contains("Exit status"), "{}", said.out);
    }
}
