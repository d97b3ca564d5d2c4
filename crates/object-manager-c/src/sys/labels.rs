//! Classes, permissions, contexts.

use super::{
    failure::{Failure, returned},
    forms::dewar,
    given::{copy, held, question, text},
};
use object_manager::{Class, Sid};
use std::ffi::c_char;

/// See `dewar.h`.
///
/// # Safety
///
/// `manager` comes from [`dewar_open`]; `name` is a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dewar_class_number(manager: *const dewar, name: *const c_char) -> u8 {
    returned(0, || {
        // SAFETY: as the caller promises.
        let held = unsafe { held(manager) }?;
        // SAFETY: as the caller promises.
        let name = unsafe { text(name, "the name of a class") }?;
        held.manager.class(name).map(Class::number).map_err(Failure::invalid)
    })
}

/// See `dewar.h`.
///
/// # Safety
///
/// `manager` comes from [`dewar_open`]; `name` is a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dewar_permission(
    manager: *const dewar,
    tclass: u8,
    name: *const c_char,
) -> u32 {
    returned(0, || {
        // SAFETY: as the caller promises.
        let held = unsafe { held(manager) }?;
        // SAFETY: as the caller promises.
        let name = unsafe { text(name, "the name of a permission") }?;
        let class = Class::from_number(tclass.into());
        let class = class.ok_or_else(|| Failure::invalid("the class is 0"))?;
        held.manager.permission(class, name).map(|av| av.0).map_err(Failure::invalid)
    })
}

/// See `dewar.h`.
///
/// # Safety
///
/// `manager` comes from [`dewar_open`]; `context` is a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dewar_sid(manager: *const dewar, context: *const c_char) -> u32 {
    returned(0, || {
        // SAFETY: as the caller promises.
        let held = unsafe { held(manager) }?;
        // SAFETY: as the caller promises.
        let context = unsafe { text(context, "the context") }?;
        held.manager.sid(context).map(Sid::get).map_err(Failure::invalid)
    })
}

/// See `dewar.h`.
///
/// # Safety
///
/// `manager` comes from [`dewar_open`]; `context` has `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dewar_context(
    manager: *const dewar,
    sid: u32,
    context: *mut c_char,
    room: usize,
) -> isize {
    returned(-1, || {
        // SAFETY: as the caller promises.
        let held = unsafe { held(manager) }?;
        let sid = Sid::new(sid).ok_or_else(|| Failure::invalid("the SID is 0"))?;
        let words = held.manager.context(sid).map_err(Failure::invalid)?;
        // SAFETY: as the caller promises.
        unsafe { copy(&words, context, room) }
    })
}

/// See `dewar.h`.
///
/// # Safety
///
/// `manager` comes from [`dewar_open`]; `name` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dewar_create(
    manager: *const dewar,
    ssid: u32,
    tsid: u32,
    tclass: u8,
    name: *const c_char,
) -> u32 {
    returned(0, || {
        // SAFETY: as the caller promises.
        let held = unsafe { held(manager) }?;
        let name = match name.is_null() {
            true => None,
            // SAFETY: as the caller promises.
            false => Some(unsafe { text(name, "the name of the object") }?),
        };
        let made = held.manager.create(question(ssid, tsid, tclass)?, name);
        made.map(Sid::get).map_err(Failure::invalid)
    })
}
