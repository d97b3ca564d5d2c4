//! What a bound grants unasked: as much as it says of all that is proposed, and no more.

use learn::{Bound, Line, Scope, Secrets, fragment};
use profile::{AmendedObject, Amendment, AmendmentKind, Compiled, Documents, Source, Variables};
use std::path::Path;

fn variables() -> Variables {
    Variables {
        workspace: "/home/me/work".into(),
        home: "/home/me".into(),
        tmp: "/tmp".into(),
        user: "me".into(),
        ..Variables::default()
    }
}

fn compile(text: &str, variables: &Variables, amendments: &[Amendment]) -> Compiled {
    let (name, text) = ("test.toml".into(), format!("extends = 'workspace'\n{text}"));
    let source = Source::Text { name, text, directory: "/".into() };
    let documents = Documents::read(&source).unwrap();
    documents.compile(variables, &mut profile::unresolved, amendments).unwrap()
}

fn amendment(line: &Line) -> Amendment {
    let value = line.value.clone();
    let object = match line.key.as_str() {
        "files.read" => AmendedObject::Files(value),
        "files.write" => AmendedObject::Write(value),
        _ => AmendedObject::Network { endpoint: value, addresses: Vec::new() },
    };
    Amendment::new(AmendmentKind::Grant, Some("main".into()), object)
}

/// Whether a run under `profile` is given what is proposed, within `bound`.
fn is_given(profile: &str, bound: &str, proposed: &str) -> bool {
    let variables = variables();
    let scope = Scope {
        workspace: variables.workspace.clone(),
        home: variables.home.clone(),
        tmp: variables.tmp.clone(),
        secrets: Secrets::none(),
    };
    let bound = Bound::new(compile(bound, &variables, &[])).unwrap();
    let lines = fragment(proposed, None).unwrap();
    let amendments: Vec<Amendment> = lines.iter().map(amendment).collect();
    let amended = compile(profile, &variables, &amendments);
    lines.iter().all(|line| bound.covers(line, &amended, &scope))
}

#[test]
fn a_pattern_that_ends_grants_no_tree() {
    for (bound, proposed, want) in [
        ("files.read = ['${home}/data/*']", "files.read = ['${home}/data/sub']", false),
        ("files.read = ['${home}/data/*/*']", "files.read = ['${home}/data/sub/deep']", false),
        ("files.read = ['${home}/data/**/*.md']", "files.read = ['${home}/data/a.md']", false),
        ("files.write = ['${home}/logs/*']", "files.write = ['${home}/logs/app']", false),
        ("files.read = ['${home}/data/**']", "files.read = ['${home}/data/sub']", true),
        ("files.read = ['${home}/data/*/**']", "files.read = ['${home}/data/sub/deep']", true),
        ("files.read = ['${home}/data']", "files.read = ['${home}/data/sub']", true),
        ("files.write = ['${home}/logs']", "files.write = ['${home}/logs/app']", true),
    ] {
        assert_eq!(is_given("", bound, proposed), want, "{bound}: {proposed}");
    }
}

#[test]
fn a_pattern_grants_the_files_that_are_there_to_be_read_and_no_more() {
    let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let home = home.path().canonicalize().unwrap();
    std::fs::write(home.join("a.md"), "").unwrap();
    std::fs::create_dir(home.join("b.md")).unwrap();
    std::os::unix::fs::symlink("/", home.join("c.md")).unwrap();
    for (key, name, want) in [
        ("read", "a.md", true),
        ("read", "b.md", false),
        ("read", "c.md", false),
        ("read", "none.md", false),
        // In its place it could make a directory.
        ("write", "a.md", false),
    ] {
        let bound = format!("files.{key} = ['{}/*.md']", home.display());
        let proposed = format!("files.{key} = ['{}/{name}']", home.display());
        assert_eq!(is_given("", &bound, &proposed), want, "{key} {name}");
    }
}

#[test]
fn a_right_to_the_runs_own_temporary_files_is_none_to_the_machines() {
    for place in ["/tmp", "/var/tmp", "/dev/shm"] {
        let whole = format!("files.write = ['{place}']");
        let named = format!("files.write = ['{place}/mine']");
        let profile = format!("files.read = ['{place}/mine']");
        let wants = |path: &str| format!("files.write = ['{path}']");
        for profile in ["", &profile] {
            for bound in ["", &whole, "files.read = ['/']\nfiles.write = ['/']"] {
                for path in ["mine", "mine/deep", "other"] {
                    let proposed = wants(&format!("{place}/{path}"));
                    assert!(!is_given(profile, bound, &proposed), "{profile}: {bound}: {path}");
                }
                assert!(!is_given(profile, bound, &wants(place)), "{profile}: {bound}: {place}");
            }
            assert!(is_given(profile, &named, &wants(&format!("{place}/mine"))), "{profile}");
            assert!(is_given(profile, &named, &wants(&format!("{place}/mine/deep"))), "{profile}");
            assert!(!is_given(profile, &named, &wants(&format!("{place}/other"))), "{profile}");
        }
    }
    // Where one of them is the workspace, it is no other.
    let variables = Variables { workspace: "/var/tmp".into(), ..variables() };
    let judge = learn::Judge::new(&compile("", &variables, &[])).unwrap();
    assert!(judge.rights(Path::new("/var/tmp/x"), None).write);
    assert!(!judge.rights(Path::new("/tmp/x"), None).write);
    assert!(judge.rights(Path::new("/tmp"), None).write);
}

#[test]
fn an_address_of_ipv4_is_in_no_network_of_ipv6() {
    let net = |entry: &str| format!("network.connect = ['{entry}']");
    for (bound, proposed, want) in [
        ("[::]/0:443", "192.0.2.1:443", false),
        ("[::]/0:443", "[2001:db8::1]:443", true),
        ("0.0.0.0/0:443", "192.0.2.1:443", true),
    ] {
        assert_eq!(is_given("", &net(bound), &net(proposed)), want, "{bound}: {proposed}");
    }
}
