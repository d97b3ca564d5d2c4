//! A running instance in the process, with the host functions as native code sees them.

use crate::{
    calls::{Bytes, Calls},
    instance::CallFailure,
    plugin::Plugin,
    sys::{self, Trusted},
};
use ecode::{CallError, Host, Memory, NativeCode, NativeInstance, Value};
use std::{
    borrow::Cow,
    sync::{Arc, Mutex, PoisonError},
};

pub(crate) struct Native {
    instance: NativeInstance,
    calls: Arc<Mutex<Calls>>,
    request: Vec<u8>,
    reply: Vec<u8>,
}

impl Native {
    pub(crate) fn new(code: &NativeCode, trusted: Trusted, plugin: &Arc<Plugin>) -> Self {
        let calls = Arc::new(Mutex::new(Calls::new(Arc::clone(plugin))));
        let instance = sys::instantiate(code, trusted, Box::new(NativeHost(Arc::clone(&calls))));
        Self { instance, calls, request: Vec::new(), reply: Vec::new() }
    }

    pub(crate) fn fill(&mut self, request: &[u8]) {
        self.request.clear();
        self.request.extend_from_slice(request);
        let room = self.lock(|calls| calls.plugin.limits.output_bytes);
        self.reply.resize(room, 0);
    }

    pub(crate) fn run(&mut self) -> Result<usize, CallFailure> {
        let may_read = self.lock(Calls::begin);
        let in_len = if may_read {
            self.request.len() as i64
        } else {
            self.request.fill(0);
            i64::from(crate::EACCES)
        };
        let args = [
            Value::Ptr(self.request.as_mut_ptr() as u64),
            Value::I64(in_len),
            Value::Ptr(self.reply.as_mut_ptr() as u64),
            Value::I64(self.reply.len() as i64),
        ];
        let result = self.instance.call("handle", &args);
        let may_write = self.lock(Calls::end);
        let length = match result {
            Ok(Some(Value::I64(length))) => length,
            Ok(_) => return Err(CallFailure::Fault("`handle` returns no `long`".to_owned())),
            Err(CallError::Timeout) => return Err(CallFailure::Timeout),
            Err(error) => return Err(CallFailure::Fault(error.to_string())),
        };
        let reply = usize::try_from(length).ok().filter(|length| *length <= self.reply.len());
        let reply = reply.ok_or(CallFailure::BadReply(length))?;
        Ok(if may_write { reply } else { 0 })
    }

    pub(crate) fn reply(&self, len: usize) -> &[u8] {
        self.reply.get(..len).unwrap_or_default()
    }

    fn lock<T>(&self, use_it: impl FnOnce(&mut Calls) -> T) -> T {
        use_it(&mut self.calls.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

struct NativeHost(Arc<Mutex<Calls>>);

impl Host for NativeHost {
    fn call(&mut self, name: &str, args: &[Value], memory: &mut dyn Memory) -> Result<u64, String> {
        use Value::{I32, I64, Ptr};
        let calls = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut memory = Process(memory);
        let answer = match (name, args) {
            ("host_log", [Ptr(text), I64(len)]) => Ok(i64::from(calls.log(&memory, *text, *len))),
            ("host_get", [Ptr(key), I64(len), Ptr(out), I64(room)]) => {
                calls.get(&mut memory, (*key, *len), (*out, *room))
            }
            ("host_set", [Ptr(key), I64(key_len), Ptr(value), I64(len)]) => {
                calls.set(&memory, (*key, *key_len), (*value, *len)).map(i64::from)
            }
            ("host_open", [Ptr(path), I64(len)]) => {
                calls.open(&memory, (*path, *len)).map(i64::from)
            }
            ("host_connect", [Ptr(address), I64(len)]) => {
                calls.connect(&memory, (*address, *len)).map(i64::from)
            }
            ("host_read", [I32(handle), Ptr(out), I64(room)]) => {
                calls.read(&mut memory, *handle, (*out, *room))
            }
            ("host_write", [I32(handle), Ptr(from), I64(len)]) => {
                calls.write(&memory, *handle, (*from, *len))
            }
            ("host_close", [I32(handle)]) => Ok(i64::from(calls.close(*handle))),
            _ => return Err(format!("the host has no function `{name}`")),
        };
        answer.map(|value| value as u64).map_err(|timeout| timeout.to_string())
    }
}

/// All memory of the process.
struct Process<'m>(&'m mut dyn Memory);

impl Bytes for Process<'_> {
    fn read(&self, at: u64, len: usize) -> Option<Cow<'_, [u8]>> {
        self.0.read(at, len as u64).map(Cow::Owned)
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> bool {
        self.0.write(at, bytes)
    }
}
