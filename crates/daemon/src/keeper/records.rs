//! Records on their way from spools into the journal.

use super::{Shared, say, text};
use crate::{
    journal::{Journal, JournalError},
    spool::{HEADER_BYTES, Reader},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::{MutexGuard, PoisonError, atomic::Ordering},
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// How often spools are looked at, and how often whether there are any.
const TICK: Duration = Duration::from_millis(50);
const IDLE: Duration = Duration::from_millis(250);

/// Bytes that are taken from a spool at once.
const MOST_BYTES: usize = 1 << 20;

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

    /// Takes what lies there, from each spool up to a bound; whether there may be more. A spool that cannot be read is
    /// lost, and holds up no other.
    fn take(&mut self) -> Result<bool, JournalError> {
        let (mut batches, mut broken, mut more) = (Vec::new(), Vec::new(), false);
        for (run, spool) in &self.spools {
            match spool.reader.read(spool.at, MOST_BYTES) {
                Ok(batch)
                    if batch.at > spool.at.max(HEADER_BYTES) || batch.dropped > spool.dropped =>
                {
                    more |= batch.bytes.len() >= MOST_BYTES / 2;
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
    pub(super) fn find_spools(&self) -> Result<(), JournalError> {
        let mut records = self.records();
        for (run, at) in records.journal.unfinished()? {
            match Reader::open(&records.path(&run)) {
                Ok(reader) => records.add(&run, reader, at),
                Err(_) => records.journal.lose_spool(&run, now())?,
            }
        }
        Ok(())
    }

    /// Takes everything that lies in spools now.
    pub(crate) fn take_records(&self) -> Result<(), String> {
        while self.records().take().map_err(text)? {}
        Ok(())
    }

    /// Takes records as they come, and notices the ends of runs.
    pub(super) fn take_records_until_stopped(&self) {
        while !self.stopping.load(Ordering::Acquire) {
            // They stay where they are, and are tried again.
            if let Err(error) = self.take_records().and_then(|()| self.bury()) {
                self.records().tell(format!("records stay in their spools: {error}"));
            }
            let idle = self.records().spools.is_empty();
            thread::sleep(if idle { IDLE } else { TICK });
        }
        if let Err(error) = self.take_records() {
            say(format_args!("records stay in their spools: {error}"));
        }
    }

    /// Ends runs whose monitor has ended without saying so.
    fn bury(&self) -> Result<(), String> {
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
    pub(super) fn finish_spool(&self, run: &str) -> Result<(), String> {
        self.take_records()?;
        let mut records = self.records();
        let Some(spool) = records.spools.get(run) else { return Ok(()) };
        let cut_off = spool.reader.rest(spool.at).map_or(true, |bytes| bytes > 0);
        records.journal.end_run(run, cut_off, now()).map_err(text)?;
        records.remove(run);
        Ok(())
    }
}

/// Seconds since 1970.
pub(super) fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}
