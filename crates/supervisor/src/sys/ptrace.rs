//! Holding threads of the sandbox for a moment: for the length of one exec, or to make calls in
//! their place (ptrace(2)).
#![allow(unsafe_code)]

use crate::answer::RESTART;
use libc::{PTRACE_EVENT_CLONE, PTRACE_EVENT_FORK, PTRACE_EVENT_VFORK};
use rustix::io::{Errno, Result};
use std::ops::Range;

/// A seized thread, and its process. Dropped without a wait, it stays seized until the calling
/// thread ends, which kills it (`PTRACE_O_EXITKILL`).
pub struct Seized {
    pid: u32,
    tid: u32,
}

/// What became of a seized thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// It has executed a new program and stands before its first instruction.
    Executed,
    /// It stopped on its way back to the program.
    Stopped {
        /// The signal that is due, or 0.
        signal: i32,
    },
    /// It is dead.
    Gone,
}

impl Seized {
    /// Seizes thread `tid` of `pid`, and makes it stop at an exec, or when it next returns to its
    /// program. `is_over` as for [`Seized::wait`].
    pub fn new(pid: u32, tid: u32, is_over: impl Fn() -> bool) -> Result<Self> {
        let options =
            libc::PTRACE_O_TRACEEXEC | libc::PTRACE_O_EXITKILL | libc::PTRACE_O_TRACESYSGOOD;
        request(libc::PTRACE_SEIZE, tid, options as usize)?;
        let seized = Self { pid, tid };
        if let Err(error) = request(libc::PTRACE_INTERRUPT, tid, 0) {
            seized.detach(tid, 0, is_over);
            return Err(error);
        }
        Ok(seized)
    }

    /// Waits for the exec, or for its failure. `None` if it is interrupted and `is_over`: then the
    /// thread was killed.
    pub fn wait(&self, is_over: impl Fn() -> bool) -> Result<Option<Event>> {
        let mut status = 0;
        loop {
            // A thread that executes takes over its process's PID, so the wait is for whatever this
            // thread traces; `__WNOTHREAD` leaves other threads' children alone. SAFETY: `status`
            // is a valid place for the one integer that waitpid writes.
            let pid =
                unsafe { libc::waitpid(-1, &raw mut status, libc::__WALL | libc::__WNOTHREAD) };
            if pid < 0 {
                match last_errno() {
                    Errno::INTR if is_over() => return Ok(None),
                    Errno::INTR => continue,
                    Errno::CHILD => return Ok(Some(Event::Gone)),
                    error => return Err(error),
                }
            }
            // Else it is one that was killed, and is gone only now.
            if [self.pid, self.tid].contains(&(pid as u32)) {
                return Ok(Some(event(status).unwrap_or(Event::Gone)));
            }
        }
    }

    /// Lets the stopped thread go, which is `tid` now, with a signal or 0. One that was killed
    /// meanwhile is seen off instead: until its tracer has done so, its parent could not.
    pub fn detach(self, tid: u32, signal: i32, is_over: impl Fn() -> bool) {
        if let_go(tid, signal).is_err() {
            let _ = self.wait(is_over);
        }
    }
}

fn event(status: i32) -> Option<Event> {
    if !libc::WIFSTOPPED(status) {
        return None;
    }
    Some(match status >> 16 {
        libc::PTRACE_EVENT_EXEC => Event::Executed,
        0 => Event::Stopped { signal: libc::WSTOPSIG(status) },
        _ => Event::Stopped { signal: 0 },
    })
}

/// The registers of a stopped thread.
#[derive(Clone, Copy)]
pub struct Registers(libc::user_regs_struct);

impl Registers {
    /// Those of `tid`.
    pub fn of(tid: u32) -> Result<Self> {
        let none = std::ptr::null_mut::<libc::c_void>();
        // SAFETY: `user_regs_struct` is plain integers, for which all zeroes is a value.
        let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
        // SAFETY: GETREGS writes one `user_regs_struct`, which `registers` is; `addr` is ignored.
        let code = unsafe {
            libc::ptrace(libc::PTRACE_GETREGS, tid as libc::pid_t, none, &raw mut registers)
        };
        if code == -1 { Err(last_errno()) } else { Ok(Self(registers)) }
    }

    /// Gives them to `tid`.
    pub fn restore(&self, tid: u32) -> Result<()> {
        let none = std::ptr::null_mut::<libc::c_void>();
        // SAFETY: SETREGS reads one `user_regs_struct`, which `self.0` is; `addr` is ignored.
        let code = unsafe {
            libc::ptrace(libc::PTRACE_SETREGS, tid as libc::pid_t, none, &raw const self.0)
        };
        if code == -1 { Err(last_errno()) } else { Ok(()) }
    }

    /// The address of the top of the stack.
    pub fn stack_pointer(&self) -> u64 {
        self.0.rsp
    }

    /// The address of the next instruction.
    pub fn instruction_pointer(&self) -> u64 {
        self.0.rip
    }

