//! Files that are being made: between that and their label, nobody is to take them for others.

use super::Labels;
use std::{
    ffi::{OsStr, OsString},
    path::Path,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
};

/// The last names of what is being made, wherever: a directory can have several paths.
#[derive(Debug, Default)]
pub(super) struct InMaking {
    names: Mutex<Vec<OsString>>,
    changed: Condvar,
}

/// Something is being made. Dropped, it has its label, or there is nothing.
#[must_use]
#[derive(Debug)]
pub struct Making<'a>(&'a InMaking, OsString);

impl Labels {
    /// Something that is to be labelled by [`Labels::created`] is about to be made under `name`.
    /// See [`Labels::await_made`].
    pub fn making(&self, name: &OsStr) -> Making<'_> {
        self.in_making.lock().push(name.to_owned());
        Making(&self.in_making, name.to_owned())
    }

    /// Waits until nothing is being made under the last name of `path`: for calls that meet a file
    /// there. A change of policy must not wait for a slow disk.
    pub fn await_made(&self, path: &Path) {
        let is_made = |names: &mut Vec<OsString>| {
            names.iter().any(|it| Some(it.as_os_str()) == path.file_name())
        };
        drop(self.in_making.changed.wait_while(self.in_making.lock(), is_made));
    }
}

impl InMaking {
    fn lock(&self) -> MutexGuard<'_, Vec<OsString>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Making<'_> {
    fn drop(&mut self) {
        let mut names = self.0.lock();
        if let Some(index) = names.iter().position(|it| *it == self.1) {
            names.swap_remove(index);
        }
        self.0.changed.notify_all();
    }
}
