//! What Git's configuration has Git read and execute: files that it includes, directories of hooks,
//! commands of hooks (from Git 2.54 on).

mod config;

use config::Entry;
use nix::unistd::User;
use registries::Plain;
use std::{
    collections::HashSet,
    fs,
    io::Read as _,
    path::{Path, PathBuf},
};

/// Longer than any that a person writes.
const MOST_BYTES: u64 = 1 << 20;

/// So many files are read.
const MOST_FILES: usize = 256;

/// So deep submodules are looked for: their names may hold slashes.
const DEPTH: usize = 4;

/// What a configuration names.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Named {
    /// More configuration, or a directory of hooks.
    Trusted(PathBuf),
    /// The program of a hook.
    Executed(PathBuf),
}

/// What the configuration of the repository that `workspace` lies in names, and that of the user
/// and the machine.
pub(super) fn named(workspace: &Path) -> Vec<Named> {
    let (mut found, mut read) = (Vec::new(), HashSet::new());
    let mut waiting = own_files();
    let top = workspace.ancestors().find(|directory| directory.join(".git").exists());
    waiting.extend(top.into_iter().flat_map(of_repository));
    let top = top.unwrap_or(workspace);
    while let Some(file) = waiting.pop() {
        if read.len() > MOST_FILES || !read.insert(file.clone()) {
            continue;
        }
        for entry in config::entries(&text(&file).unwrap_or_default()) {
            match kind(&entry) {
                Some(Kind::Include) => {
                    let paths = expanded(&entry.value, file.parent().unwrap_or(top));
                    waiting.extend(paths.iter().cloned());
                    found.extend(paths.into_iter().map(Named::Trusted));
                }
                Some(Kind::Hooks) => {
                    found.extend(expanded(&entry.value, top).into_iter().map(Named::Trusted));
                }
                Some(Kind::Command) => {
                    let words = entry.value.split([' ', '\t', ';', '&', '|', '"', '\'']);
                    let words = words.filter(|word| !word.is_empty());
                    let paths = words.flat_map(|word| expanded(word, top));
                    found.extend(paths.filter(|path| path.is_file()).map(Named::Executed));
                }
                None => {}
            }
        }
    }
    found
}

/// Those of the user and of the machine.
fn own_files() -> Vec<PathBuf> {
    let home = std::env::home_dir();
    let config = std::env::var_os("XDG_CONFIG_HOME").filter(|it| !it.is_empty());
    let config = config.map(PathBuf::from).or_else(|| Some(home.as_ref()?.join(".config")));
    let files = [
        Some("/etc/gitconfig".into()),
        home.map(|home| home.join(".gitconfig")),
        config.map(|config| config.join("git/config")),
        std::env::var_os("GIT_CONFIG_GLOBAL").map(PathBuf::from),
        std::env::var_os("GIT_CONFIG_SYSTEM").map(PathBuf::from),
    ];
    let installed = prefixes().into_iter().map(|prefix| prefix.join("etc/gitconfig"));
    files.into_iter().flatten().chain(installed).collect()
}

/// Those of the repository at `top`, its worktrees and its submodules.
fn of_repository(top: &Path) -> Vec<PathBuf> {
    let (own, mut files) = (top.join(".git"), Vec::new());
    let led = text(&own).and_then(|text| Some(top.join(text.strip_prefix("gitdir:")?.trim())));
    let own = led.unwrap_or(own);
    let common = text(&own.join("commondir")).map(|text| own.join(text.trim()));
    for directory in [Some(own), common].into_iter().flatten() {
        files.extend(["config", "config.worktree"].map(|name| directory.join(name)));
        below(&directory.join("worktrees"), DEPTH, &mut files);
        below(&directory.join("modules"), DEPTH, &mut files);
    }
    files
}

/// Adds the configuration in the directories below `directory`.
fn below(directory: &Path, depth: usize, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if depth == 0 || files.len() > MOST_FILES {
            return;
        }
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_directory
            && !["objects", "refs", "logs", "lfs"].iter().any(|it| entry.file_name() == *it)
        {
            let names = ["config", "config.worktree"].map(|name| entry.path().join(name));
            files.extend(names.into_iter().filter(|file| file.is_file()));
            below(&entry.path(), depth - 1, files);
        }
    }
}

