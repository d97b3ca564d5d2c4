//! A running instance in the process.

use crate::{
    call_failure::{CallFailure, reply_length},
    calls::Calls,
    isolated::HEAD_ROOM,
    plugin::Plugin,
    sys::{self, Image, Trusted},
};
use ecode::Address;
use ecode_native::{NativeCode, NativeEntry, NativeInstance};
use std::sync::Arc;

/// `handle(in, in_len, out, out_room)`
type Handle = NativeEntry<(Address, i64, Address, i64), i64>;

pub(crate) struct Native {
    instance: NativeInstance<Calls>,
    handle: Handle,
    request: Vec<u8>,
    /// The request, where it is an image.
    view: Option<Arc<Image>>,
    /// With room in front for what goes out before the reply.
    reply: Vec<u8>,
    /// Bytes that were put in front of the last reply.
    head: usize,
}

impl Native {
    pub(crate) fn new(
        code: &NativeCode,
        trusted: Trusted,
        plugin: &Arc<Plugin>,
    ) -> Result<Self, CallFailure> {
        let instance = sys::instantiate(code, trusted, Calls::new(Arc::clone(plugin)));
        let handle = instance.entry("handle");
        let handle = handle.map_err(|error| CallFailure::Fault(error.to_string()))?;
        Ok(Self { instance, handle, request: Vec::new(), view: None, reply: Vec::new(), head: 0 })
    }

    pub(crate) fn fill(&mut self, request: &[u8]) {
        self.request.clear();
        self.request.extend_from_slice(request);
        self.view = None;
        self.make_room();
    }

    /// Has the plugin find `image` as its request. It is trusted not to write there: the process
    /// would end.
    pub(crate) fn view(&mut self, image: &Arc<Image>) {
        self.view = Some(Arc::clone(image));
        self.make_room();
    }

    fn make_room(&mut self) {
        let room = self.calls().plugin.limits.output_bytes + HEAD_ROOM;
        if self.reply.len() != room {
            // Pages that the system has zeroed are touched only where the plugin writes.
            self.reply = vec![0; room];
        }
    }

    pub(crate) fn run(&mut self) -> Result<usize, CallFailure> {
        // It is of an answer that others made, too.
        let head = HEAD_ROOM - std::mem::take(&mut self.head);
        if let Some(place) = self.reply.get_mut(head..HEAD_ROOM) {
            place.fill(0);
        }
        let may_read = self.calls().begin();
        let in_len = if may_read {
            self.view.as_ref().map_or(self.request.len(), |image| image.bytes().len()) as i64
        } else {
            self.view = None;
            self.request.fill(0);
            i64::from(crate::EACCES)
        };
        let at = |buffer: &mut Vec<u8>| Address(buffer.as_mut_ptr() as u64);
        let request = match &self.view {
            Some(image) => Address(image.bytes().as_ptr() as u64),
            None => at(&mut self.request),
        };
        let (reply, room) = (at(&mut self.reply).0 + HEAD_ROOM as u64, self.room());
        let args = (request, in_len, Address(reply), room as i64);
        let length = self.instance.enter(&self.handle, args);
        let length = length.map_err(|error| {
            let spot = self.instance.spot().cloned();
            self.calls().failure(&error, spot.as_ref())
        });
        let may_write = self.calls().end();
        let reply = reply_length(length?, room)?;
        Ok(if may_write { reply } else { 0 })
    }

    /// Bytes of memory that it has, static data aside.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.request.capacity() + self.reply.capacity()
    }

    pub(crate) fn calls(&mut self) -> &mut Calls {
        self.instance.host_mut()
    }

    pub(crate) fn reply(&self, len: usize) -> &[u8] {
        self.reply.get(HEAD_ROOM..HEAD_ROOM + len).unwrap_or_default()
    }

    fn room(&self) -> usize {
        self.reply.len().saturating_sub(HEAD_ROOM)
    }

    /// `head`, and the first `len` bytes of the reply, in one piece; `None` if there is no room for
    /// it.
    pub(crate) fn reply_behind(&mut self, head: &[u8], len: usize) -> Option<&[u8]> {
        let from = HEAD_ROOM.checked_sub(head.len())?;
        self.head = self.head.max(head.len());
        let place = self.reply.get_mut(from..HEAD_ROOM + len)?;
        place[..head.len()].copy_from_slice(head);
        Some(place)
    }
}
