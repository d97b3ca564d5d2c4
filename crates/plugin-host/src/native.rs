//! A running instance in the process.

use crate::{
    calls::Calls,
    instance::{CallFailure, reply_length},
    plugin::Plugin,
    sys::{self, Trusted},
};
use ecode::{Address, NativeCode, NativeEntry, NativeInstance};
use std::sync::Arc;

/// `handle(in, in_len, out, out_room)`
type Handle = NativeEntry<(Address, i64, Address, i64), i64>;

pub(crate) struct Native {
    instance: NativeInstance<Calls>,
    handle: Handle,
    request: Vec<u8>,
    reply: Vec<u8>,
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
        Ok(Self { instance, handle, request: Vec::new(), reply: Vec::new() })
    }

    pub(crate) fn fill(&mut self, request: &[u8]) {
        self.request.clear();
        self.request.extend_from_slice(request);
        let room = self.calls().plugin.limits.output_bytes;
        if self.reply.len() != room {
            // Pages that the system has zeroed are touched only where the plugin writes.
            self.reply = vec![0; room];
        }
    }

    pub(crate) fn run(&mut self) -> Result<usize, CallFailure> {
        let may_read = self.calls().begin();
        let in_len = if may_read {
            self.request.len() as i64
        } else {
            self.request.fill(0);
            i64::from(crate::EACCES)
        };
        let at = |buffer: &mut Vec<u8>| Address(buffer.as_mut_ptr() as u64);
        let (request, reply) = (at(&mut self.request), at(&mut self.reply));
        let args = (request, in_len, reply, self.reply.len() as i64);
        let length = self.instance.enter(&self.handle, args);
        let length = length.map_err(|error| self.calls().failure(error));
        let may_write = self.calls().end();
        let reply = reply_length(length?, self.reply.len())?;
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
        self.reply.get(..len).unwrap_or_default()
    }
}
