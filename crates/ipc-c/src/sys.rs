//! The functions of `dewar_port.h`: `include/dewar_port.h` says what each function does;
//! `examples/broker/broker.c` uses them.
//!
//! Every function checks its pointers for null; beyond that, C's usual promises hold: strings end
//! with 0, a pointer and a length belong together, and what was closed is not used again.
#![allow(unsafe_code)]
#![allow(non_camel_case_types, reason = "these are the names in the header")]

use avc::Avc;
use flask::{SecurityServer as _, Sid};
use ipc::{
    Access, Call, CallError, ConnectError, Guard, PeerTable, Port, Request, Server, Transport,
};
use runs::{RunLabels, Unknown};
use std::{
    ffi::{CStr, CString, OsStr, c_char, c_int, c_void},
    fs, io,
    os::{fd::BorrowedFd, unix::ffi::OsStrExt as _},
    path::Path,
    ptr, slice,
    sync::Arc,
    time::Duration,
};

/// `struct dewar_port`.
pub struct dewar_port(Port);

/// `struct dewar_service`.
pub struct dewar_service {
    server: Server,
    policy: Arc<security_server::Server>,
    labels: Arc<PeerTable>,
}

/// `struct dewar_request`.
#[repr(C)]
#[derive(Debug)]
pub struct dewar_request {
    /// Security context of the one in whose name the call is made.
    pub client: *const c_char,
    /// The same as a SID.
    pub client_sid: u32,
    /// The process that made it.
    pub pid: libc::pid_t,
    /// The user that connected.
    pub uid: libc::uid_t,
    /// What is asked.
    pub body: *const c_void,
    /// Its length.
    pub length: usize,
}

/// `dewar_handler`.
pub type dewar_handler =
    unsafe extern "C" fn(*mut c_void, *const dewar_request, *mut c_void, usize) -> isize;

/// `errno` for C, and what a function then returns.
fn fail<T>(errno: c_int, value: T) -> T {
    // SAFETY: it has no conditions.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: this thread's errno is valid while the thread runs, and nobody else's.
    unsafe { *place = errno };
    value
}

fn number(error: &io::Error) -> c_int {
    error.raw_os_error().unwrap_or(libc::EIO)
}

/// # Safety
///
/// `text` is null or a string that ends with 0 and outlives the result.
unsafe fn text<'a>(text: *const c_char) -> Option<&'a CStr> {
    // SAFETY: as promised by the caller; null was ruled out.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) })
}

fn path(text: &CStr) -> &Path {
    Path::new(OsStr::from_bytes(text.to_bytes()))
}

/// See `dewar_port.h`.
///
/// # Safety
///
/// `path` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dewar_port_connect(path: *const c_char) -> *mut dewar_port {
    // SAFETY: as the caller promises; it is used in this call only.
    let Some(name) = (unsafe { text(path) }) else { return fail(libc::EINVAL, ptr::null_mut()) };
    let errno = match Port::connect(self::path(name), Transport::Memory) {
        Ok(port) => return Box::into_raw(Box::new(dewar_port(port))),
        Err(ConnectError::Denied) => libc::EACCES,
        Err(ConnectError::Busy) => libc::EBUSY,
        Err(ConnectError::Io(error)) => number(&error),
        Err(_) => libc::EPROTO,
    };
    fail(errno, ptr::null_mut())
}

