//! Web servers that turn images gray: Dewar's with a plugin on each target, Apache and nginx with
//! the same function in C.
//!
//! Every server serves the same files, over loopback, with a log. Before anything is measured, all
//! must have answered with the same bytes. Then, in turn: requests per second and the server's
//! processor time per request under `wrk`, and the time of single requests, one after the other.

mod client;
mod plot;
mod servers;

pub use plot::figures;
pub use servers::{Found, Server, found};

use crate::statistics::{Summary, median_of};
use client::{Client, load};
use serde::Serialize;
use std::{
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// The images: name, width, height. In bytes 9 KB, 99 KB, 270 KB and 3.3 MB.
pub const IMAGES: [(&str, usize, usize); 4] =
    [("9k", 60, 50), ("99k", 200, 165), ("270k", 300, 300), ("3.3m", 1200, 917)];
/// Single requests of one measurement; the first is not counted.
const SINGLE: usize = 2001;
/// As many of them as fit into this time.
const SINGLE_TIME: Duration = Duration::from_secs(5);

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
}

impl WebError {
    pub(super) fn system(what: impl Into<String>, error: io::Error) -> Self {
        Self::System { what: what.into(), error }
    }
}

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Rounds; in each, every server is measured once for every image.
    pub rounds: usize,
    /// How long `wrk` asks each time.
    pub time: Duration,
    /// Also the time of single requests.
    pub single: bool,
}

/// What was measured of one server with one image.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The server.
    pub server: String,
    /// The image.
    pub image: String,
    /// Whether it was turned gray.
    pub gray: bool,
    /// Requests per second.
    pub rate: Summary,
    /// Processor time of the server's processes for one request, in microseconds.
    pub cpu_us: Summary,
    /// Time of a single request for its client, in microseconds.
    pub single_us: Option<Summary>,
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

/// Measures servers that run, in turn.
///
/// # Errors
///
/// [`WebError`] when one does not answer, or with other bytes than the first.
pub fn measure(
    servers: &[Server],
    plan: &Plan,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<Row>, WebError> {
    same_bytes(servers)?;
    let mut taken: Vec<Taken> = Vec::new();
    for round in 0..plan.rounds {
        for (image, ..) in IMAGES {
            for server in servers {
                for gray in [false, true] {
                    // What serves a plain file does not depend on how plugins run.
                    if !gray && !server.serves_plain {
                        continue;
                    }
                    progress(&format!("round {}: {image} by {}", round + 1, server.name));
                    let path = server.path(image, gray);
                    let before = server.cpu();
                    let answered = load(server, &path, plan.time)?;
                    let spent = server.cpu() - before;
                    let single = match plan.single && round == 0 {
                        true => Some(singles(server, &path)?),
                        false => None,
                    };
                    let key = (server.name.clone(), image.to_owned(), gray);
                    let at = taken.iter().position(|it| it.key == key).unwrap_or_else(|| {
                        taken.push(Taken { key, ..Taken::default() });
                        taken.len() - 1
                    });
                    taken[at].rates.push(answered.rate);
                    taken[at].cpus.push(spent.as_secs_f64() * 1e6 / answered.requests);
                    taken[at].single = taken[at].single.or(single);
                }
            }
        }
    }
    Ok(taken.into_iter().filter_map(Taken::row).collect())
}

#[derive(Default)]
struct Taken {
    key: (String, String, bool),
    rates: Vec<f64>,
    cpus: Vec<f64>,
    single: Option<Summary>,
}

impl Taken {
    fn row(self) -> Option<Row> {
        let (server, image, gray) = self.key;
        let (rate, cpu_us) = (Summary::of(&self.rates)?, Summary::of(&self.cpus)?);
        Some(Row { server, image, gray, rate, cpu_us, single_us: self.single })
    }
}

fn same_bytes(servers: &[Server]) -> Result<(), WebError> {
    for (image, ..) in IMAGES {
        for gray in [false, true] {
            let mut first: Option<(String, Vec<u8>)> = None;
            for server in servers {
                let body = Client::connect(server)?.get(server, &server.path(image, gray))?;
                match &first {
                    None => first = Some((server.name.clone(), body)),
                    Some((_, bytes)) if *bytes == body => {}
                    Some((name, bytes)) => {
                        let (own, others) = (body.len(), bytes.len());
                        let what = format!(
                            "{image}, gray: {gray}: other bytes ({own}) than {name}'s ({others})"
                        );
                        return Err(WebError::Server { name: server.name.clone(), what });
                    }
                }
            }
        }
    }
    Ok(())
}

fn singles(server: &Server, path: &str) -> Result<Summary, WebError> {
    let mut client = Client::connect(server)?;
    let mut times = Vec::with_capacity(SINGLE);
    let begun = Instant::now();
    // Of a server that takes seconds for each, fewer say enough.
    while times.len() < SINGLE && (times.len() < 3 || begun.elapsed() < SINGLE_TIME) {
        times.push(client.time(server, path)?.as_secs_f64() * 1e6);
    }
    let none = || WebError::Server { name: server.name.clone(), what: "no answers".to_owned() };
    Summary::of(&times[1..]).ok_or_else(none)
}

/// The middle of what was measured of a server, for tables: processor time, then requests per
/// second.
#[must_use]
pub fn middle(rows: &[Row], server: &str, image: &str, gray: bool) -> Option<(f64, f64)> {
    let own = |row: &&Row| row.server == server && row.image == image && row.gray == gray;
    let row = rows.iter().find(own)?;
    Some((median_of(&[row.cpu_us.median])?, row.rate.median))
}

/// A directory for servers' files, in which all of them may read.
pub(super) fn make_directory(path: &Path) -> Result<PathBuf, WebError> {
    fs::create_dir_all(path)
        .map_err(|error| WebError::system(format!("cannot make `{}`", path.display()), error))?;
    Ok(path.to_owned())
}
