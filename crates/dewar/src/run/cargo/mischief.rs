//! What of a project's configuration leads Cargo into its home.

use super::{config::Config, end_of};
use monitor::visible;
use std::{collections::HashSet, path::Path};
use toml::Value;

/// Subcommands that come with Rust, as programs of their own.
const COMPONENTS: [&str; 3] = ["clippy", "fmt", "miri"];

/// Short names that Cargo itself gives to subcommands, unless somebody else does.
const SHORT: [&str; 6] = ["b", "c", "d", "r", "rm", "t"];

/// What such a name may stand for: what writes nothing but what is built.
const BUILDS: [&str; 16] = [
    "b", "bench", "build", "c", "check", "d", "doc", "fetch", "metadata", "r", "run", "rustc",
    "rustdoc", "t", "test", "tree",
];

/// Cargo's own subcommands that write elsewhere, or of which nobody has looked what they write.
const OTHERS: [&str; 28] = [
    "add",
    "clean",
    "config",
    "fix",
    "generate-lockfile",
    "git-checkout",
    "help",
    "info",
    "init",
    "install",
    "locate-project",
    "login",
    "logout",
    "new",
    "owner",
    "package",
    "pkgid",
    "publish",
    "read-manifest",
    "remove",
    "report",
    "rm",
    "search",
    "uninstall",
    "update",
    "vendor",
    "version",
    "yank",
];

/// What is known of a project where its configuration is judged.
pub(super) struct Project<'a> {
    /// Where the command starts.
    pub(super) here: &'a Path,
    /// `~/.cargo`.
    pub(super) home: &'a Path,
    /// The names of all its aliases.
    pub(super) aliases: &'a HashSet<String>,
}

impl Project<'_> {
    /// What of `config` leads Cargo into its home: where that is said, and the beginning of a
    /// sentence.
    pub(super) fn mischief(&self, config: &Config) -> Option<String> {
        let (word, what) = self.of_aliases(config).or_else(|| self.of_places(config))?;
        let shown = visible(&config.file.to_string_lossy());
        let line = config.text.lines().position(|line| line.contains(&word));
        Some(format!("{shown}:{}: {what}", line.unwrap_or_default() + 1))
    }

    fn of_aliases(&self, config: &Config) -> Option<(String, String)> {
        config.aliases().find_map(|(name, value)| {
            let what = self.of_alias(name, &words(value))?;
            Some((name.clone(), format!("the alias `{}` {what}", visible(name))))
        })
    }

    /// What is wrong with an alias.
    fn of_alias(&self, name: &str, words: &[String]) -> Option<String> {
        if is_program(name, self.home) {
            return Some(format!("stands over the program `cargo-{}`", visible(name)));
        }
        if is_manifest(name) {
            return Some("stands over a manifest or a script of that name".to_owned());
        }
        let first = words.first().map(String::as_str).unwrap_or_default();
        if SHORT.contains(&name) && !self.is_harmless(first) {
            return Some("stands over Cargo's own, and builds nothing".to_owned());
        }
        let of_cargo = words.iter().skip(1).take_while(|word| *word != "--");
        let word = words.iter().take(1).chain(of_cargo).find(|word| redirects(word))?;
        Some(format!("has other configuration read (`{}`)", visible(word)))
    }

    /// Whether `cargo NAME` writes nothing but what is built. Cargo starts nothing where nobody
    /// knows the name.
    fn is_harmless(&self, name: &str) -> bool {
        let is_unknown = !name.is_empty()
            && !OTHERS.contains(&name)
            && !self.aliases.contains(name)
            && !is_manifest(name)
            && !name.starts_with('-');
        BUILDS.contains(&name) || is_program(name, self.home) || is_unknown
    }

    fn of_places(&self, config: &Config) -> Option<(String, String)> {
        let directory = config.file.parent().and_then(Path::parent).unwrap_or(&config.file);
        let mut texts = Vec::new();
        config.table.values().for_each(|value| gather(value, &mut texts));
        if let Some(text) = texts.iter().find(|text| leads_where_cargo_says(text)) {
            let what = format!("`{}` leads where Cargo alone can tell", visible(text));
            return Some(((*text).to_owned(), what));
        }
        let text = texts.into_iter().find(|text| self.leads_home(text, directory))?;
        Some((text.to_owned(), format!("`{}` leads into ~/.cargo", visible(text))))
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
            [directory, self.here].map(|base| end_of(&base.join(part)))
        });
        paths.any(|path| path.starts_with(self.home) && !path.starts_with(self.home.join("bin")))
    }
}

/// Whether `text` leads away from here by what only Cargo knows: a template of
/// `build.build-dir` other than its home.
fn leads_where_cargo_says(text: &str) -> bool {
    let text = text.replace("{cargo-cache-home}", "");
    let is_out = Path::new(&text).is_absolute() || text.split('/').any(|part| part == "..");
    is_out && text.contains('{')
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

/// Whether `cargo NAME` builds what a manifest or a script of that name says.
fn is_manifest(name: &str) -> bool {
    name.contains('/') || name == "Cargo.toml" || name.ends_with(".rs")
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
