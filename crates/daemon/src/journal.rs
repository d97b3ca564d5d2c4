//! The journal: audit records of all runs, in SQLite.
//!
//! Records come from spools, a batch in a transaction that also keeps how far the spool was taken,
//! so that each is there once, whoever is killed in between. What could not be kept has an entry of
//! its own that says how many records it stands for.

mod lines;
mod rotate;
mod search;

pub(crate) use lines::Lines;
pub use search::{Called, Filter, JournalEntry, RunEntry, UNKNOWN};

use crate::state;
use daemon_client::NewRun;
use lines::insert_gap;
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, params};
use std::{path::Path, time::Duration};

/// The journal cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// The database says so.
    #[error("the journal: {0}")]
    Database(#[from] rusqlite::Error),
    /// What is in it does not fit together.
    #[error("the journal is damaged: {0}")]
    Damaged(String),
    /// It is damaged, and is in the way of a new one.
    #[error("the journal `{}` is damaged and cannot be set aside: {source}; move it away", .path.display())]
    Stays {
        /// Where it is.
        path: std::path::PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

impl JournalError {
    /// Whether the file is no journal, or a broken one.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
        match self {
            Self::Damaged(_) => true,
            Self::Database(rusqlite::Error::SqliteFailure(error, _)) => {
                matches!(error.code, DatabaseCorrupt | NotADatabase)
            }
            _ => false,
        }
    }
}

/// A damaged journal, out of the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetAside {
    /// Where it is now.
    pub path: std::path::PathBuf,
    /// What is wrong with it.
    pub why: String,
}

/// `PATH.damaged`, or the first of `PATH.damaged-2` and so on that nothing has.
fn free_name(path: &Path) -> std::path::PathBuf {
    let named = |n: u32| {
        let mut name = path.as_os_str().to_owned();
        name.push(if n == 1 { ".damaged".to_owned() } else { format!(".damaged-{n}") });
        std::path::PathBuf::from(name)
    };
    (1..).map(named).find(|name| !name.exists()).unwrap_or_else(|| named(1))
}

type Result<T> = std::result::Result<T, JournalError>;

const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS runs (
        id TEXT PRIMARY KEY, uid INTEGER NOT NULL, command TEXT NOT NULL, profile TEXT NOT NULL,
        time REAL NOT NULL, at INTEGER NOT NULL, dropped INTEGER NOT NULL, ended INTEGER NOT NULL, name TEXT);
    CREATE TABLE IF NOT EXISTS records (
        id INTEGER PRIMARY KEY AUTOINCREMENT, run TEXT NOT NULL, time REAL NOT NULL, granted INTEGER NOT NULL,
        domain TEXT NOT NULL, object TEXT NOT NULL, lost INTEGER NOT NULL, record TEXT NOT NULL);
    CREATE INDEX IF NOT EXISTS records_by_run ON records (run);
    CREATE INDEX IF NOT EXISTS runs_without_record ON runs (uid) WHERE ended = 2;
    CREATE TABLE IF NOT EXISTS rotated (
        one INTEGER PRIMARY KEY CHECK (one = 1), records INTEGER NOT NULL, until REAL NOT NULL);
";

/// Runs of one user that have ended without a record, beside the one that ends.
const MOST_ENDED: i64 = 100;

/// Bytes that are kept of a run's command, and of its profile's and its own name.
const MOST_COMMAND: usize = 1024;
const MOST_NAME: usize = 128;

/// The journal of denials, in one database.
pub struct Journal {
    db: Connection,
    most_bytes: u64,
}

impl Journal {
    /// Opens it for writing; it is made if it is not there. Beyond `most_bytes` the oldest records
    /// are thrown away.
    ///
    /// # Errors
    ///
    /// [`JournalError`].
    pub fn open(path: &Path, most_bytes: u64) -> Result<Self> {
        let db = state::open(path, SCHEMA)?;
        let damage: String = db.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
        if damage != "ok" {
            return Err(JournalError::Damaged(damage));
        }
        let named = "SELECT 1 FROM pragma_table_info('runs') WHERE name = 'name'";
        if db.query_row(named, [], |_| Ok(())).optional()?.is_none() {
            // A journal of before runs had names there.
            db.execute("ALTER TABLE runs ADD COLUMN name TEXT", [])?;
        }
        Ok(Self { db, most_bytes })
    }

