//! Which pattern stands for a path: what changes from run to run becomes a glob, and what is one
//! program's own directory is granted as that.

use crate::{
    Secrets,
    names::{is_git_directory, varied},
};
use std::path::{Component, Path, PathBuf};

/// Where a run takes place, and what must stay out of every pattern.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// `${workspace}`.
    pub workspace: PathBuf,
    /// `${home}`.
    pub home: PathBuf,
    /// `${tmp}`.
    pub tmp: PathBuf,
    /// What no pattern covers.
    pub secrets: Secrets,
}

/// How far a pattern may go beyond the path that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Not at all, but for names that are another in each run.
    Exact,
    /// To places of its kind: a program's own directory, its cache.
    Kind,
}

/// Directories in which each program has one of its own.
const SHELVES: [&str; 7] =
    [".cache", ".config", ".local/share", ".local/state", ".local/lib", ".local", "Library/Caches"];

/// Directories of tools, which are granted as they are.
const OWN: [&str; 5] = ["go/pkg", "go/bin", ".cargo/registry", ".cargo/git", ".npm/_cacache"];

/// Those of the machine's services.
const SYSTEM_SHELVES: [&str; 4] = ["/var/cache", "/var/lib", "/var/log", "/run"];

/// The machine's directory for temporary files that last. What makes files there, and names none
/// that is there, does as well with the run's own.
const LASTING: &str = "/var/tmp";

impl Scope {
    /// Whether a right on this directory as a whole is about one of the run's own, which is empty.
    pub(crate) fn is_private(&self, directory: &Path) -> bool {
        let is_hidden = |it: &Path| it.starts_with(LASTING);
        directory == Path::new(LASTING) && !is_hidden(&self.home) && !is_hidden(&self.workspace)
    }

    /// The pattern for `path`, as text; `None` if it is a secret.
    #[must_use]
    pub fn pattern(&self, path: &Path, detail: Detail) -> Option<String> {
        if self.secrets.is_one(path) {
            return None;
        }
        if self.is_private(Path::new(LASTING)) && path.starts_with(LASTING) && !path.exists() {
            return Some(LASTING.into());
        }
        if detail == Detail::Kind
            && let Some(own) = self.own_directory(path)
        {
            return Some(self.text(&own));
        }
        Some(self.varied(path))
    }

    /// The program's own directory that `path` lies in, or the outermost one in it without secrets.
    fn own_directory(&self, path: &Path) -> Option<PathBuf> {
        let anchor = self.anchor(path)?;
        let below = path.strip_prefix(&anchor).ok()?;
        let mut at = anchor;
        for part in below.components() {
            if varied(&part.as_os_str().to_string_lossy()).is_some() {
                // What follows has another name each time, so it needs a glob.
                return self.secrets.below(&at).is_none().then_some(at);
            }
            if self.secrets.below(&at).is_none() {
                return Some(at);
            }
            at.push(part);
        }
        // The file itself.
        None
    }

    /// The directory that belongs to one program as a whole, if `path` is it or lies in one.
    fn anchor(&self, path: &Path) -> Option<PathBuf> {
        if self.is_shelf(path) {
            return None;
        }
        if let Some(own) =
            OWN.iter().map(|own| self.home.join(own)).find(|own| path.starts_with(own))
        {
            return Some(own);
        }
        for shelf in SHELVES.iter().map(|shelf| self.home.join(shelf)) {
            if let Ok(below) = path.strip_prefix(&shelf) {
                let own = shelf.join(below.components().next()?);
                return Some(own).filter(|own| own != path || path.is_dir());
            }
        }
        for shelf in SYSTEM_SHELVES.map(Path::new) {
            if let Ok(below) = path.strip_prefix(shelf) {
                return below.components().nth(1).map(|_| shelf.join(first(below)));
            }
        }
        let below = path.strip_prefix(&self.home).ok()?;
        let own = self.home.join(below.components().next()?);
        let is_hidden = first(below).to_string_lossy().starts_with('.');
        (is_hidden && (own != path || path.is_dir())).then_some(own)
    }

