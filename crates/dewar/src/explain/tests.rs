//! What is told of runs as they were recorded.

use super::*;
use monitor::Record;

fn plain(record: &RunRecord) -> Result<String, std::fmt::Error> {
    let text = tell(record, Layout { all: false, verbose: false, width: usize::MAX })?;
    Ok(look::plain(&text))
}

fn denial(tclass: &str, missing: &[&str], object: &str) -> Denial {
    let record = Record {
        comm: "cc1".into(),
        object: object.into(),
        tclass: tclass.into(),
        missing: missing.iter().map(|name| (*name).into()).collect(),
        reason: "no rule grants it".into(),
        count: 3,
        ..Record::default()
    };
    Denial { record, profile_rules: vec!["build.toml:4: '/x'".into()] }
}

#[test]
fn a_denial_is_told_with_what_would_allow_it_in_a_profile() {
    for (tclass, missing, object, want) in [
        ("file", &["read", "open"][..], "/home/me/.ssh/id", "files.read = [\"/home/me/.ssh/id\"]"),
        ("file", &["write"], "/etc/x", "files.write = [\"/etc/x\"]"),
        ("file", &["execute"], "/opt/x", "files.exec = [\"/opt/x\"]"),
        ("dir", &["add_name"], "/etc/x", "files.write = [\"/etc\"]"),
        ("dir", &["add_name"], "/etc/x", "make `x` yourself, and files.write = [\"/etc/x\"]"),
        ("dir", &["add_name"], "/x", "make `x` yourself, and files.write = [\"/x\"]"),
        (
            "dir",
            &["add_name"],
            "/home/me/.claude.json.tmp.4711.aB3d9",
            r#"files.write = ["/home/me/.claude.json","/home/me/.claude.json.tmp.*"]"#,
        ),
        (
            "dir",
            &["add_name"],
            "/home/me/sedYIyYIy",
            r#"in a profile files.write = ["/home/me/sed??????"], and the file whose place it takes"#,
        ),
        ("dir", &["add_name"], "/tmp/", "files.write = [\"/tmp\"]"),
        ("dir", &["read", "open"], "/home/me", "files.list = [\"/home/me\"]"),
        (
            "unix_dgram_socket",
            &["sendto"],
            "unix:/dev/log",
            "network.connect = [\"unixgram:/dev/log\"]",
        ),
        (
            "unix_dgram_socket",
            &["create"],
            "a new unix_dgram_socket",
            "network.connect = [\"unixgram:${workspace}\"]",
        ),
        ("endpoint", &["name_connect"], "[::1]:443", "network.connect = [\"[::1]:443\"]"),
        ("endpoint", &["name_bind"], "127.0.0.1:8000", "a profile network.loopback = \"own\""),
        ("endpoint", &["name_bind"], "0.0.0.0:80", "which others reach over the network"),
        ("file", &["write"], "/a*b\\c", r#"files.write = ["/a\\*b\\\\c"]"#),
        ("file", &["write"], "/a\u{1b}", "no line names it"),
        ("file", &["read"], "/a\"b", "no line names it"),
        ("dir", &["add_name"], "/srv/x/a\"b", "files.write = [\"/srv/x\"]"),
    ] {
        let denials = vec![denial(tclass, missing, object)];
        let text = plain(&RunRecord { denials, ..RunRecord::default() }).unwrap();
        assert!(text.contains(want), "{text}");
        assert!(text.contains("3 times") && text.contains("build.toml:4"), "{text}");
    }
}

#[test]
fn a_directory_that_was_to_be_made_is_granted_by_a_line_that_makes_it() {
    for (object, want) in [
        ("/home/me/.gnupg", "in a profile files.write = [\"/home/me/.gnupg/\"]"),
        ("/srv/x/new", "files.write = [\"/srv/x/new/\"], which makes it before the run"),
        ("/var/cache", "files.write = [\"/var/cache/NAME/\"], with the NAME"),
    ] {
        let mut made = denial("dir", &["add_name"], object);
        made.record.call = "mkdir".into();
        let text = plain(&RunRecord { denials: vec![made], ..RunRecord::default() }).unwrap();
        assert!(text.contains(want) && !text.contains("yourself"), "{text}");
    }
}

#[test]
fn what_takes_the_place_of_a_file_is_granted_beside_it_and_never_made_by_hand() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("config");
    std::fs::write(&file, "").unwrap();
    let file = file.display().to_string();
    for (object, want) in [
        (format!("{file}.lock"), format!("files.write = [\"{file}{{,.*}}\"]")),
        (format!("{}/sedlCpW8s", place.path().display()), String::new()),
    ] {
        let denials = vec![denial("dir", &["add_name"], &object)];
        let text = plain(&RunRecord { denials, ..RunRecord::default() }).unwrap();
        assert!(text.contains(&want) && !text.contains("yourself"), "{text}");
    }
}

