//! How many of something there may be at a time.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

/// A bound on how many there may be.
#[derive(Debug)]
pub(crate) struct Quota {
    most: usize,
    taken: AtomicUsize,
}

/// One of them. It counts until this is dropped.
#[derive(Debug)]
pub(crate) struct Permit(Arc<Quota>);

impl Quota {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, taken: AtomicUsize::new(0) })
    }

    /// One more, if the quota allows it.
    pub(crate) fn take(self: &Arc<Self>) -> Option<Permit> {
        let more = |taken| (taken < self.most).then_some(taken + 1);
        self.taken.fetch_update(Relaxed, Relaxed, more).ok().map(|_| Permit(Arc::clone(self)))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn there_are_never_more_than_there_may_be() {
        let quota = Quota::new(3);
        let held: Vec<Permit> = (0..3).map_while(|_| quota.take()).collect();
        assert_eq!(held.len(), 3);
        assert!(quota.take().is_none());
        drop(held);
        let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for taken in (0..2000).filter_map(|_| quota.take()) {
                        most.fetch_max(now.fetch_add(1, Relaxed) + 1, Relaxed);
                        thread::yield_now();
                        now.fetch_sub(1, Relaxed);
                        drop(taken);
                    }
                });
            }
        });
        assert!((1..=3).contains(&most.into_inner()));
        assert!(quota.take().is_some(), "the quota is free again");
    }
}