/// See `dewar_port.h`.
///
/// # Safety
///
/// `port` comes from [`dewar_port_connect`] and is used by nobody else meanwhile; `body` has
/// `length` bytes to read, `reply` has `room` bytes to write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dewar_port_call(
    port: *mut dewar_port,
    effective: u32,
    body: *const c_void,
    length: usize,
    reply: *mut c_void,
    room: usize,
    timeout_ms: c_int,
) -> isize {
    // SAFETY: null, or a live port that only this call uses, as the caller promises.
    let Some(dewar_port(port)) = (unsafe { port.as_mut() }) else { return fail(libc::EINVAL, -1) };
    if (body.is_null() && length > 0) || (reply.is_null() && room > 0) {
        return fail(libc::EINVAL, -1);
    }
    let body = match length {
        0 => &[][..],
        // SAFETY: not null, and `length` bytes to read, as the caller promises.
        length => unsafe { slice::from_raw_parts(body.cast::<u8>(), length) },
    };
    port.set_timeout(u64::try_from(timeout_ms).ok().map(Duration::from_millis));
    let errno = match port.send(Call { body, effective: Sid::new(effective), ..Call::default() }) {
        Ok(answer) if answer.body.len() > room => libc::EMSGSIZE,
        Ok(answer) => {
            let answer = answer.body;
            // SAFETY: `answer` has that length, `reply` room for it (compared above), and the one
            // lies in the port's own memory, so they do not overlap. With a length of 0, nothing is
            // accessed.
            unsafe { ptr::copy_nonoverlapping(answer.as_ptr(), reply.cast(), answer.len()) };
            return answer.len() as isize;
        }
        Err(CallError::Denied | CallError::DeniedName) => libc::EACCES,
        Err(CallError::TimedOut) => libc::ETIMEDOUT,
        Err(CallError::Gone) => libc::EPIPE,
        Err(CallError::TooLong) => libc::EMSGSIZE,
        Err(CallError::Io(error)) => number(&error),
        Err(_) => libc::EPROTO,
    };
    fail(errno, -1)
}

/// See `dewar_port.h`.
///
/// # Safety
///
/// `port` is null, or comes from [`dewar_port_connect`] and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dewar_port_close(port: *mut dewar_port) {
    if !port.is_null() {
        // SAFETY: made by `Box::into_raw` in `dewar_port_connect`, and given back once, as the
        // caller promises.
        drop(unsafe { Box::from_raw(port) });
    }
}

/// See `dewar_port.h`.
///
/// # Safety
///
/// `context` has room for `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dewar_client_context(
    socket: c_int,
    context: *mut c_char,
    room: usize,
) -> isize {
    if context.is_null() || socket < 0 {
        return fail(libc::EINVAL, -1);
    }
    // SAFETY: not negative, and only used in this call; one that is not open makes the system calls
    // on it fail.
    let socket = unsafe { BorrowedFd::borrow_raw(socket) };
    let client = match runs::client(socket) {
        Ok(client) => client,
        Err(Unknown::Io(error)) => return fail(number(&error), -1),
        Err(_) => return fail(libc::EACCES, -1),
    };
    let text = client.as_ref().map_or("", |client| client.context());
    let Ok(text) = CString::new(text) else { return fail(libc::EPROTO, -1) };
    let bytes = text.as_bytes_with_nul();
    if bytes.len() > room {
        return fail(libc::ERANGE, -1);
    }
    // SAFETY: `bytes` has that length, `context` room for it (compared above), and Rust's memory
    // and the caller's do not overlap.
    unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), context.cast(), bytes.len()) };
    text.as_bytes().len() as isize
}

/// See `dewar_port.h`.
///
/// # Safety
///
/// The arguments are null or strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dewar_service_bind(
    path: *const c_char,
    policy: *const c_char,
    context: *const c_char,
) -> *mut dewar_service {
    let strings = [path, policy, context].map(|string| {
        // SAFETY: as the caller promises; they are used in this call only.
        unsafe { text(string) }
    });
    let [Some(path), Some(policy), Some(context)] = strings else {
        return fail(libc::EINVAL, ptr::null_mut());
    };
    match bind(self::path(path), self::path(policy), context) {
        Ok(service) => Box::into_raw(Box::new(service)),
        Err(errno) => fail(errno, ptr::null_mut()),
    }
}

