//! What a project's configuration has Cargo do where Cargo alone fills `~/.cargo` (profile
//! `cargo`): by an alias in the place of a subcommand, or a place for what it builds, it would be
//! led to write over sources there.

use crate::failure::Usage;
use anyhow::bail;
use monitor::visible;
use profile::{Compiled, Documents, Variables};
use std::{
    collections::HashSet,
    fs,
    io::Read as _,
    path::{Path, PathBuf},
};
use toml::{Table, Value};

/// The domain that may fill it.
const DOMAIN: &str = "cargo";

/// Longer than any that a person writes.
const MOST_BYTES: u64 = 1 << 20;

/// So many files are read, with those that are included.
const MOST_FILES: usize = 64;

/// Subcommands that come with Rust, as programs of their own.
const COMPONENTS: [&str; 3] = ["clippy", "fmt", "miri"];

/// Short names that Cargo itself gives to subcommands, unless somebody else does.
const SHORT: [&str; 6] = ["b", "c", "d", "r", "rm", "t"];

/// What such a name may stand for: what writes nothing but what is built.
const BUILDS: [&str; 16] = [
    "b", "bench", "build", "c", "check", "d", "doc", "fetch", "metadata", "r", "run", "rustc",
    "rustdoc", "t", "test", "tree",
];

/// Refuses to run where the project's configuration leads Cargo into `~/.cargo`; keeps the run from
/// changing the files that say so. `documents` are `compiled` so far.
pub(super) fn insist(
    compiled: Compiled,
    documents: &Documents,
    variables: &mut Variables,
) -> anyhow::Result<Compiled> {
    if !compiled.domains.iter().any(|domain| domain.name == DOMAIN) {
        return Ok(compiled);
    }
    let here = std::env::current_dir().unwrap_or_else(|_| variables.workspace.clone());
    let home = end_of(&variables.home.join(".cargo"));
    let mut project = Project { here, home, files: Vec::new() };
    let workspace = variables.workspace.clone();
    let directories: HashSet<&Path> =
        project.here.ancestors().chain(workspace.ancestors()).collect();
    let configured = directories.into_iter().map(|directory| directory.join(".cargo"));
    let configured: Vec<PathBuf> =
        configured.filter(|place| end_of(place) != project.home).collect();
    for directory in &configured {
        for name in ["config", "config.toml"] {
            project.read(&directory.join(name))?;
        }
    }
    let inside = project.files.iter().filter(|file| file.starts_with(&workspace));
    variables.fixed.extend(inside.flat_map(|file| realpath::way(file)));
    let known = &mut |names: &[&str]| compiled.addresses(names);
    Ok(documents.compile(variables, known, &[])?)
}

/// Where `path` leads.
fn end_of(path: &Path) -> PathBuf {
    realpath::way(path).pop().unwrap_or_else(|| path.to_owned())
}

/// A project's configuration of Cargo.
struct Project {
    /// Where the command starts.
    here: PathBuf,
    /// `~/.cargo`.
    home: PathBuf,
    /// The files that were looked for.
    files: Vec<PathBuf>,
}

impl Project {
    /// Reads `file`, if it is there, and what it includes.
    fn read(&mut self, file: &Path) -> anyhow::Result<()> {
        if self.files.iter().any(|known| known == file) {
            return Ok(());
        }
        self.files.push(file.to_owned());
        let Ok(metadata) = fs::metadata(file) else { return Ok(()) };
        let shown = visible(&file.to_string_lossy());
        let unread = |why: &str| {
            Usage(format!(
                "{shown} tells Cargo what to do, and {why}, so nobody can say whether it leads Cargo into ~/.cargo; nothing was \
                 started. Mend it, or run under another profile (`-p workspace`)"
            ))
        };
        if self.files.len() > MOST_FILES {
            bail!(unread("there are too many such files"));
        }
        if !metadata.is_file() || metadata.len() > MOST_BYTES {
            bail!(unread("is no file, or too long"));
        }
        let mut text = String::new();
        let opened = fs::File::open(file).map(|opened| opened.take(MOST_BYTES));
        if let Err(error) = opened.and_then(|mut opened| opened.read_to_string(&mut text)) {
            bail!(unread(&format!("cannot be read ({error})")));
        }
        let Ok(table) = text.parse::<Table>() else {
            bail!(unread("is no TOML"));
        };
        if let Some((word, what)) = self.mischief(file, &table) {
            let line = text.lines().position(|line| line.contains(&word)).unwrap_or_default() + 1;
            bail!(Usage(format!(
                "{shown}:{line}: {what}. So this project would have Cargo change what later builds take from ~/.cargo; nothing \
                 was started. Remove that line, or run under another profile (`-p workspace`)"
            )));
        }
        for included in included(&table) {
            self.read(&file.parent().unwrap_or(file).join(included))?;
        }
        Ok(())
    }