    /// As [`Journal::open`]; a journal that is damaged is set aside beside the new one. Its new
    /// name then comes back, with what is wrong.
    ///
    /// # Errors
    ///
    /// [`JournalError`].
    pub fn open_or_set_aside(path: &Path, most_bytes: u64) -> Result<(Self, Option<SetAside>)> {
        let error = match Self::open(path, most_bytes) {
            Ok(journal) => return Ok((journal, None)),
            Err(error) if error.is_damage() => error,
            Err(error) => return Err(error),
        };
        let aside = free_name(path);
        std::fs::rename(path, &aside)
            .map_err(|source| JournalError::Stays { path: path.to_owned(), source })?;
        for end in ["-wal", "-shm"] {
            let with = |path: &Path| {
                let mut name = path.as_os_str().to_owned();
                name.push(end);
                std::path::PathBuf::from(name)
            };
            // They belong to the damaged one; without them it lacks what was written last, and may
            // be lost already.
            let _ = std::fs::rename(with(path), with(&aside));
        }
        let aside = SetAside { path: aside, why: error.to_string() };
        Ok((Self::open(path, most_bytes)?, Some(aside)))
    }

    /// Opens one that is there, for reading.
    ///
    /// # Errors
    ///
    /// [`JournalError`].
    pub fn read(path: &Path) -> Result<Self> {
        let db = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        db.pragma_update(None, "query_only", true)?;
        db.busy_timeout(Duration::from_secs(5))?;
        Ok(Self { db, most_bytes: u64::MAX })
    }

    /// A run begins.
    ///
    /// # Errors
    ///
    /// [`JournalError`], also if one of that name is or was there.
    pub fn begin_run(&self, run: &NewRun, uid: u32, time: f64) -> Result<()> {
        let sql = "INSERT INTO runs (id, uid, command, profile, time, at, dropped, ended, name)
            VALUES (?1, ?2, ?3, ?4, ?5, 0, 0, 0, ?6)";
        let name = run.name.as_deref().map(|name| cut(name, MOST_NAME));
        let command = cut(&run.command, MOST_COMMAND);
        let profile = cut(&run.profile, MOST_NAME);
        self.db.execute(sql, params![run.id, uid, command, profile, time, name])?;
        let sql = "DELETE FROM runs WHERE ended = 2 AND uid = ?1 AND rowid <= (
            SELECT rowid FROM runs WHERE ended = 2 AND uid = ?1 ORDER BY rowid DESC LIMIT 1 OFFSET ?2)";
        self.db.execute(sql, params![uid, MOST_ENDED])?;
        Ok(())
    }

    /// Whether a run of that name is or was there.
    pub(crate) fn knows(&self, run: &str) -> Result<bool> {
        let found = self.db.query_row("SELECT 1 FROM runs WHERE id = ?1", [run], |_| Ok(()));
        Ok(found.optional()?.is_some())
    }

    /// Runs whose spools have not been taken to their end: name, user, and how far they were.
    pub(crate) fn unfinished(&self) -> Result<Vec<(String, u32, u64)>> {
        let mut runs = self.db.prepare("SELECT id, uid, at FROM runs WHERE NOT ended")?;
        let rows = runs.query_map([], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get::<_, i64>(2)?.cast_unsigned()))
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// The run has ended and its spool is taken; `cut_off` if it was killed while it wrote a
    /// record.
    pub(crate) fn end_run(&mut self, run: &str, cut_off: bool, now: f64) -> Result<()> {
        let transaction = self.db.transaction()?;
        if cut_off {
            insert_gap(&transaction, run, 1, "the run was killed while it wrote a record", now)?;
        }
        // 2 stands for one without a record.
        let sql = "UPDATE runs SET ended = 2 - EXISTS (SELECT 1 FROM records WHERE run = ?1)
            WHERE id = ?1";
        transaction.execute(sql, [run])?;
        Ok(transaction.commit()?)
    }

    /// The spool of a run is not readable any more.
    pub(crate) fn lose_spool(&mut self, run: &str, now: f64) -> Result<()> {
        insert_gap(&self.db, run, UNKNOWN, "the spool is gone or damaged", now)?;
        self.end_run(run, false, now)
    }
}

