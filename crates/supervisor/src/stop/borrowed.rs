//! A thread in whose place calls are made, and what it gets back.

use super::let_go;
use crate::sys::{
    memory,
    ptrace::{self, Registers, State},
    rseq,
};
use rustix::io::{Errno, Result};

/// What a thread was before calls were made in its place.
pub(super) struct Borrowed {
    pub(super) registers: Registers,
    /// The signals that it blocked.
    mask: u64,
    sequence: Option<Sequence>,
}

/// A restartable sequence that a thread was in, or had been in.
struct Sequence {
    /// The address of `rseq_cs` of its `struct rseq`.
    field: u64,
    /// The `struct rseq_cs` that was named there.
    section: u64,
}

impl Borrowed {
    /// Takes over a stopped thread.
    pub(super) fn take(tid: u32) -> Result<Self> {
        let registers = Registers::of(tid)?;
        let sequence = Sequence::leave(tid)?;
        let mask = ptrace::block_signals(tid, !0)?;
        Ok(Self { registers, mask, sequence })
    }

    /// Puts back what was borrowed. The kernel decides by the registers whether the call that was
    /// interrupted is made anew, and does so only on the way from a stop of this kind.
    pub(super) fn give_back(self, tid: u32, due: i32) {
        if let Some(sequence) = self.sequence {
            // Where there is no such memory any more, the thread ends as it would have by itself.
            let _ = memory::write(tid, sequence.field, &sequence.section.to_ne_bytes());
        }
        let restored = self
            .registers
            .restore(tid)
            .and_then(|()| ptrace::block_signals(tid, self.mask))
            .and_then(|_| ptrace::interrupt(tid))
            .and_then(|()| ptrace::go_on(tid));
        if restored.is_err() {
            // It is dead: nothing else makes these fail.
            return let_go(tid, due);
        }
        loop {
            match ptrace::poll(tid) {
                None => std::thread::yield_now(),
                Some(State::Gone) => return,
                Some(State::AtCall | State::Forked) => {
                    let _ = ptrace::go_on(tid);
                }
                Some(State::Stopped { signal: 0 }) => return let_go(tid, due),
                Some(State::Stopped { signal }) => {
                    if due != 0 {
                        ptrace::send(tid, due);
                    }
                    return let_go(tid, signal);
                }
            }
        }
    }
}

impl Sequence {
    /// Has a stopped thread be in no sequence. Else the kernel, which compares its instruction
    /// pointer with the section as the thread goes on, would send it from there to the program's
    /// own code; or it would find it elsewhere, forget the section, and let a program that was in
    /// one finish it, though it had been interrupted.
    fn leave(tid: u32) -> Result<Option<Self>> {
        /// Of `rseq_cs` in `struct rseq` (linux/rseq.h).
        const SECTION: u64 = 8;
        let Some(area) = rseq::rseq_area(tid)? else { return Ok(None) };
        let field = area.address.checked_add(SECTION).ok_or(Errno::FAULT)?;
        let mut section = [0; 8];
        if memory::read(tid, field, &mut section)? != section.len() {
            return Err(Errno::FAULT);
        }
        let section = u64::from_ne_bytes(section);
        if section == 0 {
            return Ok(None);
        }
        memory::write(tid, field, &[0; 8])?;
        Ok(Some(Self { field, section }))
    }
}
