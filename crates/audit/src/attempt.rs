//! One attempt to decide a call: what it was denied, and what it was lent.
//!
//! Where somebody may be asked, a denial is recorded only when it is known that it stays one.

use crate::trail::Access;
use flask::{AccessVector, Question as Asked};
use std::cell::RefCell;

/// What was asked of policy, and about which object.
pub type Key = (Asked, AccessVector, String);

/// One attempt to decide a call.
#[derive(Default)]
pub struct DecisionAttempt {
    /// What was denied; recorded if it stays so.
    pub denied: Vec<Access>,
    /// What passes this once.
    pub once: Vec<Key>,
}

thread_local! {
    /// What this thread's call was denied and lent; `None` where nobody is asked.
    static ATTEMPT: RefCell<Option<DecisionAttempt>> = const { RefCell::new(None) };
}

/// Whether this was granted to the call for once.
pub fn is_lent(asked: Asked, requested: AccessVector, object: &dyn Fn() -> String) -> bool {
    ATTEMPT.with_borrow(|attempt| {
        let once = attempt.as_ref().map_or(&[][..], |attempt| &attempt.once[..]);
        !once.is_empty() && once.contains(&(asked, requested, object()))
    })
}

/// Whether something was granted to this thread's call for once: what the kernel was told does not
/// know of that.
pub fn lends() -> bool {
    ATTEMPT.with_borrow(|attempt| attempt.as_ref().is_some_and(|it| !it.once.is_empty()))
}

/// Has something decided about which nobody is asked.
pub fn unasked<T>(decide: impl FnOnce() -> T) -> T {
    let attempt = ATTEMPT.take();
    let decided = decide();
    ATTEMPT.set(attempt);
    decided
}

/// Keeps a denial until it is known whether it stays one; gives it back where nobody is asked.
pub fn defer(access: Access) -> Option<Access> {
    ATTEMPT.with_borrow_mut(|attempt| match attempt {
        Some(attempt) => {
            attempt.denied.push(access);
            None
        }
        None => Some(access),
    })
}

/// A new attempt, with what was lent.
pub fn begin(once: Vec<Key>) {
    ATTEMPT.set(Some(DecisionAttempt { denied: Vec::new(), once }));
}

/// The end of an attempt.
pub fn end() -> DecisionAttempt {
    ATTEMPT.take().unwrap_or_default()
}

/// What names a denial.
pub fn key(access: &Access) -> Key {
    (access.question, access.requested, access.object.clone())
}
