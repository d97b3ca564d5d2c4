//! What programs inside may propose, and what would be something else than a person reads.

use learn::{FragmentError, Line, fragment};
use proptest::prelude::*;

#[test]
fn a_proposal_names_plain_files_and_endpoints() {
    let text = "files.read = ['${home}/a b', '/srv/x']\n[network]\nconnect = ['e.org:443']\n";
    let lines = fragment(text, Some("git")).unwrap();
    let told: Vec<String> = lines.iter().map(Line::alone).collect();
    assert_eq!(
        told,
        [
            "domains.git.files.read = [\"${home}/a b\"]",
            "domains.git.files.read = [\"/srv/x\"]",
            "domains.git.network.connect = [\"e.org:443\"]",
        ]
    );
}

#[test]
fn what_a_person_would_misread_or_nobody_may_propose_is_refused() {
    for entry in [
        "/",
        "//",
        "",
        "x",
        "../x",
        "/a/../etc/shadow",
        "/a/*",
        "/a/?",
        "/{a,b}",
        "${home}",
        "${home",
        "${secret}/x",
        "${home}${home}/x",
        "/a/${home}",
        "/a$b",
        "/a\\u001b[2J",
        "${home}/../other",
        "~/x",
        "/a//b",
        "/a/./b",
        "/a/",
        "/a  b",
        "/a\\u202eb",
        "/a\\u200bb",
        "/a\\u00a0b",
    ] {
        let text = format!("files.read = [\"{entry}\"]");
        assert!(fragment(&text, None).is_err(), "{entry}");
    }
    for entry in [
        "unix:/run/x",
        "unix:1",
        "unixgram:@x",
        "*:443",
        "host",
        "host:0",
        "host:70000",
        "host:+1",
        "host:01",
        "a b:1",
        "host:1-9",
        "10.0.0.0/8:1",
        "0.0.0.0:1",
        "[::]:1",
        "224.0.0.1:1",
        "127.1:1",
        "2130706433:1",
        "0x7f000001:1",
        "::1:1",
        "e.org.:1",
        "e..org:1",
        "${nameserver}:53",
    ] {
        let text = format!("network.connect = [\"{entry}\"]");
        assert!(fragment(&text, None).is_err(), "{entry}");
    }
    for text in [
        "",
        "= 7",
        "files = 7",
        "files.read = '/x'",
        "files.read = [7]",
        "files.exec = ['/x']",
        "files.unguarded = ['/x']",
        "extends = 'agent'",
        "env.pass = ['X']",
        "mode = 'fast'",
        "propose.within = '/x'",
        "domains.git.files.read = ['/x']",
        "network.bind = ['*:1']",
        "[[files]]\nread = ['/x']",
        "files.read = [['/x']]",
        "files.read = ['/x']\nfiles = 1",
    ] {
        assert!(fragment(text, None).is_err(), "{text}");
    }
    let deep = "[".repeat(16_000);
    assert_eq!(fragment(&format!("files.read = {deep}"), None), Err(FragmentError::Syntax));
    let many = format!("files.read = [{}]", "'/x',".repeat(17));
    assert_eq!(fragment(&many, None), Err(FragmentError::TooLong));
    assert_eq!(fragment(&"#".repeat(17 << 10), None), Err(FragmentError::TooLong));
    let long = format!("files.read = ['/{}', '/y']", "x".repeat(1024));
    assert_eq!(fragment(&long, None), Err(FragmentError::TooLong));
}

#[test]
fn an_address_is_spelled_in_the_one_way_and_the_error_says_in_which() {
    for (entry, own) in [
        ("[::ffff:127.0.0.1]:443", "127.0.0.1"),
        ("[::ffff:7f00:1]:443", "127.0.0.1"),
        ("[::127.0.0.1]:443", "127.0.0.1"),
        ("[::7f00:1]:443/udp", "127.0.0.1"),
        ("[2001:DB8:0:0::1]:443", "2001:db8::1"),
    ] {
        let error = fragment(&format!("network.connect = ['{entry}']"), None).unwrap_err();
        let said = error.to_string();
        assert!(said.ends_with(&format!("write `{own}`")), "{entry}: {said}");
    }
    for entry in ["[::1]:443", "[2001:db8::1]:443/udp", "127.0.0.1:443"] {
        assert!(fragment(&format!("network.connect = ['{entry}']"), None).is_ok(), "{entry}");
    }
}

proptest! {
    #[test]
    fn whatever_comes_is_read_or_refused_and_what_is_read_shows_what_it_means(
        parts in proptest::collection::vec(
            prop_oneof![
                Just("/".to_owned()), Just("..".into()), Just("${home}".into()), Just("\u{202e}".into()),
                Just("*".into()), Just(":443".into()), Just("e.org".into()), Just("//".into()),
                Just(" ".into()), Just(".".into()), Just("127.1".into()), "[a-z]{1,4}", "\\PC{0,3}",
            ],
            0..8,
        ),
        key in prop_oneof![Just("files.read"), Just("files.write"), Just("network.connect")],
        noise in "\\PC{0,40}",
    ) {
        let _ = fragment(&noise, None);
        let entry: String = parts.concat();
        let text = format!("{key} = [{}]", toml_edit::Value::from(entry.as_str()));
        for line in fragment(&text, None).into_iter().flatten() {
            let value = &line.value;
            prop_assert_eq!(value, &entry);
            prop_assert!(!value.contains("..") || !value.split('/').any(|part| part == ".."));
            prop_assert!(!value.contains(['*', '?', '\\', '\u{202e}', '\n', '\u{1b}']), "{}", value);
            let is_path = value.starts_with('/') || value.starts_with("${");
            prop_assert_eq!(is_path, key != "network.connect");
        }
    }
}
