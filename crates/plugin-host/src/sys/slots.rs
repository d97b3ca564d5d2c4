//! Where the memories of isolated plugins lie: slots of address space, used again and again, and requests mapped into
//! them.
//!
//! ```text
//!  slot │ the plugin's own data │ buffers … mapped request … │ not accessible │ guard │
//!       0                                           byte_size       reservation
//! ```
//!
//! wasmtime's own pool cannot have anything mapped into its memories, and takes longer to clean them.

use super::sealed::Sealed;
use rustix::mm::{
    Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap, mmap_anonymous, mprotect, munmap,
};
use std::{
    io,
    ops::Range,
    ptr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use wasmtime::{LinearMemory, Memory, MemoryCreator, MemoryType, StoreContextMut};

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
    /// Those in use.
    live: Vec<Live>,
}

/// A slot in use, by its address, and what of it a request is mapped to: a range of addresses.
struct Live {
    base: usize,
    mapped: Range<usize>,
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

    /// Maps `request` to the address `at` of `memory`, which lies there as if it had been copied: the plugin may write
    /// to it, and nobody else sees that. It stays until the next is mapped, or the memory's end.
    ///
    /// # Errors
    ///
    /// When `memory` has no such pages, or the system refuses. Nothing is mapped then.
    pub(crate) fn map<T>(
        &self,
        mut store: StoreContextMut<'_, T>,
        memory: Memory,
        at: usize,
        request: &Sealed,
    ) -> io::Result<()> {
        self.unmap(&mut store, memory)?;
        let (base, size) = (memory.data_ptr(&store).addr(), memory.data_size(&store));
        let len = request.len().next_multiple_of(PAGE);
        let mut state = self.0.state();
        let live = state.live.iter_mut().find(|live| live.base == base);
        let live = live.ok_or(io::ErrorKind::NotFound)?;
        let fits = at.checked_add(len).is_some_and(|end| end <= size);
        if !fits || !at.is_multiple_of(PAGE) || len == 0 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let place = ptr::without_provenance_mut(base + at);
        let (access, flags) =
            (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::FIXED);
        // Noted before, so that whatever happens it is taken away.
        live.mapped = base + at..base + at + len;
        // SAFETY: the pages at `place` are whole pages within `memory`, as was just checked, whose slot is `live`:
        // accessible, and nobody else's. `store` is borrowed mutably: no plugin runs in it, and no slice of its memory
        // is lent. What replaces them is readable and writable as well, as wasmtime expects, and what it holds cannot
        // change or shrink, because the file is sealed.
        unsafe { mmap(place, len, access, flags, request.file(), 0) }?;
        // SAFETY: populating what was just mapped for reading changes no byte of it. It is only faster: where the
        // kernel has no such call, pages come one by one.
        let _ = unsafe { madvise(place, len, Advice::LinuxPopulateRead) };
        Ok(())
    }

    /// Puts zeros where a request was mapped, if one was.
    ///
    /// # Errors
    ///
    /// When the system refuses; the request is still there then.
    pub(crate) fn unmap<T>(
        &self,
        store: &mut StoreContextMut<'_, T>,
        memory: Memory,
    ) -> io::Result<()> {
        let base = memory.data_ptr(&mut *store).addr();
        let mut state = self.0.state();
        let Some(live) = state.live.iter_mut().find(|live| live.base == base) else {
            return Ok(());
        };
        if live.mapped.is_empty() {
            return Ok(());
        }
        // SAFETY: `mapped` is what `map` put into this very memory. `store` is borrowed mutably, as there.
        unsafe { zeros(&live.mapped) }?;
        live.mapped = 0..0;
        Ok(())
    }
}

/// Puts pages of zeros, readable and writable, in the place of a mapped request.
///
/// # Safety
///
/// `mapped` is a range that [`Slots::map`] has mapped, in a memory that nothing uses at the moment.
unsafe fn zeros(mapped: &Range<usize>) -> io::Result<()> {
    let place = ptr::without_provenance_mut(mapped.start);
    let (access, flags) = (
        ProtFlags::READ | ProtFlags::WRITE,
        MapFlags::PRIVATE | MapFlags::FIXED | MapFlags::NORESERVE,
    );
    // SAFETY: the caller vouches for the range. The pages are those that the slot consists of elsewhere.
    unsafe { mmap_anonymous(place, mapped.len(), access, flags) }?;
    Ok(())
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
            // SAFETY: the range lies within the slot, as was just checked. wasmtime is told of a smaller size before
            // (the slot is not in use) or of a larger one afterwards.
            unsafe { mprotect(place, to - from, access) }?;
        }
        self.open = size;
        Ok(())
    }

    /// Makes all that is accessible zero again.
    fn clean(&self, mapped: &Range<usize>) -> io::Result<()> {
        if !mapped.is_empty() {
            // SAFETY: only `Linear::drop` calls this, with what was mapped into its slot: wasmtime has let go of it.
            unsafe { zeros(mapped) }?;
        }
        let place = ptr::without_provenance_mut(self.base);
        // SAFETY: the range is accessible and within the slot, which nothing uses. All of it is private and of no file,
        // since a mapped request was just replaced: its pages are forgotten, and read as zero from now on.
        Ok(unsafe { madvise(place, self.open, Advice::LinuxDontNeed) }?)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // SAFETY: the address space is this slot's own, and a slot is dropped only when nothing uses it. Should it fail,
        // address space is lost.
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
// made accessible: `Slot::open` is not called beyond `reserved`. The first `size` bytes are accessible. The base never
// changes. Pages are zero at first: they are fresh, or were cleaned by `Drop`.
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
        if state.live.len() >= self.0.most {
            return Err(format!("there are {} instances already", self.0.most));
        }
        let found = state.free.iter().rposition(|slot| slot.bytes == bytes);
        let slot =
            found.map_or_else(|| Slot::new(bytes), |found| Ok(state.free.swap_remove(found)));
        let slot = slot.and_then(|mut slot| slot.open(minimum).map(|()| slot));
        let slot = slot.map_err(|error| error.to_string())?;
        state.live.push(Live { base: slot.base, mapped: 0..0 });
        let (slot, shared) = (Some(slot), Arc::clone(&self.0));
        Ok(Box::new(Linear { slot, size: minimum, reserved, shared }))
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
        let mut state = self.shared.state();
        let live = state.live.iter().position(|live| live.base == slot.base);
        let mapped = live.map_or(0..0, |live| state.live.swap_remove(live).mapped);
        drop(state);
        // What cannot be cleaned is given back to the system.
        if slot.clean(&mapped).is_ok() {
            self.shared.state().free.push(slot);
        }
    }
}
