//! The report: what every experiment found, on one page that explains itself.
//!
//! ```text
//!  DIR/build.jsonl …  samples of pairs ──▶ Section ─┐
//!  DIR/ipc.json …     sections as kept ─────────────┼──▶ page::html │ text::draw
//!                                       in the order of CHAPTERS ─┘
//! ```

mod page;
mod section;
mod text;

pub use page::html;
pub use section::Section;
pub use text::draw;

use crate::pairs::{self, StoreError};
use std::{
    io,
    path::{Path, PathBuf},
};

/// The experiments in the order of the report; what is not among them comes last.
const CHAPTERS: [&str; 23] = [
    "build",
    "build-memory",
    "project",
    "walk",
    "start",
    "run",
    "run-layers",
    "syscalls",
    "unix",
    "harden",
    "harden-sample",
    "attacks",
    "kernel",
    "plugin",
    "web",
    "web-growth",
    "ipc",
    "decision",
    "library",
    "resolution",
    "revoke",
    "releases",
    "self",
];

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The directory cannot be read.
    #[error("cannot read `{}`: {source}", path.display())]
    Directory {
        /// Which.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A file of samples cannot be used.
    #[error(transparent)]
    Samples(#[from] StoreError),
    /// A section cannot be read.
    #[error("`{}` holds no section: {source}", path.display())]
    Section {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// Nothing is there.
    #[error("`{}` holds no results; `dewar bench report` measures them", .0.display())]
    Nothing(PathBuf),
}

/// Everything that was kept in a directory, in the order of the report.
///
/// # Errors
///
/// [`ReportError`].
pub fn collect(directory: &Path) -> Result<Vec<Section>, ReportError> {
    let fails = |source| ReportError::Directory { path: directory.to_owned(), source };
    let mut sections = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(fails)? {
        let path = entry.map_err(fails)?.path();
        match path.extension().and_then(|it| it.to_str()) {
            Some("jsonl") => {
                let kept = pairs::read(&path)?;
                sections.push(match kept.experiment.name.as_str() {
                    "web" => Section::of_web(&kept),
                    _ => Section::of_pairs(&kept),
                });
            }
            Some("json") => {
                let text = std::fs::read_to_string(&path).map_err(fails)?;
                let section = serde_json::from_str(&text);
                sections.push(section.map_err(|source| ReportError::Section { path, source })?);
            }
            _ => {}
        }
    }
    if sections.is_empty() {
        return Err(ReportError::Nothing(directory.to_owned()));
    }
    let place = |section: &Section| {
        let known = CHAPTERS.iter().position(|name| *name == section.name);
        (known.unwrap_or(CHAPTERS.len()), section.name.clone())
    };
    sections.sort_by_key(place);
    Ok(sections)
}
