//! Changes of policy, and the status page.

use super::{
    failure::returned,
    forms::{dewar, dewar_status},
    given::{held, paths, text},
};
use std::{
    ffi::{c_char, c_int},
    ptr,
};

/// See `dewar.h`.
///
/// # Safety
///
/// `manager` comes from [`dewar_open`]; `policies` is a list.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dewar_load(
    manager: *const dewar,
    policies: *const *const c_char,
) -> c_int {
    returned(-1, || {
        // SAFETY: as the caller promises.
        let held = unsafe { held(manager) }?;
        // SAFETY: as the caller promises.
        let paths = unsafe { paths(policies) };
        held.manager.load(&paths)?;
        Ok(0)
    })
}

/// See `dewar.h`.
///
/// # Safety
///
/// `manager` comes from [`dewar_open`]; `name` is a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dewar_set_boolean(
    manager: *const dewar,
    name: *const c_char,
    value: c_int,
) -> c_int {
    returned(-1, || {
        // SAFETY: as the caller promises.
        let held = unsafe { held(manager) }?;
        // SAFETY: as the caller promises.
        let name = unsafe { text(name, "the boolean") }?;
        held.manager.set_booleans(&[(name, value != 0)])?;
        Ok(0)
    })
}

/// See `dewar.h`.
///
/// # Safety
///
/// `manager` comes from [`dewar_open`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dewar_set_enforcing(manager: *const dewar, enforcing: c_int) {
    returned((), || {
        // SAFETY: as the caller promises.
        unsafe { held(manager) }?.manager.set_enforcing(enforcing != 0);
        Ok(())
    });
}

/// See `dewar.h`.
///
/// # Safety
///
/// `manager` comes from [`dewar_open`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dewar_status_page(manager: *const dewar) -> *const dewar_status {
    returned(ptr::null(), || {
        // SAFETY: as the caller promises.
        Ok(ptr::from_ref(unsafe { held(manager) }?.manager.status()))
    })
}
