//! The cache of an object manager.
//!
//! [`Asker::ask`](crate::call::Asker::ask) asks it, and records what was decided.

use avc::{Avc, Hint, Stats};
use flask::{AccessVector, Class, Question, SecurityServer, Sid};
use rustix::io::Errno;
use std::sync::Arc;

/// The cache of one object manager, and whether that decides at all.
pub struct CheckedCache {
    /// What was answered, and who is asked for the rest.
    pub avc: Avc,
    /// A manager that passes everything is a row of the measurements.
    pub decides: bool,
    /// Its objects are named by paths: a link leads nobody to what its maker may not touch.
    pub bounds_links: bool,
}

/// The caches of the object managers. They lie below the managers: a question about a process may
/// come from a file of `/proc`.
pub struct Caches {
    /// Of files.
    pub file: CheckedCache,
    /// Of processes.
    pub process: CheckedCache,
    /// Of sockets.
    pub socket: CheckedCache,
}

impl Caches {
    /// Decisions asked for so far, by object manager.
    pub fn stats(&self) -> Vec<(&'static str, Stats)> {
        let all = [("file", &self.file), ("process", &self.process), ("socket", &self.socket)];
        all.map(|(name, cache)| (name, cache.avc.stats())).to_vec()
    }

    /// What was answered before `seqno` holds no longer.
    pub fn reset(&self, seqno: flask::Seqno) {
        for cache in [&self.file, &self.process, &self.socket] {
            cache.avc.reset(seqno);
        }
    }
}

/// What is asked for.
pub struct AccessRequest<'a> {
    /// The label of the object.
    pub tsid: Sid,
    /// Its class.
    pub tclass: Class,
    /// The permissions.
    pub requested: AccessVector,
    /// Where the answer was found the last time.
    pub hint: &'a Hint,
    /// Names the object, for people. Called only when there is something to record.
    pub object: &'a dyn Fn() -> String,
}

/// The policy does not grant it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Denied;

/// Entries of a cache: several times as many as a policy has pairs of a domain and a label in use,
/// in 64 KiB.
const ENTRIES: usize = 1024;

impl CheckedCache {
    /// A cache of `server`'s answers, empty. Where it does not decide, everything passes.
    pub fn new(server: Arc<dyn SecurityServer>, decides: bool) -> Self {
        Self { avc: Avc::with_capacity(server, ENTRIES), decides, bounds_links: false }
    }

    /// The same of a manager whose objects are named by paths.
    #[must_use]
    pub fn bounding_links(self) -> Self {
        Self { bounds_links: true, ..self }
    }

    /// Whether policy grants it, without a record: for choosing an answer, not for giving access.
    pub fn grants(&self, q: Question, requested: AccessVector, hint: &Hint) -> bool {
        !self.decides || self.avc.ask(q, requested, hint).granted()
    }

    /// Whether policy grants it and wants no record of that.
    pub fn passes(&self, q: Question, requested: AccessVector, hint: &Hint) -> bool {
        if !self.decides {
            return true;
        }
        let asked = self.avc.ask(q, requested, hint);
        asked.granted() && !asked.is_recorded()
    }
}

impl From<Denied> for Errno {
    fn from(_: Denied) -> Self {
        Self::ACCESS
    }
}
