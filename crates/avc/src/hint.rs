//! The hint: where an object's last answer lies.

use crate::sync::{AtomicU32, Ordering};

/// The place of the last answer about an object, kept with the object and tried before the cache.
///
/// It grants nothing: what lies there is used only if it answers the very question that is asked
/// and is current. A hint may be shared by threads, and may meet another [`Avc`](crate::Avc)
/// without harm. Its form is that of an integer, of which every value is a hint: so objects in C
/// have one, too.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Hint(AtomicU32);

impl Hint {
    /// The place, some place of the cache if nothing was noted yet.
    #[inline]
    pub(crate) fn place(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    /// Notes where the answer lies.
    #[inline]
    pub(crate) fn point_to(&self, place: u32) {
        self.0.store(place, Ordering::Relaxed);
    }
}
