//! Quiescence: calls under way, and changes of policy, which wait until there are none.

use crate::{pending::PendingCalls, standby::Standby, sys::notify::Notification};
use std::{
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// Who is on the way, and whether it is open.
#[derive(Debug, Default)]
pub struct Quiesce {
    inner: Mutex<Inner>,
    changed: Condvar,
    /// Calls on the program's behalf that wait for a peer.
    pub waits: PendingCalls,
    /// Who makes changes of policy. Held by whoever has one made.
    pub changing: Mutex<Standby>,
}

#[derive(Debug, Default)]
struct Inner {
    /// Calls that are decided or made.
    inside: Vec<Inside>,
    /// A change of policy is under way.
    closed: bool,
    /// Calls that came meanwhile.
    held: Vec<Notification>,
    /// The thread whose next call somebody waits for, and that call.
    awaited: Option<(u32, Option<Notification>)>,
    /// How often it was closed.
    changes: u64,
}

/// A call on its way.
#[derive(Debug)]
struct Inside {
    /// Its notification.
    id: u64,
    /// The thread that waits for it, unless that has ended.
    tid: u32,
    /// How often it had been closed when this was let in.
    since: u64,
    /// It has not been answered when another policy came into force.
    is_overtaken: bool,
}

impl Inner {
    fn let_in(&mut self, call: &Notification) {
        let (id, tid, since) = (call.id, call.tid, self.changes);
        self.inside.push(Inside { id, tid, since, is_overtaken: false });
    }

    /// Takes out a call that is on its way.
    fn take(&mut self, id: u64) -> Option<Inside> {
        let index = self.inside.iter().position(|it| it.id == id)?;
        Some(self.inside.swap_remove(index))
    }
}

impl Quiesce {
    /// Lets a call in, unless it has to wait for the end of a change: then it is kept here, and
    /// `false`.
    pub fn enter(&self, call: &Notification) -> bool {
        let mut inner = self.lock();
        if let Some((tid, caught @ None)) = &mut inner.awaited
            && *tid == call.tid
        {
            *caught = Some(*call);
            self.changed.notify_all();
            return false;
        }
        if inner.closed {
            inner.held.push(*call);
            self.changed.notify_all();
        } else {
            inner.let_in(call);
        }
        !inner.closed
    }

    /// A call has been answered, or goes on elsewhere without anything being granted to it there.
    pub fn leave(&self, id: u64) {
        self.let_out(id);
    }

    /// The same; how often it had been closed when the call was let in.
    fn let_out(&self, id: u64) -> u64 {
        let mut inner = self.lock();
        let Some(left) = inner.take(id) else { return inner.changes };
        if inner.closed {
            self.changed.notify_all();
        }
        left.since
    }

    /// Runs `wait`, which may take as long as it likes, while a change may go on; with its result,
    /// whether there was one since the call was let in. It is on its way again afterwards, unless
    /// it has failed.
    pub fn outside<T, E>(
        &self,
        call: &Notification,
        wait: impl FnOnce() -> Result<T, E>,
    ) -> Result<(T, bool), E> {
        let since = self.let_out(call.id);
        let waited = wait()?;
        let mut inner = self.lock();
        while inner.closed {
            inner = self.changed.wait(inner).unwrap_or_else(PoisonError::into_inner);
        }
        inner.let_in(call);
        Ok((waited, inner.changes != since))
    }

    /// Lets nobody in any more, and waits until nobody is inside; the calls that take longer than
    /// that, each with its thread.
    pub fn close(&self, patience: Duration) -> Vec<(u64, u32)> {
        let mut inner = self.lock();
        inner.closed = true;
        inner.changes += 1;
        let until = Instant::now() + patience;
        while !inner.inside.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let woken = self.changed.wait_timeout(inner, left);
            inner = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        inner.inside.iter().map(|it| (it.id, it.tid)).collect()
    }

    /// Whether a call is being decided or made; its caller may have ended.
    pub fn is_inside(&self, id: u64) -> bool {
        self.lock().inside.iter().any(|it| it.id == id)
    }

    /// Another policy is in force: what is on its way was decided by the former one.
    pub fn overtake(&self) {
        self.lock().inside.iter_mut().for_each(|it| it.is_overtaken = true);
    }

    /// Whether another policy has come into force since a call was let in. What it does after that
    /// was asked is found inside by whoever makes the change.
    pub fn is_overtaken(&self, id: u64) -> bool {
        self.lock().inside.iter().any(|it| it.id == id && it.is_overtaken)
    }

    /// Takes those calls of `are_meant` that came since it was closed. The others stay, for
    /// whoever leads to find them at any time.
    pub fn take_held(&self, are_meant: impl Fn(u32) -> bool) -> Vec<Notification> {
        self.lock().held.extract_if(.., |call| are_meant(call.tid)).collect()
    }

    /// A call that came while it was closed, once it is open again.
    pub fn next_held(&self) -> Option<Notification> {
        let mut inner = self.lock();
        if inner.closed { None } else { inner.held.pop() }
    }

    /// Puts a call back with those that came since it was closed.
    pub fn hold(&self, call: Notification) {
        self.lock().held.push(call);
    }

    /// Sets a trap for the next call of `tid`; see [`Quiesce::caught`].
    pub fn expect(&self, tid: u32) {
        self.lock().awaited = Some((tid, None));
    }

    /// Takes back a trap for `tid` that nobody waits at any more. Who has got into it waits with
    /// those that came since it was closed.
    pub fn expect_no_more(&self, tid: u32) {
        let mut inner = self.lock();
        if let Some((_, caught)) = inner.awaited.take_if(|(awaited, _)| *awaited == tid) {
            inner.held.extend(caught);
        }
    }

    /// The call that was expected, if it comes in time. It is the taker's to answer.
    pub fn caught(&self, patience: Duration) -> Option<Notification> {
        let waits = |inner: &mut Inner| matches!(inner.awaited, Some((_, None)));
        let waited = self.changed.wait_timeout_while(self.lock(), patience, waits);
        let (mut inner, _) = waited.unwrap_or_else(PoisonError::into_inner);
        inner.awaited.take()?.1
    }

    /// Lets everybody in again; whether calls came meanwhile, see [`Quiesce::next_held`].
    pub fn open(&self) -> bool {
        let mut inner = self.lock();
        inner.closed = false;
        self.changed.notify_all();
        !inner.held.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: u64) -> Notification {
        Notification { id, tid: id as u32, nr: 0, args: [0; 6] }
    }

    #[test]
    fn a_change_waits_for_calls_inside_and_holds_those_that_come() {
        let quiesce = Quiesce::default();
        assert!(quiesce.enter(&call(1)));
        assert_eq!(quiesce.close(Duration::from_millis(1)), [(1, 1)]);
        assert!(!quiesce.enter(&call(2)));
        quiesce.leave(1);
        assert_eq!(quiesce.close(Duration::from_secs(9)), []);
        assert!(quiesce.next_held().is_none());
        assert!(quiesce.open());
        assert_eq!(quiesce.next_held().map(|it| it.id), Some(2));
        assert!(quiesce.next_held().is_none());
        assert!(quiesce.enter(&call(3)));
    }

    #[test]
    fn who_was_inside_when_policy_changed_is_overtaken_and_who_comes_later_is_not() {
        let quiesce = Quiesce::default();
        assert!(quiesce.enter(&call(1)));
        quiesce.close(Duration::ZERO);
        assert!(!quiesce.is_overtaken(1), "it may be that nothing is put in force");
        quiesce.overtake();
        quiesce.open();
        assert!(quiesce.enter(&call(2)));
        assert!(quiesce.is_overtaken(1) && !quiesce.is_overtaken(2));
        assert!(quiesce.is_inside(1));
        quiesce.leave(1);
        assert!(!quiesce.is_inside(1) && !quiesce.is_overtaken(1));
    }

    #[test]
    fn who_waits_outside_hears_of_a_change() {
        let quiesce = Quiesce::default();
        assert!(quiesce.enter(&call(1)));
        assert_eq!(quiesce.outside(&call(1), || Ok::<_, ()>(7)), Ok((7, false)));
        let change = || {
            assert_eq!(quiesce.close(Duration::from_secs(9)), []);
            quiesce.open();
            Ok::<_, ()>(7)
        };
        assert_eq!(quiesce.outside(&call(1), change), Ok((7, true)));
        assert_eq!(quiesce.close(Duration::from_millis(1)), [(1, 1)]);
        quiesce.open();
        assert_eq!(quiesce.outside(&call(1), || Ok::<_, ()>(7)), Ok((7, true)), "one before");
        assert_eq!(quiesce.outside(&call(1), || Err::<(), _>(())), Err(()));
        assert_eq!(quiesce.close(Duration::from_secs(9)), []);
    }

    #[test]
    fn an_expected_call_is_caught_though_it_is_closed() {
        let quiesce = Quiesce::default();
        let _ = quiesce.close(Duration::ZERO);
        quiesce.expect(7);
        assert!(!quiesce.enter(&call(8)));
        assert!(!quiesce.enter(&call(7)));
        assert_eq!(quiesce.caught(Duration::from_secs(9)).map(|it| it.id), Some(7));
        assert_eq!(quiesce.take_held(|tid| tid == 9).len(), 0);
        assert_eq!(quiesce.take_held(|tid| tid == 8).len(), 1);
        assert_eq!(quiesce.take_held(|_| true).len(), 0);
        quiesce.expect(7);
        assert!(quiesce.caught(Duration::from_millis(1)).is_none());
    }

    #[test]
    fn a_trap_that_nobody_waits_at_swallows_no_call() {
        let quiesce = Quiesce::default();
        let _ = quiesce.close(Duration::ZERO);
        quiesce.expect(7);
        quiesce.expect_no_more(8);
        assert!(!quiesce.enter(&call(7)));
        quiesce.expect_no_more(7);
        assert_eq!(quiesce.take_held(|tid| tid == 7).len(), 1, "who was caught");
        quiesce.expect(7);
        quiesce.expect_no_more(7);
        quiesce.open();
        assert!(quiesce.enter(&call(7)), "who comes later");
    }
}
