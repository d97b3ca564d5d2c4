//! The same files at two places.

mod common;

use common::{letters, rights};
use profile::{AmendedObject, Amendment, AmendmentKind, Documents, Source, Variables};

/// A name that many patterns may or may not match.
const LONG: &str = "/home/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

fn found(files: &str, path: &str, amended: Option<(AmendmentKind, &str)>) -> String {
    let mounted = [
        ("/home/me", "/srv/all/me"),
        ("/home/me/data/x", "/srv/x"),
        ("/srv/x", "/srv/all/me/data/x"),
        ("/home/me/work", "/srv/work"),
        ("/etc", "/srv/etc"),
        (LONG, "/srv/long"),
    ];
    let variables = Variables {
        mounted: mounted.map(|(from, to)| (from.into(), to.into())).into(),
        confidential: vec!["/etc/shadow".into()],
        ..common::variables()
    };
    let (name, text) = ("test.toml".into(), format!("[files]\n{files}\n"));
    let source = Source::Text { name, text, directory: "/nowhere".into() };
    let documents = Documents::read(&source).unwrap_or_else(|e| panic!("{e:?}"));
    let when = std::time::SystemTime::UNIX_EPOCH;
    let amendments = amended.map(|(kind, path)| {
        let object = AmendedObject::Files(path.into());
        Amendment { when, ..Amendment::new(kind, None, object) }
    });
    let amendments = amendments.as_slice();
    let compiled = documents.compile(&variables, &mut |_| Vec::new(), amendments);
    let compiled = compiled.unwrap_or_else(|e| panic!("{e:?}"));
    letters(rights(&compiled, "main", path))
}

#[test]
fn what_is_taken_at_one_place_is_taken_at_the_other() {
    for (files, path, want) in [
        ("", "/srv/all/me/a", "rw"),
        ("hide = ['${home}/.ssh']", "/srv/all/me/.ssh/id", "hidden"),
        ("hide = ['${home}/.ssh']", "/srv/all/me/.sshx", "rw"),
        ("deny = ['${home}/data']", "/srv/x/y", ""),
        ("deny = ['/home/*/data/?/y']", "/srv/x/y", ""),
        ("deny = ['/home/*/data/?/y']", "/srv/x/z", "rw"),
        ("readonly = ['/**/.envrc']", "/srv/x/.envrc", "r"),
        ("readonly = ['${workspace}/.git/{config,hooks}']", "/srv/work/.git/config", "r"),
        ("readonly = ['${workspace}/.git/{config,hooks}']", "/srv/all/me/work/.git/config", "r"),
        // Files of this run, and of Dewar.
        ("", "/srv/work/audit", "r"),
        ("", "/srv/all/me/.cache/dewar/x", ""),
        ("", "/srv/etc/passwd", "rw"),
        ("", "/srv/etc/shadow", ""),
    ] {
        let files = format!("write = ['/srv']\n{files}");
        assert_eq!(found(&files, path, None), want, "{files} {path}");
    }
}

/// Whoever names what Dewar keeps, or a part of it, gets nothing of it.
#[test]
fn what_dewar_keeps_is_granted_by_no_name() {
    for (files, path) in [
        ("write = ['/home/me/.cache/dewar']", "/home/me/.cache/dewar/x"),
        ("write = ['/home/me/.cache/dewar/x']", "/home/me/.cache/dewar/x"),
        (
            "read = ['${home}/.cache']\nexec = ['${home}/.cache/dewar/x/y']",
            "/home/me/.cache/dewar/x/y",
        ),
        ("write = ['${home}/.cache/*/x']", "/home/me/.cache/dewar/x"),
        ("write = ['${home}/.c*/**/x/**']", "/home/me/.cache/dewar/a/x/y"),
        ("write = ['/srv/all/me/.cache/dewar/x']", "/srv/all/me/.cache/dewar/x"),
        ("write = ['/srv/all/*/.cache/*/x']", "/srv/all/me/.cache/dewar/x"),
    ] {
        assert_eq!(found(files, path, None), "", "{files} {path}");
    }
}

#[test]
fn a_place_that_is_granted_by_its_name_is_meant() {
    let files = "hide = ['${home}']\nwrite = ['/srv/work']\nread = ['/srv']";
    for (path, want) in [
        ("/srv/work/a", "rw"),
        ("/srv/x/y", "hidden"),
        ("/srv/all/me/y", "hidden"),
        ("/srv/y", "r"),
    ] {
        assert_eq!(found(files, path, None), want, "{path}");
    }
    // A part is no more than that.
    for (files, path, want) in [
        ("deny = ['${home}']\nwrite = ['/srv', '/srv/x/part']", "/srv/x/part/y", "rw"),
        ("deny = ['${home}']\nwrite = ['/srv', '/srv/x/part']", "/srv/x/y", ""),
        (
            "readonly = ['${workspace}']\nwrite = ['/srv', '/srv/work/part']",
            "/srv/work/part/y",
            "rw",
        ),
        ("readonly = ['${workspace}']\nwrite = ['/srv', '/srv/work/part']", "/srv/work/y", "r"),
    ] {
        assert_eq!(found(files, path, None), want, "{files} {path}");
    }
}

#[test]
fn what_is_given_at_one_place_is_given_at_the_other_if_it_can_be_said_exactly() {
    let many = format!("/home/{}*b*/x", "*a".repeat(9));
    let files = "list = ['/srv']";
    for (granted, path, want) in [
        ("/home/me/data/x", "/srv/x/y", "r"),
        ("/home/me/data/x/y", "/srv/x/z", ""),
        (&*many, "/srv/long/y", ""),
    ] {
        let found = found(files, path, Some((AmendmentKind::Grant, granted)));
        assert_eq!(found, want, "{granted} {path}");
    }
}

#[test]
fn what_is_revoked_at_one_place_is_revoked_at_the_other() {
    for (revoked, path, want) in [
        ("/home/me/data", "/srv/x/y", ""),
        ("/srv/x", "/srv/all/me/data/x/y", ""),
        ("/srv/x", "/srv/all/me/data/z", "rw"),
        ("/home/me/*/x", "/srv/x", ""),
    ] {
        let found = found("write = ['/srv']", path, Some((AmendmentKind::Revoke, revoked)));
        assert_eq!(found, want, "{revoked} {path}");
    }
}
