//! Lines of a spool on their way into the journal.

use super::{Journal, Result};
use daemon_client::Batch;
use rusqlite::{Connection, OptionalExtension as _, params};
use serde_json::Value;

/// What the journal reads of a record.
struct Columns {
    time: f64,
    granted: bool,
    scontext: String,
    object: String,
}

impl Columns {
    /// `None` for what is no record. All of it is read, so that whoever reads it later can.
    fn read(line: &str) -> Option<Self> {
        // Most of what is no record is not even read.
        if !line.trim_start().starts_with('{') {
            return None;
        }
        let Ok(Value::Object(record)) = serde_json::from_str(line) else { return None };
        let text = |name: &str| record.get(name)?.as_str().map(str::to_owned);
        Some(Self {
            time: record.get("time")?.as_f64()?,
            granted: record.get("granted")?.as_bool()?,
            scontext: text("scontext")?,
            object: text("object").unwrap_or_default(),
        })
    }
}

/// The lines of a batch, read: that takes a while, and nobody else need wait for it.
pub(crate) struct Lines<'b> {
    batch: &'b Batch,
    records: Vec<(Columns, &'b str)>,
    /// Lines that are no records.
    bad: u64,
}

impl<'b> Lines<'b> {
    pub(crate) fn read(batch: &'b Batch) -> Self {
        let (mut records, mut bad) = (Vec::new(), 0);
        for line in batch.bytes.split_inclusive(|byte| *byte == b'\n') {
            let text = std::str::from_utf8(line).ok().map(str::trim_end);
            match text.and_then(|text| Some((Columns::read(text)?, text))) {
                Some(record) => records.push(record),
                None => bad += 1,
            }
        }
        Self { batch, records, bad }
    }

    fn insert(&self, db: &Connection, run: &str, now: f64) -> rusqlite::Result<()> {
        let sql = "INSERT INTO records (run, time, granted, domain, object, lost, record)
            VALUES (?1, ?2, ?3, ?4, ?5, 0, ?6)";
        let mut insert = db.prepare(sql)?;
        for (columns, text) in &self.records {
            let domain = flask::type_of(&columns.scontext);
            // It is the run's word: nothing has been recorded later than now.
            let time = columns.time.clamp(0.0, now.max(0.0));
            let (granted, object) = (columns.granted, &columns.object);
            insert.execute(params![run, time, granted, domain, object, text])?;
        }
        match self.bad {
            0 => Ok(()),
            bad => insert_gap(db, run, bad, "so many lines in the spool are no records", now),
        }
    }
}

impl Journal {
    /// Takes the records of each run over, all or none. Lines that are no records are counted, and
    /// cost no other.
    ///
    /// # Errors
    ///
    /// [`JournalError`](super::JournalError).
    pub fn take(&mut self, batches: &[(String, Batch)], now: f64) -> Result<()> {
        let read: Vec<_> =
            batches.iter().map(|(run, batch)| (run.as_str(), Lines::read(batch))).collect();
        self.take_lines(&read, now)
    }

    /// The same for lines that were read.
    pub(crate) fn take_lines(&mut self, lines: &[(&str, Lines<'_>)], now: f64) -> Result<()> {
        let transaction = self.db.transaction()?;
        for (run, lines) in lines {
            let known: Option<i64> = transaction
                .query_row("SELECT dropped FROM runs WHERE id = ?1", [run], |row| row.get(0))
                .optional()?;
            lines.insert(&transaction, run, now)?;
            let batch = lines.batch;
            let dropped = batch.dropped.saturating_sub(known.unwrap_or(0).cast_unsigned());
            if dropped > 0 {
                let why = "there was no room for them while the daemon was away";
                insert_gap(&transaction, run, dropped, why, now)?;
            }
            let update = "UPDATE runs SET at = ?1, dropped = ?2 WHERE id = ?3";
            let (at, dropped) = (batch.at.cast_signed(), batch.dropped.cast_signed());
            transaction.execute(update, params![at, dropped, run])?;
        }
        Ok(transaction.commit()?)
    }
}

pub(super) fn insert_gap(
    db: &Connection,
    run: &str,
    lost: u64,
    why: &str,
    now: f64,
) -> rusqlite::Result<()> {
    let sql = "INSERT INTO records (run, time, granted, domain, object, lost, record)
        VALUES (?1, ?2, 0, '', '', ?3, ?4)";
    db.execute(sql, params![run, now, lost.cast_signed(), why]).map(drop)
}
