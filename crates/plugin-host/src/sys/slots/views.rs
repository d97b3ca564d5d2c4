//! Images behind the memories of plugins: read-only, and outside of what any memory can have.

use super::{PAGE, Slots, VIEW_BYTES, VIEW_START};
use crate::sys::image::Image;
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous};
use std::{io, ptr};

impl Slots {
    /// Shows `image` to the memory at `base`, `at` bytes behind the beginning of its views; its
    /// address for the plugin. A page of zeros follows. What was there before is not there any
    /// more.
    pub(crate) fn show(&self, base: usize, at: usize, image: &Image) -> io::Result<u32> {
        let len = image.bytes().len().next_multiple_of(PAGE) + PAGE;
        if !at.is_multiple_of(PAGE) || at.checked_add(len).is_none_or(|end| end > VIEW_BYTES) {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        let mut state = self.0.state();
        // The slot stays in use for as long as the lock is held.
        *state.viewed.get_mut(&base).ok_or(io::ErrorKind::NotFound)? = true;
        let place = ptr::without_provenance_mut(base + VIEW_START + at);
        let last = ptr::without_provenance_mut(base + VIEW_START + at + len - PAGE);
        let flags = MapFlags::FIXED | MapFlags::NORESERVE | MapFlags::PRIVATE;
        // SAFETY: `viewed` has the base of a slot in use, with room for all views
        // (`Slots::new_memory`). The page lies within them (compared above). Only `show` and `hide`
        // map there, and no memory reaches there (`Slot::open`), so no reference leads there.
        unsafe { mmap_anonymous(last, PAGE, ProtFlags::READ, flags) }?;
        if !image.bytes().is_empty() {
            let flags = MapFlags::FIXED | MapFlags::SHARED | MapFlags::POPULATE;
            // SAFETY: as above, for the pages before the last. The image is sealed: reading it
            // cannot fail.
            unsafe { mmap(place, image.bytes().len(), ProtFlags::READ, flags, image.fd(), 0) }?;
        }
        Ok((VIEW_START + at) as u32)
    }

    /// Takes away all that was shown to the memory at `base`.
    pub(crate) fn hide(&self, base: usize) -> io::Result<()> {
        let mut state = self.0.state();
        let Some(viewed) = state.viewed.get_mut(&base).filter(|viewed| **viewed) else {
            return Ok(());
        };
        close(base)?;
        *viewed = false;
        Ok(())
    }
}

/// `base` is that of a slot with room for views, in use, or given up by its memory and not yet
/// free.
pub(super) fn close(base: usize) -> io::Result<()> {
    let place = ptr::without_provenance_mut(base + VIEW_START);
    let flags = MapFlags::FIXED | MapFlags::NORESERVE | MapFlags::PRIVATE;
    // SAFETY: the caller's word for the slot. Only views lie in the range: no memory reaches there
    // (`Slot::open`), and no reference leads there.
    unsafe { mmap_anonymous(place, VIEW_BYTES, ProtFlags::empty(), flags) }?;
    Ok(())
}