    /// Whether a directory holds those of many programs or people: never granted as a whole.
    #[must_use]
    pub fn is_wide(&self, directory: &Path) -> bool {
        const TOPS: [&str; 12] = [
            "/etc", "/usr", "/var", "/run", "/proc", "/sys", "/dev", "/opt", "/srv", "/mnt",
            "/media", "/home",
        ];
        directory.components().count() < 3
            || TOPS.iter().any(|top| directory == Path::new(top))
            || directory.parent() == Some(Path::new("/home"))
            || self.home.starts_with(directory)
            || self.workspace.starts_with(directory)
            || self.is_shelf(directory)
            || directory.starts_with("/proc")
            || directory.starts_with("/sys")
    }

    /// Whether programs have directories of their own in it: made once, and no program's need.
    #[must_use]
    pub fn is_shelf(&self, directory: &Path) -> bool {
        SHELVES.iter().any(|shelf| directory == self.home.join(shelf))
            || SYSTEM_SHELVES.iter().any(|shelf| directory == Path::new(shelf))
    }

    /// `path` with `${workspace}`, `${home}` and `${tmp}` for what they stand for, matching itself.
    #[must_use]
    pub fn text(&self, path: &Path) -> String {
        self.spelled(path, |_, part| literal(part))
    }

    /// The same, with `*` for what is another in each run, where that covers no secret.
    fn varied(&self, path: &Path) -> String {
        self.spelled(path, |above, part| {
            let is_git = above.ends_with("objects") && is_git_directory(part);
            let glob = if is_git { Some("??".into()) } else { varied(part) };
            let glob = glob.filter(|glob| self.is_plain(above, glob));
            glob.unwrap_or_else(|| literal(part))
        })
    }

    /// Whether what `glob` stands for in `above` is of one kind. Where many programs and people
    /// have theirs, the program has chosen the name, and `*` or `.*` would be all of them.
    fn is_of_one_kind(&self, above: &Path, glob: &str) -> bool {
        let start = glob.split('*').next().unwrap_or_default();
        let is_telling = start.chars().filter(|c| c.is_alphanumeric()).count() >= 3;
        is_telling || !self.is_wide(above) && !self.is_executed(above) || above.starts_with("/proc")
    }

    /// Whether no secret is among what `glob` stands for in `above`, as far as it is there now.
    /// What was named in full is meant alone.
    fn is_without_secrets(&self, above: &Path, glob: &str) -> bool {
        // Processes come and go, and no name there says what it holds.
        let is_process = above.starts_with("/proc");
        is_process || !self.secrets.is_named() && self.secrets.among(above, glob).is_none()
    }

    /// Whether a program may be granted all that `glob` stands for in `above`.
    pub(crate) fn is_plain(&self, above: &Path, glob: &str) -> bool {
        self.is_of_one_kind(above, glob) && self.is_without_secrets(above, glob)
    }

    fn spelled(&self, path: &Path, spell: impl Fn(&Path, &str) -> String) -> String {
        let variables =
            [("${workspace}", &self.workspace), ("${tmp}", &self.tmp), ("${home}", &self.home)];
        let known = variables.iter().filter(|(_, stands_for)| stands_for.components().count() > 1);
        let inner = known
            .filter(|(_, stands_for)| path.starts_with(stands_for))
            .max_by_key(|(_, stands_for)| stands_for.components().count());
        let (mut text, mut above) = match inner {
            Some((name, stands_for)) => ((*name).to_owned(), (*stands_for).clone()),
            None => (String::new(), PathBuf::from("/")),
        };
        let below = path.strip_prefix(&above).unwrap_or(path);
        for part in below.components() {
            if let Component::Normal(part) = part {
                text.push('/');
                text.push_str(&spell(&above, &part.to_string_lossy()));
                above.push(part);
            }
        }
        if text.is_empty() { "/".into() } else { text }
    }
}

fn first(path: &Path) -> &Path {
    path.components().next().map_or(path, |first| Path::new(first.as_os_str()))
}

