//! What goes when the journal grows too large.

use super::{Journal, Result};
use rusqlite::{OptionalExtension as _, params};

impl Journal {
    /// Throws the oldest eighth away when the file is too large.
    ///
    /// # Errors
    ///
    /// [`JournalError`](super::JournalError).
    pub fn rotate(&mut self) -> Result<()> {
        let number =
            |name: &str| self.db.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        let pages = number("page_count")? - number("freelist_count")?;
        let bytes = (pages * number("page_size")?).cast_unsigned();
        if bytes <= self.most_bytes {
            return Ok(());
        }
        let transaction = self.db.transaction()?;
        let sql = "SELECT min(id) + (max(id) - min(id)) / 8 FROM records";
        let last: Option<i64> = transaction.query_row(sql, [], |row| row.get(0))?;
        let sql = "SELECT count(*) + sum(max(lost - 1, 0)), max(time) FROM records WHERE id <= ?1";
        let (count, until): (Option<i64>, Option<f64>) =
            transaction.query_row(sql, [last], |row| Ok((row.get(0)?, row.get(1)?)))?;
        transaction.execute("DELETE FROM records WHERE id <= ?1", [last])?;
        let sql = "DELETE FROM runs WHERE ended AND id NOT IN (SELECT DISTINCT run FROM records)";
        transaction.execute(sql, [])?;
        let sql = "INSERT INTO rotated VALUES (1, ?1, ?2)
            ON CONFLICT DO UPDATE SET records = records + excluded.records, until = excluded.until";
        transaction.execute(sql, params![count.unwrap_or(0), until.unwrap_or(0.0)])?;
        transaction.commit()?;
        self.db.execute_batch("PRAGMA incremental_vacuum")?;
        Ok(())
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
}