    /// Whether the thread has run lent code to its end: it stands in `code`, with the table done.
    pub fn have_run(&self, code: Range<u64>, end: u64) -> bool {
        code.contains(&self.0.rip) && self.0.rbx == end && self.0.rbp == end
    }

    /// What the call that has just ended returned.
    pub fn result(&self) -> Result<u64> {
        result(self.0.rax)
    }

    /// The descriptor of whose file a thread waits for a lock, in a call that was interrupted.
    pub fn locks(&self) -> Option<i32> {
        let waits = match self.0.orig_rax.cast_signed() {
            libc::SYS_flock => true,
            libc::SYS_fcntl => matches!(self.0.rsi as i32, libc::F_SETLKW | libc::F_OFD_SETLKW),
            _ => false,
        };
        (waits && self.result() == Err(RESTART)).then_some(self.0.rdi as i32)
    }

    /// The same, back from its call with this errno.
    pub fn returning(&self, errno: Errno) -> Self {
        let rax = i64::from(-errno.raw_os_error()).cast_unsigned();
        Self(libc::user_regs_struct { rax, ..self.0 })
    }

    /// The same, about to run the code at `code` on the table from `table` to `end`; of a call that
    /// was interrupted, nothing is left.
    pub fn running(&self, code: u64, table: u64, end: u64) -> Self {
        Self(libc::user_regs_struct {
            rip: code,
            rbx: table,
            rbp: end,
            orig_rax: u64::MAX,
            eflags: PLAIN,
            ..self.0
        })
    }

    /// The same, about to make a call by the `syscall` instruction at `gadget`; of a call that was
    /// interrupted, nothing is left, nor of flags that interrupt the thread (`TF`).
    pub fn calling(&self, gadget: u64, number: i64, args: [u64; 6]) -> Self {
        let [rdi, rsi, rdx, r10, r8, r9] = args;
        let (rax, orig_rax) = (number.cast_unsigned(), u64::MAX);
        Self(libc::user_regs_struct {
            rip: gadget,
            rax,
            orig_rax,
            eflags: PLAIN,
            rdi,
            rsi,
            rdx,
            r10,
            r8,
            r9,
            ..self.0
        })
    }
}

/// Flags of a thread that is not single-stepped: interrupts are on.
const PLAIN: u64 = 0x202;

/// What a system call means that returns `word`.
pub fn result(word: u64) -> Result<u64> {
    match word.cast_signed() {
        error @ -4095..=-1 => Err(Errno::from_raw_os_error(-error as i32)),
        _ => Ok(word),
    }
}

/// Makes `tid` stop soon, wherever it is: before its next instruction in user mode. What it is
/// making by fork(2) or the like is seized at birth. All go on if the calling thread ends.
pub fn seize(tid: u32) -> Result<()> {
    let births = libc::PTRACE_O_TRACEFORK | libc::PTRACE_O_TRACEVFORK | libc::PTRACE_O_TRACECLONE;
    request(libc::PTRACE_SEIZE, tid, (libc::PTRACE_O_TRACESYSGOOD | births) as usize)?;
    interrupt(tid)
}

/// Seizes `tid`, which runs on. It is let go when the calling thread ends.
pub fn follow(tid: u32) -> Result<()> {
    request(libc::PTRACE_SEIZE, tid, 0)
}

/// Makes a seized thread stop (again).
pub fn interrupt(tid: u32) -> Result<()> {
    request(libc::PTRACE_INTERRUPT, tid, 0)
}

/// Lets a stopped thread go, with a signal or 0.
pub fn let_go(tid: u32, signal: i32) -> Result<()> {
    request(libc::PTRACE_DETACH, tid, signal as usize)
}

/// Lets a stopped thread run.
pub fn go_on(tid: u32) -> Result<()> {
    request(libc::PTRACE_CONT, tid, 0)
}

/// Lets a stopped thread run to the beginning or the end of its next call.
pub fn go_on_to_call(tid: u32) -> Result<()> {
    request(libc::PTRACE_SYSCALL, tid, 0)
}

/// Sends a thread a signal that it was to have before.
pub fn send(tid: u32, signal: i32) {
    // SAFETY: tkill takes integers.
    unsafe { libc::syscall(libc::SYS_tkill, tid, signal) };
}

/// Blocks, in a stopped thread, the signals in `mask`; those it blocked before.
pub fn block_signals(tid: u32, mask: u64) -> Result<u64> {
    let size = size_of::<u64>();
    let mut old = 0_u64;
    // SAFETY: GETSIGMASK writes `addr` bytes, of which `old` has as many.
    let got = unsafe { libc::ptrace(GETSIGMASK, tid as libc::pid_t, size, &raw mut old) };
    if got == -1 {
        return Err(last_errno());
    }
    // SAFETY: SETSIGMASK reads `addr` bytes, of which `mask` has as many.
    let set = unsafe { libc::ptrace(SETSIGMASK, tid as libc::pid_t, size, &raw const mask) };
    if set == -1 { Err(last_errno()) } else { Ok(old) }
}

