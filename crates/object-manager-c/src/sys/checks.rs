//! Checks and decisions.

use super::{
    failure::{Failure, returned},
    forms::{dewar, dewar_about, dewar_decision, dewar_hint},
    given::{asked, copy, held, question, text},
};
use object_manager::{About, AccessVector, Hint};
use std::ffi::{CStr, c_char, c_int};

/// What the record says, as C tells it; what is not UTF-8 is replaced.
///
/// # Safety
///
/// `about` is null, or what it names is as the header says, and outlives the result.
unsafe fn described<'a>(about: *const dewar_about) -> About<'a> {
    // SAFETY: as promised by the caller.
    let Some(about) = (unsafe { about.as_ref() }) else { return About::default() };
    let words = |text: *const c_char| match text.is_null() {
        true => "".into(),
        // SAFETY: not null, and a string, as the caller promises.
        false => unsafe { CStr::from_ptr(text) }.to_string_lossy(),
    };
    let described = About::object(words(about.object)).operation(words(about.operation));
    match u32::try_from(about.pid) {
        Ok(pid) if pid > 0 => described.by_process(pid),
        _ => described,
    }
}

/// See `dewar.h`.
///
/// # Safety
///
/// `manager` comes from [`dewar_open`]; `hint` is null or a hint, which several threads may share;
/// `about` is as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dewar_check(
    manager: *const dewar,
    ssid: u32,
    tsid: u32,
    tclass: u8,
    requested: u32,
    hint: *const dewar_hint,
    about: *const dewar_about,
) -> c_int {
    // SAFETY: null or live, and only shared, as the caller promises.
    let opened = unsafe { manager.as_ref() };
    // SAFETY: null, or a hint: four bytes of the same form, of which any value is one.
    let place = unsafe { hint.as_ref() };
    if let (Some(opened), Some(hint), Some(q)) = (opened, place, asked(ssid, tsid, tclass))
        && opened.manager.grants_kept(q, AccessVector(requested), hint)
    {
        // Where no server is asked, nothing panics that would have to be caught.
        return 0;
    }
    returned(-1, || {
        // SAFETY: as the caller promises.
        let held = unsafe { held(manager) }?;
        // SAFETY: null, or a hint: four bytes of the same form, of which any value is one.
        let hint = unsafe { hint.as_ref() };
        let none = Hint::default();
        let q = question(ssid, tsid, tclass)?;
        // SAFETY: as the caller promises; it is used in this call only.
        let about = || unsafe { described(about) };
        let checked = held.manager.check(q, AccessVector(requested), hint.unwrap_or(&none), about);
        checked.map(|()| 0).map_err(Failure::from)
    })
}

/// See `dewar.h`.
///
/// # Safety
///
/// `manager` comes from [`dewar_open`]; the others are as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dewar_check_access(
    manager: *const dewar,
    scontext: *const c_char,
    tcontext: *const c_char,
    tclass: *const c_char,
    permission: *const c_char,
    about: *const dewar_about,
) -> c_int {
    returned(-1, || {
        // SAFETY: as the caller promises.
        let held = unsafe { held(manager) }?;
        let [scontext, tcontext, tclass, permission] = [
            (scontext, "scontext"),
            (tcontext, "tcontext"),
            (tclass, "tclass"),
            (permission, "permission"),
        ]
        // SAFETY: as the caller promises.
        .map(|(it, what)| unsafe { text(it, what) });
        // SAFETY: as the caller promises; it is used in this call only.
        let about = || unsafe { described(about) };
        let checked =
            held.manager.check_by_name((scontext?, tcontext?), (tclass?, permission?), about);
        checked.map(|()| 0).map_err(Failure::from)
    })
}

/// See `dewar.h`.
///
/// # Safety
///
/// `manager` comes from [`dewar_open`]; `decision` is null, or to be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dewar_decide(
    manager: *const dewar,
    ssid: u32,
    tsid: u32,
    tclass: u8,
    decision: *mut dewar_decision,
) -> c_int {
    returned(-1, || {
        // SAFETY: null, or the caller's own, as promised.
        let decision = unsafe { decision.as_mut() };
        let decision = decision.ok_or_else(|| Failure::invalid("`decision` is NULL"))?;
        *decision = dewar_decision::default();
        // SAFETY: as the caller promises.
        let held = unsafe { held(manager) }?;
        let found = held.manager.decision(question(ssid, tsid, tclass)?);
        let found = found.map_err(|error| Failure(libc::ENOTCONN, error.to_string()))?;
        *decision = dewar_decision {
            allowed: found.allowed.0,
            auditallow: found.auditallow.0,
            auditdeny: found.auditdeny.0,
            seqno: found.seqno.0,
            permissive: found.permissive.into(),
        };
        Ok(0)
    })
}

/// See `dewar.h`.
///
/// # Safety
///
/// `manager` comes from [`dewar_open`]; `words` has `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dewar_explain(
    manager: *const dewar,
    ssid: u32,
    tsid: u32,
    tclass: u8,
    requested: u32,
    words: *mut c_char,
    room: usize,
) -> isize {
    returned(-1, || {
        // SAFETY: as the caller promises.
        let held = unsafe { held(manager) }?;
        let q = question(ssid, tsid, tclass)?;
        let explained = held.manager.explain(q, AccessVector(requested));
        let explained = explained.map_err(|error| Failure(libc::ENOTCONN, error.to_string()))?;
        let reason = Some(explained.reason).filter(|reason| !reason.is_empty());
        let lines = explained.rules.into_iter().chain(reason).chain(explained.would_allow);
        // SAFETY: as the caller promises.
        unsafe { copy(&lines.collect::<Vec<_>>().join("\n"), words, room) }
    })
}