#[test]
fn a_host_that_the_command_names_is_suggested_in_the_place_of_a_name_server() {
    let denials = vec![denial("endpoint", &["name_connect"], "192.0.2.53:53/udp")];
    let command = vec!["curl".into(), "https://pypi.org/simple/".into()];
    let text = plain(&RunRecord { denials, command, ..RunRecord::default() }).unwrap();
    let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{text}"));
    assert!(at("[\"pypi.org:443\"]") < at("[\"192.0.2.53:53/udp\"]"), "{text}");
}

#[test]
fn a_host_that_the_command_names_is_allowed_in_the_place_of_a_name_server() {
    let asked = denial("endpoint", &["name_connect"], "192.0.2.53:53/udp");
    let scontext = "dewar_u:dewar_r:main_t".into();
    let requested = asked.record.missing.clone();
    let record = Record { scontext, requested, ..asked.record };
    let asked = Denial { profile_rules: Vec::new(), record };
    let variables = profile::Variables {
        workspace: "/home/me/project".into(),
        home: "/home/me".into(),
        tmp: "/tmp".into(),
        ..profile::Variables::default()
    };
    for (command, want) in [
        (["curl", "https://pypi.org/simple/"], "pypi.org:443"),
        (["./fetch", "all"], "192.0.2.53:53/udp"),
    ] {
        let record = RunRecord {
            argument: "workspace".into(),
            directory: "/".into(),
            variables: Some(variables.clone()),
            command: command.map(str::to_owned).into(),
            ..RunRecord::default()
        };
        let fitting = of_file(&record).unwrap().unresolved();
        let proposal = Proposal::of(&fitting, &[&asked], &[]).unwrap();
        let values: Vec<&str> = proposal.lines.iter().map(|line| line.value.as_str()).collect();
        assert_eq!(values, [want], "{:?}", proposal.left);
    }
}

#[test]
fn nobody_is_told_to_let_all_of_a_home_be_written() {
    for object in ["/home/me/.profile", "/home/me/x.tmp.8xQ2", "/root-like", "/home/new"] {
        let denials = vec![denial("dir", &["add_name"], object)];
        let text = plain(&RunRecord { denials, ..RunRecord::default() }).unwrap();
        for wide in ["[\"/home/me\"]", "[\"/home\"]", "[\"/\"]"] {
            assert!(!text.contains(wide), "{text}");
        }
    }
}

#[test]
fn a_name_cannot_steer_the_terminal() {
    let nasty = "\u{1b}]0;title\u{7}\u{9b}2J\r\n";
    let mut denial = denial("file", &["read"], nasty);
    for field in [
        &mut denial.record.comm,
        &mut denial.record.program,
        &mut denial.record.reason,
        &mut denial.profile_rules[0],
    ] {
        *field = nasty.into();
    }
    let command = vec![nasty.into()];
    let record = RunRecord { denials: vec![denial], command, ..RunRecord::default() };
    let json = json(&record).unwrap();
    for text in [plain(&record).unwrap(), json] {
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
        assert!(text.contains(r"\u001b]0;title\u0007\u009b2J"), "{text}");
    }
}

#[test]
fn a_run_without_denials_says_which_layers_keep_no_record() {
    let unrecorded = vec!["the system-call filter: mount".into()];
    let record = RunRecord { command: vec!["true".into()], unrecorded, ..RunRecord::default() };
    let text = plain(&record).unwrap();
    assert!(text.contains("no denial was recorded"), "{text}");
    let line =
        "\nwhat leaves no record where it is refused: the system-call filter; -v tells more\n";
    assert!(text.ends_with(line), "{text}");
    let layout = Layout { all: false, verbose: true, width: usize::MAX };
    let text = look::plain(&tell(&record, layout).unwrap());
    assert!(text.ends_with("where it is refused:\n  the system-call filter: mount\n"), "{text}");
}

#[test]
fn the_screen_is_as_it_was_reviewed() {
    let record = crate::screens::record();
    crate::screens::screen("explain", |width| {
        tell(&record, Layout { all: false, verbose: false, width }).unwrap()
    });
}
