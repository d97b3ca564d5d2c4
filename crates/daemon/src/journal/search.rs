//! What is found in the journal.

use super::{Journal, Result};
use rusqlite::{OptionalExtension as _, params};

/// So many records as nobody knows.
pub const UNKNOWN: u64 = u64::MAX;

/// One entry.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its number; later entries have greater ones.
    pub id: i64,
    /// The run.
    pub run: String,
    /// Seconds since 1970.
    pub time: f64,
    /// How many records are missing here; 0 for a record, [`UNKNOWN`] if nobody knows.
    pub lost: u64,
    /// The record as a line of JSON, or why records are missing.
    pub record: String,
}

/// A run that the journal knows.
#[derive(Clone, Debug, PartialEq)]
pub struct RunEntry {
    /// Its name.
    pub id: String,
    /// Its command.
    pub command: String,
    /// Its profile.
    pub profile: String,
    /// When it began, in seconds since 1970.
    pub time: f64,
}

/// Which entries to find. Gaps are found by run and time only.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    /// Of runs whose number begins so.
    pub run: Option<String>,
    /// Of subjects of this domain: a type, or what a profile calls it, without `_t`.
    pub domain: Option<String>,
    /// About objects that match, in the manner of a shell: `*`, `?`, `[…]`; `*` matches `/` too.
    pub object: Option<String>,
    /// Not before that many seconds since 1970.
    pub since: Option<f64>,
    /// Denials only.
    pub denied: bool,
}

impl Journal {
    /// Entries behind the number `after` that `filter` finds, the oldest first, at most `most`.
    ///
    /// # Errors
    ///
    /// [`JournalError`](super::JournalError).
    pub fn find(&self, filter: &Filter, after: i64, most: u32) -> Result<Vec<Entry>> {
        let sql = "
            SELECT id, run, time, lost, record FROM records
            WHERE id > ?1 AND (?2 IS NULL OR substr(run, 1, length(?2)) = ?2) AND (?3 IS NULL OR time >= ?3)
                AND (lost != 0 OR ((?4 IS NULL OR domain IN (?4, ?4 || '_t')) AND (?5 IS NULL OR object GLOB ?5)
                    AND NOT (?6 AND granted)))
            ORDER BY id LIMIT ?7";
        let Filter { run, domain, object, since, denied } = filter;
        let mut found = self.db.prepare(sql)?;
        let rows =
            found.query_map(params![after, run, since, domain, object, denied, most], |row| {
                Ok(Entry {
                    id: row.get(0)?,
                    run: row.get(1)?,
                    time: row.get(2)?,
                    lost: row.get::<_, i64>(3)?.cast_unsigned(),
                    record: row.get(4)?,
                })
            })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// The runs whose number begins with `text`, or that were called so, the latest first.
    ///
    /// # Errors
    ///
    /// [`JournalError`](super::JournalError).
    pub fn runs_called(&self, text: &str) -> Result<Vec<String>> {
        let sql = "SELECT id FROM runs WHERE name = ?1 OR substr(id, 1, length(?1)) = ?1
            ORDER BY name IS NOT ?1, time DESC";
        let mut found = self.db.prepare(sql)?;
        let rows = found.query_map([text], |row| row.get(0))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// The run that began last.
    ///
    /// # Errors
    ///
    /// [`JournalError`](super::JournalError).
    pub fn last_run(&self) -> Result<Option<RunEntry>> {
        let sql = "SELECT id, command, profile, time FROM runs ORDER BY time DESC LIMIT 1";
        let run = self.db.query_row(sql, [], |row| {
            let (id, command, profile, time) = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
            Ok(RunEntry { id, command, profile, time })
        });
        Ok(run.optional()?)
    }

    /// The domains that records are about, as types, in the order of the alphabet.
    ///
    /// # Errors
    ///
    /// [`JournalError`](super::JournalError).
    pub fn domains(&self) -> Result<Vec<String>> {
        let sql = "SELECT DISTINCT domain FROM records WHERE lost = 0 ORDER BY domain";
        let mut found = self.db.prepare(sql)?;
        let rows = found.query_map([], |row| row.get(0))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::tests::{batch, journal, line},
        *,
    };
    use daemon_client::NewRun;

    #[test]
    fn entries_are_found_by_run_domain_object_and_time() {
        let (_directory, mut journal) = journal(u64::MAX);
        let first = line(1.0, false, "a_t", "/etc/x") + &line(2.0, true, "b_t", "/srv/y/z");
        // The last is from behind the end of all calendars, as its run says.
        let second = line(3.0, false, "a_t", "/srv/y") + &line(1e20, true, "c_t", "/");
        let batches = [("aa".into(), batch(&first, 9, 0)), ("ab".into(), batch(&second, 5, 0))];
        journal.take(&batches, 9.0).unwrap();
        let all = Filter::default();
        let run = Filter { run: Some("ab".into()), ..all.clone() };
        let both = Filter { run: Some("a".into()), ..all.clone() };
        let domain = Filter { domain: Some("b_t".into()), ..all.clone() };
        let by_profile = Filter { domain: Some("b".into()), ..all.clone() };
        let object = Filter { object: Some("/srv/*".into()), ..all.clone() };
        let since = Filter { since: Some(2.0), ..all.clone() };
        let denied = Filter { denied: true, ..all.clone() };
        for (filter, want) in [
            (all, &[1.0, 2.0, 3.0, 9.0][..]),
            (run, &[3.0, 9.0]),
            (both, &[1.0, 2.0, 3.0, 9.0]),
            (domain, &[2.0]),
            (by_profile, &[2.0]),
            (object, &[2.0, 3.0]),
            (since, &[2.0, 3.0, 9.0]),
            (denied, &[1.0, 3.0]),
        ] {
            let found = journal.find(&filter, 0, 10).unwrap();
            assert_eq!(
                found.iter().map(|entry| entry.time).collect::<Vec<_>>(),
                want,
                "{filter:?}"
            );
        }
    }

    #[test]
    fn runs_are_found_by_number_and_by_name() {
        let (_directory, journal) = journal(u64::MAX);
        for (id, time) in [("ba", 2.0), ("bb", 3.0)] {
            let run = NewRun { id: id.into(), name: Some("build".into()), ..NewRun::default() };
            journal.begin_run(&run, 0, time).unwrap();
        }
        let called = |text| journal.runs_called(text).unwrap();
        assert_eq!(called("build"), ["bb", "ba"]);
        assert_eq!(called("aa"), ["aa"]);
        assert_eq!(called("buil"), [] as [&str; 0]);
    }
}
