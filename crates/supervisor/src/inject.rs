//! System calls made in the place of a stopped thread.

use crate::{
    stop::Stopped,
    sys::{
        memory,
        ptrace::{self, Registers, State},
    },
    targets::Targets,
};
use rustix::io::{Errno, Result};
use std::{
    os::fd::BorrowedFd,
    time::{Duration, Instant},
};
use syscalls::Sysno;

/// A call that gets no answer by then never will.
const PATIENCE: Duration = Duration::from_secs(2);
/// From so many calls on, they are made by code that the process is lent, not one by one.
const MANY: usize = 16;
const PAGE: usize = 4096;

/// A system call, and its arguments.
pub type Call = (Sysno, [u64; 6]);

/// Makes every call of a table: number and arguments, 8 bytes each, and puts the result in the
/// place of the number; then one that comes to the monitor.
///
/// ```text
/// next: cmp rbx, rbp          mov rdx, [rbx+24]       syscall
///       je  done              mov r10, [rbx+32]       mov [rbx], rax
///       mov rax, [rbx]        mov r8,  [rbx+40]       add rbx, 56
///       mov rdi, [rbx+8]      mov r9,  [rbx+48]       jmp next
///       mov rsi, [rbx+16]                       done: mov eax, pidfd_open; mov edi, -1;
///                                                     mov esi, edi; syscall; jmp done
/// ```
const MAKE_ALL: [u8; 59] = [
    0x48, 0x39, 0xeb, 0x74, 0x26, 0x48, 0x8b, 0x03, 0x48, 0x8b, 0x7b, 0x08, 0x48, 0x8b, 0x73, 0x10,
    0x48, 0x8b, 0x53, 0x18, 0x4c, 0x8b, 0x53, 0x20, 0x4c, 0x8b, 0x43, 0x28, 0x4c, 0x8b, 0x4b, 0x30,
    0x0f, 0x05, 0x48, 0x89, 0x03, 0x48, 0x83, 0xc3, 0x38, 0xeb, 0xd5, 0xb8, 0xb2, 0x01, 0x00, 0x00,
    0xbf, 0xff, 0xff, 0xff, 0xff, 0x89, 0xfe, 0x0f, 0x05, 0xeb, 0xf0,
];

/// A stopped thread that makes calls for us.
pub struct Injector<'a> {
    targets: &'a Targets,
    tid: u32,
    registers: Registers,
    gadget: u64,
}

impl<'a> Injector<'a> {
    /// Through `tid`, which is stopped, and gets its own back when it is released.
    pub fn new(stopped: &mut Stopped<'a>, tid: u32) -> Result<Self> {
        let (registers, gadget) = stopped.borrow(tid)?;
        Ok(Self { targets: stopped.targets(), tid, registers, gadget })
    }

    /// Makes a call that the filter lets run.
    pub fn call(&self, number: Sysno, args: [u64; 6]) -> Result<u64> {
        self.begin(number, args)?;
        self.end(Instant::now() + PATIENCE)
    }

    /// Makes calls that the filter lets run; the result of each.
    pub fn calls(&self, calls: &[Call]) -> Vec<Result<u64>> {
        if calls.len() >= MANY
            && let Ok(results) = self.lend_code(calls)
        {
            return results;
        }
        calls.iter().map(|(number, args)| self.call(*number, *args)).collect()
    }

    /// Makes all of `calls` by code in memory that the process has for that long.
    fn lend_code(&self, calls: &[Call]) -> Result<Vec<Result<u64>>> {
        let words = calls.iter().flat_map(|(number, args)| {
            std::iter::once(number.id() as u64).chain(args.iter().copied())
        });
        let table: Vec<u8> = words.flat_map(u64::to_ne_bytes).collect();
        let len = (PAGE + table.len().next_multiple_of(PAGE)) as u64;
        let (read, write) = (libc::PROT_READ as u64, libc::PROT_WRITE as u64);
        let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64;
        let code = self.call(Sysno::mmap, [0, len, read | write, flags, u64::MAX, 0])?;
        let start = code + PAGE as u64;
        let made = memory::write(self.tid, code, &MAKE_ALL)
            .and_then(|()| memory::write(self.tid, start, &table))
            .and_then(|()| {
                let protection = read | libc::PROT_EXEC as u64;
                self.call(Sysno::mprotect, [code, PAGE as u64, protection, 0, 0, 0])
            })
            .and_then(|_| self.run(code, start, start + table.len() as u64));
        let mut after = vec![0; table.len()];
        let read = made.and_then(|()| memory::read(self.tid, start, &mut after));
        let _ = self.call(Sysno::munmap, [code, len, 0, 0, 0, 0]);
        if read? != after.len() {
            return Err(Errno::FAULT);
        }
        let result = |row: &[u8]| {
            let word = u64::from_ne_bytes(row[..8].try_into().unwrap_or_default());
            ptrace::result(word)
        };
        Ok(after.chunks_exact(56).map(result).collect())
    }

