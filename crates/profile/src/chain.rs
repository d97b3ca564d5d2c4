//! Reads a profile and everything that it extends.

use crate::document::{self, Document};
use crate::error::{Problem, Reporter, closest};
use crate::source::{Located, Source, TextSpan, shipped};
use registries::Plain;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Longest profile that is read.
const MAX_BYTES: u64 = 1 << 20;

/// Files and names that one profile is made of. Each of them extends the next.
const MAX_READ: usize = 64;

/// Where `propose.within` leads, and where it says so.
type Within = (Source, TextSpan);

/// What a source turned out to be.
struct Text {
    /// For messages.
    name: String,
    /// Equal for equal sources, to find circles.
    identity: String,
    text: String,
    /// Where relative paths in it start.
    directory: PathBuf,
    /// Where it lies, if it is a file.
    path: Option<PathBuf>,
    /// What it was found by, as [`realpath::way`] tells.
    way: Vec<PathBuf>,
    /// Its name is that of a link, which leads out of the directory where the link lies.
    is_led_to: bool,
}

/// What a profile consists of.
#[derive(Default)]
pub(crate) struct Chain {
    /// Its own and those that it extends, the most basic first, each with the index of its file.
    pub(crate) documents: Vec<(usize, Document)>,
    /// The title of `propose.within`, and the same of that.
    pub(crate) bound: Option<(String, Vec<(usize, Document)>)>,
}

/// Reads `source`, what it extends, and the bound of its proposals; `reporter` hears what is wrong.
pub(crate) fn read(source: &Source, reporter: &mut Reporter) -> Chain {
    let mut reader = Reader::new(reporter, None);
    reader.visit(source, None);
    let Reader { done: documents, within, named, .. } = reader;
    // A bound of a bound is none.
    let bound = within.map(|(source, place)| {
        let mut reader = Reader::new(reporter, named);
        reader.visit(&source, Some(place));
        (source.title(), reader.done)
    });
    Chain { documents, bound }
}

struct Reader<'a> {
    reporter: &'a mut Reporter,
    /// How many were looked at, again and again included.
    visited: usize,
    /// Identities of all that was read.
    read: Vec<String>,
    /// Identities and names of what is being read: each extends the next.
    under_way: Vec<(String, String)>,
    /// What the last one that says something about proposals names as their bound.
    within: Option<Within>,
    /// The directory, without links, of the file that a person has named.
    named: Option<PathBuf>,
    done: Vec<(usize, Document)>,
}

impl<'a> Reader<'a> {
    fn new(reporter: &'a mut Reporter, named: Option<PathBuf>) -> Self {
        let (read, under_way, done) = Default::default();
        Self { reporter, visited: 0, read, under_way, within: None, named, done }
    }

    /// Reads `source`, what it extends before it.
    fn visit(&mut self, source: &Source, place: Option<TextSpan>) {
        if let Source::Combined(parts) = source {
            parts.iter().take(MAX_READ + 1).for_each(|part| self.visit(part, place));
            return;
        }
        self.visited += 1;
        if self.visited > MAX_READ {
            if self.visited == MAX_READ + 1 {
                let help = "what extends many others can extend one that combines them".to_owned();
                let expected = "one of at most 64 that a profile extends";
                self.reporter
                    .report(Problem::BadValue { value: source.title(), expected, help }, place);
            }
            return;
        }
        let Some(text) = open(source, place, self.reporter) else { return };
        if self.under_way.iter().any(|(identity, _)| *identity == text.identity) {
            let names = self.under_way.iter().map(|(_, name)| name.as_str());
            let chain = names.chain([text.name.as_str()]).collect::<Vec<_>>().join(" → ");
            self.reporter.report(Problem::Cycle { chain }, place);
            return;
        }
        if self.read.contains(&text.identity) {
            return;
        }
        self.read.push(text.identity.clone());
        self.under_way.push((text.identity, text.name.clone()));
        if place.is_none() {
            self.named = text.path.as_deref().and_then(Path::parent).map(Path::to_owned);
        }
        let (is_foreign, shown) = match (place, &text.path) {
            (Some(_), path) => (self.is_foreign(path.as_deref()), text.name.clone()),
            (None, Some(path)) if text.is_led_to => (true, path.display().to_string()),
            (None, _) => (false, text.name.clone()),
        };
        let before = self.reporter.count();
        let file = self.reporter.sources.add(text.name, &text.text, (text.path, text.way));
        let document = document::parse(&text.text, file, self.reporter);
        if is_foreign && self.reporter.retract(before) {
            let reason = format!("it is no profile: `dewar policy check {shown}` says why");
            self.reporter.report(Problem::Unreadable { path: shown, reason }, place);
        }
        if let Some(extends) = &document.extends {
            let source = Source::relative_to(&extends.value, &text.directory);
            self.visit(&source, Some(extends.place));
        }
        if let Some(within) = &document.propose {
            let source = |within: &Located<String>| {
                (Source::relative_to(&within.value, &text.directory), within.place)
            };
            self.within = within.as_ref().map(source);
        }
        self.under_way.pop();
        self.done.push((file, document));
    }

