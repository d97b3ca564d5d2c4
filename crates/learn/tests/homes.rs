//! Over many made-up homes: a secret is in no line, whatever a program has used beside it.

use learn::{Access, Addresses, Detail, Judge, Line, Scope, Secrets, lines, needs, settle};
use profile::{Source, Variables};
use proptest::prelude::*;
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// Directories of a home, some of which hold secrets by what they are.
const DIRECTORIES: [&str; 18] = [
    "",
    ".config/foo",
    ".config/gh",
    ".foo",
    ".foo/deep",
    ".cache/foo",
    ".local/share/foo",
    ".ssh",
    ".aws",
    ".cargo",
    ".cargo/registry",
    "Documents",
    "Documents/2026-11-22",
    "data/run-4711",
    ".config",
    ".npm",
    "secrets",
    ".foo/api-tokens/old",
];

/// Names that say what they hold.
const SECRETS: [&str; 10] = [
    ".env",
    "server.key",
    "credentials.json",
    "my-passwords.txt",
    "api_token",
    "id_rsa",
    "wallet.dat",
    "vault.kdbx",
    ".netrc",
    "client_secret.json",
];

const PLAIN: [&str; 8] =
    ["a.txt", "b.log", "settings.toml", "x-1.2.3.so", "tmp.Zq7xWp", "4711", "index", "c.db"];

/// Not where the homes are made: the profile `workspace` grants all of it.
const TMP: &str = "/var/tmp/none";

fn variables(home: &Path) -> Variables {
    let workspace = home.join("work");
    Variables {
        workspace,
        home: home.to_owned(),
        tmp: TMP.into(),
        user: "me".into(),
        ..Variables::default()
    }
}

fn text(lines: &[Line]) -> String {
    let mut edit = learn::Edit::of("extends = 'workspace'\n").unwrap();
    for line in lines {
        edit.add(line).unwrap();
    }
    edit.text()
}

fn judge(variables: &Variables, text: String) -> Judge {
    let source = Source::Text { name: "made up".into(), text, directory: "/".into() };
    let compiled = profile::load(&source, variables, &mut profile::unresolved).unwrap();
    Judge::new(&compiled).unwrap()
}

fn access(path: &Path, kind: usize) -> Access {
    let (class, call, requested): (_, _, &[&str]) = match kind {
        0 => ("file", "openat", &["read", "open"]),
        1 => ("file", "openat", &["write", "create", "open"]),
        2 => ("file", "execve", &["execute"]),
        _ => ("dir", "openat", &["add_name", "search"]),
    };
    Access {
        granted: true,
        program: "/usr/bin/foo".into(),
        call: call.into(),
        object: path.display().to_string(),
        scontext: "dewar_u:dewar_r:main_t".into(),
        tcontext: "dewar_u:object_r:default_t".into(),
        tclass: class.into(),
        requested: requested.iter().map(|name| (*name).into()).collect(),
        ..Access::default()
    }
}

/// A place in the home, what is used there, and whether it is a secret.
fn used() -> impl Strategy<Value = (usize, usize, usize, bool)> {
    (0..DIRECTORIES.len(), 0..PLAIN.len(), 0..4_usize, prop::bool::weighted(0.2))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_planted_secret_is_in_no_learned_and_no_proposed_profile(
        uses in prop::collection::vec(used(), 1..10),
        planted in prop::collection::vec((0..DIRECTORIES.len(), 0..SECRETS.len()), 1..4),
    ) {
        let place = tempfile::tempdir().unwrap();
        let home = place.path().canonicalize().unwrap();
        fs::create_dir_all(home.join("work")).unwrap();
        let mut secrets: Vec<PathBuf> = Vec::new();
        for (directory, name) in planted {
            let directory = home.join(DIRECTORIES[directory]);
            fs::create_dir_all(&directory).unwrap();
            let secret = directory.join(SECRETS[name]);
            fs::write(&secret, "secret").unwrap();
            // Packages are public, whatever is in them.
            if !directory.ends_with(".cargo/registry") {
                secrets.push(secret);
            }
        }
        let mut accesses: BTreeMap<Access, u64> = BTreeMap::new();
        for (directory, name, kind, is_secret) in uses {
            let directory = home.join(DIRECTORIES[directory]);
            fs::create_dir_all(&directory).unwrap();
            let path = directory.join(PLAIN[name]);
            fs::write(&path, "plain").unwrap();
            let path = if is_secret { secrets.first().cloned().unwrap_or(path) } else { path };
            *accesses.entry(access(&path, kind)).or_default() += 1;
        }
        let variables = variables(&home);
        let workspace = Source::Shipped("workspace".into());
        let compiled = profile::load(&workspace, &variables, &mut profile::unresolved).unwrap();
        let scope = Scope {
            workspace: variables.workspace.clone(),
            home: home.clone(),
            tmp: TMP.into(),
            secrets: Secrets::of(&compiled),
        };
        let before = Judge::new(&compiled).unwrap();
        let compile = |lines: &[Line]| -> Result<Judge, learn::JudgeError> {
            Ok(judge(&variables, text(lines)))
        };
        let learned = settle(&accesses, &scope, &Addresses::default(), compile).unwrap().lines;
        let needs = needs(accesses.iter().map(|(access, count)| (access, *count)), &before);
        let (proposed, _) = lines(&needs, (&scope, Detail::Exact), &Addresses::default());
        for found in [learned, proposed] {
            let text = text(&found);
            let after = judge(&variables, text.clone());
            for secret in &secrets {
                let (old, new) = (before.rights(secret, None), after.rights(secret, None));
                prop_assert_eq!(old, new, "{}: {}", secret.display(), text);
            }
        }
    }
}
