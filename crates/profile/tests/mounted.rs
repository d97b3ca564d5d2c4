//! The same files at two places.

mod common;

use common::{letters, rights};
use profile::{AmendedObject, Amendment, AmendmentKind, Documents, Source, Variables};

fn found(files: &str, path: &str, revoked: Option<&str>) -> String {
    let mounted = [
        ("/home/me", "/srv/all/me"),
        ("/home/me/data/x", "/srv/x"),
        ("/srv/x", "/srv/all/me/data/x"),
        ("/home/me/work", "/srv/work"),
        ("/etc", "/srv/etc"),
    ];
    let variables = Variables {
        mounted: mounted.map(|(from, to)| (from.into(), to.into())).into(),
        confidential: vec!["/etc/shadow".into()],
        ..common::variables()
    };
    let (name, text) = ("test.toml".into(), format!("[files]\n{files}\n"));
    let source = Source::Text { name, text, directory: "/nowhere".into() };
    let documents = Documents::read(&source).unwrap_or_else(|e| panic!("{e:?}"));
    let object = revoked.map(|path| AmendedObject::Files(path.into()));
    let (kind, when) = (AmendmentKind::Revoke, std::time::SystemTime::UNIX_EPOCH);
    let amendments = object.map(|object| Amendment { when, kind, domain: None, object });
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
}

#[test]
fn what_is_revoked_at_one_place_is_revoked_at_the_other() {
    for (revoked, path, want) in [
        ("/home/me/data", "/srv/x/y", ""),
        ("/srv/x", "/srv/all/me/data/x/y", ""),
        ("/srv/x", "/srv/all/me/data/z", "rw"),
        ("/home/me/*/x", "/srv/x", ""),
    ] {
        let found = found("write = ['/srv']", path, Some(revoked));
        assert_eq!(found, want, "{revoked} {path}");
    }
}
