//! What goes when the journal grows too large.

use super::{Journal, Result};
use rusqlite::{OptionalExtension as _, params};

/// Records that are thrown away at once: others wait for that.
const MOST_AT_ONCE: i64 = 10_000;

impl Journal {
    /// Throws away what is oldest when the file is too large: runs that have ended without a
    /// record; then an eighth of the records, or part of it, and the rest with the next calls.
    ///
    /// # Errors
    ///
    /// [`JournalError`](super::JournalError).
    pub fn rotate(&mut self) -> Result<()> {
        if !self.is_too_large()? {
            return Ok(());
        }
        self.db.execute("DELETE FROM runs WHERE ended = 2", [])?;
        if self.is_too_large()? {
            self.throw_records_away()?;
        }
        self.db.execute_batch("PRAGMA incremental_vacuum")?;
        Ok(())
    }

    fn is_too_large(&self) -> Result<bool> {
        let number =
            |name: &str| self.db.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        let pages = number("page_count")? - number("freelist_count")?;
        Ok((pages * number("page_size")?).cast_unsigned() > self.most_bytes)
    }

    fn throw_records_away(&mut self) -> Result<()> {
        let transaction = self.db.transaction()?;
        let sql = "SELECT min(id) + min((max(id) - min(id)) / 8, ?1) FROM records";
        let last: Option<i64> = transaction.query_row(sql, [MOST_AT_ONCE], |row| row.get(0))?;
        let sql = "SELECT count(*) + sum(max(lost - 1, 0)), max(time) FROM records WHERE id <= ?1";
        let (count, until): (Option<i64>, Option<f64>) =
            transaction.query_row(sql, [last], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let sql = "SELECT DISTINCT run FROM records WHERE id <= ?1";
        let runs: Vec<String> = transaction
            .prepare(sql)?
            .query_map([last], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        transaction.execute("DELETE FROM records WHERE id <= ?1", [last])?;
        let sql = "DELETE FROM runs WHERE id = ?1 AND ended
            AND NOT EXISTS (SELECT 1 FROM records WHERE run = ?1)";
        for run in runs {
            transaction.execute(sql, [run])?;
        }
        let sql = "INSERT INTO rotated VALUES (1, ?1, ?2)
            ON CONFLICT DO UPDATE SET records = records + excluded.records, until = excluded.until";
        transaction.execute(sql, params![count.unwrap_or(0), until.unwrap_or(0.0)])?;
        Ok(transaction.commit()?)
    }

    /// How many records were thrown away for others, and the time of the last of them.
    ///
    /// # Errors
    ///
    /// [`JournalError`](super::JournalError).
    pub fn rotated(&self) -> Result<Option<(u64, f64)>> {
        let row = self.db.query_row("SELECT records, until FROM rotated", [], |row| {
            Ok((row.get::<_, i64>(0)?.cast_unsigned(), row.get(1)?))
        });
        Ok(row.optional()?)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{
        Filter,
        tests::{batch, journal, line},
    };
    use daemon_client::NewRun;

    #[test]
    fn the_oldest_go_when_it_grows_too_large_and_it_says_so() {
        let (directory, mut journal) = journal(1 << 20);
        for n in 0..100 {
            let lines: String = (0..100)
                .map(|k| line(f64::from(n * 100 + k), false, "a_t", &"x".repeat(300)))
                .collect();
            journal.take(&[("aa".into(), batch(&lines, 0, 0))], 1e9).unwrap();
            journal.rotate().unwrap();
        }
        let kept = journal.find(&Filter::default(), 0, 100_000).unwrap();
        let (thrown, until) = journal.rotated().unwrap().unwrap();
        assert_eq!(kept.len() as u64 + thrown, 10_000);
        assert_eq!(kept[0].time, until + 1.0);
        let size = std::fs::metadata(directory.path().join("journal.db")).unwrap().len();
        assert!(size < 2 << 20, "{size} bytes");
        assert!(kept.len() > 500);
    }

    #[test]
    fn runs_that_have_ended_without_a_record_go_before_any_record_and_are_few() {
        let (_directory, mut journal) = journal(256 << 10);
        let lines: String = (0..500).map(|n| line(f64::from(n), false, "a_t", "/x")).collect();
        journal.take(&[("aa".into(), batch(&lines, 0, 0))], 1e9).unwrap();
        let long = "\u{1f600}".repeat(100_000);
        for n in 0..1000 {
            let [command, profile, name] = [long.clone(), long.clone(), long.clone()];
            let run = NewRun { id: format!("x{n}"), command, profile, name: Some(name) };
            journal.begin_run(&run, n % 2, 1.0).unwrap();
            journal.end_run(&run.id, false, 1.0).unwrap();
            journal.rotate().unwrap();
        }
        assert_eq!(journal.rotated().unwrap(), None);
        let ended: i64 = journal
            .db
            .query_row("SELECT count(*) FROM runs WHERE ended", [], |row| row.get(0))
            .unwrap();
        assert!(ended <= 2 * (super::super::MOST_ENDED + 1), "{ended} runs");
        assert!(journal.knows("x999").unwrap());
    }
}
