//! Where the memories of isolated plugins lie: slots of address space, used again and again.
//!
//! ```text
//!  slot │ accessible │ not accessible │ guard │
//!       0        byte_size        reservation
//! ```
//!
//! wasmtime's own pool does more for each instance, and zeroes a part of every memory that few plugins touch.

use rustix::mm::{
    Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap_anonymous, mprotect, munmap,
};
use std::{
    io, ptr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use wasmtime::{LinearMemory, MemoryCreator, MemoryType};

/// Bytes of a page of the system, on x86-64.
const PAGE: usize = 4096;

/// Slots of one engine, at most so many at a time.
pub(crate) struct Slots(Arc<Shared>);

struct Shared {
    most: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Clean ones.
    free: Vec<Slot>,
    /// How many are in use.
    live: usize,
}

/// Address space of its own. What is accessible of it, its first `open` bytes, can be read and written.
struct Slot {
    base: usize,
    bytes: usize,
    open: usize,
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
}

impl Slot {
    fn new(bytes: usize) -> io::Result<Self> {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: the kernel chooses a place where nothing lies.
        let base = unsafe { mmap_anonymous(ptr::null_mut(), bytes, ProtFlags::empty(), flags) }?;
        Ok(Self { base: base.expose_provenance(), bytes, open: 0 })
    }

    /// Makes exactly the first `size` bytes accessible, in whole pages.
    fn open(&mut self, size: usize) -> io::Result<()> {
        let size = size.next_multiple_of(PAGE);
        let (from, to, access) = if size > self.open {
            (self.open, size, MprotectFlags::READ | MprotectFlags::WRITE)
        } else {
            (size, self.open, MprotectFlags::empty())
        };
        if to > self.bytes {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        if from != to {
            let place = ptr::without_provenance_mut(self.base + from);
            // SAFETY: the range lies within the slot, as was just checked. Access is taken away only by `new_memory`,
            // when no memory uses the slot.
            unsafe { mprotect(place, to - from, access) }?;
        }
        self.open = size;
        Ok(())
    }

    /// Makes all that is accessible zero again.
    fn clean(&self) -> rustix::io::Result<()> {
        let place = ptr::without_provenance_mut(self.base);
        // SAFETY: the range is accessible and within the slot, and only `Linear::drop` calls this: wasmtime has let go of
        // it. It is private and of no file, so its pages are forgotten, and read as zero from now on.
        unsafe { madvise(place, self.open, Advice::LinuxDontNeed) }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // SAFETY: the address space is this slot's own, and a slot is dropped only when no memory uses it. Should it
        // fail, address space is lost.
        let _ = unsafe { munmap(ptr::without_provenance_mut(self.base), self.bytes) };
    }
}

/// The memory of one instance.
struct Linear {
    slot: Option<Slot>,
    size: usize,
    reserved: usize,
    shared: Arc<Shared>,
}

// SAFETY: the address space reserved is that which `new_memory` was asked for, with the guard behind it, which is never
// made accessible: `Linear` opens no more than `reserved`. Its first `size` bytes are accessible, and its base never
// changes. They are zero at first: a slot is fresh, or was cleaned by `Drop`.
unsafe impl MemoryCreator for Slots {
    fn new_memory(
        &self,
        _: MemoryType,
        minimum: usize,
        _: Option<usize>,
        reserved: Option<usize>,
        guard: usize,
    ) -> Result<Box<dyn LinearMemory>, String> {
        let reserved = reserved.filter(|reserved| *reserved >= minimum);
        let reserved = reserved.ok_or("a plugin's memory has a size that is known before")?;
        let bytes = reserved.checked_add(guard).ok_or("no memory is as large")?;
        let mut state = self.0.state();
        if state.live >= self.0.most {
            return Err(format!("there are {} instances already", self.0.most));
        }
        let found = state.free.iter().rposition(|slot| slot.bytes == bytes);
        let slot =
            found.map_or_else(|| Slot::new(bytes), |found| Ok(state.free.swap_remove(found)));
        let slot = slot.and_then(|mut slot| slot.open(minimum).map(|()| slot));
        let slot = Some(slot.map_err(|error| error.to_string())?);
        state.live += 1;
        Ok(Box::new(Linear { slot, size: minimum, reserved, shared: Arc::clone(&self.0) }))
    }
}

// SAFETY: as above.
unsafe impl LinearMemory for Linear {
    fn byte_size(&self) -> usize {
        self.size
    }

    fn byte_capacity(&self) -> usize {
        self.reserved
    }

    fn grow_to(&mut self, size: usize) -> wasmtime::Result<()> {
        let slot = self.slot.as_mut().filter(|_| size <= self.reserved && size >= self.size);
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
        let Some(slot) = self.slot.take() else { return };
        // What cannot be cleaned is given back to the system.
        let clean = slot.clean().is_ok().then_some(slot);
        let mut state = self.shared.state();
        state.live -= 1;
        state.free.extend(clean);
    }
}
