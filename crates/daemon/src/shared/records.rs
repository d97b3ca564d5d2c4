//! Records on their way from spools into the journal.

use super::{
    Shared, say,
    spools::{Spool, Spools},
};
use crate::{
    error::RequestError,
    journal::{JournalError, Lines},
};
use daemon_client::{HEADER_BYTES, NewRun, Reader};
use std::{
    collections::{BTreeMap, VecDeque},
    os::fd::OwnedFd,
    sync::{Arc, MutexGuard, PoisonError, atomic::Ordering},
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

/// How long one round takes the spools of one user.
const SHARE: Duration = Duration::from_millis(20);

/// How long it may take to take the spools that a client asks for. What still lies there is taken
/// later.
const MOST_ASKED: Duration = Duration::from_secs(10);
const MOST_ENDING: Duration = Duration::from_secs(4);

impl Shared {
    pub(super) fn records(&self) -> MutexGuard<'_, Spools> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the spools that the last daemon has not taken to their end.
    pub(crate) fn find_spools(&self) -> Result<(), JournalError> {
        let mut records = self.records();
        for (run, uid, at) in records.journal.unfinished()? {
            match Reader::open(&records.path(&run)) {
                Ok(reader) => records.add(&run, uid, reader, at),
                Err(_) => records.journal.lose_spool(&run, now())?,
            }
        }
        Ok(())
    }

    /// A run begins to write; returns its end of the spool.
    pub(super) fn begin_spool(&self, run: &NewRun, uid: u32) -> Result<OwnedFd, RequestError> {
        let path = self.records().path(&run.id);
        let reader = Reader::create(&path)?;
        let share = reader.share()?;
        let mut records = self.records();
        records.journal.begin_run(run, uid, now())?;
        records.rotate();
        records.add(&run.id, uid, reader, 0);
        Ok(share)
    }

    /// Takes what lies in a spool up to `end`, or up to now, within a bound; whether there is more.
    /// A spool that cannot be read is lost, and holds up no other.
    fn take_from(&self, run: &str, spool: &Spool, end: Option<u64>) -> Result<bool, JournalError> {
        let mut open = spool.open();
        let Some(it) = open.as_mut() else { return Ok(false) };
        let read = it.reader.end().and_then(|now| {
            let batch = it.reader.read(it.at, MOST_BYTES)?;
            Ok((batch, end.unwrap_or(now)))
        });
        let taken = match read {
            Ok((batch, _))
                if batch.at <= it.at.max(HEADER_BYTES) && batch.dropped <= it.dropped =>
            {
                return Ok(false);
            }
            Ok((batch, end)) => {
                let lines = [(run, Lines::read(&batch))];
                let mut records = self.records();
                records.journal.take_lines(&lines, now())?;
                records.rotate();
                drop(records);
                (it.at, it.dropped) = (batch.at, batch.dropped);
                let more = batch.at < end && !batch.bytes.is_empty();
                it.reader.taken(batch.at).map(|()| more)
            }
            Err(error) => Err(error),
        };
        taken.or_else(|error| {
            let mut records = self.records();
            records.tell(format!(
                "the records of run {run} are lost from here on: its spool: {error}"
            ));
            records.journal.lose_spool(run, now())?;
            records.remove(run);
            *open = None;
            Ok(false)
        })
    }

    /// Takes what lies in spools now, one of each user in turn; what comes meanwhile may wait.
    /// Whether that is done by `until`.
    fn take_all(
        &self,
        wanted: impl Fn(&str, u32) -> bool,
        until: Instant,
    ) -> Result<bool, JournalError> {
        let users = self.records().by_user(wanted);
        let filled = |(run, spool): (String, Arc<Spool>)| {
            let end = spool.end();
            (run, spool, end)
        };
        let mut users: Vec<VecDeque<_>> =
            users.into_values().map(|own| own.into_iter().map(filled).collect()).collect();
        while !users.is_empty() {
            for own in &mut users {
                if Instant::now() >= until {
                    return Ok(false);
                }
                let Some((run, spool, end)) = own.pop_front() else { continue };
                if self.take_from(&run, &spool, Some(end))? {
                    own.push_back((run, spool, end));
                }
            }
            users.retain(|own| !own.is_empty());
        }
        Ok(true)
    }

    /// Takes everything that lies in a user's spools now; in everybody's for root.
    pub(crate) fn take_records(&self, uid: u32) -> Result<(), RequestError> {
        let _turn = self.turns.wait(uid).ok_or(RequestError::Turn)?;
        let all =
            self.take_all(|_, owner| uid == 0 || owner == uid, Instant::now() + MOST_ASKED)?;
        all.then_some(()).ok_or(RequestError::Waiting)
    }

    /// Takes records as they come, and notices the ends of runs.
    pub(crate) fn take_records_until_stopped(&self) {
        let mut last = BTreeMap::new();
        while !self.stopping.load(Ordering::Acquire) {
            // They stay where they are, and are tried again.
            let more = self.round(&mut last).unwrap_or_else(|error| {
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
        if let Err(error) = self.take_all(|_, _| true, Instant::now() + LAST_ROUNDS) {
            say(format_args!("records stay in their spools: {error}"));
        }
    }

    /// Takes from the spools of each user for a share of time, behind the one that was the `last`;
    /// whether there is more. Ends runs whose monitor has ended without saying so.
    pub(super) fn round(&self, last: &mut BTreeMap<u32, String>) -> Result<bool, RequestError> {
        let users = self.records().by_user(|_, _| true);
        last.retain(|uid, _| users.contains_key(uid));
        // A run whose spool is lost ends, too.
        let runs = self.registry().runs(0);
        for run in runs {
            let has_spool = || self.records().spools.contains_key(&run.kept.id);
            if !run.lives() && !has_spool() {
                self.forget(&run)?;
            }
        }
        let (mut more, mut failed) = (false, None);
        for (uid, mut own) in users {
            let begin = Instant::now();
            let before = last
                .get(&uid)
                .map_or(0, |last| own.iter().take_while(|(run, _)| run <= last).count());
            own.rotate_left(before % own.len().max(1));
            for (run, spool) in own {
                if begin.elapsed() >= SHARE {
                    more = true;
                    break;
                }
                match self.take_and_bury(&run, &spool) {
                    Ok(left) => more |= left,
                    // Another user's may do.
                    Err(error) => {
                        failed = Some(error);
                        break;
                    }
                }
                last.insert(uid, run);
            }
        }
        failed.map_or(Ok(more), Err)
    }

    /// Takes from the spool of a run. One that has ended is ended here when nothing is left.
    fn take_and_bury(&self, name: &str, spool: &Spool) -> Result<bool, RequestError> {
        let (run, returning) = {
            let registry = self.registry();
            (registry.run(name), registry.is_returning(name))
        };
        // First: what it wrote before its end is there.
        let lives = returning || run.as_ref().is_some_and(|run| run.lives());
        let more = self.take_from(name, spool, None)?;
        if !lives && !more {
            self.close_spool(name, spool)?;
            if let Some(run) = run {
                self.forget(&run)?;
            }
        }
        Ok(more)
    }

    /// The run writes no more: takes its spool to the end, and removes it.
    pub(super) fn finish_spool(&self, run: &str, uid: u32) -> Result<(), RequestError> {
        let spool = self.records().spools.get(run).cloned();
        let Some(spool) = spool else { return Ok(()) };
        let _turn = self.turns.wait(uid).ok_or(RequestError::Turn)?;
        if !self.take_all(|it, _| it == run, Instant::now() + MOST_ENDING)? {
            return Err(RequestError::Waiting);
        }
        self.close_spool(run, &spool)
    }

    fn close_spool(&self, run: &str, spool: &Spool) -> Result<(), RequestError> {
        let mut open = spool.open();
        let Some(it) = open.as_ref() else { return Ok(()) };
        let cut_off = it.reader.rest(it.at).map_or(true, |bytes| bytes > 0);
        let mut records = self.records();
        records.journal.end_run(run, cut_off, now())?;
        records.remove(run);
        *open = None;
        Ok(())
    }
}

/// Seconds since 1970.
fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::{journal::Journal, shared::Settings, state::State};
    use daemon_client::Writer;
    use std::path::Path;

    pub(crate) fn shared(directory: &Path) -> Shared {
        let journal = Journal::open(&directory.join("journal.db"), u64::MAX).unwrap();
        let state = Arc::new(State::open(&directory.join("state.db")).unwrap());
        let spools = Spools::new(journal, directory.to_owned());
        Shared::new(Settings::default(), state, spools).unwrap()
    }

    fn begin(shared: &Shared, run: &str, uid: u32) -> Writer {
        let run = NewRun { id: run.into(), ..NewRun::default() };
        Writer::new(shared.begin_spool(&run, uid).unwrap()).unwrap()
    }

    fn at(shared: &Shared, run: &str) -> u64 {
        let spool = Arc::clone(&shared.records().spools[run]);
        spool.open().as_ref().unwrap().at
    }

    /// As the end of a run and the end of the daemon do it: who is asked for what lies there is not
    /// kept by what comes.
    #[test]
    fn a_run_that_writes_on_does_not_hold_up_who_takes_what_lay_there() {
        let directory = tempfile::tempdir().unwrap();
        let shared = shared(directory.path());
        let mut writer = begin(&shared, "x", 0);
        let lines = "{}\n".repeat(MOST_BYTES / 3);
        for _ in 0..3 {
            writer.append(lines.as_bytes());
        }
        let spool = Arc::clone(&shared.records().spools["x"]);
        let end = spool.end();
        let mut written = 0;
        while shared.take_from("x", &spool, Some(end)).unwrap() {
            writer.append(lines.as_bytes());
            written += 1;
            assert!(written < 100, "it is taken for as long as the run writes");
        }
        assert!(at(&shared, "x") >= end, "it took what lay there");
    }

    #[test]
    fn many_spools_of_one_user_keep_nobody_elses_waiting() {
        let directory = tempfile::tempdir().unwrap();
        let shared = shared(directory.path());
        let lines = "{}\n".repeat(MOST_BYTES / 3);
        for n in 0..200 {
            let mut writer = begin(&shared, &format!("many{n:03}"), 1);
            (0..4).for_each(|_| writer.append(lines.as_bytes()));
        }
        begin(&shared, "one", 2).append(b"{}\n");
        let mut last = BTreeMap::new();
        // What no run has ends when it is taken.
        assert!(shared.round(&mut last).unwrap());
        assert!(!shared.records().spools.contains_key("one"), "it was its turn");
        assert!(shared.records().spools.len() > 150, "it took all of the other's");
        let first = last[&1].clone();
        shared.round(&mut last).unwrap();
        assert!(last[&1] > first, "each of them gets its turn");
        // Whoever asks gets its own.
        begin(&shared, "two", 2).append(b"{}\n");
        let begin = Instant::now();
        shared.take_records(2).unwrap();
        assert!(begin.elapsed() < Duration::from_secs(2));
        assert!(at(&shared, "two") > HEADER_BYTES && at(&shared, "many199") == 0);
    }
}
