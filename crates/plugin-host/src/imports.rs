//! The host functions as WebAssembly imports.

use crate::{
    calls::{Bytes, Calls},
    interface::EINVAL,
    sys::Image,
};
use ecode::wasm::{DEWAR, HOST};
use std::{borrow::Cow, sync::Arc};
use wasmtime::{Caller, Extern, Linker, Memory, StoreLimits};

/// What an isolated instance's store holds.
pub(crate) struct Running {
    pub(crate) calls: Calls,
    pub(crate) memory: Option<Memory>,
    pub(crate) limits: StoreLimits,
    /// The request, where it is an image, and its address.
    pub(crate) view: Option<(u64, Arc<Image>)>,
}

type Called<'c> = Caller<'c, Running>;

/// Names every host function.
pub(crate) fn link(linker: &mut Linker<Running>) -> wasmtime::Result<()> {
    linker.func_wrap(DEWAR, "tick", |mut caller: Called<'_>| -> wasmtime::Result<()> {
        Ok(caller.data_mut().calls.look_at_clock().map(drop)?)
    })?;
    linker.func_wrap(
        HOST,
        "host_log",
        |mut caller: Called<'_>, text: i32, len: i64| match caller.data_mut().calls.log_nothing(len)
        {
            Some(answer) => answer,
            None => log(&mut caller, text, len),
        },
    )?;
    linker.func_wrap(HOST, "host_get", |mut caller: Called<'_>, key, len, out, room| {
        let (mut memory, calls) = parts(&mut caller)?;
        wasmtime::Result::Ok(calls.get(&mut memory, (addr(key), len), (addr(out), room))?)
    })?;
    linker.func_wrap(HOST, "host_set", |mut caller: Called<'_>, key, key_len, value, len| {
        let (memory, calls) = parts(&mut caller)?;
        wasmtime::Result::Ok(calls.set(&memory, (addr(key), key_len), (addr(value), len))?)
    })?;
    linker.func_wrap(HOST, "host_open", |mut caller: Called<'_>, path, len| {
        let (memory, calls) = parts(&mut caller)?;
        wasmtime::Result::Ok(calls.open(&memory, (addr(path), len))?)
    })?;
    linker.func_wrap(HOST, "host_connect", |mut caller: Called<'_>, address, len| {
        let (memory, calls) = parts(&mut caller)?;
        wasmtime::Result::Ok(calls.connect(&memory, (addr(address), len))?)
    })?;
    linker.func_wrap(HOST, "host_read", |mut caller: Called<'_>, handle, out, room| {
        let (mut memory, calls) = parts(&mut caller)?;
        wasmtime::Result::Ok(calls.read(&mut memory, handle, (addr(out), room))?)
    })?;
    linker.func_wrap(HOST, "host_write", |mut caller: Called<'_>, handle, from, len| {
        let (memory, calls) = parts(&mut caller)?;
        wasmtime::Result::Ok(calls.write(&memory, handle, (addr(from), len))?)
    })?;
    linker.func_wrap(HOST, "host_close", |mut caller: Called<'_>, handle: i32| {
        caller.data_mut().calls.close(handle)
    })?;
    Ok(())
}

/// Kept apart from the check that comes before, which is all that many calls need.
#[inline(never)]
fn log(caller: &mut Called<'_>, text: i32, len: i64) -> i32 {
    // Without a memory no text is the plugin's.
    let Ok((memory, calls)) = parts(caller) else { return EINVAL };
    calls.log(&memory, addr(text), len)
}

fn addr(at: i32) -> u64 {
    u64::from(at as u32)
}

/// The plugin's memory and what belongs to its call.
fn parts<'c>(caller: &'c mut Called<'_>) -> wasmtime::Result<(Linear<'c>, &'c mut Calls)> {
    let memory = match caller.data().memory {
        Some(memory) => memory,
        // The instance is only being made: its start function calls.
        None => match caller.get_export("memory") {
            Some(Extern::Memory(memory)) => memory,
            _ => return Err(wasmtime::Error::msg("it exports no memory")),
        },
    };
    let (data, running) = memory.data_and_store_mut(caller);
    let view = running.view.as_ref();
    Ok((Linear { data, view }, &mut running.calls))
}

/// The memory of an isolated plugin.
pub(crate) struct Linear<'m> {
    data: &'m mut [u8],
    view: Option<&'m (u64, Arc<Image>)>,
}

impl Bytes for Linear<'_> {
    fn read(&self, at: u64, len: usize) -> Option<Cow<'_, [u8]>> {
        match self.view {
            Some((start, image)) if at >= *start => part(image.bytes(), at - start, len),
            _ => part(self.data, at, len),
        }
        .map(Cow::Borrowed)
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> bool {
        let place = usize::try_from(at).ok().and_then(|at| Some(at..at.checked_add(bytes.len())?));
        let place = place.and_then(|place| self.data.get_mut(place));
        place.map(|place| place.copy_from_slice(bytes)).is_some()
    }
}

fn part(bytes: &[u8], at: u64, len: usize) -> Option<&[u8]> {
    let at = usize::try_from(at).ok()?;
    bytes.get(at..at.checked_add(len)?)
}
