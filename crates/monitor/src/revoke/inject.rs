//! System calls made in the place of a stopped thread.

use super::stop::Stopped;
use crate::{
    caller,
    gate::Gate,
    sys::{
        memory,
        ptrace::{self, Registers, State},
    },
};
use rustix::io::{Errno, Result};
use std::{
    os::fd::BorrowedFd,
    time::{Duration, Instant},
};
use syscalls::Sysno;

/// A call that gets no answer by then never will.
const PATIENCE: Duration = Duration::from_secs(2);
/// The `syscall` instruction.
const SYSCALL: [u8; 2] = [0x0f, 0x05];

/// A stopped thread that makes calls for us.
pub(super) struct Injector<'a> {
    gate: &'a Gate,
    tid: u32,
    registers: Registers,
    gadget: u64,
}

impl<'a> Injector<'a> {
    /// Through `tid`, which is stopped, and gets its own back when it is released.
    pub(super) fn new(gate: &'a Gate, stopped: &mut Stopped<'_>, tid: u32) -> Result<Self> {
        let (registers, gadget) = stopped.borrow(tid)?;
        Ok(Self { gate, tid, registers, gadget })
    }

    /// Makes a call that the filter lets run.
    pub(super) fn call(&self, number: Sysno, args: [u64; 6]) -> Result<u64> {
        self.begin(number, args)?;
        self.end(Instant::now() + PATIENCE)
    }

    /// Gives the process a duplicate of `fd` in the place of its descriptor `number`.
    pub(super) fn replace(&self, fd: BorrowedFd<'_>, number: i32, cloexec: bool) -> Result<()> {
        self.trapped(|id| self.gate.listener.send_fd_as(id, fd, number, cloexec)).map(drop)
    }

    /// Gives the process a duplicate of `fd`; its number.
    pub(super) fn give(&self, fd: BorrowedFd<'_>) -> Result<i32> {
        self.trapped(|id| self.gate.listener.send_fd(id, fd, true)).map(|number| number as i32)
    }

    /// Makes a call that always comes to the monitor, and answers it.
    fn trapped(&self, answer: impl FnOnce(u64) -> Result<()>) -> Result<u64> {
        self.gate.passage.expect(self.tid);
        self.begin(Sysno::pidfd_open, [u64::MAX, u64::MAX, 0, 0, 0, 0])?;
        let call = self.gate.passage.caught(PATIENCE).ok_or(Errno::TIMEDOUT)?;
        if let Err(error) = answer(call.id) {
            let _ = self.gate.listener.send_result(call.id, Err(error));
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
                // Stopped for another reason, which is none of ours; signals are blocked.
                Some(State::Stopped { .. }) => ptrace::go_on_to_call(self.tid)?,
                None if Instant::now() > until => return Err(Errno::TIMEDOUT),
                None if turns > 2000 => std::thread::sleep(Duration::from_micros(20)),
                None => std::thread::yield_now(),
            }
            turns += 1;
        }
    }
}

/// Where in the memory of a stopped thread a `syscall` instruction lies: the one that it has just executed, or one of
/// the kernel's own code page in it.
pub(super) fn gadget(gate: &Gate, tid: u32, registers: &Registers) -> Result<u64> {
    let at = registers.instruction_pointer().wrapping_sub(2);
    let mut code = [0; 2];
    if memory::read(tid, at, &mut code) == Ok(2) && code == SYSCALL {
        return Ok(at);
    }
    let maps = caller::read_text(&gate.view, &format!("{tid}/maps"))?;
    let vdso = maps.lines().find(|line| line.ends_with("[vdso]")).ok_or(Errno::NOEXEC)?;
    let start = vdso.split('-').next().and_then(|start| u64::from_str_radix(start, 16).ok());
    let start = start.ok_or(Errno::NOEXEC)?;
    let mut code = vec![0; 8192];
    let got = memory::read(tid, start, &mut code)?;
    let found = code[..got].windows(2).position(|two| two == SYSCALL);
    found.map(|offset| start + offset as u64).ok_or(Errno::NOEXEC)
}
