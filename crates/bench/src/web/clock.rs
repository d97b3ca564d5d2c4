//! Service time at the server: from a request's last byte to its answer's, by the server's own
//! clock.
//!
//! Dewar's server tells its sum by its metrics, Apache writes microseconds into its log. nginx
//! knows its service times in milliseconds only, of a clock that it looks at once in a turn of its
//! loop: a hundred times too coarse for these requests.

use std::{
    collections::HashMap,
    fs::File,
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    os::unix::net::UnixStream,
    path::PathBuf,
    sync::{Mutex, PoisonError},
    time::Duration,
};

/// How long a server may take to tell its metrics.
const PATIENCE: Duration = Duration::from_secs(3);

/// Where a server tells its service times.
#[derive(Debug)]
pub(super) enum ServiceClock {
    /// The socket where Dewar's server has its metrics.
    Metrics(PathBuf),
    /// A log whose lines end with microseconds, and how much of it was read.
    Log(PathBuf, Mutex<Log>),
}

/// Answers and the time that they took, so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Told {
    pub(super) seconds: f64,
    pub(super) answers: u64,
}

/// What was read of a log.
#[derive(Debug, Default)]
pub(super) struct Log {
    /// By the target of requests.
    told: HashMap<String, Told>,
    /// Bytes that were read.
    read: u64,
}

impl ServiceClock {
    pub(super) fn log(path: PathBuf) -> Self {
        Self::Log(path, Mutex::default())
    }

    /// What was told so far: of everything, or by a log, of requests for `target`.
    pub(super) fn told(&self, target: &str) -> io::Result<Told> {
        match self {
            Self::Metrics(socket) => {
                let mut stream = UnixStream::connect(socket)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                stream
                    .write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")?;
                let mut text = String::new();
                stream.read_to_string(&mut text)?;
                of_metrics(&text)
                    .ok_or_else(|| io::Error::other("its metrics have no service time"))
            }
            Self::Log(path, log) => {
                let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
                let mut file = File::open(path)?;
                file.seek(SeekFrom::Start(log.read))?;
                let mut text = String::new();
                file.read_to_string(&mut text)?;
                log.take(&text);
                Ok(log.told.get(target).copied().unwrap_or_default())
            }
        }
    }

    /// The mean time in seconds of the answers told since `before`; `None` if there are none. A log
    /// is written by the piece: what is missing at the end of a slice comes with the next one of
    /// its kind.
    pub(super) fn mean_since(&self, before: Told, target: &str) -> io::Result<Option<f64>> {
        let now = self.told(target)?;
        let answers = now.answers.saturating_sub(before.answers);
        Ok((answers > 0).then(|| (now.seconds - before.seconds) / answers as f64))
    }
}

impl Log {
    /// Whole lines of a log, each of which ends with microseconds.
    fn take(&mut self, text: &str) {
        let Some(end) = text.rfind('\n') else { return };
        self.read += end as u64 + 1;
        for line in text[..end].lines() {
            let last = line.rsplit(' ').next().and_then(|last| last.parse::<u64>().ok());
            let target = line.split('"').nth(1).and_then(|request| request.split(' ').nth(1));
            if let Some((micros, target)) = last.zip(target) {
                let told = self.told.entry(target.to_owned()).or_default();
                told.seconds += micros as f64 / 1e6;
                told.answers += 1;
            }
        }
    }
}

fn of_metrics(text: &str) -> Option<Told> {
    let value = |name: &str| {
        let mut lines = text.lines().filter_map(|line| line.strip_prefix(name));
        lines.find_map(|rest| rest.trim().parse::<f64>().ok())
    };
    let seconds = value("dewar_service_seconds_sum ")?;
    let answers = value("dewar_service_seconds_count ")? as u64;
    Some(Told { seconds, answers })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_read_on_from_its_last_whole_line() {
        let mut log = Log::default();
        let lines =
            "::1 \"GET /a H\" 200 12 30\n::1 \"GET /b H\" 200 12 9\n::1 \"GET /a H\" 200 12 50\n";
        log.take(&format!("{lines}::1 \"GE"));
        assert_eq!(log.read, lines.len() as u64);
        let told = log.told["/a"];
        assert_eq!(told.answers, 2);
        assert!((told.seconds - 80e-6).abs() < 1e-12, "{told:?}");
        log.take("no line");
        assert_eq!(log.read, lines.len() as u64);
    }

    #[test]
    fn metrics_tell_the_sum_and_the_count() {
        let text = "HTTP/1.1 200 OK\r\n\r\ndewar_service_seconds_sum 0.5\ndewar_service_seconds_count 100\n";
        let told = of_metrics(text).expect("both are there");
        assert_eq!((told.seconds, told.answers), (0.5, 100));
        assert_eq!(of_metrics("nothing"), None);
    }
}