    /// Lets the thread run lent code, to the call at its end.
    fn run(&self, code: u64, table: u64, end: u64) -> Result<()> {
        self.targets.quiesce.expect(self.tid);
        self.registers.running(code, table, end).restore(self.tid)?;
        ptrace::go_on(self.tid)?;
        let call = self.targets.quiesce.caught(PATIENCE).ok_or(Errno::TIMEDOUT)?;
        ptrace::interrupt(self.tid)?;
        self.targets.listener.send_result(call.id, Err(Errno::AGAIN))?;
        let until = Instant::now() + PATIENCE;
        loop {
            match ptrace::poll(self.tid) {
                Some(State::Gone) => return Err(Errno::SRCH),
                Some(State::Stopped { signal }) if is_fault(signal) => return Err(Errno::INTR),
                Some(_) => return Ok(()),
                None if Instant::now() > until => return Err(Errno::TIMEDOUT),
                None => std::thread::yield_now(),
            }
        }
    }

    /// Gives the process a duplicate of `fd` in the place of its descriptor `number`.
    pub fn replace(&self, fd: BorrowedFd<'_>, number: i32, cloexec: bool) -> Result<()> {
        self.trapped(|id| self.targets.listener.send_fd_as(id, fd, number, cloexec)).map(drop)
    }

    /// Gives the process a duplicate of `fd`; its number.
    pub fn give(&self, fd: BorrowedFd<'_>) -> Result<i32> {
        self.trapped(|id| self.targets.listener.send_fd(id, fd, true)).map(|number| number as i32)
    }

    /// Makes a call that always comes to the monitor, and answers it.
    fn trapped(&self, answer: impl FnOnce(u64) -> Result<()>) -> Result<u64> {
        self.targets.quiesce.expect(self.tid);
        self.begin(Sysno::pidfd_open, [u64::MAX, u64::MAX, 0, 0, 0, 0])?;
        let call = self.targets.quiesce.caught(PATIENCE).ok_or(Errno::TIMEDOUT)?;
        if let Err(error) = answer(call.id) {
            let _ = self.targets.listener.send_result(call.id, Err(error));
        }
        self.end(Instant::now() + PATIENCE)
    }

    /// Runs to the beginning of the call, and lets it begin.
    fn begin(&self, number: Sysno, args: [u64; 6]) -> Result<()> {
        let number = i64::from(number.id());
        self.registers.calling(self.gadget, number, args).restore(self.tid)?;
        ptrace::go_on_to_call(self.tid)?;
        self.await_call(Instant::now() + PATIENCE)?;
        ptrace::go_on_to_call(self.tid)
    }

    fn end(&self, until: Instant) -> Result<u64> {
        self.await_call(until)?;
        Registers::of(self.tid)?.result()
    }

    fn await_call(&self, until: Instant) -> Result<()> {
        let mut turns = 0;
        loop {
            match ptrace::poll(self.tid) {
                Some(State::AtCall) => return Ok(()),
                Some(State::Gone) => return Err(Errno::SRCH),
                // It would run code of its own: that of a handler, or what follows a call that was
                // not made.
                Some(State::Stopped { signal }) if is_fault(signal) => return Err(Errno::INTR),
                // Stopped for another reason, which is none of ours; signals are blocked.
                Some(State::Stopped { .. } | State::Forked) => ptrace::go_on_to_call(self.tid)?,
                None if Instant::now() > until => return Err(Errno::TIMEDOUT),
                None if turns > 2000 => std::thread::sleep(Duration::from_micros(20)),
                None => std::thread::yield_now(),
            }
            turns += 1;
        }
    }
}

/// Whether the kernel sends a signal for what a thread has just done, also if it is blocked.
fn is_fault(signal: i32) -> bool {
    let faults =
        [libc::SIGSYS, libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP];
    faults.contains(&signal)
}
