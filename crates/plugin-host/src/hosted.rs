//! The host functions as code outside of WebAssembly sees them: by name, with values.

use crate::{
    call_failure::CallFailure,
    calls::{Bytes, Calls},
};
use ecode::{CallError, Host, Memory, Value, ir::Spot};
use std::borrow::Cow;

impl Host for Calls {
    fn call(&mut self, name: &str, args: &[Value], memory: &mut dyn Memory) -> Result<u64, String> {
        use Value::{I32, I64, Ptr};
        let mut memory = Whole(memory);
        let answer = match (name, args) {
            ("host_log", [Ptr(text), I64(len)]) => Ok(i64::from(self.log(&memory, *text, *len))),
            ("host_get", [Ptr(key), I64(len), Ptr(out), I64(room)]) => {
                self.get(&mut memory, (*key, *len), (*out, *room))
            }
            ("host_set", [Ptr(key), I64(key_len), Ptr(value), I64(len)]) => {
                self.set(&memory, (*key, *key_len), (*value, *len)).map(i64::from)
            }
            ("host_open", [Ptr(path), I64(len)]) => {
                self.open(&memory, (*path, *len)).map(i64::from)
            }
            ("host_connect", [Ptr(address), I64(len)]) => {
                self.connect(&memory, (*address, *len)).map(i64::from)
            }
            ("host_read", [I32(handle), Ptr(out), I64(room)]) => {
                self.read(&mut memory, *handle, (*out, *room))
            }
            ("host_write", [I32(handle), Ptr(from), I64(len)]) => {
                self.write(&memory, *handle, (*from, *len))
            }
            ("host_close", [I32(handle)]) => Ok(i64::from(self.close(*handle))),
            _ => return Err(format!("the host has no function `{name}`")),
        };
        answer.map(|value| value as u64).map_err(|timeout| timeout.to_string())
    }
}

impl Calls {
    /// Why a call ended. A host function says by a text alone that it ended one for lack of time.
    #[cold]
    pub(crate) fn failure(&mut self, error: &CallError, spot: Option<&Spot>) -> CallFailure {
        match error {
            CallError::Host(_) if self.look_at_clock().is_err() => CallFailure::Timeout(None),
            error => CallFailure::of(error, spot),
        }
    }
}

/// All memory that the code can name.
struct Whole<'m>(&'m mut dyn Memory);

impl Bytes for Whole<'_> {
    fn read(&self, at: u64, len: usize) -> Option<Cow<'_, [u8]>> {
        self.0.read(at, len as u64).map(Cow::Owned)
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> bool {
        self.0.write(at, bytes)
    }
}
