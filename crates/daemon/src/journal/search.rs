//! What is found in the journal.

use super::{Journal, Result};
use runs::is_id;
use rusqlite::{OptionalExtension as _, params};

/// So many records as nobody knows.
pub const UNKNOWN: u64 = u64::MAX;

/// Runs that are looked at for one text.
const MOST_CALLED: u32 = 100;

/// One entry.
#[derive(Clone, Debug, PartialEq)]
pub struct JournalEntry {
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

/// The runs that a text stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Called {
    /// No run.
    None,
    /// This one.
    One(String),
    /// One of these, or of more.
    Several(Vec<String>),
}

/// Which entries to find. Gaps are found by run and time only.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    /// Of the run of that number.
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
    pub fn find(&self, filter: &Filter, after: i64, most: u32) -> Result<Vec<JournalEntry>> {
        let sql = "
            SELECT id, run, time, lost, record FROM records
            WHERE id > ?1 AND (?2 IS NULL OR run = ?2) AND (?3 IS NULL OR time >= ?3)
                AND (lost != 0 OR ((?4 IS NULL OR domain IN (?4, ?4 || '_t')) AND (?5 IS NULL OR object GLOB ?5)
                    AND NOT (?6 AND granted)))
            ORDER BY id LIMIT ?7";
        let Filter { run, domain, object, since, denied } = filter;
        let mut found = self.db.prepare(sql)?;
        let rows =
            found.query_map(params![after, run, since, domain, object, denied, most], |row| {
                Ok(JournalEntry {
                    id: row.get(0)?,
                    run: row.get(1)?,
                    time: row.get(2)?,
                    lost: row.get::<_, i64>(3)?.cast_unsigned(),
                    record: row.get(4)?,
                })
            })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// The run that is meant by `text`: one of that number; the one whose number begins so; or the
    /// last that was called so. No run hides another's records: where runs differ in what they are
    /// to `text`, or in their users, all of them are named. So is one with a number that is none of
    /// those that runs are given, beside others.
    ///
    /// # Errors
    ///
    /// [`JournalError`](super::JournalError).
    pub fn run_called(&self, text: &str) -> Result<Called> {
        let sql = "SELECT id, uid, name IS ?1, id = ?1 AND ended != 2 AS same FROM runs
            WHERE name = ?1 OR substr(id, 1, length(?1)) = ?1
            ORDER BY same DESC, time DESC LIMIT ?2";
        let mut found = self.db.prepare(sql)?;
        let rows = found.query_map(params![text, MOST_CALLED], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
        })?;
        let mut runs: Vec<(String, u32, bool, bool)> = rows.collect::<rusqlite::Result<_>>()?;
        let Some((_, uid, named, same)) = runs.first().cloned() else { return Ok(Called::None) };
        let exact = same && is_id(text.rsplit('-').next().unwrap_or(text));
        let alike = |(_, it, name, _): &(String, u32, bool, bool)| *name && *it == uid;
        if exact || runs.len() == 1 || (named && runs.iter().all(alike)) {
            return Ok(Called::One(runs.swap_remove(0).0));
        }
        Ok(Called::Several(runs.into_iter().map(|(id, ..)| id).collect()))
    }

    /// The run of a user that began last: another's may have begun since.
    ///
    /// # Errors
    ///
    /// [`JournalError`](super::JournalError).
    pub fn last_run(&self, uid: u32) -> Result<Option<RunEntry>> {
        let sql = "SELECT id, command, profile, time FROM runs WHERE uid = ?1
            ORDER BY time DESC LIMIT 1";
        let run = self.db.query_row(sql, [uid], |row| {
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
        let none = Filter { run: Some("a".into()), ..all.clone() };
        let domain = Filter { domain: Some("b_t".into()), ..all.clone() };
        let by_profile = Filter { domain: Some("b".into()), ..all.clone() };
        let object = Filter { object: Some("/srv/*".into()), ..all.clone() };
        let since = Filter { since: Some(2.0), ..all.clone() };
        let denied = Filter { denied: true, ..all.clone() };
        for (filter, want) in [
            (all, &[1.0, 2.0, 3.0, 9.0][..]),
            (run, &[3.0, 9.0]),
            (none, &[]),
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

    fn begin(journal: &Journal, id: &str, name: &str, (uid, time): (u32, f64)) {
        let run = NewRun { id: id.into(), name: Some(name.into()), ..NewRun::default() };
        journal.begin_run(&run, uid, time).unwrap();
    }

    #[test]
    fn runs_are_found_by_number_and_by_name() {
        let (_directory, journal) = journal(u64::MAX);
        begin(&journal, "ba", "build", (0, 2.0));
        begin(&journal, "bb", "build", (0, 3.0));
        let one = |id: &str| Called::One(id.into());
        let called = |text| journal.run_called(text).unwrap();
        assert_eq!(called("build"), one("bb"));
        assert_eq!(called("aa"), one("aa"));
        assert_eq!(called("buil"), Called::None);
        assert_eq!(called("a"), Called::Several(vec!["aa".into(), "ab".into()]));
    }

    #[test]
    fn the_last_run_is_one_of_whoever_asks() {
        let (_directory, journal) = journal(u64::MAX);
        begin(&journal, "own22222", "x", (7, 2e9));
        begin(&journal, "theirs22", "x", (8, 3e9));
        let last = |uid| journal.last_run(uid).unwrap().map(|run| run.id);
        assert_eq!(last(7).as_deref(), Some("own22222"));
        assert_eq!(last(8).as_deref(), Some("theirs22"));
        assert_eq!(last(9), None);
    }

    #[test]
    fn no_run_hides_another_by_its_number_or_its_name() {
        let (_directory, journal) = journal(u64::MAX);
        begin(&journal, "victim22", "theirs", (1, 2.0));
        // One that is called as the other is numbered, one with a longer number, a shorter one.
        begin(&journal, "decoy222", "victim22", (2, 3.0));
        begin(&journal, "victim22-decoy222", "x", (2, 4.0));
        begin(&journal, "vict", "x", (2, 5.0));
        begin(&journal, "theirs-decoy222", "x", (2, 6.0));
        let called = |text| journal.run_called(text).unwrap();
        assert_eq!(called("victim22"), Called::One("victim22".into()));
        for text in ["victim", "vict", "theirs"] {
            let Called::Several(runs) = called(text) else { panic!("{text}") };
            assert!(runs.contains(&"victim22".into()), "{runs:?}");
        }
        begin(&journal, "decoy333", "named", (2, 7.0));
        begin(&journal, "victim33", "named", (1, 6.0));
        assert!(matches!(called("named"), Called::Several(_)), "it is two users'");
    }
}