fn bind(path: &Path, policy: &Path, context: &CStr) -> Result<dewar_service, c_int> {
    let text = fs::read_to_string(policy).map_err(|error| number(&error))?;
    let name = policy.to_string_lossy();
    let policy = security_server::Server::from_cil(&[(name.as_ref(), text.as_str())]);
    let policy = Arc::new(policy.map_err(|_| libc::EINVAL)?);
    let context = context.to_str().map_err(|_| libc::EINVAL)?;
    let port = policy.context_to_sid(context).map_err(|_| libc::EINVAL)?;
    let labels = Arc::new(PeerTable::default());
    let known = policy.clone();
    let inside = move |client: &runs::Client| known.context_to_sid(client.context()).ok();
    let record = RunLabels::new(inside).with_outside(labels.clone());
    let guard = Guard::new(Arc::new(Avc::new(policy.clone())), Arc::new(record), port);
    let server = Server::bind(path, Access::Checked(guard)).map_err(|error| number(&error))?;
    Ok(dewar_service { server, policy, labels })
}

/// See `dewar_port.h`.
///
/// # Safety
///
/// `service` comes from [`dewar_service_bind`]; `context` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dewar_service_label(
    service: *const dewar_service,
    pid: libc::pid_t,
    context: *const c_char,
) -> c_int {
    // SAFETY: null, or a live service, which is only ever shared.
    let Some(service) = (unsafe { service.as_ref() }) else { return fail(libc::EINVAL, -1) };
    // SAFETY: as the caller promises; it is used in this call only.
    let sid = match unsafe { text(context) }.map(CStr::to_str) {
        None => None,
        Some(Ok(context)) => match service.policy.context_to_sid(context) {
            Ok(sid) => Some(sid),
            Err(_) => return fail(libc::EINVAL, -1),
        },
        Some(Err(_)) => return fail(libc::EINVAL, -1),
    };
    match service.labels.set(pid, sid) {
        Ok(()) => 0,
        Err(error) => fail(error.raw_os_error().unwrap_or(libc::EINVAL), -1),
    }
}

/// What the handler is called with, passed to the threads that serve.
struct Handler {
    call: dewar_handler,
    data: *mut c_void,
}

// SAFETY: the pointer is only handed back to the handler, which the header says is called by
// several threads.
unsafe impl Sync for Handler {}

/// See `dewar_port.h`.
///
/// # Safety
///
/// `service` comes from [`dewar_service_bind`]; `handler` keeps to the header, and `data` is what
/// it expects.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dewar_service_run(
    service: *const dewar_service,
    handler: Option<dewar_handler>,
    data: *mut c_void,
) -> c_int {
    // SAFETY: null, or a live service, which is only ever shared.
    let service = unsafe { service.as_ref() };
    let (Some(service), Some(call)) = (service, handler) else { return fail(libc::EINVAL, -1) };
    let handler = Handler { call, data };
    let ended = service.server.serve(|request| answer(service, &handler, request));
    fail(ended.map_or_else(|error| number(&error), |()| libc::EPIPE), -1)
}

fn answer(service: &dewar_service, handler: &Handler, request: Request<'_>) {
    let client = service.policy.sid_to_context(request.client()).ok();
    // Without a context there is no answer: the client learns that it was not served.
    let Some(client) = client.and_then(|context| CString::new(context).ok()) else { return };
    let mut reply = vec![0_u8; ipc::MAX_MESSAGE];
    let body = request.body();
    let seen = dewar_request {
        client: client.as_ptr(),
        client_sid: request.client().get(),
        pid: request.peer().pid(),
        uid: request.peer().uid(),
        body: body.as_ptr().cast(),
        length: body.len(),
    };
    // SAFETY: the handler keeps to the header, as promised to `dewar_service_run`: it reads what
    // `seen` names, all of which outlives the call, and writes at most `reply.len()` bytes.
    let length = unsafe {
        (handler.call)(handler.data, &raw const seen, reply.as_mut_ptr().cast(), reply.len())
    };
    if let Some(answer) = usize::try_from(length).ok().and_then(|length| reply.get(..length)) {
        // A client that is gone needs no answer.
        drop(request.reply(answer));
    }
}
