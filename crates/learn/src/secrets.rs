//! What is never granted unless a person names it in full: what the profile `workspace` hides or
//! denies, and files whose names say that they hold a key, a token or a password.

use profile::Compiled;
use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

/// Entries that are looked at below one directory. What holds more is not granted as a whole.
const MOST_ENTRIES: usize = 200_000;

/// Directories of public packages: test keys in there are no secrets.
const PACKAGES: [&str; 9] = [
    ".cargo/registry",
    ".cargo/git",
    ".rustup",
    "go/pkg/mod",
    ".npm/_cacache",
    "node_modules",
    "site-packages",
    ".m2/repository",
    ".gradle/caches",
];

/// The system's own files, which everybody can read.
const PUBLIC: [&str; 10] = [
    "/usr",
    "/lib",
    "/lib64",
    "/bin",
    "/sbin",
    "/nix/store",
    "/gnu/store",
    "/etc/ssl/certs",
    "/etc/pki/tls/certs",
    "/proc",
];

const NAMES: [&str; 33] = [
    ".env",
    ".netrc",
    "_netrc",
    ".pgpass",
    ".my.cnf",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".htpasswd",
    ".dockercfg",
    ".s3cfg",
    ".boto",
    ".vault-token",
    "auth.json",
    "kubeconfig",
    "shadow",
    "gshadow",
    "wallet.dat",
    "logins.json",
    "key3.db",
    "key4.db",
    "cookies",
    "cookies.sqlite",
    "login data",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "id_ecdsa_sk",
    "id_ed25519_sk",
    "keyring",
    "master.key",
    ".authinfo",
];

const ENDINGS: [&str; 17] = [
    ".pem",
    ".key",
    ".p12",
    ".pfx",
    ".jks",
    ".keystore",
    ".kdbx",
    ".kdb",
    ".ppk",
    ".ovpn",
    ".age",
    ".gpg",
    ".asc",
    ".keytab",
    ".keychain",
    "_history",
    ".agekey",
];

const WORDS: [&str; 15] = [
    "password",
    "passwords",
    "passwd",
    "passphrase",
    "secret",
    "secrets",
    "credential",
    "credentials",
    "token",
    "tokens",
    "apikey",
    "apikeys",
    "privatekey",
    "keystore",
    "cookiejar",
];

/// The list of secrets under one home.
#[derive(Clone, Debug, Default)]
pub struct Secrets {
    listed: Vec<PathBuf>,
    /// Somebody has named what is meant in full, so nothing is one.
    none: bool,
    /// What was found below directories that were looked through.
    known: Arc<Mutex<HashMap<PathBuf, Option<PathBuf>>>>,
}

impl Secrets {
    /// Those that `compiled` withholds from its base domain: the profile `workspace`, as shipped.
    #[must_use]
    pub fn of(compiled: &Compiled) -> Self {
        let withheld = compiled.paths.iter().filter(|path| {
            let main = compiled.domains.first().map_or("main_t", |main| main.type_name.as_str());
            compiled.withheld(main, &path.type_name).is_some()
        });
        Self { listed: withheld.filter_map(|path| path.path.clone()).collect(), ..Self::default() }
    }

    /// For what a person has named in full: nothing is a secret.
    #[must_use]
    pub fn none() -> Self {
        Self { none: true, ..Self::default() }
    }

    /// Those that the profile `workspace` hides or denies.
    #[must_use]
    pub fn listed(&self) -> &[PathBuf] {
        &self.listed
    }

    /// Whether a path is a secret, or lies in one.
    #[must_use]
    pub fn is_one(&self, path: &Path) -> bool {
        let is_listed = || self.listed.iter().any(|listed| path.starts_with(listed));
        !self.none && (is_listed() || looks_like_one(path))
    }

    /// A secret that lies below a directory, whether it exists (of those that are listed) or is
    /// there (of those that look like one); the directory itself, if it holds too much to tell.
    #[must_use]
    pub fn below(&self, directory: &Path) -> Option<PathBuf> {
        if self.none {
            return None;
        }
        let listed = self.listed.iter().find(|listed| listed.starts_with(directory));
        listed.cloned().or_else(|| {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(known) = known.get(directory) {
                return known.clone();
            }
            let mut left = MOST_ENTRIES;
            let mut found = Vec::new();
            walk(directory, &mut left, 1, &mut found);
            let found = found.pop().or_else(|| (left == 0).then(|| directory.to_owned()));
            known.insert(directory.to_owned(), found.clone());
            found
        })
    }

    /// Files below `directory` that look like secrets and are not listed, at most `most`; whether
    /// there was too much to look at all of it.
    #[must_use]
    pub fn found(&self, directory: &Path, most: usize) -> (Vec<PathBuf>, bool) {
        let (mut left, mut found) = (MOST_ENTRIES, Vec::new());
        walk(directory, &mut left, most, &mut found);
        let is_all = left > 0 && found.len() < most;
        found.retain(|path| !self.listed.iter().any(|listed| path.starts_with(listed)));
        found.sort();
        (found, is_all)
    }
}

fn walk(directory: &Path, left: &mut usize, most: usize, found: &mut Vec<PathBuf>) {
    if PACKAGES.iter().any(|packages| directory.ends_with(packages)) {
        return;
    }
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if *left == 0 || found.len() >= most {
            return;
        }
        *left -= 1;
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => walk(&path, left, most, found),
            Ok(_) if looks_like_one(&path) => found.push(path),
            _ => {}
        }
    }
}

/// Whether the name of a file, or of a directory that it lies in, says that it is a secret.
fn looks_like_one(path: &Path) -> bool {
    let is_public = PUBLIC.iter().any(|public| path.starts_with(public));
    let in_package = || path.ancestors().any(|at| PACKAGES.iter().any(|name| at.ends_with(name)));
    if is_public || in_package() {
        return false;
    }
    let Some(name) = path.file_name() else { return false };
    let name = name.to_string_lossy().to_lowercase();
    if name.ends_with(".pub") {
        return false;
    }
    let words = || name.split(|c: char| !c.is_ascii_alphabetic()).any(|word| WORDS.contains(&word));
    NAMES.contains(&name.as_str())
        || name.starts_with(".env.")
        || ENDINGS.iter().any(|ending| name.ends_with(ending))
        || words()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_secrets_from_what_is_everybodys() {
        for secret in [
            "/home/me/work/.env",
            "/home/me/x/.env.production",
            "/srv/tls/server.key",
            "/home/me/id_ed25519",
            "/home/me/my-passwords.txt",
            "/home/me/api_token",
            "/home/me/.foo/credentials.json",
            "/home/me/Key.PEM",
            "/home/me/.foo_history",
        ] {
            assert!(looks_like_one(Path::new(secret)), "{secret}");
        }
        for plain in [
            "/home/me/id_ed25519.pub",
            "/etc/ssl/certs/ca.pem",
            "/home/me/src/tokenizer.rs",
            "/home/me/.cargo/registry/src/x/tests/server.key",
            "/home/me/environment.yml",
            "/home/me/keyboard.toml",
            "/usr/share/doc/secret.txt",
        ] {
            assert!(!looks_like_one(Path::new(plain)), "{plain}");
        }
    }
}
