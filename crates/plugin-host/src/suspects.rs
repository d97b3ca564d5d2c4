//! What a plugin fails on. It is not called on that for a while, and on everything else it is:
//! whoever finds something on which it fails takes it from nobody.

use std::{
    collections::HashMap,
    hash::{BuildHasher as _, Hash, RandomState},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

/// How long what has failed too often is left alone. Then one more failure is one too many again.
const REST: Duration = Duration::from_secs(60);

/// Objects that are remembered. When there are more, all are forgotten, and fail again.
const MOST: usize = 4096;

/// Objects on which calls have failed, each with how often in a row, and when last.
#[derive(Default)]
pub(crate) struct Suspects {
    /// Whether there are any: calls look no further when there are none.
    any: AtomicBool,
    /// By what nobody outside can know, so that nobody can give one object the place of another.
    hasher: RandomState,
    faults: Mutex<HashMap<u64, (u32, Instant)>>,
}

impl Suspects {
    /// How many calls in a row have failed on `object`; `None` if so many that it is left alone.
    #[inline]
    pub(crate) fn faults_on(&self, object: &impl Hash, most: u32) -> Option<u32> {
        if !self.any.load(Relaxed) {
            return Some(0);
        }
        let key = self.hasher.hash_one(object);
        let Some((count, last)) = self.faults().get(&key).copied() else { return Some(0) };
        (count < most || last.elapsed() >= REST).then_some(count)
    }

    #[cold]
    pub(crate) fn note_failure(&self, object: &impl Hash) {
        let mut faults = self.faults();
        if faults.len() >= MOST {
            faults.clear();
        }
        let now = Instant::now();
        let (count, last) = faults.entry(self.hasher.hash_one(object)).or_insert((0, now));
        (*count, *last) = (count.saturating_add(1), now);
        self.any.store(true, Relaxed);
    }

    /// A call on `object` gave a reply.
    #[cold]
    pub(crate) fn forget(&self, object: &impl Hash) {
        let mut faults = self.faults();
        faults.remove(&self.hasher.hash_one(object));
        self.any.store(!faults.is_empty(), Relaxed);
    }

    /// Whether there is anything on which so many calls have failed.
    pub(crate) fn have(&self, most: u32) -> bool {
        self.faults().values().any(|(count, last)| *count >= most && last.elapsed() < REST)
    }

    fn faults(&self) -> MutexGuard<'_, HashMap<u64, (u32, Instant)>> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_is_left_alone_and_nothing_else_is() {
        let suspects = Suspects::default();
        for count in 0..3 {
            assert_eq!(suspects.faults_on(&"bad", 3), Some(count));
            suspects.note_failure(&"bad");
        }
        assert_eq!(
            (suspects.faults_on(&"bad", 3), suspects.faults_on(&"good", 3)),
            (None, Some(0))
        );
        assert!(suspects.have(3) && !suspects.have(4));
        for (_, last) in suspects.faults().values_mut() {
            *last -= REST;
        }
        assert_eq!((suspects.faults_on(&"bad", 3), suspects.have(3)), (Some(3), false));
        suspects.note_failure(&"bad");
        assert_eq!(suspects.faults_on(&"bad", 3), None, "one more is one too many");
        suspects.forget(&"bad");
        assert_eq!(suspects.faults_on(&"bad", 3), Some(0));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let suspects = Suspects::default();
        for object in 0..3 * MOST {
            suspects.note_failure(&object);
        }
        assert!(suspects.faults().len() <= MOST);
    }
}
