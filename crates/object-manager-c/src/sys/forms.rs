//! The structs of `dewar.h`.

use object_manager::{Hint, Manager, Status};
use std::ffi::{CString, c_char, c_double, c_int, c_uint, c_void};

/// `struct dewar`.
pub struct dewar {
    pub(super) manager: Manager,
    pub(super) run: Option<CString>,
}

/// `struct dewar_class`.
#[repr(C)]
#[derive(Debug)]
pub struct dewar_class {
    /// Its name.
    pub name: *const c_char,
    /// Those of its permissions.
    pub permissions: *const *const c_char,
}

/// `struct dewar_record`.
#[repr(C)]
#[derive(Debug)]
pub struct dewar_record {
    /// Seconds since 1970.
    pub time: c_double,
    /// Whether it passed.
    pub granted: c_int,
    /// Who asked.
    pub pid: libc::pid_t,
    /// As the program names it.
    pub object: *const c_char,
    /// What was to be done.
    pub operation: *const c_char,
    /// The subject.
    pub scontext: *const c_char,
    /// The object.
    pub tcontext: *const c_char,
    /// Its class.
    pub tclass: *const c_char,
    /// Missing, or asked for.
    pub permissions: *const c_char,
    /// Of a denial.
    pub reason: *const c_char,
    /// The rule, or null.
    pub would_allow: *const c_char,
    /// All of it.
    pub json: *const c_char,
}

/// `dewar_audit`.
pub type dewar_audit = unsafe extern "C" fn(*mut c_void, *const dewar_record);

/// `dewar_change`.
pub type dewar_change = unsafe extern "C" fn(*mut c_void, u32);

/// `struct dewar_options`.
#[repr(C)]
#[derive(Debug)]
pub struct dewar_options {
    /// Of this struct.
    pub size: usize,
    /// Of the program.
    pub name: *const c_char,
    /// Files.
    pub policies: *const *const c_char,
    /// The program's own.
    pub classes: *const dewar_class,
    /// How many.
    pub class_count: usize,
    /// Of the cache.
    pub entries: usize,
    /// `DEWAR_…`.
    pub flags: c_uint,
    /// For records.
    pub audit: Option<dewar_audit>,
    /// For changes of policy.
    pub change: Option<dewar_change>,
    /// For both.
    pub data: *mut c_void,
}

/// `struct dewar_hint`.
pub type dewar_hint = Hint;

/// `struct dewar_about`.
#[repr(C)]
#[derive(Debug)]
pub struct dewar_about {
    /// As the program names it.
    pub object: *const c_char,
    /// What is to be done.
    pub operation: *const c_char,
    /// By whom.
    pub pid: libc::pid_t,
}

/// `struct dewar_decision`.
#[repr(C)]
#[derive(Debug, Default)]
pub struct dewar_decision {
    /// What is granted.
    pub allowed: u32,
    /// What is recorded when granted.
    pub auditallow: u32,
    /// What is recorded when denied.
    pub auditdeny: u32,
    /// The policy state.
    pub seqno: u32,
    /// Denials are not enforced.
    pub permissive: c_int,
}

/// `struct dewar_status`.
pub type dewar_status = Status;
