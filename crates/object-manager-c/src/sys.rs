//! The functions of `dewar.h`, and the structs that they share with C.

use object_manager::{
    About, AccessVector, ChangeError, Class, Daemon, Hint, Manager, OpenError, PolicyFault,
    Question, Record, Sid, Status,
};
use std::{
    cell::RefCell,
    ffi::{CStr, CString, OsStr, c_char, c_double, c_int, c_uint, c_void},
    fmt::Display,
    io,
    os::unix::ffi::OsStrExt as _,
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    ptr, slice,
};

/// `struct dewar`.
pub struct dewar {
    manager: Manager,
    run: Option<CString>,
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

const DAEMON: c_uint = 1;
const DAEMON_IF_THERE: c_uint = 2;
const PERMISSIVE: c_uint = 4;

thread_local! {
    static MESSAGE: RefCell<CString> = RefCell::default();
}

/// Why a call failed: `errno`, and in words.
struct Failure(c_int, String);

impl Failure {
    fn invalid(what: impl Display) -> Self {
        Self(libc::EINVAL, what.to_string())
    }
}

type Outcome<T> = Result<T, Failure>;

fn number(error: &io::Error) -> c_int {
    error.raw_os_error().unwrap_or(libc::EIO)
}

fn policy_errno(fault: &PolicyFault) -> c_int {
    match fault {
        PolicyFault::Io { source, .. } => number(source),
        PolicyFault::Missing => libc::EINVAL,
        _ => libc::EBADMSG,
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        let errno = match &error {
            OpenError::Policy(fault) => policy_errno(fault),
            OpenError::Classes(_) => libc::EINVAL,
            OpenError::Io(error) => number(error),
            _ => libc::ENOTCONN,
        };
        Self(errno, error.to_string())
    }
}

impl From<ChangeError> for Failure {
    fn from(error: ChangeError) -> Self {
        let errno = match &error {
            ChangeError::Policy(fault) => policy_errno(fault),
            ChangeError::Boolean(_) => libc::EINVAL,
            _ => libc::ENOTCONN,
        };
        Self(errno, error.to_string())
    }
}

/// What a function returns: what `call` gives, or `failed` with `errno` and a message. A panic is a failure.
fn returned<T>(failed: T, call: impl FnOnce() -> Outcome<T>) -> T {
    let outcome = catch_unwind(AssertUnwindSafe(call));
    let Failure(errno, words) = match outcome {
        Ok(Ok(value)) => return value,
        Ok(Err(failure)) => failure,
        Err(_) => Failure(libc::EIO, "a fault of the library itself".into()),
    };
    // Words with a 0 in the middle end there.
    let words = CString::new(words.split('\0').next().unwrap_or_default()).unwrap_or_default();
    let _ = MESSAGE.try_with(|message| message.replace(words));
    // SAFETY: it has no conditions.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: this thread's errno is valid while the thread runs, and nobody else's.
    unsafe { *place = errno };
    failed
}

/// # Safety
///
/// `text` is null or a string that ends with 0 and outlives the result.
unsafe fn text<'a>(text: *const c_char, what: &str) -> Outcome<&'a str> {
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
unsafe fn strings<'a>(mut list: *const *const c_char) -> Vec<&'a CStr> {
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
unsafe fn paths(list: *const *const c_char) -> Vec<PathBuf> {
    // SAFETY: as promised by the caller.
    let paths = unsafe { strings(list) };
    paths.iter().map(|path| PathBuf::from(OsStr::from_bytes(path.to_bytes()))).collect()
}

/// # Safety
///
/// `manager` is null, or comes from [`dewar_open`], and is not closed meanwhile.
unsafe fn held<'a>(manager: *const dewar) -> Outcome<&'a dewar> {
    // SAFETY: null or live, as promised by the caller, and only ever shared.
    unsafe { manager.as_ref() }.ok_or_else(|| Failure::invalid("the manager is NULL"))
}

fn question(ssid: u32, tsid: u32, tclass: u8) -> Outcome<Question> {
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
unsafe fn copy(words: &str, to: *mut c_char, room: usize) -> Outcome<isize> {
    let fits = !to.is_null() && words.len() < room;
    if !fits || words.contains('\0') {
        return Err(Failure(libc::ERANGE, format!("it takes {} bytes", words.len() + 1)));
    }
    // SAFETY: `to` has more than `words.len()` bytes (compared above); Rust's memory and the caller's do not overlap.
    unsafe { ptr::copy_nonoverlapping(words.as_ptr(), to.cast(), words.len()) };
    // SAFETY: there is room for one byte more, which was compared above.
    unsafe { *to.add(words.len()) = 0 };
    Ok(words.len().cast_signed())
}

/// What the callbacks are called with, in whichever thread.
#[derive(Clone, Copy)]
struct Data(*mut c_void);

// SAFETY: the pointer is only handed back to the callbacks, which the header says are called by several threads.
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
    // SAFETY: the callback keeps to the header, as promised to `dewar_open`: it reads what `told` names, all of which
    // outlives the call.
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
unsafe fn open(options: &dewar_options) -> Outcome<Manager> {
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
            // SAFETY: made by `Box::into_raw` in `dewar_open`, and given back once, as the caller promises.
            drop(unsafe { Box::from_raw(manager) });
        }
        Ok(())
    });
}

/// See `dewar.h`.
#[unsafe(no_mangle)]
pub extern "C" fn dewar_message() -> *const c_char {
    // A thread that ends has no message any more.
    MESSAGE.try_with(|message| message.borrow().as_ptr()).unwrap_or(c"".as_ptr())
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

/// See `dewar.h`.
///
/// # Safety
///
/// `manager` comes from [`dewar_open`]; `name` is a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dewar_class_number(manager: *const dewar, name: *const c_char) -> u8 {
    returned(0, || {
        // SAFETY: as the caller promises.
        let (held, name) = unsafe { (held(manager)?, text(name, "the name of a class")?) };
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
        let (held, name) = unsafe { (held(manager)?, text(name, "the name of a permission")?) };
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
        let (held, context) = unsafe { (held(manager)?, text(context, "the context")?) };
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

fn denied(denied: &object_manager::Denied) -> Failure {
    let errno = if denied.answered { libc::EACCES } else { libc::ENOTCONN };
    Failure(errno, denied.to_string())
}

/// See `dewar.h`.
///
/// # Safety
///
/// `manager` comes from [`dewar_open`]; `hint` is null or a hint, which several threads may share; `about` is as the header says.
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
        checked.map(|()| 0).map_err(|error| denied(&error))
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
        checked.map(|()| 0).map_err(|error| denied(&error))
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
        let (held, paths) = unsafe { (held(manager)?, paths(policies)) };
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
        let (held, name) = unsafe { (held(manager)?, text(name, "the boolean")?) };
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
