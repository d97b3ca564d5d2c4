//! Opening and closing, and the callbacks.

use super::{
    failure::{Failure, returned},
    forms::{dewar, dewar_audit, dewar_options, dewar_record},
    given::{held, paths, strings, text},
};
use object_manager::{Daemon, Manager, Record};
use std::{
    ffi::{CString, c_char, c_uint, c_void},
    ptr, slice,
};

const DAEMON: c_uint = 1;
const DAEMON_IF_THERE: c_uint = 2;
const PERMISSIVE: c_uint = 4;

/// What the callbacks are called with, in whichever thread.
#[derive(Clone, Copy)]
struct Data(*mut c_void);

// SAFETY: the pointer is only handed back to the callbacks, which the header says are called by
// several threads.
unsafe impl Send for Data {}
// SAFETY: as above; nobody here looks behind it.
unsafe impl Sync for Data {}

impl Data {
    fn get(self) -> *mut c_void {
        self.0
    }
}

fn tell(audit: dewar_audit, data: Data, record: &Record) {
    let string = |words: &str| CString::new(words.replace('\0', "")).unwrap_or_default();
    let names = if record.granted { &record.requested } else { &record.missing };
    let [object, operation, scontext, tcontext, tclass] =
        [&record.object, &record.call, &record.scontext, &record.tcontext, &record.tclass]
            .map(|words| string(words));
    let (permissions, reason, json) =
        (string(&names.join(" ")), string(&record.reason), string(&record.to_json()));
    let would_allow = record.would_allow.as_deref().map(string);
    let told = dewar_record {
        time: record.time,
        granted: record.granted.into(),
        pid: record.pid.cast_signed(),
        object: object.as_ptr(),
        operation: operation.as_ptr(),
        scontext: scontext.as_ptr(),
        tcontext: tcontext.as_ptr(),
        tclass: tclass.as_ptr(),
        permissions: permissions.as_ptr(),
        reason: reason.as_ptr(),
        would_allow: would_allow.as_ref().map_or(ptr::null(), |rule| rule.as_ptr()),
        json: json.as_ptr(),
    };
    // SAFETY: the callback keeps to the header, as promised to `dewar_open`: it reads what `told`
    // names, all of which outlives the call.
    unsafe { audit(data.get(), &raw const told) };
}

/// See `dewar.h`.
///
/// # Safety
///
/// `options` is null, or what it names is as the header says; the callbacks keep to the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dewar_open(options: *const dewar_options) -> *mut dewar {
    returned(ptr::null_mut(), || {
        // SAFETY: null, or a struct of the header, as the caller promises.
        let options = unsafe { options.as_ref() };
        let options = options.ok_or_else(|| Failure::invalid("the options are NULL"))?;
        if options.size != size_of::<dewar_options>() {
            return Err(Failure::invalid("`size` is not sizeof(struct dewar_options)"));
        }
        // SAFETY: what the options name is as the header says, as the caller promises.
        let manager = unsafe { open(options) }?;
        let run = manager.run().and_then(|run| CString::new(run).ok());
        Ok(Box::into_raw(Box::new(dewar { manager, run })))
    })
}

/// # Safety
///
/// What `options` names is as the header says.
unsafe fn open(options: &dewar_options) -> Result<Manager, Failure> {
    // SAFETY: a string, as the caller promises.
    let mut builder = Manager::builder(unsafe { text(options.name, "`name`") }?);
    // SAFETY: a list, as the caller promises.
    for path in unsafe { paths(options.policies) } {
        builder = builder.policy_file(path);
    }
    let classes = match (options.classes.is_null(), options.class_count) {
        (_, 0) => &[][..],
        (true, _) => return Err(Failure::invalid("`classes` is NULL")),
        // SAFETY: not null, and so many, as the caller promises.
        (false, count) => unsafe { slice::from_raw_parts(options.classes, count) },
    };
    for class in classes {
        // SAFETY: a string, as the caller promises.
        let name = unsafe { text(class.name, "the name of a class") }?;
        // SAFETY: a list, as the caller promises.
        let permissions = unsafe { strings(class.permissions) };
        builder = builder.class(name, permissions.iter().map(|name| name.to_string_lossy()));
    }
    builder = match options.flags {
        flags if flags & !(DAEMON | DAEMON_IF_THERE | PERMISSIVE) != 0 => {
            return Err(Failure::invalid("`flags` has a bit that is none of DEWAR_…"));
        }
        flags if flags & DAEMON != 0 => builder.daemon(Daemon::Insist),
        flags if flags & DAEMON_IF_THERE != 0 => builder.daemon(Daemon::IfThere),
        _ => builder,
    };
    if options.flags & PERMISSIVE != 0 {
        builder = builder.permissive();
    }
    if options.entries > 0 {
        builder = builder.entries(options.entries);
    }
    let data = Data(options.data);
    if let Some(audit) = options.audit {
        builder = builder.on_audit(move |record| tell(audit, data, record));
    }
    if let Some(change) = options.change {
        // SAFETY: the callback keeps to the header, as the caller promises.
        builder = builder.on_change(move |seqno| unsafe { change(data.get(), seqno.0) });
    }
    Ok(builder.open()?)
}

/// See `dewar.h`.
///
/// # Safety
///
/// `manager` is null, or comes from [`dewar_open`] and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dewar_close(manager: *mut dewar) {
    returned((), || {
        if !manager.is_null() {
            // SAFETY: made by `Box::into_raw` in `dewar_open`, and given back once, as the caller
            // promises.
            drop(unsafe { Box::from_raw(manager) });
        }
        Ok(())
    });
}

/// See `dewar.h`.
///
/// # Safety
///
/// `manager` is null, or comes from [`dewar_open`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dewar_run(manager: *const dewar) -> *const c_char {
    returned(ptr::null(), || {
        // SAFETY: as the caller promises.
        let held = unsafe { held(manager) }?;
        Ok(held.run.as_ref().map_or(ptr::null(), |run| run.as_ptr()))
    })
}
