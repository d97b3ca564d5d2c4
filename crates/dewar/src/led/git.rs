//! What Git's configuration has Git read and execute: files that it includes, directories of hooks,
//! commands of hooks (from Git 2.54 on).

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
        for entry in entries(&text(&file).unwrap_or_default()) {
            match entry.kind() {
                Some(Kind::Include) => {
                    let path = expanded(&entry.value, file.parent().unwrap_or(top));
                    waiting.push(path.clone());
                    found.push(Named::Trusted(path));
                }
                Some(Kind::Hooks) => found.push(Named::Trusted(expanded(&entry.value, top))),
                Some(Kind::Command) => {
                    let words = entry.value.split([' ', '\t', ';', '&', '|', '"', '\'']);
                    let words = words.filter(|word| !word.is_empty());
                    let paths = words.map(|word| expanded(word, top));
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
    ];
    files.into_iter().flatten().collect()
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

/// A path as Git reads it: `~/` is the home.
fn expanded(path: &str, base: &Path) -> PathBuf {
    match (path.strip_prefix("~/"), std::env::home_dir()) {
        (Some(below), Some(home)) => home.join(below),
        _ => base.join(path),
    }
}

/// A variable of a configuration.
#[derive(Debug, Default, PartialEq, Eq)]
struct Entry {
    /// In small letters, without what stands in quotes behind it.
    section: String,
    /// In small letters.
    key: String,
    value: String,
}

/// What a variable tells Git.
enum Kind {
    Include,
    Hooks,
    Command,
}

impl Entry {
    fn kind(&self) -> Option<Kind> {
        match (&*self.section, &*self.key) {
            ("include" | "includeif", "path") => Some(Kind::Include),
            ("core", "hookspath") => Some(Kind::Hooks),
            ("hook", "command") => Some(Kind::Command),
            _ => None,
        }
    }
}

/// The variables of a configuration, as Git reads it; as far as it can be read.
fn entries(text: &str) -> Vec<Entry> {
    let (mut entries, mut section) = (Vec::new(), String::new());
    let joined = text.replace("\r\n", "\n").replace("\\\n", "");
    for line in joined.trim_start_matches('\u{feff}').lines() {
        let mut rest = line.trim();
        if let Some(header) = rest.strip_prefix('[') {
            let Some(end) = header_end(header) else { break };
            let name = header[..end].split([' ', '\t', '"', '.']).next().unwrap_or_default();
            section = name.to_ascii_lowercase();
            rest = header[end + 1..].trim();
        }
        let Some((key, value)) = rest.split_once('=') else { continue };
        if !key.starts_with(['#', ';']) {
            let key = key.trim().to_ascii_lowercase();
            entries.push(Entry { section: section.clone(), key, value: value_of(value.trim()) });
        }
    }
    entries
}

/// Where the header of a section ends: a bracket in quotes is none.
fn header_end(header: &str) -> Option<usize> {
    let (mut quoted, mut escaped) = (false, false);
    header.char_indices().find_map(|(at, c)| {
        let is_end = c == ']' && !quoted;
        quoted ^= c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        is_end.then_some(at)
    })
}

/// A value without its quotes and comments.
fn value_of(text: &str) -> String {
    let (mut value, mut quoted, mut chars) = (String::new(), false, text.chars());
    while let Some(c) = chars.next() {
        match c {
            '"' => quoted = !quoted,
            '#' | ';' if !quoted => break,
            '\\' => value.extend(chars.next()),
            c => value.push(c),
        }
    }
    value.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_is_read_as_git_does() {
        let text = "[core]\n\tHooksPath = \"my hooks\" ; mine\n[include] path=../a\n\
            [includeIf \"gitdir:~/w]/\"]\n  path = b\\\n/c # x\n[hook \"lint\"]\nevent = pre-commit\n\
            command = ./lint --fast\n[hook.old]\ncommand = x\n# path = y\n";
        let found = entries(text);
        let entry = |section: &str, key: &str, value: &str| Entry {
            section: section.into(),
            key: key.into(),
            value: value.into(),
        };
        let want = [
            entry("core", "hookspath", "my hooks"),
            entry("include", "path", "../a"),
            entry("includeif", "path", "b/c"),
            entry("hook", "event", "pre-commit"),
            entry("hook", "command", "./lint --fast"),
            entry("hook", "command", "x"),
        ];
        assert_eq!(found, want);
    }

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
}
