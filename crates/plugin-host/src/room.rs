//! How many of something there may be at a time.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

/// Room for so many.
#[derive(Debug)]
pub(crate) struct Room {
    most: usize,
    taken: AtomicUsize,
}

/// One of the places, free again when this ends.
#[derive(Debug)]
pub(crate) struct Taken(Arc<Room>);

impl Room {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, taken: AtomicUsize::new(0) })
    }

    /// A place, if one is free.
    pub(crate) fn take(self: &Arc<Self>) -> Option<Taken> {
        let more = |taken| (taken < self.most).then_some(taken + 1);
        self.taken.fetch_update(Relaxed, Relaxed, more).ok().map(|_| Taken(Arc::clone(self)))
    }
}

impl Drop for Taken {
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
        let room = Room::new(3);
        let held: Vec<Taken> = (0..3).map_while(|_| room.take()).collect();
        assert_eq!(held.len(), 3);
        assert!(room.take().is_none());
        drop(held);
        let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for taken in (0..2000).filter_map(|_| room.take()) {
                        most.fetch_max(now.fetch_add(1, Relaxed) + 1, Relaxed);
                        thread::yield_now();
                        now.fetch_sub(1, Relaxed);
                        drop(taken);
                    }
                });
            }
        });
        assert!((1..=3).contains(&most.into_inner()));
        assert!(room.take().is_some(), "all places are free again");
    }
}
