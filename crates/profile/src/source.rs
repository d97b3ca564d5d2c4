//! Where profile text comes from: shipped with Dewar, a file, or a string; and places inside it.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Profiles that are named together; what is more is one name, which nothing has.
const MOST_PARTS: usize = 100;

/// A profile to load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A profile that is part of Dewar, by name: see [`shipped`].
    Shipped(String),
    /// A file.
    File(PathBuf),
    /// Several, one on top of the other: `npm+loopback`. What several of them extend counts once,
    /// below all.
    Combined(Vec<Self>),
    /// Text that is already here. What it `extends` is looked up from `directory`.
    Text {
        /// Stands for the file's name in messages.
        name: String,
        /// The profile.
        text: String,
        /// Where relative paths in `extends` start.
        directory: PathBuf,
    },
}

impl Source {
    /// What a person means by `argument`: a file if it holds a `/`, begins with a dot or ends in
    /// `.toml`, else a shipped profile. Before a file or a name, others may stand by name, with `+`
    /// between them.
    #[must_use]
    pub fn from_argument(argument: &str) -> Self {
        Self::relative_to(argument, Path::new(""))
    }

    /// The name that messages use: the file, or `profile NAME`.
    #[must_use]
    pub fn title(&self) -> String {
        match self {
            Self::Shipped(name) => format!("profile {name}"),
            Self::File(path) => path.display().to_string(),
            Self::Text { name, .. } => name.clone(),
            Self::Combined(parts) => {
                let title = |part: &Self| part.title().trim_start_matches("profile ").to_owned();
                format!("profile {}", parts.iter().map(title).collect::<Vec<_>>().join("+"))
            }
        }
    }

    /// As [`Source::from_argument`], for a name that stands in a file of `directory`.
    pub(crate) fn relative_to(argument: &str, directory: &Path) -> Self {
        let is_file =
            |name: &str| name.contains('/') || name.starts_with('.') || name.ends_with(".toml");
        let mut parts = Vec::new();
        let mut rest = argument;
        // A file may have a `+` in its name.
        while parts.len() < MOST_PARTS
            && let Some((first, more)) = rest.split_once('+')
            && (!is_file(rest) || shipped().iter().any(|(name, _)| *name == first))
        {
            parts.push(Self::Shipped(first.to_owned()));
            rest = more;
        }
        let last = match is_file(rest) {
            true => Self::File(directory.join(rest)),
            false => Self::Shipped(rest.to_owned()),
        };
        match parts.is_empty() {
            true => last,
            false => Self::Combined(parts.into_iter().chain([last]).collect()),
        }
    }
}

/// The profiles that are part of Dewar: name and text.
#[must_use]
pub fn shipped() -> &'static [(&'static str, &'static str)] {
    &[
        ("workspace", include_str!("../../../policy/profiles/workspace.toml")),
        ("build", include_str!("../../../policy/profiles/build.toml")),
        ("agent", include_str!("../../../policy/profiles/agent.toml")),
        ("readonly", include_str!("../../../policy/profiles/readonly.toml")),
        ("offline", include_str!("../../../policy/profiles/offline.toml")),
        ("web", include_str!("../../../policy/profiles/web.toml")),
        ("open", include_str!("../../../policy/profiles/open.toml")),
        ("cargo", include_str!("../../../policy/profiles/cargo.toml")),
        ("claude", include_str!("../../../policy/profiles/claude.toml")),
        ("cmake", include_str!("../../../policy/profiles/cmake.toml")),
        ("codex", include_str!("../../../policy/profiles/codex.toml")),
        ("gemini", include_str!("../../../policy/profiles/gemini.toml")),
        ("git", include_str!("../../../policy/profiles/git.toml")),
        ("go", include_str!("../../../policy/profiles/go.toml")),
        ("gradle", include_str!("../../../policy/profiles/gradle.toml")),
        ("guarded", include_str!("../../../policy/profiles/guarded.toml")),
        ("jupyter", include_str!("../../../policy/profiles/jupyter.toml")),
        ("loopback", include_str!("../../../policy/profiles/loopback.toml")),
        ("maven", include_str!("../../../policy/profiles/maven.toml")),
        ("nginx", include_str!("../../../policy/profiles/nginx.toml")),
        ("npm", include_str!("../../../policy/profiles/npm.toml")),
        ("pip", include_str!("../../../policy/profiles/pip.toml")),
        ("pnpm", include_str!("../../../policy/profiles/pnpm.toml")),
        ("postgres", include_str!("../../../policy/profiles/postgres.toml")),
        ("uv", include_str!("../../../policy/profiles/uv.toml")),
    ]
}

