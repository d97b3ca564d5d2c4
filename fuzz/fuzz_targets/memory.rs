//! How much memory a reader takes.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

/// The system's allocator, which notes for each thread how much it has taken.
struct Counting;

thread_local! {
    static TAKEN: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

fn note(bytes: isize) {
    TAKEN.set(TAKEN.get() + bytes);
    MOST.set(MOST.get().max(TAKEN.get()));
}

// SAFETY: whatever is asked is asked of `System`, with the same arguments, whose answer is
// returned. Counting needs no memory: both counters are constant at first and have no destructors.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size() as isize);
        // SAFETY: the caller keeps to what `alloc` demands.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        note(-(layout.size() as isize));
        // SAFETY: the caller keeps to what `dealloc` demands, and `System` has made every
        // allocation.
        unsafe { System.dealloc(start, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What `act` returns, and how many bytes this thread held at most because of it.
pub(crate) fn most_held<T>(act: impl FnOnce() -> T) -> (T, usize) {
    let before = TAKEN.get();
    MOST.set(before);
    let done = act();
    (done, MOST.get().saturating_sub(before).cast_unsigned())
}
