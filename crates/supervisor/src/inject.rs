//! System calls made in the place of a stopped thread.

use crate::{
    stop::Stopped,
    sys::{
        memory,
        ptrace::{self, Registers, State},
        rseq::{self, RseqArea},
    },
    targets::Targets,
};
use rustix::io::{Errno, Result};
use std::{
    cell::Cell,
    os::fd::BorrowedFd,
    time::{Duration, Instant},
};
use syscalls::Sysno;

/// A call that gets no answer by then never will.
const PATIENCE: Duration = Duration::from_secs(2);
/// From so many calls on, they are made by code that the process is lent, not one by one.
const MANY: usize = 16;
const PAGE: usize = 4096;
/// The `syscall` instruction.
const SYSCALL: [u8; 2] = [0x0f, 0x05];

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
/// Where in that code `done` lies.
const DONE: u64 = 43;

/// A stopped thread that makes calls for us.
///
/// The program must not make others in their place. Its memory is its own, so it matters what can
/// lead the thread from the instructions that it was set to:
///
/// - a handler of a signal: all are blocked, and what the kernel sends nevertheless for what the
///   thread has done (a breakpoint, `PR_SET_SYSCALL_USER_DISPATCH`, memory that is not there) is a
///   stop that is looked at (`is_fault`);
/// - a restartable sequence: it is left ([`Stopped::borrow`]); what the kernel writes into memory
///   on its own (`io_submit`), or somebody outside into a file that is mapped, may name one again;
/// - single steps and alignment checks: the flags for both are off; perf events and uprobes take
///   perf_event_open(2), which the filter refuses; a shadow stack is of no concern to code that
///   neither calls nor returns.
///
/// So each call is compared, when it begins, with what was to be made; and lent code, which makes
/// many with no stop between, runs while the thread has registered no sequence at all. Whoever
/// makes another call makes none: nothing is asked of the thread any more, and its process ends.
pub struct Injector<'a> {
    targets: &'a Targets,
    tid: u32,
    registers: Registers,
    /// Where a `syscall` instruction lay.
    gadget: Cell<u64>,
    /// It did something else than it was set to, or nobody knows what it does.
    astray: Cell<Option<Errno>>,
    /// For how long a call is waited for; `None`: for as long as the thread lives.
    patience: Option<Duration>,
}

/// Makes a call that the filter lets run in the place of a process that the calling thread has
/// [`Seized`](ptrace::Seized), and that stands at its exec. Of the new program, nothing has run: it
/// has no handlers, no other threads and no restartable sequence. It stands before its first
/// instruction then.
pub fn call_at_exec(targets: &Targets, pid: u32, (number, args): Call) -> Result<u64> {
    let mask = ptrace::block_signals(pid, !0)?;
    // The exec itself ends first.
    ptrace::go_on_to_call(pid)?;
    await_call(pid, None)?;
    let registers = Registers::of(pid)?;
    let gadget = Cell::new(registers.instruction_pointer());
    let astray = Cell::new(None);
    let injector = Injector { targets, tid: pid, registers, gadget, astray, patience: None };
    let made = injector.call(number, args);
    registers.restore(pid)?;
    ptrace::block_signals(pid, mask)?;
    made
}

impl<'a> Injector<'a> {
    /// Through `tid`, which is stopped, and gets its own back when it is released.
    pub fn new(stopped: &mut Stopped<'a>, tid: u32) -> Result<Self> {
        let registers = stopped.borrow(tid)?;
        // The one that it has just executed, as most threads wait in a call.
        let gadget = Cell::new(registers.instruction_pointer().wrapping_sub(2));
        let (targets, astray) = (stopped.targets(), Cell::new(None));
        Ok(Self { targets, tid, registers, gadget, astray, patience: Some(PATIENCE) })
    }

    /// Why nothing is known of what was made in the thread's place: it did something else than it
    /// was set to (`INTR`), or makes a call that does not come to an end (`TIMEDOUT`).
    pub fn astray(&self) -> Option<Errno> {
        self.astray.get()
    }

    /// Makes a call that the filter lets run.
    pub fn call(&self, number: Sysno, args: [u64; 6]) -> Result<u64> {
        let made = self.led(|| {
            self.begin(number, args)?;
            self.end()
        });
        made?.result()
    }

