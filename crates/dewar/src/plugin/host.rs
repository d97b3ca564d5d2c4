//! The host functions, for plugins that are tried out: the log is standard error, what is kept is forgotten.

use ecode::{Host, Memory, Value};
use plugin_host::EINVAL;
use std::collections::HashMap;

#[derive(Debug, Default)]
pub(super) struct TrialHost {
    state: HashMap<Vec<u8>, Vec<u8>>,
}

impl Host for TrialHost {
    fn call(&mut self, name: &str, args: &[Value], memory: &mut dyn Memory) -> Result<u64, String> {
        let invalid = i64::from(EINVAL) as u64;
        let bytes =
            |memory: &dyn Memory, at: u64, len: i64| memory.read(at, u64::try_from(len).ok()?);
        match (name, args) {
            ("host_log", [Value::Ptr(at), Value::I64(len)]) => match bytes(memory, *at, *len) {
                Some(text) => {
                    eprintln!("{}", String::from_utf8_lossy(&text));
                    Ok(0)
                }
                None => Ok(invalid),
            },
            ("host_get", [Value::Ptr(at), Value::I64(len), Value::Ptr(out), Value::I64(room)]) => {
                let Some(key) = bytes(memory, *at, *len) else { return Ok(invalid) };
                let Some(value) = self.state.get(&key) else { return Ok(-1_i64 as u64) };
                let kept = value.len().min(usize::try_from(*room).unwrap_or(0));
                let written = memory.write(*out, &value[..kept]);
                Ok(if written { value.len() as u64 } else { invalid })
            }
            ("host_set", [Value::Ptr(at), Value::I64(len), Value::Ptr(from), Value::I64(size)]) => {
                match (bytes(memory, *at, *len), bytes(memory, *from, *size)) {
                    (Some(key), Some(value)) if value.is_empty() => drop(self.state.remove(&key)),
                    (Some(key), Some(value)) => drop(self.state.insert(key, value)),
                    _ => return Ok(invalid),
                }
                Ok(0)
            }
            _ => Err(format!("the host has no function `{name}`")),
        }
    }
}