/// A stretch of bytes in one of the files that make up a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct TextSpan {
    // Of each place in the file system, a profile keeps a dozen of these.
    file: u32,
    start: u32,
    end: u32,
}

impl TextSpan {
    /// A stretch of the file with that index in [`Sources`]. What lies behind 4 GiB is shown at no
    /// place.
    pub(crate) fn new(file: usize, bytes: Range<usize>) -> Self {
        let short = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        Self { file: short(file), start: short(bytes.start), end: short(bytes.end) }
    }

    pub(crate) fn file(self) -> usize {
        self.file as usize
    }

    pub(crate) fn bytes(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// Something that a person wrote, and where.
#[derive(Clone, Debug)]
pub(crate) struct Located<T> {
    pub(crate) value: T,
    pub(crate) place: TextSpan,
}

/// One file of a profile.
#[derive(Clone, Debug)]
pub(crate) struct SourceFile {
    pub(crate) name: String,
    pub(crate) text: Arc<str>,
    /// Where it was read, without links.
    pub(crate) path: Option<PathBuf>,
    /// What it was found by, as [`realpath::way`] tells.
    way: Vec<PathBuf>,
    /// It is no file but an amendment, and the name says so.
    amendment: bool,
}

/// The files read for one profile, in the order of reading: the profile itself, then what it
/// extends.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sources(pub(crate) Vec<SourceFile>);

/// The place in a profile that a rule of the policy comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The file, or the shipped profile as `profile NAME`; for an amendment, what it was and when.
    pub file: String,
    /// Line, from 1; 0 for an amendment.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The text at that place: one string of a list, as written.
    pub text: String,
}

impl fmt::Display for Origin {
    /// `FILE:LINE: TEXT`, or what an amendment was and when.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.file),
            line => write!(f, "{}:{line}: {}", self.file, self.text),
        }
    }
}

impl Sources {
    /// Adds a file, read at `path` and found by `way`, and returns its index.
    pub(crate) fn add(
        &mut self,
        name: String,
        text: &str,
        (path, way): (Option<PathBuf>, Vec<PathBuf>),
    ) -> usize {
        self.0.push(SourceFile { name, text: text.into(), path, way, amendment: false });
        self.0.len() - 1
    }

    /// What they were found by.
    pub(crate) fn ways(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().flat_map(|file| &file.way).map(PathBuf::as_path)
    }

    /// Adds an amendment and returns the place of all its text.
    pub(crate) fn add_amendment(&mut self, name: String, text: &str) -> TextSpan {
        let place = TextSpan::new(self.0.len(), 0..text.len());
        let (path, way) = (None, Vec::new());
        self.0.push(SourceFile { name, text: text.into(), path, way, amendment: true });
        place
    }

    pub(crate) fn get(&self, place: TextSpan) -> Option<&SourceFile> {
        self.0.get(place.file())
    }

    /// File, line, column and text of `place`.
    pub(crate) fn origin(&self, place: TextSpan) -> Option<Origin> {
        let file = self.get(place)?;
        let bytes = place.bytes();
        let before = file.text.get(..bytes.start)?;
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Some(Origin {
            file: file.name.clone(),
            line: if file.amendment { 0 } else { before.matches('\n').count() + 1 },
            column: before[line_start..].chars().count() + 1,
            text: file.text.get(bytes)?.to_owned(),
        })
    }
}
