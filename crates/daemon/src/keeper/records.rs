//! Records on their way from spools into the journal.

use super::{Shared, say, text};
use crate::{
    journal::{Journal, JournalError},
    spool::Reader,
};
use std::{
    collections::BTreeMap,
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
}

struct Spool {
    reader: Reader,
    at: u64,
    dropped: u64,
}

impl Spools {
    pub(crate) fn new(journal: Journal) -> Self {
        Self { journal, spools: BTreeMap::new() }
    }

    pub(crate) fn add(&mut self, run: &str, reader: Reader, at: u64) {
        self.spools.insert(run.to_owned(), Spool { reader, at, dropped: 0 });
    }

    /// Takes what lies there, from each spool up to a bound; whether there may be more.
    fn take(&mut self) -> Result<bool, String> {
        let (mut batches, mut more) = (Vec::new(), false);
        for (run, spool) in &self.spools {
            let batch = spool.reader.read(spool.at, MOST_BYTES).map_err(text)?;
            if batch.at > spool.at.max(crate::HEADER_BYTES) || batch.dropped > spool.dropped {
                more |= batch.bytes.len() >= MOST_BYTES / 2;
                batches.push((run.clone(), batch));
            }
        }
        if batches.is_empty() {
            return Ok(false);
        }
        self.journal.take(&batches, now()).map_err(text)?;
        for (run, batch) in batches {
            if let Some(spool) = self.spools.get_mut(&run) {
                (spool.at, spool.dropped) = (batch.at, batch.dropped);
                spool.reader.taken(batch.at).map_err(text)?;
            }
        }
        Ok(more)
    }
}

impl Shared {
    pub(super) fn records(&self) -> MutexGuard<'_, Spools> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn spool_path(&self, run: &str) -> PathBuf {
        self.place.state.join("spool").join(run)
    }

    /// Opens the spools that the last daemon has not taken to their end.
    pub(super) fn find_spools(&self) -> Result<(), JournalError> {
        let mut records = self.records();
        for (run, at) in records.journal.unfinished()? {
            match Reader::open(&self.spool_path(&run)) {
                Ok(reader) => records.add(&run, reader, at),
                Err(_) => records.journal.lose_spool(&run, now())?,
            }
        }
        Ok(())
    }

    /// Takes everything that lies in spools now.
    pub(crate) fn take_records(&self) -> Result<(), String> {
        while self.records().take()? {}
        Ok(())
    }

    /// Takes records as they come, and notices the ends of runs.
    pub(super) fn take_records_until_stopped(&self) {
        let mut said = String::new();
        while !self.stopping.load(Ordering::Acquire) {
            let done = self.take_records().and_then(|()| self.bury());
            // They stay where they are, and are tried again; the same trouble is told once.
            if let Err(error) = done
                && error != said
            {
                say(format_args!("records stay in their spools: {error}"));
                said = error;
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
        let names: Vec<String> = self.records().spools.keys().cloned().collect();
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
        let cut_off = spool.reader.rest(spool.at).map_err(text)? > 0;
        records.journal.end_run(run, cut_off, now()).map_err(text)?;
        records.spools.remove(run);
        // One that stays takes room, nothing else.
        let _ = std::fs::remove_file(self.spool_path(run));
        Ok(())
    }
}

/// Seconds since 1970.
pub(super) fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}
