//! Web servers that turn images gray: Dewar's with a plugin on each target, in its sandbox, and
//! behind nginx; Apache and nginx with the same function in C.
//!
//! ```text
//!  Found: every server runs, on loopback, with a log, beside the others
//!     │  same bytes from all
//!     ▼
//!  a round: one image, asked for some dozens of milliseconds from each server  (pairs::engine)
//!     ▼
//!  Report ──▶ tables │ the founding paper's four figures, and processor time
//! ```
//!
//! Processor time is that of all processes of the server, as the kernel has counted it by
//! nanoseconds, through the number of answers. Other work on the machine disturbs it far less than
//! the time on the wall.

mod client;
mod clock;
mod found;
mod growth;
mod own;
mod peers;
mod report;
mod runner;
mod server;
mod soak;

pub use found::{RunningServers, found};
pub use growth::{Growth, GrowthReport};
pub use own::Programs;
pub use peers::install;
pub use report::Report;
pub use runner::measure;
pub use server::Server;
pub use soak::{Look, SoakReport};

use std::{fs, io, path::Path};

/// The images: name, width, height. In bytes 9 KB, 99 KB, 270 KB and 3.3 MB.
pub const IMAGES: [(&str, usize, usize); 4] =
    [("9k", 60, 50), ("99k", 200, 165), ("270k", 300, 300), ("3.3m", 1200, 917)];

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WebError {
    /// The system refused something.
    #[error("{what}: {error}")]
    System {
        /// What was tried.
        what: String,
        /// Why not.
        error: io::Error,
    },
    /// A server, or what it takes to build its extension, is not as it should be.
    #[error("{name}: {what}")]
    Server {
        /// The server.
        name: String,
        /// What is wrong.
        what: String,
    },
    /// Samples cannot be kept.
    #[error(transparent)]
    Store(#[from] crate::pairs::StoreError),
}

impl WebError {
    pub(super) fn system(what: impl Into<String>, error: io::Error) -> Self {
        Self::System { what: what.into(), error }
    }
}

/// Writes the images into `root`.
///
/// # Errors
///
/// [`WebError`] when that fails.
pub fn write_images(root: &Path) -> Result<(), WebError> {
    for (name, width, height) in IMAGES {
        let mut image = format!("P6\n{width} {height}\n255\n").into_bytes();
        image.extend((0..width * height * 3).map(|at| (at * 7 % 251) as u8));
        let path = root.join(format!("{name}.ppm"));
        fs::write(&path, image).map_err(|error| {
            WebError::system(format!("cannot write `{}`", path.display()), error)
        })?;
    }
    Ok(())
}
