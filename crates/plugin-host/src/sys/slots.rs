//! Where the memories of isolated plugins lie: slots of address space, used again and again.
//!
//! ```text
//!  guard │ open │ closed │ views │ closed │ guard
//!        base   open     VIEW_START        reserved
//! ```
//!
//! Only what is open can be read and written. In the middle, far behind what a memory can ever
//! have, images can be put that a plugin sees and cannot change: for wasmtime they lie outside of
//! the memory, so nothing of ours refers to them. wasmtime's own pool does more for each instance,
//! and zeroes a part of every memory that few plugins touch.

mod views;

use rustix::mm::{
    Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap_anonymous, mprotect, munmap,
};
use std::{
    collections::HashMap,
    io, ptr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use wasmtime::{LinearMemory, MemoryCreator, MemoryType};

/// Bytes of a page of the system, on x86-64.
const PAGE: usize = 4096;

/// Where images lie, from the base on, and how many bytes of them there may be. Addresses there are
/// positive to a plugin that takes them for signed.
const VIEW_START: usize = 1 << 30;
pub(crate) const VIEW_BYTES: usize = 128 << 20;

/// Slots of one engine, at most so many at a time.
pub(crate) struct Slots(Arc<Shared>);

struct Shared {
    most: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Clean ones. With those in use they are at most as many as there may be.
    free: Vec<Slot>,
    /// How many are in use, or about to be.
    live: usize,
    /// Those in use in which images can be shown, by their bases; whether there were any.
    viewed: HashMap<usize, bool>,
}

/// Address space that nobody else has.
struct Slot {
    layout: Layout,
    base: usize,
    /// Bytes from `base` on, in whole pages, that can be read and written; no others of the slot
    /// can, unless it is torn.
    open: usize,
    /// A change of access has failed, perhaps after a part of it: the slot is not used again.
    torn: bool,
}

/// Sizes of a slot, in whole pages.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Layout {
    reserved: usize,
    /// The guard on either side.
    guard: usize,
}

impl Layout {
    /// `None` for what is not whole pages or exceeds all address space.
    fn new(reserved: usize, guard: usize) -> Option<Self> {
        let whole = reserved.is_multiple_of(PAGE) && guard.is_multiple_of(PAGE);
        let fits = guard.checked_mul(2)?.checked_add(reserved)? > 0;
        (whole && fits).then_some(Self { reserved, guard })
    }

    /// Bytes with both guards. It does not overflow: [`Layout::new`] has tried.
    fn bytes(self) -> usize {
        self.guard + self.reserved + self.guard
    }
}

impl Slots {
    pub(crate) fn new(most: usize) -> Self {
        Self(Arc::new(Shared { most, state: Mutex::default() }))
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts one more in use, up to [`Shared::give_back`]: a clean slot of this layout, or the
    /// right to make one.
    fn lease(&self, layout: Layout) -> Result<Option<Slot>, String> {
        let mut state = self.state();
        if state.live >= self.most {
            return Err(format!("there are {} instances already", self.most));
        }
        state.live += 1;
        let found = state.free.iter().rposition(|slot| slot.layout == layout);
        let slot = found.map(|found| state.free.swap_remove(found));
        let crowded = state.live + state.free.len() > self.most;
        let other = if crowded { state.free.pop() } else { None };
        drop(state);
        // Address space goes back to the system while nobody waits.
        drop(other);
        Ok(slot)
    }

    /// One less in use; `slot`, if there still is one, is clean.
    fn give_back(&self, slot: Option<Slot>) {
        let mut state = self.state();
        state.live -= 1;
        state.free.extend(slot);
    }

    /// Nothing is shown to the memory at `base` any more; whether it is so.
    fn end_views(&self, base: usize) -> bool {
        let viewed = self.state().viewed.remove(&base);
        viewed != Some(true) || views::close(base).is_ok()
    }
}

impl Slot {
    fn new(layout: Layout) -> io::Result<Self> {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        let (place, access) = (ptr::null_mut(), ProtFlags::empty());
        // SAFETY: without `FIXED` the kernel chooses a place where nothing lies, so no memory that
        // is in use changes.
        let start = unsafe { mmap_anonymous(place, layout.bytes(), access, flags) }?;
        let base = start.expose_provenance() + layout.guard;
        Ok(Self { layout, base, open: 0, torn: false })
    }

