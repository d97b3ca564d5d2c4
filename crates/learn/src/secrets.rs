//! What is never granted unless a person names it in full: what the profile `workspace` hides or
//! denies, files whose names say that they hold a key, a token or a password, and services outside
//! that act for whoever connects ([`profile::power`]).

use crate::{
    glob::is_meant,
    search::{self, Search},
};
use profile::Compiled;
use std::{
    collections::HashMap,
    ffi::OsStr,
    io::ErrorKind::NotFound,
    os::unix::fs::FileTypeExt as _,
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

/// The secret that a pattern stands for, by its directory and the pattern; `None` for no secret.
type ByGlob = HashMap<(PathBuf, String), Option<PathBuf>>;

/// The list of secrets under one home.
#[derive(Clone, Debug, Default)]
pub struct Secrets {
    listed: Vec<PathBuf>,
    /// Somebody has named what is meant in full, so nothing is one.
    none: bool,
    /// What was found below directories that were looked through.
    known: Arc<Mutex<HashMap<PathBuf, Option<PathBuf>>>>,
    /// The same, of those entries of a directory that a glob stands for.
    among: Arc<Mutex<ByGlob>>,
}

impl Secrets {
    /// Those that `compiled` withholds from its base domain: the profile `workspace`, as shipped.
    #[must_use]
    pub fn of(compiled: &Compiled) -> Self {
        let main = compiled.domains.first().map_or("main_t", |main| main.type_name.as_str());
        // A rule for what leads elsewhere is none for the directory at its path.
        let named = compiled.paths.iter().filter(|path| !path.is_way);
        let withheld = named.filter(|path| compiled.withheld(main, &path.type_name).is_some());
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
        let is_deputy = || path.to_str().is_some_and(|path| profile::power(path).is_some());
        !self.none && (is_listed() || looks_like_one(path) || is_deputy())
    }

    /// What whoever connects to `address` gets outside, if it acts for everybody; see
    /// [`profile::power`].
    #[must_use]
    pub fn power(&self, address: &str) -> Option<&'static str> {
        profile::power(address).filter(|_| !self.none)
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
            let mut search = Search::new((MOST_ENTRIES, 1), &|_| false);
            search.walk(directory);
            // What was not looked at may be one.
            let found = search.found.pop().or_else(|| search.left.pop());
            known.insert(directory.to_owned(), found.clone());
            found
        })
    }

    /// Whether what is meant was named in full, secret or not: then nothing else is.
    #[must_use]
    pub fn is_named(&self) -> bool {
        self.none
    }

    /// A secret that `glob`, of one component, stands for in a directory, or that lies below what
    /// it stands for; the directory itself, if it holds too much to tell.
    #[must_use]
    pub fn among(&self, directory: &Path, glob: &str) -> Option<PathBuf> {
        if self.none {
            return None;
        }
        let meant = |name: &str| is_meant(glob, name);
        let is_among = |listed: &&PathBuf| {
            let below = listed.strip_prefix(directory).ok();
            let first = below.and_then(|below| below.components().next());
            first.is_some_and(|first| meant(&first.as_os_str().to_string_lossy()))
        };
        let listed = self.listed.iter().find(is_among);
        listed.cloned().or_else(|| {
            let mut among = self.among.lock().unwrap_or_else(PoisonError::into_inner);
            let key = (directory.to_owned(), glob.to_owned());
            among.entry(key).or_insert_with(|| look_among(directory, &meant)).clone()
        })
    }

    /// Looks for what looks like a secret and is not listed: in `home`, then in the rest of the
    /// machine, but for the directories that are to `skip` with all that is in them.
    #[must_use]
    pub fn everywhere(&self, home: &Path, skip: &dyn Fn(&Path) -> bool) -> FoundSecrets {
        let (mut files, left) = search::everywhere(home, MOST_ENTRIES, skip);
        let is_listed = |path: &PathBuf| self.listed.iter().any(|listed| path.starts_with(listed));
        // Services are no files, and known by their names.
        files.retain(|path| !is_listed(path) && !is_socket(path));
        files.sort();
        FoundSecrets { files, left }
    }
}

fn look_among(directory: &Path, meant: &dyn Fn(&str) -> bool) -> Option<PathBuf> {
    let mut search = Search::new((MOST_ENTRIES, 1), &|_| false);
    search.walk_those(directory, meant);
    let found = search.found.pop().or_else(|| search.left.pop());
    // What cannot be listed may hold one; what is gone by now holds none.
    let unseen = || std::fs::read_dir(directory).is_err_and(|it| it.kind() != NotFound);
    found.or_else(|| unseen().then(|| directory.to_owned()))
}

/// What a search for secrets has come to.
#[derive(Clone, Debug, Default)]
pub struct FoundSecrets {
    /// What looks like a secret: files, and directories with all that is in them.
    pub files: Vec<PathBuf>,
    /// Directories that were not looked through.
    pub left: Vec<PathBuf>,
}

fn is_socket(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|it| it.file_type().is_socket())
}

/// Whether it is a directory of public packages.
pub(crate) fn is_package(directory: &Path) -> bool {
    PACKAGES.iter().any(|packages| directory.ends_with(packages))
}

/// Whether the name of a file, or of a directory that it lies in, says that it is a secret.
pub(crate) fn looks_like_one(path: &Path) -> bool {
    let is_public = PUBLIC.iter().any(|public| path.starts_with(public));
    let in_package = || path.ancestors().any(is_package);
    if is_public || in_package() {
        return false;
    }
    let Some(name) = path.file_name().map(lower) else { return false };
    if name.ends_with(".pub") {
        return false;
    }
    let words = || name.split(|c: char| !c.is_ascii_alphabetic()).any(is_word);
    NAMES.contains(&name.as_str())
        || name.starts_with(".env.")
        || ENDINGS.iter().any(|ending| name.ends_with(ending))
        || words()
        || path.ancestors().skip(1).any(holds_secrets)
}

/// Whether the name of a directory says that what is in it is secret: `api-tokens`, but not
/// `token-service`, which is a project.
pub(crate) fn holds_secrets(directory: &Path) -> bool {
    let name = directory.file_name().map(lower).unwrap_or_default();
    name.rsplit(|c: char| !c.is_ascii_alphabetic()).next().is_some_and(is_word)
}

fn is_word(word: &str) -> bool {
    WORDS.contains(&word)
}

fn lower(name: &OsStr) -> String {
    name.to_string_lossy().to_lowercase()
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
            "/home/me/secrets/prod.json",
            "/home/me/.my-credentials/deep/down/x",
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
            "/home/me/src/token-service/main.rs",
        ] {
            assert!(!looks_like_one(Path::new(plain)), "{plain}");
        }
    }
}
