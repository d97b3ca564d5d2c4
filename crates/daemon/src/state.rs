//! What must outlive the daemon, in SQLite: policies, what each security server has given out,
//! registered runs.
//!
//! Everything is committed before anybody hears of it. Commits survive the end of this process; the
//! end of the machine is also that of every run.

use flask::{InitialSid, Seqno};
use rusqlite::{Connection, Transaction, params};
use security_server::Saved;
use std::{
    fs::{File, Permissions},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// The state cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("the daemon's state: {0}")]
pub struct StateError(#[from] rusqlite::Error);

type Result<T> = std::result::Result<T, StateError>;

const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS policies (digest BLOB PRIMARY KEY, bytes BLOB NOT NULL) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS servers (
        id INTEGER PRIMARY KEY, policy BLOB NOT NULL, shared INTEGER NOT NULL, seqno INTEGER NOT NULL);
    CREATE TABLE IF NOT EXISTS booleans (
        server INTEGER, name TEXT, value INTEGER NOT NULL, PRIMARY KEY (server, name)) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS sids (
        server INTEGER, sid INTEGER, context TEXT NOT NULL, PRIMARY KEY (server, sid)) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS runs (
        id TEXT PRIMARY KEY, server INTEGER NOT NULL, uid INTEGER NOT NULL, pid INTEGER NOT NULL,
        started INTEGER NOT NULL, command TEXT NOT NULL, profile TEXT NOT NULL) WITHOUT ROWID;
";

/// Opens a database that is written ahead of: one that is killed loses nothing that it has
/// committed. Its owner alone may read it, and what SQLite makes beside it.
pub(crate) fn open(path: &Path, schema: &str) -> rusqlite::Result<Connection> {
    // What cannot be opened SQLite tells.
    if let Ok(file) = File::options().append(true).create(true).mode(0o600).open(path) {
        let closed = file.set_permissions(Permissions::from_mode(0o600));
        closed.map_err(|_| rusqlite::Error::InvalidPath(path.to_owned()))?;
    }
    let db = Connection::open(path)?;
    db.busy_timeout(Duration::from_secs(5))?;
    // Before the first table; it cannot be changed later.
    db.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    db.pragma_update(None, "journal_mode", "WAL")?;
    db.pragma_update(None, "synchronous", "NORMAL")?;
    db.execute_batch(schema)?;
    Ok(db)
}

/// What the next daemon must know, in one database.
pub(crate) struct State(Mutex<Connection>);

/// A security server as it was kept.
pub(crate) struct SavedServer {
    pub(crate) id: i64,
    pub(crate) digest: [u8; 32],
    pub(crate) policy: Vec<u8>,
    pub(crate) shared: bool,
    pub(crate) saved: Saved,
}

/// A run as it was kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SavedRun {
    pub(crate) id: String,
    pub(crate) server: i64,
    pub(crate) uid: u32,
    pub(crate) pid: u32,
    pub(crate) started: u64,
    pub(crate) command: String,
    pub(crate) profile: String,
}

impl State {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        Ok(Self(Mutex::new(open(path, SCHEMA)?)))
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn commit<T>(&self, work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>) -> Result<T> {
        let mut db = self.lock();
        let transaction = db.transaction()?;
        let done = work(&transaction)?;
        transaction.commit()?;
        Ok(done)
    }

    /// Keeps a server with its policy; returns its number.
    pub(crate) fn add_server(
        &self,
        (digest, policy): ([u8; 32], &[u8]),
        shared: bool,
        saved: &Saved,
    ) -> Result<i64> {
        self.commit(|db| {
            add_policy(db, digest, policy)?;
            insert_server(db, digest, shared, saved)
        })
    }

    /// Keeps a copy of a server, which from now on is that of `run`.
    pub(crate) fn fork_server(&self, digest: [u8; 32], saved: &Saved, run: &str) -> Result<i64> {
        self.commit(|db| {
            let id = insert_server(db, digest, false, saved)?;
            db.execute("UPDATE runs SET server = ?1 WHERE id = ?2", params![id, run])?;
            Ok(id)
        })
    }

    /// Keeps contexts whose SIDs are the numbers behind `after`.
    pub(crate) fn add_contexts(&self, server: i64, after: u32, contexts: &[String]) -> Result<()> {
        self.commit(|db| insert_contexts(db, server, after, contexts))
    }

    /// Keeps a change of booleans.
    pub(crate) fn set_booleans(
        &self,
        server: i64,
        seqno: Seqno,
        booleans: &[(String, bool)],
    ) -> Result<()> {
        self.commit(|db| {
            insert_booleans(db, server, booleans)?;
            changed(db, server, seqno)
        })
    }

    /// Keeps a change of policy, and the booleans that hold under it.
    pub(crate) fn set_policy(
        &self,
        server: i64,
        seqno: Seqno,
        (digest, policy): ([u8; 32], &[u8]),
        booleans: &[(String, bool)],
    ) -> Result<()> {
        self.commit(|db| {
            add_policy(db, digest, policy)?;
            db.execute("UPDATE servers SET policy = ?1 WHERE id = ?2", params![digest, server])?;
            db.execute("DELETE FROM booleans WHERE server = ?1", [server])?;
            insert_booleans(db, server, booleans)?;
            changed(db, server, seqno)?;
            remove_unused_policies(db)
        })
    }

    /// Forgets a server that nobody uses.
    pub(crate) fn remove_server(&self, server: i64) -> Result<()> {
        self.commit(|db| {
            for table in [
                "DELETE FROM servers WHERE id",
                "DELETE FROM booleans WHERE server",
                "DELETE FROM sids WHERE server",
            ] {
                db.execute(&format!("{table} = ?1"), [server])?;
            }
            remove_unused_policies(db)
        })
    }

    pub(crate) fn add_run(&self, run: &SavedRun) -> Result<()> {
        let sql = "INSERT INTO runs VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let SavedRun { id, server, uid, pid, started, command, profile } = run;
        let started = started.cast_signed();
        self.lock().execute(sql, params![id, server, uid, pid, started, command, profile])?;
        Ok(())
    }

    pub(crate) fn remove_run(&self, id: &str) -> Result<()> {
        self.lock().execute("DELETE FROM runs WHERE id = ?1", [id])?;
        Ok(())
    }

    /// Everything that was kept.
    pub(crate) fn load(&self) -> Result<(Vec<SavedServer>, Vec<SavedRun>)> {
        let db = self.lock();
        let mut servers = db.prepare(
            "SELECT id, policy, bytes, shared, seqno FROM servers JOIN policies ON digest = policy ORDER BY id",
        )?;
        let servers = servers.query_map([], |row| {
            let saved = Saved { seqno: Seqno(row.get(4)?), ..Saved::default() };
            let (id, digest, policy, shared) = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
            Ok(SavedServer { id, digest, policy, shared, saved })
        })?;
        let mut servers = servers.collect::<rusqlite::Result<Vec<_>>>()?;
        for server in &mut servers {
            let mut booleans = db.prepare("SELECT name, value FROM booleans WHERE server = ?1")?;
            let rows = booleans.query_map([server.id], |row| Ok((row.get(0)?, row.get(1)?)))?;
            server.saved.booleans = rows.collect::<rusqlite::Result<_>>()?;
            let mut contexts =
                db.prepare("SELECT context FROM sids WHERE server = ?1 ORDER BY sid")?;
            let rows = contexts.query_map([server.id], |row| row.get(0))?;
            server.saved.contexts = rows.collect::<rusqlite::Result<_>>()?;
        }
        let mut runs = db.prepare("SELECT * FROM runs")?;
        let runs = runs.query_map([], |row| {
            Ok(SavedRun {
                id: row.get(0)?,
                server: row.get(1)?,
                uid: row.get(2)?,
                pid: row.get(3)?,
                started: row.get::<_, i64>(4)?.cast_unsigned(),
                command: row.get(5)?,
                profile: row.get(6)?,
            })
        })?;
        let runs = runs.collect::<rusqlite::Result<_>>()?;
        Ok((servers, runs))
    }
}

fn add_policy(db: &Connection, digest: [u8; 32], policy: &[u8]) -> rusqlite::Result<usize> {
    db.execute("INSERT OR IGNORE INTO policies VALUES (?1, ?2)", params![digest, policy])
}

fn remove_unused_policies(db: &Connection) -> rusqlite::Result<()> {
    db.execute("DELETE FROM policies WHERE digest NOT IN (SELECT policy FROM servers)", [])
        .map(drop)
}

fn insert_server(
    db: &Connection,
    digest: [u8; 32],
    shared: bool,
    saved: &Saved,
) -> rusqlite::Result<i64> {
    let sql = "INSERT INTO servers (policy, shared, seqno) VALUES (?1, ?2, ?3)";
    db.execute(sql, params![digest, shared, saved.seqno.0])?;
    let id = db.last_insert_rowid();
    insert_booleans(db, id, &saved.booleans)?;
    insert_contexts(db, id, InitialSid::COUNT, &saved.contexts)?;
    Ok(id)
}

fn insert_booleans(
    db: &Connection,
    server: i64,
    booleans: &[(String, bool)],
) -> rusqlite::Result<()> {
    let mut insert = db.prepare("INSERT OR REPLACE INTO booleans VALUES (?1, ?2, ?3)")?;
    booleans.iter().try_for_each(|(name, on)| insert.execute(params![server, name, on]).map(drop))
}

fn insert_contexts(
    db: &Connection,
    server: i64,
    after: u32,
    contexts: &[String],
) -> rusqlite::Result<()> {
    let mut insert = db.prepare("INSERT INTO sids VALUES (?1, ?2, ?3)")?;
    let mut numbered = (after + 1..).zip(contexts);
    numbered.try_for_each(|(sid, context)| insert.execute(params![server, sid, context]).map(drop))
}

/// A server that has changed is not what a run with its policy would begin with.
fn changed(db: &Connection, server: i64, seqno: Seqno) -> rusqlite::Result<()> {
    let sql = "UPDATE servers SET seqno = ?1, shared = 0 WHERE id = ?2";
    db.execute(sql, params![seqno.0, server]).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_kept_is_there_when_the_file_is_opened_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state.db");
        let saved = Saved {
            seqno: Seqno(3),
            booleans: vec![("open".into(), true)],
            contexts: vec!["u:r:a".into(), "u:r:b".into()],
        };
        let run = SavedRun {
            id: "r".into(),
            server: 1,
            uid: 7,
            pid: 8,
            started: u64::MAX,
            command: "make".into(),
            profile: "p".into(),
        };
        {
            let state = State::open(&path).unwrap();
            let id = state.add_server(([1; 32], b"policy"), true, &saved).unwrap();
            assert_eq!(id, run.server);
            state.add_run(&run).unwrap();
            state.add_contexts(id, InitialSid::COUNT + 2, &["u:r:c".into()]).unwrap();
            assert_eq!(state.fork_server([1; 32], &saved, "r").unwrap(), 2);
            state.set_booleans(2, Seqno(4), &[("open".into(), false)]).unwrap();
        }
        let (servers, runs) = State::open(&path).unwrap().load().unwrap();
        assert_eq!(runs, [SavedRun { server: 2, ..run }]);
        assert_eq!(servers[0].saved.contexts, ["u:r:a", "u:r:b", "u:r:c"]);
        assert_eq!((servers[0].saved.seqno, servers[0].shared), (Seqno(3), true));
        assert_eq!((servers[1].saved.seqno, servers[1].shared), (Seqno(4), false));
        assert_eq!(servers[1].saved.booleans, [("open".into(), false)]);
        assert_eq!(servers[1].policy, b"policy");
    }

    #[test]
    fn a_policy_goes_with_its_last_server() {
        let directory = tempfile::tempdir().unwrap();
        let state = State::open(&directory.path().join("state.db")).unwrap();
        let add = || state.add_server(([1; 32], b"policy"), true, &Saved::default()).unwrap();
        let policies = || -> i64 {
            state.lock().query_row("SELECT count(*) FROM policies", [], |row| row.get(0)).unwrap()
        };
        let (first, second) = (add(), add());
        state.remove_server(first).unwrap();
        assert_eq!(policies(), 1);
        state.remove_server(second).unwrap();
        assert_eq!(policies(), 0);
    }
}