    /// Leads the thread through something; if that fails, through nothing any more.
    fn led<T>(&self, act: impl FnOnce() -> Result<T>) -> Result<T> {
        if let Some(errno) = self.astray.get() {
            return Err(errno);
        }
        act().inspect_err(|errno| {
            self.astray.set(Some(*errno));
            // Its next call, or that of another with its number, is nobody's here.
            self.targets.quiesce.expect_no_more(self.tid);
        })
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
            .and_then(|_| {
                self.in_no_sequence(|| self.run(code, start, start + table.len() as u64))
            });
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

    /// Runs `act` while the thread has registered no restartable sequence. The kernel says so; and
    /// only a thread itself can register one, by a call, while this one makes those that are asked
    /// of it. Where the program's own filter keeps the thread from it, nothing is run.
    fn in_no_sequence<T>(&self, act: impl FnOnce() -> Result<T>) -> Result<T> {
        const UNREGISTER: u64 = 1;
        let Some(area) = self.led(|| rseq::rseq_area(self.tid))? else { return act() };
        self.register(area, UNREGISTER)?;
        self.led(|| match rseq::rseq_area(self.tid)? {
            None => Ok(()),
            Some(_) => Err(Errno::INTR),
        })?;
        let acted = act();
        let registered = self.register(area, 0);
        // Without it, the program would believe in what the kernel keeps no more.
        self.led(|| registered)?;
        acted
    }

    /// Makes rseq(2) with the area that the thread had.
    fn register(&self, area: RseqArea, flags: u64) -> Result<()> {
        let args = [area.address, area.len.into(), flags, area.signature.into(), 0, 0];
        self.call(Sysno::rseq, args).map(drop)
    }

    /// Lets the thread run lent code, to the call at its end.
    ///
    /// What it runs was written since everybody stands still, into memory that nobody knew of
    /// before: so nothing that was begun before writes there, either.
    fn run(&self, code: u64, table: u64, end: u64) -> Result<()> {
        self.led(|| {
            self.targets.quiesce.expect(self.tid);
            self.registers.running(code, table, end).restore(self.tid)?;
            ptrace::go_on(self.tid)?;
            let call = self.targets.quiesce.caught(PATIENCE).ok_or(Errno::TIMEDOUT)?;
            ptrace::interrupt(self.tid)?;
            self.targets.listener.send_result(call.id, Err(Errno::AGAIN))?;
            self.await_stop()?;
            let at_end = code + DONE..code + MAKE_ALL.len() as u64;
            let stands = Registers::of(self.tid)?;
            if stands.have_run(at_end, end) { Ok(()) } else { Err(Errno::INTR) }
        })
    }

    fn await_stop(&self) -> Result<()> {
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
    ///
    /// The thread closes that itself before: a file system may let it wait for as long as it likes,
    /// and where the kernel closes what it puts a descriptor in the place of, no call of the
    /// sandbox is answered meanwhile (`seccomp_do_user_notification` of `kernel/seccomp.c`).
    pub fn replace(&self, fd: BorrowedFd<'_>, number: i32, cloexec: bool) -> Result<()> {
        // Whatever a close says, the number is free (close(2)).
        let _ = self.call(Sysno::close, [number as u64, 0, 0, 0, 0, 0]);
        self.trapped(|id| self.targets.listener.send_fd_as(id, fd, number, cloexec)).map(drop)
    }

    /// Gives the process a duplicate of `fd`; its number.
    pub fn give(&self, fd: BorrowedFd<'_>) -> Result<i32> {
        self.trapped(|id| self.targets.listener.send_fd(id, fd, true)).map(|number| number as i32)
    }

    /// Makes a call that always comes to the monitor, and answers it.
    fn trapped(&self, answer: impl FnOnce(u64) -> Result<()>) -> Result<u64> {
        let made = self.led(|| {
            self.targets.quiesce.expect(self.tid);
            self.begin(Sysno::pidfd_open, [u64::MAX, u64::MAX, 0, 0, 0, 0])?;
            let call = self.targets.quiesce.caught(PATIENCE).ok_or(Errno::TIMEDOUT)?;
            if let Err(error) = answer(call.id) {
                let _ = self.targets.listener.send_result(call.id, Err(error));
            }
            self.end()
        });
        made?.result()
    }

    /// Runs to the beginning of the call, and lets it begin: this one, not another that the thread
    /// was led to.
    fn begin(&self, number: Sysno, args: [u64; 6]) -> Result<()> {
        let gadget = self.gadget()?;
        let number = i64::from(number.id());
        self.registers.calling(gadget, number, args).restore(self.tid)?;
        ptrace::go_on_to_call(self.tid)?;
        await_call(self.tid, self.patience)?;
        if !ptrace::is_entering(self.tid, gadget, number, args)? {
            return Err(Errno::INTR);
        }
        ptrace::go_on_to_call(self.tid)
    }

    /// Where in the memory of the thread a `syscall` instruction lies: the one that was used last,
    /// or, if what it lay in was taken, one of the kernel's own code page there.
    fn gadget(&self) -> Result<u64> {
        let mut code = [0; 2];
        if memory::read(self.tid, self.gadget.get(), &mut code) == Ok(2) && code == SYSCALL {
            return Ok(self.gadget.get());
        }
        let start = proc::vdso(&self.targets.tree.proc.maps(self.tid)?).ok_or(Errno::NOEXEC)?;
        let mut code = vec![0; 8192];
        let got = memory::read(self.tid, start, &mut code)?;
        let found = code[..got].windows(2).position(|two| two == SYSCALL);
        self.gadget.set(start + found.ok_or(Errno::NOEXEC)? as u64);
        Ok(self.gadget.get())
    }

    fn end(&self) -> Result<Registers> {
        await_call(self.tid, self.patience)?;
        Registers::of(self.tid)
    }
}

/// Waits until a thread has come to the beginning or the end of a call.
fn await_call(tid: u32, patience: Option<Duration>) -> Result<()> {
    let (until, mut turns) = (Instant::now() + patience.unwrap_or_default(), 0);
    loop {
        match patience.map_or_else(|| Some(ptrace::wait(tid)), |_| ptrace::poll(tid)) {
            Some(State::AtCall) => return Ok(()),
            Some(State::Gone) => return Err(Errno::SRCH),
            // It would run code of its own: that of a handler, or what follows a call that was not
            // made.
            Some(State::Stopped { signal }) if is_fault(signal) => return Err(Errno::INTR),
            // Stopped for another reason, which is none of ours; signals are blocked.
            Some(State::Stopped { .. } | State::Forked) => ptrace::go_on_to_call(tid)?,
            None if Instant::now() > until => return Err(Errno::TIMEDOUT),
            None if turns > 2000 => std::thread::sleep(Duration::from_micros(20)),
            None => std::thread::yield_now(),
        }
        turns += 1;
    }
}

/// Whether the kernel sends a signal for what a thread has just done, also if it is blocked.
fn is_fault(signal: i32) -> bool {
    let faults =
        [libc::SIGSYS, libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP];
    faults.contains(&signal)
}