/// Of `linux/ptrace.h`.
const GETSIGMASK: libc::c_uint = 0x420a;
const SETSIGMASK: libc::c_uint = 0x420b;
const GET_SYSCALL_INFO: libc::c_uint = 0x420e;

/// What the kernel says of a thread that is stopped at a call (`struct ptrace_syscall_info`).
#[repr(C)]
#[derive(Default)]
struct CallInfo {
    op: u8,
    reserved: u8,
    flags: u16,
    arch: u32,
    instruction_pointer: u64,
    stack_pointer: u64,
    number: u64,
    args: [u64; 6],
}

/// Whether a stopped thread enters this very call, by the `syscall` instruction at `gadget`.
pub fn is_entering(tid: u32, gadget: u64, number: i64, args: [u64; 6]) -> Result<bool> {
    let (mut info, size) = (CallInfo::default(), size_of::<CallInfo>());
    // SAFETY: GET_SYSCALL_INFO writes at most `addr` bytes, of which `info` has as many; it is
    // plain integers.
    if unsafe { libc::ptrace(GET_SYSCALL_INFO, tid as libc::pid_t, size, &raw mut info) } == -1 {
        return Err(last_errno());
    }
    // `PTRACE_SYSCALL_INFO_ENTRY` and `AUDIT_ARCH_X86_64`.
    Ok((info.op, info.arch) == (1, 0xc000_003e)
        && info.instruction_pointer == gadget.wrapping_add(2)
        && (info.number, info.args) == (number.cast_unsigned(), args))
}

/// What a seized thread has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It stands still.
    Stopped {
        /// The signal that is due, or 0.
        signal: i32,
    },
    /// It stands at the beginning or the end of a call.
    AtCall,
    /// It stands within a call, having made a child.
    Forked,
    /// It is dead.
    Gone,
}

/// The state of a thread that the calling thread has seized, if it has changed; `None` if it has
/// not.
pub fn poll(tid: u32) -> Option<State> {
    match changed(tid as libc::pid_t) {
        Ok(found) => found.map(|(_, state)| state),
        Err(Errno::INTR) => None,
        Err(_) => Some(State::Gone),
    }
}

/// The same, waited for.
pub fn wait(tid: u32) -> State {
    loop {
        match waited(tid as libc::pid_t, 0) {
            Ok(Some((_, state))) => return state,
            Ok(None) | Err(Errno::INTR) => {}
            Err(_) => return State::Gone,
        }
    }
}

/// A thread that the calling thread has seized, also one it does not know of, and that has changed
/// its state.
pub fn poll_any() -> Option<(u32, State)> {
    changed(-1).ok().flatten()
}

/// Waits for a thread that has ended, whichever thread of this process has seized it; whether it
/// is gone now.
pub fn see_off(tid: u32) -> bool {
    let mut status = 0;
    let flags = libc::__WALL | libc::WNOHANG;
    // SAFETY: `status` is a valid place for the one integer that waitpid writes.
    unsafe { libc::waitpid(tid as libc::pid_t, &raw mut status, flags) == tid as libc::pid_t }
}

fn changed(tid: libc::pid_t) -> Result<Option<(u32, State)>> {
    waited(tid, libc::WNOHANG)
}

fn waited(tid: libc::pid_t, flags: i32) -> Result<Option<(u32, State)>> {
    let mut status = 0;
    let flags = libc::__WALL | libc::__WNOTHREAD | flags;
    // SAFETY: `status` is a valid place for the one integer that waitpid writes.
    let tid = unsafe { libc::waitpid(tid, &raw mut status, flags) };
    let state = match tid {
        -1 => return Err(last_errno()),
        0 => return Ok(None),
        _ if !libc::WIFSTOPPED(status) => State::Gone,
        _ => match (status >> 16, libc::WSTOPSIG(status)) {
            (PTRACE_EVENT_FORK | PTRACE_EVENT_VFORK | PTRACE_EVENT_CLONE, _) => State::Forked,
            (1.., _) => State::Stopped { signal: 0 },
            (_, AT_CALL) => State::AtCall,
            (_, signal) => State::Stopped { signal },
        },
    };
    Ok(Some((tid as u32, state)))
}

/// What `PTRACE_O_TRACESYSGOOD` makes of `SIGTRAP`.
const AT_CALL: i32 = libc::SIGTRAP | 0x80;

fn request(request: libc::c_uint, tid: u32, data: usize) -> Result<()> {
    let none = std::ptr::null_mut::<libc::c_void>();
    // SAFETY: SEIZE, INTERRUPT and DETACH read no memory of ours: null, and `data`, an integer.
    let code = unsafe { libc::ptrace(request, tid as libc::pid_t, none, data) };
    if code == -1 { Err(last_errno()) } else { Ok(()) }
}

pub(super) fn last_errno() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}