    /// Opens exactly the first `size` bytes, up to the end of their last page.
    fn open(&mut self, size: usize) -> io::Result<()> {
        if size > self.layout.reserved.min(VIEW_START) || self.torn {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        let size = size.next_multiple_of(PAGE);
        let (from, to, access) = if size > self.open {
            (self.open, size, MprotectFlags::READ | MprotectFlags::WRITE)
        } else {
            (size, self.open, MprotectFlags::empty())
        };
        if from != to {
            let place = ptr::without_provenance_mut(self.base + from);
            // SAFETY: `to` is at most `reserved`: `size` was compared with it, which is in whole
            // pages, and `open` was such a `size` before. So the range is the slot's own, between
            // its guards, and nothing but a plugin's memory can be in it. Access is only added to
            // memory in use (`grow_to` asks for no less than there is); it is taken away by
            // `new_memory` alone, from a slot that no memory has, so no reference leads there.
            let changed = unsafe { mprotect(place, to - from, access) };
            self.torn = changed.is_err();
            changed?;
        }
        self.open = size;
        Ok(())
    }

    /// The slot with zeros in all that is open; `None` if that cannot be had.
    fn clean(self) -> Option<Self> {
        let place = ptr::without_provenance_mut(self.base);
        // SAFETY: the range is the slot's own, and no memory has the slot any more: it was taken
        // out of its `Linear`, and is not free yet. So no reference leads there. The mapping is
        // private and of no file: its pages are forgotten, and read as zeros from now on.
        let cleaned = unsafe { madvise(place, self.open, Advice::LinuxDontNeed) };
        (cleaned.is_ok() && !self.torn).then_some(self)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let start = ptr::without_provenance_mut(self.base - self.layout.guard);
        // SAFETY: this is the whole of what `Slot::new` has mapped, and nothing else. A slot is
        // dropped by who owns it: no memory does (`Linear` gives it up only when wasmtime drops
        // it), so no reference leads there. Should it fail, address space is lost.
        let _ = unsafe { munmap(start, self.layout.bytes()) };
    }
}

/// The memory of one instance.
struct Linear {
    /// There until it is dropped.
    slot: Option<Slot>,
    size: usize,
    shared: Arc<Shared>,
}

// SAFETY: what is asked for is given. Of `reserved` bytes from the base on, `size` can be accessed,
// and these are zeros: a slot is fresh, or was cleaned in all that had been open. `guard` bytes on
// either side never can: `Slot::open` is the only one to give access, and stays within `reserved`.
// The base never moves. No two memories have one slot: it is moved from the one owner to the next,
// out of `free` and into it under the lock.
unsafe impl MemoryCreator for Slots {
    fn new_memory(
        &self,
        _: MemoryType,
        minimum: usize,
        _: Option<usize>,
        reserved: Option<usize>,
        guard: usize,
    ) -> Result<Box<dyn LinearMemory>, String> {
        let layout = reserved.and_then(|reserved| Layout::new(reserved, guard));
        let layout = layout.ok_or("a plugin's memory has a size that is known before")?;
        let slot = match self.0.lease(layout)? {
            Some(slot) => Ok(slot),
            None => Slot::new(layout),
        };
        match slot.and_then(|mut slot| slot.open(minimum).map(|()| slot)) {
            Ok(slot) => {
                if slot.layout.reserved >= VIEW_START + VIEW_BYTES {
                    self.0.state().viewed.insert(slot.base, false);
                }
                let (slot, shared) = (Some(slot), Arc::clone(&self.0));
                Ok(Box::new(Linear { slot, size: minimum, shared }))
            }
            Err(error) => {
                self.0.give_back(None);
                Err(error.to_string())
            }
        }
    }
}

// SAFETY: as above. The bytes from `size` to the end of its page are open, too; they are nobody
// else's.
unsafe impl LinearMemory for Linear {
    fn byte_size(&self) -> usize {
        self.size
    }

    fn byte_capacity(&self) -> usize {
        self.slot.as_ref().map_or(0, |slot| slot.layout.reserved)
    }

    fn grow_to(&mut self, size: usize) -> wasmtime::Result<()> {
        let slot = self.slot.as_mut().filter(|_| size >= self.size);
        slot.ok_or(io::ErrorKind::OutOfMemory).map_err(io::Error::from)?.open(size)?;
        self.size = size;
        Ok(())
    }

