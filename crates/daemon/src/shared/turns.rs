//! What each user may have done once at a time.

use std::{
    collections::BTreeSet,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// How long one waits for others of the same user. The client waits for five seconds.
const WAIT: Duration = Duration::from_secs(3);

/// The users whose turn it is.
#[derive(Default)]
pub(crate) struct Turns {
    users: Mutex<BTreeSet<u32>>,
    ended: Condvar,
}

/// A user's turn, until this is dropped.
pub(crate) struct Turn<'t> {
    turns: &'t Turns,
    uid: u32,
}

impl Turns {
    /// Waits until nothing else of this user is under way; `None` if that takes too long.
    pub(crate) fn wait(&self, uid: u32) -> Option<Turn<'_>> {
        let is_taken = |users: &mut BTreeSet<u32>| users.contains(&uid);
        let waited = self.ended.wait_timeout_while(self.lock(), WAIT, is_taken);
        let (mut users, _) = waited.unwrap_or_else(PoisonError::into_inner);
        users.insert(uid).then(|| Turn { turns: self, uid })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<u32>> {
        self.users.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.turns.lock().remove(&self.uid);
        self.turns.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_one_turn_at_a_time_and_others_do_not_wait_for_it() {
        let turns = Turns::default();
        let own = turns.wait(1).unwrap();
        let other = turns.wait(2).unwrap();
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| turns.wait(1).is_some());
            drop(own);
            assert!(waits.join().unwrap());
        });
        assert!(turns.wait(1).is_some() && turns.wait(2).is_none());
        drop(other);
        assert!(turns.lock().is_empty());
    }
}