fn text(file: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    let opened = Plain::find(file).ok()?.open().ok()?;
    opened.take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// What a path stands for as Git reads it: `~/` is the home, `~USER/` that user's, `%(prefix)/`
/// where Git is installed, which is not known for sure. A user that is not there has nothing.
fn expanded(path: &str, base: &Path) -> Vec<PathBuf> {
    let path = path.strip_prefix(":(optional)").unwrap_or(path);
    if let Some(below) = path.strip_prefix("%(prefix)/") {
        return prefixes().into_iter().map(|prefix| prefix.join(below)).collect();
    }
    let Some(named) = path.strip_prefix('~') else { return vec![base.join(path)] };
    let (user, below) = named.split_once('/').unwrap_or((named, ""));
    let home = match user {
        "" => std::env::home_dir(),
        user => User::from_name(user).ok().flatten().map(|user| user.dir),
    };
    home.map(|home| home.join(below.trim_start_matches('/'))).into_iter().collect()
}

/// Where Git may be installed.
fn prefixes() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let programs = std::env::split_paths(&path).map(|directory| directory.join("git"));
    let found = programs.filter_map(|git| git.canonicalize().ok());
    let found = found.filter_map(|git| Some(git.parent()?.parent()?.to_owned()));
    ["/usr".into(), "/usr/local".into()].into_iter().chain(found).collect()
}

/// What a variable tells Git.
enum Kind {
    Include,
    Hooks,
    Command,
}

fn kind(entry: &Entry) -> Option<Kind> {
    match (&*entry.section, &*entry.key) {
        ("include" | "includeif", "path") => Some(Kind::Include),
        ("core", "hookspath") => Some(Kind::Hooks),
        ("hook", "command") => Some(Kind::Command),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_configuration_names_is_found_through_what_it_includes() {
        let place = tempfile::tempdir().unwrap();
        let top = place.path().canonicalize().unwrap();
        for (file, text) in [
            (".git/config", "[include]\npath = ../.gitconfig\n"),
            (".gitconfig", "[include]\npath = more\n[core]\nhooksPath = my/hooks\n"),
            ("more", "[hook \"lint\"]\ncommand = 'scripts/lint' --fast\n"),
            ("scripts/lint", ""),
            (".git/modules/a/b/config", "[include]\npath = /elsewhere\n"),
        ] {
            fs::create_dir_all(top.join(file).parent().unwrap()).unwrap();
            fs::write(top.join(file), text).unwrap();
        }
        fs::create_dir(top.join("sub")).unwrap();
        let found = named(&top.join("sub"));
        for want in [
            Named::Trusted(top.join(".git/../.gitconfig")),
            Named::Trusted(top.join(".git/../more")),
            Named::Trusted(top.join("my/hooks")),
            Named::Executed(top.join("scripts/lint")),
            Named::Trusted("/elsewhere".into()),
        ] {
            assert!(found.contains(&want), "{want:?}: {found:?}");
        }
    }

    #[test]
    fn a_path_is_what_git_takes_it_for() {
        let base = Path::new("/repo");
        let home = std::env::home_dir().unwrap();
        let root = User::from_name("root").unwrap().unwrap().dir;
        for (path, want) in [
            ("a/b", vec![base.join("a/b")]),
            (":(optional)a", vec![base.join("a")]),
            ("/a", vec!["/a".into()]),
            ("~/a", vec![home.join("a")]),
            ("~//a", vec![home.join("a")]),
            ("~", vec![home]),
            ("~root/a", vec![root.join("a")]),
            ("~nobody-is-called-so/a", Vec::new()),
        ] {
            assert_eq!(expanded(path, base), want, "{path}");
        }
        assert!(expanded("%(prefix)/../a", base).contains(&"/usr/../a".into()));
    }
}
