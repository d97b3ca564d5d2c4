//! A running instance in the kernel.

use crate::{
    call_failure::{CallFailure, reply_length},
    calls::Calls,
    plugin::Plugin,
    quota::{Permit, Quota},
};
use ecode::Value;
use ecode_kernel::{KernelCode, KernelInstance};
use std::sync::Arc;

pub(crate) struct Kernel {
    instance: KernelInstance<Calls>,
    request_at: u64,
    request_len: usize,
    reply_at: u64,
    reply_room: u64,
    /// The last reply, copied out of the arena.
    reply: Vec<u8>,
    _permit: Permit,
}

impl Kernel {
    pub(crate) fn new(
        code: &KernelCode,
        quota: &Arc<Quota>,
        plugin: &Arc<Plugin>,
    ) -> Result<Self, CallFailure> {
        let full =
            || CallFailure::NoRoom("the kernel holds as many instances as it may".to_owned());
        let permit = quota.take().ok_or_else(full)?;
        let instance = code.instantiate(Calls::new(Arc::clone(plugin)));
        let mut instance = instance.map_err(|error| CallFailure::Unavailable(error.to_string()))?;
        let base = instance.heap_base().unwrap_or_default().next_multiple_of(16);
        let (request_len, reply_room, reply) = (0, 0, Vec::new());
        let (request_at, reply_at) = (base, base);
        Ok(Self { instance, request_at, request_len, reply_at, reply_room, reply, _permit: permit })
    }

    pub(crate) fn fill(&mut self, request: &[u8]) -> Result<(), CallFailure> {
        let limits = self.calls().plugin.limits;
        self.request_len = request.len();
        self.reply_at = (self.request_at + request.len() as u64).next_multiple_of(16);
        let wanted = limits.output_bytes.min(i32::MAX as usize) as u64;
        let most = u64::from(limits.memory_bytes);
        self.reply_room = wanted.min(most.saturating_sub(self.reply_at));
        let fits = self.instance.grow_to(self.reply_at + self.reply_room)
            && self.instance.write(self.request_at, request);
        let why = || CallFailure::NoRoom("the request exceeds the plugin's memory".to_owned());
        fits.then_some(()).ok_or_else(why)
    }

    pub(crate) fn run(&mut self) -> Result<usize, CallFailure> {
        let calls = self.instance.host_mut();
        let (may_read, time) = (calls.begin(), calls.plugin.limits.call_time);
        let in_len = if may_read {
            self.request_len as i64
        } else {
            let wiped = self.instance.write(self.request_at, &vec![0; self.request_len]);
            debug_assert!(wiped, "the request was written there");
            i64::from(crate::EACCES)
        };
        let args = [
            Value::Ptr(self.request_at),
            Value::I64(in_len),
            Value::Ptr(self.reply_at),
            Value::I64(self.reply_room as i64),
        ];
        let length = self.instance.call("handle", &args, time);
        let length = length.map_err(|error| {
            let spot = self.instance.spot().cloned();
            self.calls().failure(&error, spot.as_ref())
        });
        let may_write = self.calls().end();
        let Some(Value::I64(length)) = length? else {
            return Err(CallFailure::Fault("`handle` returns no `long`".to_owned()));
        };
        let reply = reply_length(length, self.reply_room as usize)?;
        Ok(if may_write { reply } else { 0 })
    }

    /// Bytes of memory that it has.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.instance.memory_bytes() as usize + self.reply.capacity()
    }

    pub(crate) fn calls(&mut self) -> &mut Calls {
        self.instance.host_mut()
    }

    pub(crate) fn reply(&mut self, len: usize) -> &[u8] {
        self.reply = self.instance.read(self.reply_at, len as u64).unwrap_or_default();
        &self.reply
    }
}