    /// What of `table`, which `file` holds, leads Cargo into its home: a word of it, and the
    /// beginning of a sentence.
    fn mischief(&self, file: &Path, table: &Table) -> Option<(String, String)> {
        let empty = Table::new();
        let aliases = table.get("alias").and_then(Value::as_table).unwrap_or(&empty);
        for (name, value) in aliases {
            let shown = visible(name);
            if is_program(name, &self.home) {
                let what = format!("the alias `{shown}` stands over the program `cargo-{shown}`");
                return Some((name.clone(), what));
            }
            let words = words(value);
            let first = words.first().map(String::as_str).unwrap_or_default();
            let builds = BUILDS.contains(&first) || is_program(first, &self.home);
            if SHORT.contains(&name.as_str()) && !builds {
                let what =
                    format!("the alias `{shown}` stands over Cargo's own, and builds nothing");
                return Some((name.clone(), what));
            }
            let of_cargo = words.iter().skip(1).take_while(|word| *word != "--");
            if let Some(word) = words.iter().take(1).chain(of_cargo).find(|word| redirects(word)) {
                let what = format!(
                    "the alias `{shown}` has other configuration read (`{}`)",
                    visible(word)
                );
                return Some((name.clone(), what));
            }
        }
        let directory = file.parent().and_then(Path::parent).unwrap_or(file);
        let mut texts = Vec::new();
        table.values().for_each(|value| gather(value, &mut texts));
        let leads = |text: &&&str| self.leads_home(text, directory);
        texts.iter().find(leads).map(|text| {
            let what = format!("`{}` leads into ~/.cargo", visible(text));
            ((*text).to_owned(), what)
        })
    }

    /// Whether a part of `text` is the name of something in Cargo's home, but for its programs,
    /// which nothing in the run writes.
    fn leads_home(&self, text: &str, directory: &Path) -> bool {
        let text = text.replace("{cargo-cache-home}", &self.home.to_string_lossy());
        let words = std::iter::once(text.as_str()).chain(text.split_whitespace());
        let parts = words.flat_map(|word| {
            let of_option = word.starts_with('-').then(|| word.get(2..)).flatten();
            let values = word.match_indices('=').map(|(at, _)| &word[at + 1..]);
            std::iter::once(word).chain(of_option).chain(values)
        });
        let mut paths = parts.flat_map(|part| {
            let part = part.trim_matches(['"', '\'']);
            [directory, &self.here].map(|base| end_of(&base.join(part)))
        });
        paths.any(|path| path.starts_with(&self.home) && !path.starts_with(self.home.join("bin")))
    }
}

/// The files that are included by `table`.
fn included<'a>(table: &'a Table) -> Vec<&'a str> {
    let one = |value: &'a Value| match value {
        Value::String(path) => Some(path.as_str()),
        Value::Table(table) => table.get("path").and_then(Value::as_str),
        _ => None,
    };
    match table.get("include") {
        Some(Value::Array(all)) => all.iter().filter_map(one).collect(),
        Some(value) => one(value).into_iter().collect(),
        None => Vec::new(),
    }
}

/// The words of an alias, as Cargo takes them apart.
fn words(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => text.split_whitespace().map(str::to_owned).collect(),
        Value::Array(all) => all.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

/// Whether a word of a command has Cargo read configuration that is not looked at here: `--config`,
/// and `-C` for another directory, also behind other letters.
fn redirects(word: &str) -> bool {
    let is_letters = word.starts_with('-') && !word.starts_with("--");
    word == "--config" || word.starts_with("--config=") || (is_letters && word.contains('C'))
}

/// Whether `cargo NAME` is a program of its own.
fn is_program(name: &str, home: &Path) -> bool {
    if name.is_empty() || name.contains('/') {
        return false;
    }
    let program = format!("cargo-{name}");
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(&paths).chain([home.join("bin")]);
    COMPONENTS.contains(&name) || places.any(|place| place.join(&program).exists())
}

/// All texts in `value`.
fn gather<'a>(value: &'a Value, texts: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(all) => all.iter().for_each(|value| gather(value, texts)),
        Value::Table(table) => table.values().for_each(|value| gather(value, texts)),
        _ => {}
    }
}
