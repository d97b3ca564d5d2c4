//! The records of past runs, for `dewar explain`.

use super::{
    RunRecord, Summary,
    listed::{no_run, unknown},
};
use crate::control::{Begun, Status, journal_directory, records};
use anyhow::{Context as _, bail};
use cli::failure::Usage;
use rustix::fs::{AtFlags, Dir, DirEntry, Mode, OFlags, fchmod, openat, unlinkat};
use std::{
    fs::File,
    io::{self, Seek, Write},
    os::fd::OwnedFd,
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

/// Records kept; older ones are thrown away when the next run begins.
const MOST_RUNS: usize = 200;

/// The record that a run will leave. Opened before the run, because the sandbox's view may leave it
/// out.
pub(crate) struct Journal {
    file: File,
    /// Where the file lies, as it was found before the run.
    directory: OwnedFd,
    name: String,
    begun: Option<Begun>,
    is_kept: bool,
}

impl Journal {
    /// Makes room for one more record, and begins it by saying whose it is.
    pub(super) fn open(status: &Status) -> anyhow::Result<Self> {
        let directory = journal_directory()?;
        let opened = runs::make_private(&directory)
            .and_then(|()| open_own(&directory))
            .with_context(|| format!("cannot keep records in `{}`", directory.display()))?;
        let runs = records()?;
        for old in runs.iter().take((runs.len() + 1).saturating_sub(MOST_RUNS)) {
            // Another run may be faster.
            let _ = unlinkat(&opened, old, AtFlags::empty());
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let name = format!("{:020}-{}.json", now.as_nanos(), std::process::id());
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = openat(&opened, &name, flags, Mode::RUSR | Mode::WUSR);
        let mut file = File::from(
            file.with_context(|| format!("cannot create `{}`", directory.join(&name).display()))?,
        );
        // For others, should there never be more. The record itself needs none of it.
        let begun = Begun::now(status.clone()).ok();
        if let Some(Ok(text)) = begun.as_ref().map(Begun::text) {
            let _ = file.write_all(&text);
        }
        Ok(Self { file, directory: opened, name, begun, is_kept: false })
    }

    /// Writes the record; or else that there is none, and why, for which less room is enough.
    pub(super) fn keep(mut self, record: &RunRecord) -> anyhow::Result<()> {
        let written = serde_json::to_vec(record).map_err(Into::into);
        let written = written.and_then(|text| self.write(&text));
        let told = written.as_ref().err().zip(self.begun.take());
        let told = told.map(|(error, begun)| begun.unkept(format!("{error:#}")).text());
        self.is_kept = match told {
            Some(text) => text.is_ok_and(|text| self.write(&text).is_ok()),
            None => written.is_ok(),
        };
        written
    }

    /// Whether other runs of this user go on, or have been killed, so that this one may not be the
    /// last to end.
    pub(super) fn has_others(&self) -> bool {
        let is_other = |entry: rustix::io::Result<DirEntry>| {
            let Ok(entry) = entry else { return false };
            let is_own = entry.file_name().to_bytes() == self.name.as_bytes();
            !is_own && Begun::is_one(&self.directory, entry.file_name())
        };
        Dir::read_from(&self.directory).is_ok_and(|mut entries| entries.any(is_other))
    }

    fn write(&mut self, text: &[u8]) -> anyhow::Result<()> {
        self.file.rewind()?;
        self.file.set_len(0)?;
        self.file.write_all(text)?;
        self.file.flush()?;
        Ok(())
    }

    /// The last finished run of that number or name, or of all.
    pub(crate) fn find(run: Option<&str>) -> anyhow::Result<RunRecord> {
        let summaries = Self::summaries()?;
        let Some(run) = run.filter(|run| *run != "last") else {
            let Some(last) = summaries.first() else { bail!(no_run(Begun::unrecorded())) };
            return last.whole();
        };
        if summaries.is_empty() && Begun::all().is_empty() {
            bail!(no_run(None));
        }
        let is_it = |it: &&Summary| it.id == run || it.name.as_deref() == Some(run);
        if let Some(found) = summaries.iter().find(is_it) {
            return found.whole();
        }
        let begun: Vec<&Summary> =
            summaries.iter().filter(|it| run.len() >= 2 && it.id.starts_with(run)).collect();
        match begun[..] {
            [one] => one.whole(),
            [] => Err(unknown(run, &summaries)),
            _ => bail!(Usage(format!(
                "`{run}` is the beginning of {} runs: {}; `dewar runs` lists them",
                begun.len(),
                begun.iter().take(5).map(|it| it.id.as_str()).collect::<Vec<_>>().join(", ")
            ))),
        }
    }

    /// The finished runs that are kept, the last one first.
    pub(crate) fn summaries() -> anyhow::Result<Vec<Summary>> {
        let directory = journal_directory()?;
        let mut summaries = Vec::new();
        for name in records()?.into_iter().rev() {
            let path = directory.join(name);
            // Another run may throw it away meanwhile; and what another user has put there is none.
            let Ok(text) = runs::read_own(&path) else { continue };
            // A run that goes on, or was killed, has none: `Begun`.
            let Ok(summary) = serde_json::from_slice::<Summary>(&text) else { continue };
            summaries.push(summary.of(path));
        }
        Ok(summaries)
    }
}

/// The directory of this user's records, closed to others: they need not know what is run, or what
/// it was denied.
fn open_own(path: &Path) -> io::Result<OwnedFd> {
    let directory = runs::open_own(path)?;
    fchmod(&directory, Mode::RWXU)?;
    Ok(directory)
}

impl Drop for Journal {
    /// Part of a record is none, and a run that never began needs none.
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = unlinkat(&self.directory, &self.name, AtFlags::empty());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::geteuid;
    use std::{fs, os::unix::fs::PermissionsExt as _};

    #[test]
    fn records_lie_in_a_directory_of_ones_own_and_behind_no_link() {
        let place = tempfile::tempdir().unwrap();
        let [own, link] = ["own", "link"].map(|name| place.path().join(name));
        fs::create_dir(&own).unwrap();
        fs::set_permissions(&own, fs::Permissions::from_mode(0o755)).unwrap();
        std::os::unix::fs::symlink(&own, &link).unwrap();
        let mode = || fs::metadata(&own).unwrap().permissions().mode() & 0o777;
        assert!(open_own(&link).unwrap_err().to_string().contains("move it away"));
        assert_eq!(mode(), 0o755);
        open_own(&own).unwrap();
        assert_eq!(mode(), 0o700);
        if geteuid().is_root() {
            std::os::unix::fs::chown(&own, Some(1), None).unwrap();
            let error = open_own(&own).unwrap_err().to_string();
            assert!(error.contains("belongs to user 1"), "{error}");
        }
    }
}