    fn as_ptr(&self) -> *mut u8 {
        ptr::with_exposed_provenance_mut(self.slot.as_ref().map_or(0, |slot| slot.base))
    }
}

impl Drop for Linear {
    fn drop(&mut self) {
        let slot = self.slot.take().filter(|slot| self.shared.end_views(slot.base));
        let slot = slot.and_then(Slot::clean);
        self.shared.give_back(slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, ops::Range, slice, thread};

    const RESERVED: usize = 64 * PAGE;
    const GUARD: usize = 16 * PAGE;

    fn memory(slots: &Slots, size: usize) -> Result<Box<dyn LinearMemory>, String> {
        slots.new_memory(MemoryType::new(1, None), size, None, Some(RESERVED), GUARD)
    }

    fn bytes(memory: &mut dyn LinearMemory) -> &mut [u8] {
        let (base, size) = (memory.as_ptr(), memory.byte_size());
        // SAFETY: the memory is borrowed mutably, and so many bytes of it are accessible.
        unsafe { slice::from_raw_parts_mut(base, size) }
    }

    /// What the kernel says of access to addresses; `----` where nothing is mapped.
    fn access(range: Range<usize>) -> Vec<String> {
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let mappings = maps.lines().filter_map(|line| {
            let (place, rest) = line.split_once(' ')?;
            let (from, to) = place.split_once('-')?;
            let at = |hex| usize::from_str_radix(hex, 16).unwrap();
            Some((at(from)..at(to), rest[..4].to_owned()))
        });
        let mappings: Vec<_> = mappings.collect();
        let of = |at| mappings.iter().find(|(place, _)| place.contains(&at));
        let mut found: Vec<_> = (range.step_by(PAGE))
            .map(|at| of(at).map_or("----".to_owned(), |(_, access)| access.clone()))
            .collect();
        found.dedup();
        found
    }

    #[track_caller]
    fn guarded(memory: &dyn LinearMemory) {
        let (base, size) = (memory.as_ptr().addr(), memory.byte_size());
        let end = base + size.next_multiple_of(PAGE);
        assert_eq!(access(base - GUARD..base), ["---p"], "in front");
        assert_eq!(access(base..end), ["rw-p"]);
        assert_eq!(access(end..base + RESERVED + GUARD), ["---p"], "behind");
    }

    #[test]
    fn only_the_bytes_of_a_memory_are_accessible_whatever_was_in_its_slot_before() {
        let slots = Slots::new(1);
        for (size, grown) in [(PAGE, 5 * PAGE), (1, PAGE + 1), (40 * PAGE, 64 * PAGE), (3, 3)] {
            let mut memory = memory(&slots, size).unwrap();
            guarded(&*memory);
            memory.grow_to(grown).unwrap();
            guarded(&*memory);
            assert!(memory.grow_to(grown - 1).is_err(), "it does not shrink");
            assert!(memory.grow_to(RESERVED + 1).is_err(), "into the guard");
            assert!(memory.grow_to(usize::MAX).is_err());
            guarded(&*memory);
            assert!(bytes(&mut *memory).iter().all(|byte| *byte == 0));
            bytes(&mut *memory).fill(1);
        }
    }

    #[test]
    fn threads_never_find_each_other_s_bytes_and_never_have_more_than_there_may_be() {
        const MOST: usize = 6;
        let slots = Slots::new(MOST);
        thread::scope(|scope| {
            for own in 1..=8_u8 {
                let slots = &slots;
                scope.spawn(move || {
                    let mut made = 0;
                    for iteration in 0_usize.. {
                        let size = (1 + (iteration + usize::from(own)) % 9) * PAGE;
                        // Two at a time, if there is room.
                        let pair = [memory(slots, size), memory(slots, 1)];
                        for mut memory in pair.into_iter().flatten() {
                            assert!(bytes(&mut *memory).iter().all(|byte| *byte == 0));
                            memory.grow_to(size + iteration % 3 * PAGE).unwrap();
                            bytes(&mut *memory).fill(own);
                            thread::yield_now();
                            assert!(bytes(&mut *memory).iter().all(|byte| *byte == own));
                            made += 1;
                        }
                        let state = slots.0.state();
                        assert!(state.live <= MOST && state.live + state.free.len() <= MOST);
                        drop(state);
                        if made > 150 {
                            break;
                        }
                    }
                });
            }
        });
        let state = slots.0.state();
        assert_eq!(state.live, 0);
        assert!(state.free.iter().all(|slot| !slot.torn));
    }

    #[test]
    fn what_cannot_be_had_is_refused_and_leaves_room() {
        let slots = Slots::new(1);
        let ask = |size, reserved, guard| {
            let ty = MemoryType::new(1, None);
            slots.new_memory(ty, size, None, reserved, guard).map(drop)
        };
        assert!(ask(PAGE, None, GUARD).is_err());
        assert!(ask(RESERVED + 1, Some(RESERVED), GUARD).is_err(), "more than is reserved");
        assert!(ask(0, Some(RESERVED + 1), GUARD).is_err(), "not in whole pages");
        assert!(ask(0, Some(usize::MAX & !(PAGE - 1)), GUARD).is_err());
        assert!(ask(0, Some(1 << 46), 1 << 46).is_err(), "more than the machine has");
        let held = memory(&slots, PAGE).unwrap();
        assert!(memory(&slots, PAGE).is_err(), "there is one already");
        drop(held);
        assert!(memory(&slots, PAGE).is_ok());
        // Another layout takes the place of the one that is free.
        assert!(ask(PAGE, Some(2 * RESERVED), GUARD).is_ok());
        assert_eq!(slots.0.state().free.len(), 1);
    }
}