/// The pattern for `text` and nothing else.
#[must_use]
pub fn literal(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for c in text.chars() {
        if r"\*?[{$".contains(c) {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn scope() -> Scope {
        Scope {
            workspace: "/home/me/work".into(),
            home: "/home/me".into(),
            tmp: "/tmp".into(),
            secrets: Secrets::default(),
        }
    }

    #[test]
    fn a_program_gets_its_own_directory_and_never_the_shelf_that_it_stands_on() {
        let scope = scope();
        let of = |path: &str| scope.pattern(Path::new(path), Detail::Kind).unwrap();
        assert_eq!(of("/home/me/.cache/foo/a/b"), "${home}/.cache/foo");
        assert_eq!(of("/home/me/.foo/x"), "${home}/.foo");
        assert_eq!(of("/home/me/.local/share/foo/x"), "${home}/.local/share/foo");
        assert_eq!(of("/home/me/notes.txt"), "${home}/notes.txt");
        assert_eq!(of("/home/me/work/x"), "${workspace}/x");
        assert_eq!(of("/proc/4711/oom_score_adj"), "/proc/*/oom_score_adj");
        assert_eq!(of("/home/me/.foo-4711.tmp"), "${home}/.foo-*.tmp");
        for directory in ["9e", "07", "fa"] {
            let object = format!(
                "/home/me/r/.git/objects/{directory}/4b825dc642cb6eb9a060e54bf8d69288fbee49"
            );
            assert_eq!(of(&object), "${home}/r/.git/objects/??/*");
        }
        for wide in ["/home/me/4711", "/home/me/.4711", "/etc/4711", "/home/me/4711.txt", "/4711"] {
            assert!(!of(wide).contains('*'), "{wide}: {}", of(wide));
        }
        for wide in ["/home/me/.cache", "/home/me", "/home", "/etc", "/", "/srv", "/proc/7"] {
            assert!(scope.is_wide(Path::new(wide)), "{wide}");
        }
    }

    #[test]
    fn a_glob_never_stands_for_a_secret_that_is_there() {
        let place = tempfile::tempdir().unwrap();
        let home = place.path().canonicalize().unwrap();
        for (path, text) in [
            ("Documents/.env", "secret"),
            ("notes-password.txt", "secret"),
            ("data/run-1/deep/server.key", "secret"),
            ("builds/build-secret.txt", "secret"),
            ("builds/build-1.2.3.tar", ""),
            (".foo/api_token", "secret"),
            ("scratch/tmp_rsa.pem", "secret"),
            ("scratch/sedab.pem", "secret"),
            ("shut/tmp_rsa.pem2", ""),
            ("store/objects/3f/4b825dc642cb6eb9a060e54bf8d69288fbee49", ""),
            ("store/objects/zz/id_rsa", "secret"),
        ] {
            fs::create_dir_all(home.join(path).parent().unwrap()).unwrap();
            fs::write(home.join(path), text).unwrap();
        }
        let scope = Scope {
            workspace: home.join("work"),
            home: home.clone(),
            tmp: "/var/tmp/none".into(),
            secrets: Secrets::default(),
        };
        for detail in [Detail::Kind, Detail::Exact] {
            for (path, want) in [
                ("Documents/9999", "${home}/Documents/9999"),
                ("notes-1234", "${home}/notes-1234"),
                ("data/run-4711/x-1234.log", "${home}/data/run-4711/x-*.log"),
                ("builds/build-1.2.3.tar", "${home}/builds/build-*.tar"),
                (".foo/4711", "${home}/.foo/4711"),
                ("plain/9999", "${home}/plain/*"),
                ("scratch/tmpk3_9x0ab", "${home}/scratch/tmpk3_9x0ab"),
                ("scratch/sedYIyYIy", "${home}/scratch/sedYIyYIy"),
                ("shut/tmpk3_9x0ab", "${home}/shut/tmp????????"),
                (
                    "store/objects/3f/4b825dc642cb6eb9a060e54bf8d69288fbee49",
                    "${home}/store/objects/3f/*",
                ),
            ] {
                let found = scope.pattern(&home.join(path), detail);
                assert_eq!(found.as_deref(), Some(want), "{path} {detail:?}");
            }
        }
        // What is named in full is meant alone.
        let named = Scope { secrets: Secrets::none(), ..scope };
        let found = named.pattern(&home.join("plain/9999-password.txt"), Detail::Exact);
        assert_eq!(found.as_deref(), Some("${home}/plain/9999-password.txt"));
    }

    #[test]
    fn exact_patterns_name_the_path_and_escape_what_it_holds() {
        let scope = scope();
        let of = |path: &str| scope.pattern(Path::new(path), Detail::Exact).unwrap();
        assert_eq!(of("/home/me/.cache/foo/a"), "${home}/.cache/foo/a");
        assert_eq!(of("/home/me/a*$b"), r"${home}/a\*\$b");
        assert_eq!(of("/"), "/");
    }
}
