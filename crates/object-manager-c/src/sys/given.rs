//! What C gives, as Rust has it, and back.

use super::{failure::Failure, forms::dewar};
use object_manager::{Class, Question, Sid};
use std::{
    ffi::{CStr, OsStr, c_char},
    os::unix::ffi::OsStrExt as _,
    path::PathBuf,
    ptr,
};

/// # Safety
///
/// `text` is null or a string that ends with 0 and outlives the result.
pub(super) unsafe fn text<'a>(text: *const c_char, what: &str) -> Result<&'a str, Failure> {
    if text.is_null() {
        return Err(Failure::invalid(format_args!("{what} is NULL")));
    }
    // SAFETY: not null, and as promised by the caller.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| Failure::invalid(format_args!("{what} is not UTF-8")))
}

/// The strings of a list, as they are.
///
/// # Safety
///
/// `list` is null, or a list of strings that ends with null; all outlive the result.
pub(super) unsafe fn strings<'a>(mut list: *const *const c_char) -> Vec<&'a CStr> {
    let mut found = Vec::new();
    while !list.is_null() {
        // SAFETY: the list goes on up to its null, as the caller promises.
        let string = unsafe { *list };
        if string.is_null() {
            break;
        }
        // SAFETY: not null, and a string, as the caller promises.
        found.push(unsafe { CStr::from_ptr(string) });
        // SAFETY: this entry was not the last: behind it is another, or the null.
        list = unsafe { list.add(1) };
    }
    found
}

/// # Safety
///
/// As for [`strings`].
pub(super) unsafe fn paths(list: *const *const c_char) -> Vec<PathBuf> {
    // SAFETY: as promised by the caller.
    let paths = unsafe { strings(list) };
    paths.iter().map(|path| PathBuf::from(OsStr::from_bytes(path.to_bytes()))).collect()
}

/// # Safety
///
/// `manager` is null, or comes from [`dewar_open`], and is not closed meanwhile.
pub(super) unsafe fn held<'a>(manager: *const dewar) -> Result<&'a dewar, Failure> {
    // SAFETY: null or live, as promised by the caller, and only ever shared.
    unsafe { manager.as_ref() }.ok_or_else(|| Failure::invalid("the manager is NULL"))
}

/// What is asked; `None` if a number is 0.
#[inline]
pub(super) fn asked(ssid: u32, tsid: u32, tclass: u8) -> Option<Question> {
    let tclass = Class::from_number(tclass.into())?;
    Some(Question { ssid: Sid::new(ssid)?, tsid: Sid::new(tsid)?, tclass })
}

/// The same, or which number is 0.
pub(super) fn question(ssid: u32, tsid: u32, tclass: u8) -> Result<Question, Failure> {
    let sid = |sid| Sid::new(sid).ok_or_else(|| Failure::invalid("a SID is 0"));
    let class = Class::from_number(tclass.into());
    let tclass = class.ok_or_else(|| Failure::invalid("the class is 0"))?;
    Ok(Question { ssid: sid(ssid)?, tsid: sid(tsid)?, tclass })
}

/// Copies `words` and a 0.
///
/// # Safety
///
/// `to` is null or has `room` bytes to write.
pub(super) unsafe fn copy(words: &str, to: *mut c_char, room: usize) -> Result<isize, Failure> {
    let fits = !to.is_null() && words.len() < room;
    if !fits || words.contains('\0') {
        return Err(Failure(libc::ERANGE, format!("it takes {} bytes", words.len() + 1)));
    }
    // SAFETY: `to` has more than `words.len()` bytes (compared above); Rust's memory and the
    // caller's do not overlap.
    unsafe { ptr::copy_nonoverlapping(words.as_ptr(), to.cast(), words.len()) };
    // SAFETY: `words.len()` is less than the bytes that there are.
    let end = unsafe { to.add(words.len()) };
    // SAFETY: so there is room for one byte more.
    unsafe { end.write(0) };
    Ok(words.len().cast_signed())
}