/// The beginning of what a run says of itself.
fn cut(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use daemon_client::Batch;

    pub(super) fn journal(most_bytes: u64) -> (tempfile::TempDir, Journal) {
        let directory = tempfile::tempdir().unwrap();
        let journal = Journal::open(&directory.path().join("journal.db"), most_bytes).unwrap();
        for id in ["aa", "ab"] {
            let run = NewRun { id: id.into(), ..NewRun::default() };
            journal.begin_run(&run, 0, 1.0).unwrap();
        }
        (directory, journal)
    }

    pub(super) fn batch(lines: &str, at: u64, dropped: u64) -> Batch {
        Batch { bytes: lines.as_bytes().to_vec(), at, dropped }
    }

    pub(super) fn line(time: f64, granted: bool, domain: &str, object: &str) -> String {
        let scontext = format!("u:r:{domain}");
        let record = serde_json::json!({
            "time": time, "granted": granted, "scontext": scontext, "object": object, "pid": 1
        });
        format!("{record}\n")
    }

    #[test]
    fn a_journal_is_its_owner_s_alone_however_it_was_before() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal.db");
        std::fs::write(&path, "").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        let _journal = Journal::open(&path, u64::MAX).unwrap();
        for entry in std::fs::read_dir(directory.path()).unwrap() {
            let entry = entry.unwrap();
            let mode = entry.metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{:?}", entry.file_name());
        }
    }

    #[test]
    fn what_is_missing_has_an_entry_that_every_search_finds() {
        let (_directory, mut journal) = journal(u64::MAX);
        let nested = format!("{{\"x\":{}{}}}\n", "[".repeat(1000), "]".repeat(1000));
        let lines = line(1.0, false, "a_t", "/x")
            + "rubbish\n[1.0,false,\"u:r:a_t\",\"/x\"]\n{}\n"
            + &nested;
        journal.take(&[("aa".into(), batch(&lines, 9, 5))], 2.0).unwrap();
        journal.take(&[("aa".into(), batch("", 9, 7))], 3.0).unwrap();
        journal.end_run("aa", true, 4.0).unwrap();
        let filter = Filter { domain: Some("other_t".into()), ..Filter::default() };
        let lost =
            journal.find(&filter, 0, 10).unwrap().iter().map(|it| it.lost).collect::<Vec<_>>();
        assert_eq!(lost, [4, 5, 2, 1]);
        assert_eq!(journal.unfinished().unwrap(), [("ab".to_owned(), 0, 0)]);
    }

    #[test]
    fn a_damaged_journal_is_set_aside() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal.db");
        for (n, name) in [(1, "journal.db.damaged"), (2, "journal.db.damaged-2")] {
            std::fs::write(&path, [b'x'; 5000]).unwrap();
            let error = Journal::open(&path, u64::MAX).err().unwrap();
            assert!(error.is_damage(), "{error}");
            let (journal, aside) = Journal::open_or_set_aside(&path, u64::MAX).unwrap();
            assert_eq!(aside.unwrap().path, directory.path().join(name), "{n}");
            journal.begin_run(&NewRun { id: "x".into(), ..NewRun::default() }, 0, 1.0).unwrap();
        }
        assert!(Journal::open_or_set_aside(&path, u64::MAX).unwrap().1.is_none());
    }

    #[test]
    fn a_journal_of_before_runs_had_names_is_used_on() {
        let (directory, journal) = journal(u64::MAX);
        journal.db.execute("ALTER TABLE runs DROP COLUMN name", []).unwrap();
        drop(journal);
        let journal = Journal::open(&directory.path().join("journal.db"), u64::MAX).unwrap();
        assert_eq!(journal.run_called("aa").unwrap(), Called::One("aa".into()));
    }
}