    /// Whether a file at `path` lies elsewhere than what a person has named. It may be any file of
    /// the user's, led to by a profile that nobody trusts yet, so what is wrong with it is not
    /// told: that would quote it, to whoever reads the messages.
    fn is_foreign(&self, path: Option<&Path>) -> bool {
        let is_beside = |path: &Path| self.named.as_ref().is_some_and(|it| path.starts_with(it));
        path.is_some_and(|path| !is_beside(path))
    }
}

fn open(source: &Source, place: Option<TextSpan>, reporter: &mut Reporter) -> Option<Text> {
    let opened = match source {
        // Its parts are opened one by one.
        Source::Combined(_) => return None,
        Source::Shipped(name) => open_shipped(name),
        Source::File(path) => open_file(path, place.is_none()),
        Source::Text { name, text, directory } => Ok(Text {
            name: name.clone(),
            identity: format!("text {name}"),
            text: text.clone(),
            directory: directory.clone(),
            path: None,
            way: Vec::new(),
            is_led_to: false,
        }),
    };
    opened.map_err(|problem| reporter.report(problem, place)).ok()
}

fn open_shipped(name: &str) -> Result<Text, Problem> {
    let found = shipped().iter().find(|(known, _)| *known == name);
    let (name, text) = found.ok_or_else(|| Problem::UnknownProfile { name: name.to_owned() })?;
    let title = format!("profile {name}");
    let text = (*text).to_owned();
    let (identity, directory, way) = (title.clone(), PathBuf::new(), Vec::new());
    Ok(Text { name: title, identity, text, directory, path: None, way, is_led_to: false })
}

/// Reads a file. What a profile extends may be the word of others, and to open what is no file may
/// do something; whoever `is_named` by a person may also be the pipe of a shell: `-p <(…)`.
fn open_file(path: &Path, is_named: bool) -> Result<Text, Problem> {
    let shown = path.display().to_string();
    let failed = |reason: String| Problem::Unreadable { path: shown.clone(), reason };
    let found = Plain::find(path).map_err(|error| failed(missing(path, &error)))?;
    let file = match is_named && found.is_nameless_pipe() {
        true => std::fs::File::open(path),
        false => found.open(),
    };
    let file = file.map_err(|error| failed(error.to_string()))?;
    let mut bytes = Vec::new();
    let read = file.take(MAX_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| failed(error.to_string()))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(failed("it is longer than 1 MiB".to_owned()));
    }
    let text = String::from_utf8(bytes).map_err(|_| failed("it is not UTF-8".to_owned()))?;
    let directory = path.parent().unwrap_or(Path::new("")).to_owned();
    let found = path.canonicalize().ok();
    let here = if directory == Path::new("") { Path::new(".") } else { &directory }.canonicalize();
    // The pipe of a shell has no path that could be found.
    let is_led_to = found.as_ref().is_some_and(|it| !here.is_ok_and(|here| it.starts_with(here)));
    let (real, way) = match found {
        Some(real) => (real, realpath::way(path)),
        None => (path.to_owned(), vec![path.to_owned()]),
    };
    let identity = format!("file {}", real.display());
    Ok(Text { name: shown, identity, text, directory, path: Some(real), way, is_led_to })
}

/// What the system said, with the shipped profile that may have been meant.
fn missing(path: &Path, error: &std::io::Error) -> String {
    let named = path.to_string_lossy();
    if let Some((file, names)) = named.split_once(".toml+") {
        return format!("{error}; of several, a file stands last: `{names}+{file}.toml`");
    }
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let shipped = closest(stem, shipped().iter().map(|(name, _)| *name));
    match shipped {
        Some(name) if error.kind() == std::io::ErrorKind::NotFound => {
            format!("{error}; the shipped profile is named `{name}`, without path and `.toml`")
        }
        _ => error.to_string(),
    }
}
