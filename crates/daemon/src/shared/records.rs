//! Records on their way from spools into the journal.

use super::{Shared, say};
use crate::{
    error::RequestError,
    journal::{Journal, JournalError},
};
use daemon_client::{HEADER_BYTES, Reader};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::{MutexGuard, PoisonError, atomic::Ordering},
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

/// How often spools are looked at, and how often whether there are any.
const TICK: Duration = Duration::from_millis(50);
const IDLE: Duration = Duration::from_millis(250);

/// Bytes that are taken from a spool at once: others wait no longer than that takes.
const MOST_BYTES: usize = 64 << 10;

/// How long the end of the daemon may take. What still lies in spools then is the next one's.
const LAST_ROUNDS: Duration = Duration::from_secs(5);

/// By run, up to where there is something.
type Filled = BTreeMap<String, u64>;

/// The journal, and the spools that it is fed from.
pub(crate) struct Spools {
    pub(crate) journal: Journal,
    spools: BTreeMap<String, Spool>,
    directory: PathBuf,
    /// The last trouble; the same is told once.
    said: String,
}

struct Spool {
    reader: Reader,
    at: u64,
    dropped: u64,
}

impl Spools {
    pub(crate) fn new(journal: Journal, directory: PathBuf) -> Self {
        Self { journal, spools: BTreeMap::new(), directory, said: String::new() }
    }

    pub(crate) fn add(&mut self, run: &str, reader: Reader, at: u64) {
        self.spools.insert(run.to_owned(), Spool { reader, at, dropped: 0 });
    }

    pub(super) fn path(&self, run: &str) -> PathBuf {
        self.directory.join(run)
    }

    /// How far spools are filled now: that of one run, or all.
    fn filled(&self, only: Option<&str>) -> Filled {
        let wanted = self.spools.iter().filter(|(run, _)| only.is_none_or(|only| only == *run));
        // One that cannot be asked cannot be read either, which is found out then.
        wanted.map(|(run, spool)| (run.clone(), spool.reader.end().unwrap_or(u64::MAX))).collect()
    }

    /// Takes what lies there, from each spool up to a bound; whether one is not taken as far as it
    /// was `filled`. A spool that cannot be read is lost, and holds up no other.
    fn take(&mut self, filled: &Filled) -> Result<bool, JournalError> {
        let (mut batches, mut broken, mut more) = (Vec::new(), Vec::new(), false);
        for (run, end) in filled {
            let Some(spool) = self.spools.get(run) else { continue };
            match spool.reader.read(spool.at, MOST_BYTES) {
                Ok(batch)
                    if batch.at > spool.at.max(HEADER_BYTES) || batch.dropped > spool.dropped =>
                {
                    more |= batch.at < *end && !batch.bytes.is_empty();
                    batches.push((run.clone(), batch));
                }
                Ok(_) => {}
                Err(error) => broken.push((run.clone(), error)),
            }
        }
        if !batches.is_empty() {
            self.journal.take(&batches, now())?;
            for (run, batch) in batches {
                let Some(spool) = self.spools.get_mut(&run) else { continue };
                (spool.at, spool.dropped) = (batch.at, batch.dropped);
                if let Err(error) = spool.reader.taken(batch.at) {
                    broken.push((run, error));
                }
            }
            if let Err(error) = self.journal.rotate() {
                self.tell(format!("the oldest records stay: {error}"));
            }
        }
        for (run, error) in broken {
            self.tell(format!(
                "the records of run {run} are lost from here on: its spool: {error}"
            ));
            self.journal.lose_spool(&run, now())?;
            self.remove(&run);
        }
        Ok(more)
    }

    /// The spool is not needed any more.
    fn remove(&mut self, run: &str) {
        self.spools.remove(run);
        // One that stays takes room, nothing else.
        let _ = std::fs::remove_file(self.path(run));
    }

    fn tell(&mut self, trouble: String) {
        if trouble != self.said {
            say(format_args!("{trouble}"));
            self.said = trouble;
        }
    }
}

