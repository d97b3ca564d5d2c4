//! How long an answer holds: a counter that grows before anything changes that was given out.
//!
//! The counter can lie in memory that other processes read, so that asking whether an answer still
//! holds costs a load, wherever the record is kept.

use crate::sys::Page;
use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering, fence},
    },
};

/// A number that only grows, and that whoever keeps a record advances before it changes.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// What was answered before holds no longer.
    pub fn advance(&self) {
        self.0.fetch_add(1, Ordering::Release);
    }
}

/// A counter in memory that other processes may read, and only this one can write.
#[derive(Debug)]
pub struct SharedCounter {
    page: Page,
    memory: OwnedFd,
}

impl SharedCounter {
    /// A new one.
    ///
    /// # Errors
    ///
    /// Whatever the system says.
    pub fn new() -> io::Result<Self> {
        let (page, memory) = Page::new()?;
        Ok(Self { page, memory })
    }

    /// What was answered before holds no longer.
    pub fn advance(&self) {
        self.page.fetch_add(1, Ordering::Release);
    }

    /// Where it stands.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.page.load(Ordering::Acquire)
    }
}

impl AsFd for SharedCounter {
    /// The memory, for [`Generation::shared`] in another process.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.memory.as_fd()
    }
}

/// A state of a counter: what was found out in it holds until the counter has moved on.
#[derive(Clone, Debug)]
pub struct Generation(Option<(Source, u64)>);

#[derive(Clone, Debug)]
enum Source {
    Own(Arc<Counter>),
    Shared(Arc<Page>),
}

impl Source {
    fn now(&self) -> u64 {
        match self {
            Self::Own(counter) => counter.0.load(Ordering::Acquire),
            Self::Shared(page) => {
                // Of memory that can only be read, no more than a relaxed load is promised; the
                // fence makes it acquire.
                let now = page.load(Ordering::Relaxed);
                fence(Ordering::Acquire);
                now
            }
        }
    }
}

impl Generation {
    /// That of what never changes.
    pub const FOREVER: Self = Self(None);

    /// The present one of a counter. It is taken before what depends on it is looked up.
    #[must_use]
    pub fn of(counter: Arc<Counter>) -> Self {
        let source = Source::Own(counter);
        let now = source.now();
        Self(Some((source, now)))
    }

    /// The one in which another process's [`SharedCounter`], whose memory this is, stood at `then`.
    ///
    /// # Errors
    ///
    /// `InvalidData` for memory of another kind; whatever else the system says.
    pub fn shared(memory: BorrowedFd<'_>, then: u64) -> io::Result<Self> {
        Ok(Self(Some((Source::Shared(Arc::new(Page::map(memory)?)), then))))
    }

    /// Whether the counter has not moved on.
    #[inline]
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.0.as_ref().is_none_or(|(source, then)| source.now() == *then)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_out_holds_until_the_counter_moves_on() {
        let counter = Arc::new(Counter::default());
        let generation = Generation::of(Arc::clone(&counter));
        assert!(generation.is_current() && Generation::FOREVER.is_current());
        counter.advance();
        assert!(!generation.is_current());
        assert!(Generation::of(counter).is_current());
    }

    #[test]
    fn a_shared_counter_is_seen_to_move_on_and_cannot_be_written_by_others() {
        let counter = SharedCounter::new().unwrap();
        let generation = Generation::shared(counter.as_fd(), counter.now()).unwrap();
        assert!(generation.is_current());
        counter.advance();
        assert!(!generation.is_current());
        assert!(rustix::io::write(counter.as_fd(), &[0; 8]).is_err());
        let file = std::fs::File::from(counter.as_fd().try_clone_to_owned().unwrap());
        assert!(file.set_len(0).is_err());
    }

    #[test]
    fn memory_that_others_can_write_or_cut_short_is_no_counter() {
        let memory = crate::sys::new_memory().unwrap();
        assert!(Generation::shared(memory.as_fd(), 0).is_err());
    }
}
