//! Images in the memory of an isolated plugin: which, and where.

use crate::sys::{Image, Slots, VIEW_BYTES};
use flask::Seqno;
use std::{io, sync::Arc};

/// Images that one instance has at a time.
const MOST: usize = 64;
/// Bytes of a page of the system, on x86-64.
const PAGE: usize = 4096;

/// What one instance is shown. All of it goes when there is no more room, and when the policy
/// changes: a plugin does not keep what a newer policy does not let it see.
pub(crate) struct MappedImages {
    slots: Arc<Slots>,
    /// Where the instance's memory begins.
    base: usize,
    shown: Vec<(Arc<Image>, u32)>,
    /// Where the next one goes.
    next: usize,
    seqno: Seqno,
}

impl MappedImages {
    pub(crate) fn new(slots: &Arc<Slots>, base: usize) -> Self {
        let slots = Arc::clone(slots);
        Self { slots, base, shown: Vec::new(), next: 0, seqno: Seqno(0) }
    }

    /// The address of `image`, shown under the policy state `seqno`; `None` if it cannot be shown.
    #[inline]
    pub(crate) fn show(&mut self, image: &Arc<Image>, seqno: Seqno) -> Option<u32> {
        if self.seqno == seqno {
            let shown = self.shown.iter().find(|(shown, _)| Arc::ptr_eq(shown, image));
            if let Some((_, at)) = shown {
                return Some(*at);
            }
        }
        self.add(image, seqno)
    }

    #[cold]
    fn add(&mut self, image: &Arc<Image>, seqno: Seqno) -> Option<u32> {
        let need = image.bytes().len().next_multiple_of(PAGE) + PAGE;
        let full = self.shown.len() == MOST || self.next + need > VIEW_BYTES;
        if full || self.seqno != seqno {
            self.hide().ok()?;
        }
        if need > VIEW_BYTES {
            return None;
        }
        let at = self.slots.show(self.base, self.next, image).ok()?;
        self.next += need;
        self.seqno = seqno;
        self.shown.push((Arc::clone(image), at));
        Some(at)
    }

    /// Takes all of them away.
    pub(crate) fn hide(&mut self) -> io::Result<()> {
        self.slots.hide(self.base)?;
        self.shown.clear();
        self.next = 0;
        Ok(())
    }
}
