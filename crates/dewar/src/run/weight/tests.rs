//! What is spoken of of what was denied.

use super::*;
use monitor::Deed;

fn denial(time: f64, tclass: &str, missing: &[&str], object: &str) -> Denial {
    let record = Record {
        time,
        tclass: tclass.into(),
        missing: missing.iter().map(|name| (*name).into()).collect(),
        object: object.into(),
        count: 1,
        ..Record::default()
    };
    Denial { record, profile_rules: Vec::new() }
}

#[test]
fn the_likeliest_denial_is_of_the_weightiest_kind_and_the_last_of_it() {
    let seen = denial(9.0, "file", &["getattr"], "seen");
    let listed = denial(8.0, "dir", &["read", "open"], "listed");
    let read = denial(7.0, "file", &["read", "open"], "read");
    let written = denial(6.0, "file", &["write", "open"], "written");
    let made = denial(5.0, "dir", &["add_name"], "made");
    let executed = denial(4.0, "file", &["execute"], "executed");
    let connected = denial(3.0, "endpoint", &["name_connect"], "connected");
    let told = denial(6.5, "unix_dgram_socket", &["create"], "told");
    let mut denials = vec![seen, listed, read, told, made, written, executed, connected];
    for want in ["connected", "executed", "written", "made", "read", "told", "listed", "seen"] {
        let record = RunRecord { denials, ..RunRecord::default() };
        assert_eq!(record.likeliest().unwrap().record.object, want);
        denials = record.denials;
        denials.retain(|denial| denial.record.object != want);
    }
}

#[test]
fn what_programs_probe_for_is_spoken_of_where_nothing_else_was_denied() {
    let mut probe = denial(9.0, "system_call", &["io_uring_setup"], "a ring of io_uring");
    probe.record.probed = true;
    let mut record = RunRecord { denials: vec![probe], ..RunRecord::default() };
    assert!(record.likeliest().is_none() && record.denied() == 0);
    record.status = 1;
    assert!(record.likeliest().is_some() && record.denied() == 1);
    record.denials.push(denial(1.0, "file", &["read"], "seen"));
    assert_eq!((record.likeliest().unwrap().record.object.as_str(), record.denied()), ("seen", 1));
}

#[test]
fn a_socket_for_datagrams_is_spoken_of_unless_its_process_reaches_a_host_or_its_program_serves() {
    let deed = |pid, kind| Deed {
        kind,
        object: "192.0.2.1:443".into(),
        comm: "npm".into(),
        pid,
        count: 1,
        first: 0.0,
        last: 0.0,
    };
    let mut tried = denial(1.0, "udp_socket", &["create"], "a new udp_socket");
    (tried.record.pid, tried.record.comm) = (7, "npm".into());
    let mut record = RunRecord { denials: vec![tried], ..RunRecord::default() };
    for (deeds, want) in [
        (vec![], 1),
        (vec![deed(8, DeedKind::Contacted)], 1),
        (vec![deed(7, DeedKind::Wrote)], 1),
        (vec![deed(7, DeedKind::Contacted)], 0),
        (vec![deed(8, DeedKind::Bound)], 0),
        (vec![Deed { comm: "other".into(), ..deed(7, DeedKind::Bound) }], 1),
    ] {
        record.deeds = deeds;
        assert_eq!(record.denied(), want, "{:?}", record.deeds);
    }
    assert_eq!(record.denied_in_all(), 1, "a report lists it");
    record.status = 6;
    assert!(record.likeliest().is_some() && record.denied() == 1);
}

#[test]
fn what_an_interactive_program_keeps_of_its_own_is_not_spoken_of_where_it_does_without() {
    let variables = profile::Variables { home: "/home/me".into(), ..Default::default() };
    let mut record = RunRecord { variables: Some(variables), ..RunRecord::default() };
    for (program, object, want) in [
        ("/usr/bin/bash", "/home/me/.bash_history", 0),
        ("/usr/lib/go/pkg/tool/vet", "/home/me/.config/go/telemetry/local/vet.v1.count", 0),
        ("/usr/bin/python3.11", "/home/me/.python_history", 0),
        ("/usr/bin/vim.basic", "/home/me/.viminfo", 0),
        ("/usr/local/go/bin/go", "/home/me/.config/go/telemetry", 0),
        ("/usr/lib/jvm/java-17/bin/jshell", "/home/me/.java/.userPrefs/.user.lock.me", 0),
        ("/usr/local/go/bin/go", "/home/me/go/pkg/mod/cache/lock", 0),
        ("/usr/bin/emacs-nox", "/home/me/.emacs.d", 0),
        ("/root/.cargo/bin/cargo", "/home/me/.cargo/.package-cache", 0),
        ("/root/.cargo/bin/cargo", "/home/me/.cargo/credentials.toml", 1),
        ("/usr/bin/python3.11", "/home/me/.bash_history", 1),
        ("/usr/bin/bash", "/home/you/.bash_history", 1),
        ("/usr/bin/bash", "/home/me/.bash_history_of_mine", 1),
    ] {
        let mut kept = denial(1.0, "file", &["write", "open"], object);
        kept.record.program = program.into();
        record.denials = vec![kept];
        assert_eq!(record.denied(), want, "{program} {object}");
    }
    for (object, want) in [("/home/me/.config", 0), ("/home/me", 0), ("/home/me/.conf", 1)] {
        let mut made = denial(1.0, "dir", &["add_name"], object);
        (made.record.program, made.record.call) = ("/usr/bin/go".into(), "mkdirat".into());
        record.denials = vec![made];
        assert_eq!(record.denied(), want, "{object}");
    }
    for (class, missing, object, want) in [
        ("endpoint", "name_bind", "[::1]:0", 0),
        ("tcp_socket", "setopt", "SO_REUSEPORT", 0),
        ("tcp_socket", "setopt", "IP_OPTIONS", 1),
        ("file", "link", "/r/.git/objects/pack/pack-1.pack", 0),
        ("file", "link", "/r/.git/config", 1),
    ] {
        let mut tried = denial(1.0, class, &[missing], object);
        tried.record.program = "/usr/bin/git".into();
        record.denials = vec![tried];
        assert_eq!(record.denied(), want, "{object}");
    }
}

#[test]
fn what_fails_without_dewar_too_mattered_least() {
    let mut made = denial(9.0, "dir", &["add_name"], "/usr/share/foo");
    (made.record.probed, made.record.natively) = (true, true);
    let mut ring = denial(1.0, "system_call", &["io_uring_setup"], "a ring of io_uring");
    ring.record.probed = true;
    let record = RunRecord { denials: vec![made, ring], status: 1, ..RunRecord::default() };
    assert_eq!(record.likeliest().unwrap().record.object, "a ring of io_uring");
}

#[test]
fn denials_that_were_not_kept_are_counted() {
    let record = RunRecord {
        denials: vec![denial(0.0, "file", &["read"], "x")],
        dropped: 189_900,
        ..RunRecord::default()
    };
    assert_eq!(record.denied(), 189_901);
}
