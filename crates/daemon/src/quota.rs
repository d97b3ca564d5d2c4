//! What registrations and changes under way take, and what one user may have altogether.
//!
//! A reservation is made before anything is read, and given back when it is dropped. So is leave to
//! compile.

use crate::state::StateError;
use security_server::LabelBudget;
use std::{
    collections::HashMap,
    io,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

/// Runs of one user at a time.
const MOST_RUNS: usize = 1024;

/// Bytes of the policies of one user.
const MOST_POLICY_BYTES: usize = 256 << 20;

/// Bytes of the labels that the servers of one user have given out.
const MOST_LABEL_BYTES: usize = 64 << 20;

/// Policies that are compiled at once: of one user, and in all.
const COMPILATIONS_OF_USER: usize = 2;
const COMPILATIONS: usize = 8;

/// How long a compilation waits for others. The client waits for five seconds.
const WAIT: Duration = Duration::from_secs(3);

/// Why a policy is not taken. What was before stays in force.
#[derive(Debug, thiserror::Error)]
pub(crate) enum QuotaError {
    #[error(
        "this user has as many runs as one may have, {MOST_RUNS}: end one; `dewar daemon --runs` lists them"
    )]
    Runs,
    #[error(
        "this user's policies would take more than 256 MiB, with those that are being registered or changed: try again, or end a run; `dewar daemon --runs` lists them"
    )]
    Bytes,
    #[error("the daemon compiles as many policies at once as it may: try again")]
    Busy,
    #[error(transparent)]
    State(#[from] StateError),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// What a user has, or wants to have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Amount {
    pub(crate) runs: usize,
    /// Of policies.
    pub(crate) bytes: usize,
}

/// What is under way.
#[derive(Default)]
pub(crate) struct Quota {
    users: Mutex<HashMap<u32, UnderWay>>,
    compiled: Condvar,
    /// As long as a user has servers.
    labels: Mutex<HashMap<u32, Weak<LabelBudget>>>,
}

#[derive(Default)]
struct UnderWay {
    amount: Amount,
    compiling: usize,
}

/// An amount that counts for a user until this is dropped.
pub(crate) struct Reserved<'q> {
    quota: &'q Quota,
    uid: u32,
    amount: Amount,
}

/// Leave to compile, until this is dropped.
pub(crate) struct Compiling<'q> {
    quota: &'q Quota,
    uid: u32,
}

impl Reserved<'_> {
    pub(crate) fn bytes(&self) -> usize {
        self.amount.bytes
    }
}

impl Quota {
    /// Reserves `wanted` for a user who has `held` already.
    ///
    /// # Errors
    ///
    /// [`QuotaError::Runs`] or [`QuotaError::Bytes`]: it would be too much.
    pub(crate) fn reserve(
        &self,
        uid: u32,
        wanted: Amount,
        held: Amount,
    ) -> Result<Reserved<'_>, QuotaError> {
        let mut users = self.lock();
        let under_way = users.get(&uid).map(|user| user.amount).unwrap_or_default();
        if wanted.runs > 0 && held.runs + under_way.runs + wanted.runs > MOST_RUNS {
            return Err(QuotaError::Runs);
        }
        let before = held.bytes.saturating_add(under_way.bytes);
        if before.saturating_add(wanted.bytes) > MOST_POLICY_BYTES {
            return Err(QuotaError::Bytes);
        }
        let amount = &mut users.entry(uid).or_default().amount;
        amount.runs += wanted.runs;
        amount.bytes += wanted.bytes;
        Ok(Reserved { quota: self, uid, amount: wanted })
    }

    /// What the labels of all servers of this user are counted in.
    pub(crate) fn labels(&self, uid: u32) -> Arc<LabelBudget> {
        let mut labels = self.labels.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(budget) = labels.get(&uid).and_then(Weak::upgrade) {
            return budget;
        }
        labels.retain(|_, budget| budget.strong_count() > 0);
        let budget = Arc::new(LabelBudget::new(MOST_LABEL_BYTES));
        labels.insert(uid, Arc::downgrade(&budget));
        budget
    }

    /// Waits until this user may compile a policy.
    ///
    /// # Errors
    ///
    /// [`QuotaError::Busy`]: others take too long.
    pub(crate) fn compile(&self, uid: u32) -> Result<Compiling<'_>, QuotaError> {
        let is_busy = |users: &mut HashMap<u32, UnderWay>| {
            let own = users.get(&uid).map_or(0, |user| user.compiling);
            let all: usize = users.values().map(|user| user.compiling).sum();
            own >= COMPILATIONS_OF_USER || all >= COMPILATIONS
        };
        let waited = self.compiled.wait_timeout_while(self.lock(), WAIT, is_busy);
        let (mut users, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() {
            return Err(QuotaError::Busy);
        }
        users.entry(uid).or_default().compiling += 1;
        Ok(Compiling { quota: self, uid })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u32, UnderWay>> {
        self.users.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives back what a user has under way.
    fn give_back(&self, uid: u32, change: impl FnOnce(&mut UnderWay)) {
        let mut users = self.lock();
        if let Some(user) = users.get_mut(&uid) {
            change(user);
            if (user.amount, user.compiling) == (Amount::default(), 0) {
                users.remove(&uid);
            }
        }
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        self.quota.give_back(self.uid, |user| {
            user.amount.runs -= self.amount.runs;
            user.amount.bytes -= self.amount.bytes;
        });
    }
}

impl Drop for Compiling<'_> {
    fn drop(&mut self) {
        self.quota.give_back(self.uid, |user| user.compiling -= 1);
        self.quota.compiled.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    fn bytes(bytes: usize) -> Amount {
        Amount { runs: 1, bytes }
    }

    #[test]
    fn what_is_under_way_counts_until_it_is_given_back() {
        let quota = Quota::default();
        let half = MOST_POLICY_BYTES / 2;
        let first = quota.reserve(1, bytes(half), bytes(half - 1)).unwrap();
        assert!(matches!(quota.reserve(1, bytes(2), bytes(half - 1)), Err(QuotaError::Bytes)));
        assert!(quota.reserve(2, bytes(2), bytes(half)).is_ok(), "another user's");
        drop(first);
        assert!(quota.reserve(1, bytes(2), bytes(half - 1)).is_ok());
        assert!(quota.lock().is_empty());
    }

    #[test]
    fn runs_under_way_count_and_a_change_is_no_run() {
        let quota = Quota::default();
        let held = Amount { runs: MOST_RUNS - 1, bytes: 0 };
        let _last = quota.reserve(1, bytes(1), held).unwrap();
        assert!(matches!(quota.reserve(1, bytes(1), held), Err(QuotaError::Runs)));
        assert!(quota.reserve(1, Amount { runs: 0, bytes: 1 }, held).is_ok());
    }

    #[test]
    fn few_policies_are_compiled_at_once() {
        let quota = Quota::default();
        let compile = |uid| quota.compile(uid);
        let own: Vec<_> = (0..COMPILATIONS_OF_USER).map(|_| compile(1).unwrap()).collect();
        assert!(matches!(compile(1), Err(QuotaError::Busy)));
        let others: Vec<_> =
            (COMPILATIONS_OF_USER..COMPILATIONS).map(|n| compile(n as u32).unwrap()).collect();
        assert!(matches!(compile(100), Err(QuotaError::Busy)));
        thread::scope(|scope| {
            let waits = scope.spawn(|| compile(1).is_ok());
            drop(own);
            assert!(waits.join().unwrap(), "it waits for the others");
        });
        drop(others);
        assert!(quota.lock().is_empty());
    }
}