impl Shared {
    pub(super) fn records(&self) -> MutexGuard<'_, Spools> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the spools that the last daemon has not taken to their end.
    pub(crate) fn find_spools(&self) -> Result<(), JournalError> {
        let mut records = self.records();
        for (run, at) in records.journal.unfinished()? {
            match Reader::open(&records.path(&run)) {
                Ok(reader) => records.add(&run, reader, at),
                Err(_) => records.journal.lose_spool(&run, now())?,
            }
        }
        Ok(())
    }

    /// Takes everything that lies in spools now; what comes meanwhile may wait.
    pub(crate) fn take_records(&self) -> Result<(), RequestError> {
        self.take_records_of(None)
    }

    fn take_records_of(&self, run: Option<&str>) -> Result<(), RequestError> {
        let filled = self.records().filled(run);
        while self.records().take(&filled)? {}
        Ok(())
    }

    /// Takes records as they come, and notices the ends of runs.
    pub(crate) fn take_records_until_stopped(&self) {
        while !self.stopping.load(Ordering::Acquire) {
            // They stay where they are, and are tried again.
            let filled = self.records().filled(None);
            let taken = self.records().take(&filled).map_err(RequestError::from);
            let more = taken.and_then(|more| self.bury().map(|()| more)).unwrap_or_else(|error| {
                self.records().tell(format!("records stay in their spools: {error}"));
                false
            });
            thread::sleep(match more {
                // Whoever waits for the lock gets it.
                true => Duration::from_millis(1),
                false if self.records().spools.is_empty() => IDLE,
                false => TICK,
            });
        }
        let (begin, filled) = (Instant::now(), self.records().filled(None));
        loop {
            match self.records().take(&filled) {
                Ok(true) if begin.elapsed() < LAST_ROUNDS => {}
                Ok(_) => break,
                Err(error) => {
                    say(format_args!("records stay in their spools: {error}"));
                    break;
                }
            }
        }
    }

    /// Ends runs whose monitor has ended without saying so.
    fn bury(&self) -> Result<(), RequestError> {
        let spools: Vec<String> = self.records().spools.keys().cloned().collect();
        // A run whose spool is lost ends, too.
        let runs = self.registry().runs(0).into_iter().map(|run| run.kept.id.clone());
        let names: BTreeSet<String> = runs.chain(spools).collect();
        for name in names {
            let run = self.registry().run(&name);
            match run {
                Some(run) if run.lives() => {}
                Some(run) => self.end(&run)?,
                None => self.finish_spool(&name)?,
            }
        }
        Ok(())
    }

    /// The run writes no more: takes its spool to the end, and removes it.
    pub(super) fn finish_spool(&self, run: &str) -> Result<(), RequestError> {
        self.take_records_of(Some(run))?;
        let mut records = self.records();
        let Some(spool) = records.spools.get(run) else { return Ok(()) };
        let cut_off = spool.reader.rest(spool.at).map_or(true, |bytes| bytes > 0);
        records.journal.end_run(run, cut_off, now())?;
        records.remove(run);
        Ok(())
    }
}

/// Seconds since 1970.
pub(super) fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use daemon_client::{NewRun, Writer};

    /// As the end of a run and the end of the daemon do it: who is asked for what lies there is not
    /// kept by what comes.
    #[test]
    fn a_run_that_writes_on_does_not_hold_up_who_takes_what_lay_there() {
        let directory = tempfile::tempdir().unwrap();
        let journal = Journal::open(&directory.path().join("journal.db"), u64::MAX).unwrap();
        journal.begin_run(&NewRun { id: "x".into(), ..NewRun::default() }, 0, 0.0).unwrap();
        let mut spools = Spools::new(journal, directory.path().to_owned());
        let reader = Reader::create(&spools.path("x")).unwrap();
        let mut writer = Writer::new(reader.share().unwrap()).unwrap();
        spools.add("x", reader, 0);
        let lines = "{}\n".repeat(MOST_BYTES / 3);
        let mut written = 0;
        let mut write = |writer: &mut Writer| {
            writer.append(lines.as_bytes());
            written += 1;
            written
        };
        for _ in 0..3 {
            write(&mut writer);
        }
        let filled = spools.filled(None);
        while spools.take(&filled).unwrap() {
            assert!(write(&mut writer) < 100, "it is taken for as long as the run writes");
        }
        assert!(spools.spools["x"].at >= filled["x"], "it took what lay there");
    }
}
