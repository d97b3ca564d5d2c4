//! Host functions: what plugins can call, each a permission of class `plugin`.

use crate::instance::{Running, Timeout};
use flask::{AccessVector, perm::plugin as perm};
use std::time::Instant;
use wasmtime::{Caller, Extern, Linker};

/// The host functions, as plugins see them. Lengths and addresses that are not the plugin's give [`EINVAL`], what
/// the policy denies [`EACCES`], what exceeds a limit [`ENOSPC`].
pub const HOST_DECLARATIONS: &str = "
/* Writes text to the host's log. */
extern int host_log(const char *text, long len);
/* Copies what is kept under a key to `out`; the length of it all, or -1 when there is nothing. */
extern long host_get(const char *key, long key_len, void *out, long room);
/* Keeps a value under a key; a value of no length removes the key. */
extern int host_set(const char *key, long key_len, const void *value, long len);
";

/// The policy denies it.
pub const EACCES: i32 = -13;
/// An address or a length is not the plugin's.
pub const EINVAL: i32 = -22;
/// A limit is reached.
pub const ENOSPC: i32 = -28;

/// Copies up to this length are part of a turn of the plugin's loops.
const FREE_BYTES: usize = 1024;
/// Keys are no longer than this.
const MAX_KEY: usize = 1024;

type Linked = wasmtime::Result<()>;

pub(crate) fn link(linker: &mut Linker<Running>) -> Linked {
    linker.func_wrap(ecode::wasm::DEWAR, "tick", tick)?;
    linker.func_wrap(ecode::wasm::HOST, "host_log", log)?;
    linker.func_wrap(ecode::wasm::HOST, "host_get", get)?;
    linker.func_wrap(ecode::wasm::HOST, "host_set", set)?;
    Ok(())
}

/// A look at the clock. The first one in a call starts its time.
fn tick(mut caller: Caller<'_, Running>) -> Linked {
    look_at_clock(caller.data_mut())
}

/// What takes long by itself looks at the clock by itself.
fn spend(running: &mut Running, len: usize) -> Linked {
    if len > FREE_BYTES { look_at_clock(running) } else { Ok(()) }
}

fn look_at_clock(running: &mut Running) -> Linked {
    let now = Instant::now();
    let time = running.plugin.limits.call_time;
    let deadline = *running.deadline.get_or_insert_with(|| now.checked_add(time).unwrap_or(now));
    if now >= deadline { Err(wasmtime::Error::new(Timeout)) } else { Ok(()) }
}

fn log(mut caller: Caller<'_, Running>, text: i32, len: i64) -> i32 {
    let Some((memory, running)) = parts(&mut caller, perm::LOG, 0) else { return EACCES };
    let Some(bytes) = bytes(memory, text, len) else { return EINVAL };
    if bytes.len() > running.log_room {
        return ENOSPC;
    }
    running.log_room -= bytes.len();
    running.plugin.write_log(bytes);
    0
}

fn get(
    mut caller: Caller<'_, Running>,
    key: i32,
    key_len: i64,
    out: i32,
    room: i64,
) -> wasmtime::Result<i64> {
    let Some((memory, running)) = parts(&mut caller, perm::GET_STATE, 1) else {
        return Ok(i64::from(EACCES));
    };
    let Some(key) = bytes(memory, key, key_len).filter(|key| key.len() <= MAX_KEY) else {
        return Ok(i64::from(EINVAL));
    };
    let Some(value) = running.plugin.state.get(key) else { return Ok(-1) };
    spend(running, value.len())?;
    let kept = value.len().min(usize::try_from(room).unwrap_or(0));
    match bytes_mut(memory, out, kept) {
        Some(place) => place.copy_from_slice(&value[..kept]),
        None => return Ok(i64::from(EINVAL)),
    }
    Ok(value.len() as i64)
}

fn set(
    mut caller: Caller<'_, Running>,
    key: i32,
    key_len: i64,
    value: i32,
    len: i64,
) -> wasmtime::Result<i32> {
    let Some((memory, running)) = parts(&mut caller, perm::SET_STATE, 2) else { return Ok(EACCES) };
    let most = running.plugin.limits.state_bytes;
    let (Some(key), Some(value)) = (bytes(memory, key, key_len), bytes(memory, value, len)) else {
        return Ok(EINVAL);
    };
    if key.len() > MAX_KEY {
        return Ok(EINVAL);
    }
    spend(running, value.len())?;
    Ok(if running.plugin.state.set(key, value, most) { 0 } else { ENOSPC })
}

/// The plugin's memory and what belongs to its call, if it has the permission.
fn parts<'c>(
    caller: &'c mut Caller<'_, Running>,
    requested: AccessVector,
    hint: usize,
) -> Option<(&'c mut [u8], &'c mut Running)> {
    let memory = match caller.data().memory {
        Some(memory) => memory,
        None => match caller.get_export("memory") {
            Some(Extern::Memory(memory)) => memory,
            _ => return None,
        },
    };
    let (data, running) = memory.data_and_store_mut(caller);
    running.plugin.may(requested, &running.hints[hint]).then_some((data, running))
}

fn bytes(memory: &[u8], at: i32, len: i64) -> Option<&[u8]> {
    let at = at as u32 as usize;
    memory.get(at..at.checked_add(usize::try_from(len).ok()?)?)
}

fn bytes_mut(memory: &mut [u8], at: i32, len: usize) -> Option<&mut [u8]> {
    let at = at as u32 as usize;
    memory.get_mut(at..at.checked_add(len)?)
}
