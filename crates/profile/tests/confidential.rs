//! What lies in `/etc` and not everybody may read, to a user who may.

mod common;

use common::{compile_in, letters, rights};
use profile::{Source, Variables, shipped};

fn variables() -> Variables {
    let confidential = ["/etc/mail/secret", "/etc/service", "/etc/it's * {odd}"];
    Variables { confidential: confidential.map(Into::into).into(), ..common::variables() }
}

/// What `main` and `other` may do with `path` under `text`.
fn found(text: &str, path: &str) -> [String; 2] {
    let (name, text) = ("test.toml".into(), text.to_owned());
    let source = Source::Text { name, text, directory: "/nowhere".into() };
    let compiled = compile_in(&source, &variables()).unwrap_or_else(|e| panic!("{e:?}"));
    ["main", "other"].map(|domain| letters(rights(&compiled, domain, path)))
}

#[test]
fn what_not_everybody_may_read_is_granted_by_name_alone() {
    let other = "[domains.other]\nexec = ['/usr/bin/other']\n";
    for (files, of_other, want) in [
        ("read = ['/etc']", "", ["", ""]),
        ("write = ['/etc']", "", ["", ""]),
        ("read = ['/etc/*', '/etc/**']", "", ["", ""]),
        ("read = ['/etc', '/']", "", ["", ""]),
        ("read = ['/']", "", ["r", "r"]),
        ("read = ['/etc', '/etc/mail/secret']", "", ["r", "r"]),
        ("read = ['/etc', '/etc/mail']", "", ["r", "r"]),
        ("read = ['/etc', '/etc/mail/*']", "", ["r", "r"]),
        ("read = ['/etc', '/etc/mail/other']", "", ["", ""]),
        ("read = ['/etc']\nhide = ['/etc/mail']", "", ["hidden", "hidden"]),
        ("read = ['/etc']", "files.read = ['/etc/mail']", ["", "r"]),
        ("read = ['/etc']", "files.write = ['/etc/mail/secret']", ["", "rw"]),
        ("read = ['/etc']", "inherit = false\nfiles.read = ['/etc']", ["", ""]),
        ("read = ['/etc']", "files.deny = ['/etc/mail']", ["", ""]),
    ] {
        let text = format!("[files]\n{files}\n{other}{of_other}\n");
        assert_eq!(found(&text, "/etc/mail/secret"), want, "{files} {of_other}");
        assert_eq!(found(&text, "/etc/mail/secret/x"), want, "{files} {of_other}");
    }
    let text = format!("[files]\nread = ['/etc']\n{other}");
    for (path, want) in [
        ("/etc/mail/secret2", "r"),
        ("/etc/mail", "r"),
        ("/etc/service/a/b", ""),
        ("/etc/it's * {odd}", ""),
    ] {
        assert_eq!(found(&text, path), [want, want], "{path}");
    }
}

#[test]
fn no_shipped_profile_but_open_grants_what_not_everybody_may_read() {
    for (name, _) in shipped().iter().filter(|(name, _)| *name != "open") {
        let source = Source::Shipped((*name).into());
        let compiled = compile_in(&source, &variables()).unwrap_or_else(|e| panic!("{e:?}"));
        for domain in &compiled.domains {
            for path in ["/etc/mail/secret", "/etc/service/x"] {
                let found = letters(rights(&compiled, &domain.name, path));
                assert_eq!(found, "", "{name} {}: {path}", domain.name);
            }
        }
    }
}
