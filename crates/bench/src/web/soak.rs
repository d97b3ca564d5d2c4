//! Many requests of all kinds, one after the other for as long as it takes, and the server's memory
//! meanwhile.

use super::{
    IMAGES, Programs, Server, WebError,
    client::Load,
    own::Grown,
    runner::UNDER_WAY,
    server::{directory, write},
    write_images,
};
use crate::{
    interrupt::Interrupt,
    sheet::{Cell, Sheet},
};
use serde::{Deserialize, Serialize};
use std::{
    path::Path,
    time::{Duration, Instant},
};

/// Requests of one kind in a row.
const ROW: usize = 5000;
/// What memory may grow by between the first tenth and the end, in KiB: pages that are touched for
/// the first time.
const SLACK_KIB: u64 = 2048;
/// So many looks are kept.
const LOOKS: u64 = 50;

/// One look at the server.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Look {
    /// Requests so far.
    pub requests: u64,
    /// Seconds so far.
    pub seconds: f64,
    /// Memory that is the server's own, in KiB.
    pub resident_kib: u64,
}

/// What came of it.
#[derive(Clone, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SoakReport {
    /// Requests that were answered.
    pub requests: u64,
    /// What was looked at.
    pub looks: Vec<Look>,
}

impl SoakReport {
    /// Sends so many requests; earlier if somebody interrupts.
    ///
    /// # Errors
    ///
    /// [`WebError`], also for any answer but 200.
    pub fn measure(
        programs: &Programs,
        scratch: &Path,
        requests: u64,
        (interrupt, progress): (&Interrupt, &mut dyn FnMut(&str)),
    ) -> Result<Self, WebError> {
        let root = directory(scratch, "root")?;
        write_images(&root)?;
        write(&root.join("page.html"), &"<p>words that are many</p>\n".repeat(300))?;
        let server = programs.start_grown(scratch, &root, Grown::default())?;
        let paths = paths(&server);
        let (begun, mut report) = (Instant::now(), Self { requests: 0, looks: Vec::new() });
        let every = (requests / LOOKS).max(1);
        for path in paths.iter().cycle() {
            let left = requests - report.requests;
            if left == 0 || interrupt.happened() {
                break;
            }
            // Connections are new for each row.
            let asked = Load::open(&server, path, UNDER_WAY).and_then(|mut load| {
                load.ask(ROW.min(left as usize), UNDER_WAY, Duration::MAX / 4)
            });
            let asked = asked.map_err(|error| WebError::system(format!("{path}: "), error))?;
            report.requests += asked as u64;
            if report.requests / every > report.looks.len() as u64 || report.requests == requests {
                report.look(&server, begun);
                progress(&format!("{} of {requests} requests", report.requests));
            }
        }
        report.look(&server, begun);
        Ok(report)
    }

    fn look(&mut self, server: &Server, begun: Instant) {
        let (seconds, resident_kib) = (begun.elapsed().as_secs_f64(), server.resident_kib());
        self.looks.push(Look { requests: self.requests, seconds, resident_kib });
    }

    /// What it grew by between the end of the first tenth and the end, in KiB.
    #[must_use]
    pub fn grown_kib(&self) -> u64 {
        let early = self.looks.iter().find(|look| look.requests * 10 >= self.requests);
        let (early, last) = (early.or(self.looks.first()), self.looks.last());
        let kib = |look: Option<&Look>| look.map_or(0, |look| look.resident_kib);
        kib(last).saturating_sub(kib(early))
    }

    /// Whether that is nothing to speak of.
    #[must_use]
    pub fn is_flat(&self) -> bool {
        self.grown_kib() <= SLACK_KIB
    }

    /// The looks as a table.
    #[must_use]
    pub fn sheet(&self) -> Sheet {
        let columns = [("requests", 0, true), ("seconds", 0, true), ("memory, KiB", 0, true)];
        let mut sheet = Sheet::new("Memory of the web server over many requests", &columns);
        for look in &self.looks {
            sheet.push(vec![
                Cell::number(look.requests.to_string(), look.requests as f64),
                Cell::number(format!("{:.0}", look.seconds), look.seconds),
                Cell::number(look.resident_kib.to_string(), look.resident_kib as f64),
            ]);
        }
        let verdict = if self.is_flat() { "flat" } else { "NOT flat" };
        sheet.notes.push(format!(
            "Pages, images as they are and turned gray by an isolated plugin, {UNDER_WAY} under way, {ROW} in a row over the same \
             connections. From the first tenth to the end it grew by {} KiB: {verdict}. Memory shared with others is counted \
             in part.",
            self.grown_kib()
        ));
        sheet
    }
}

/// What is asked for in turn; the largest image seldom, since it takes long.
fn paths(server: &Server) -> Vec<String> {
    let mut paths = Vec::new();
    for (name, ..) in &IMAGES[..3] {
        paths.extend(["/page.html".to_owned(), "/page.html?other".to_owned()]);
        paths.extend([
            server.path(name, false),
            server.path(name, true),
            server.path(IMAGES[0].0, true),
        ]);
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_flat_if_it_does_not_grow_after_the_first_tenth() {
        let look = |requests: u64, resident_kib: u64| Look { requests, seconds: 0.0, resident_kib };
        let report = |kib: [u64; 3]| SoakReport {
            requests: 1000,
            looks: vec![look(20, kib[0]), look(100, kib[1]), look(1000, kib[2])],
        };
        assert!(report([1000, 9000, 9000 + SLACK_KIB]).is_flat());
        assert!(!report([1000, 9000, 9001 + SLACK_KIB]).is_flat());
        assert_eq!(report([9000, 8000, 7000]).grown_kib(), 0);
    }
}
