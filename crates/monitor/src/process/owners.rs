//! Who gets the signals of a file, and that there are some: whoever owns a descriptor can be sent
//! any signal, for as long as the descriptor lives.

use super::{
    others::{Targets, allow, ask, keeps_to_itself},
    refusals::{Reach, refuse},
    send,
};
use flask::{AccessVector, InitialSid, perm};
use mediation::call::{Answer, Asker, CallResult};
use rustix::{
    fs::{FileType, OFlags},
    io::{Errno, Result},
};
use std::os::fd::AsFd as _;
use supervisor::{closing::Duplicate, socket};

/// What an owner can be sent.
fn signals() -> AccessVector {
    perm::process::SIGNAL | perm::process::SIGKILL | perm::process::SIGSTOP
}

/// fcntl(2) with `F_SETOWN`, or `F_SETFL` and `O_ASYNC`.
pub(super) fn by_fcntl(asker: Asker<'_>) -> CallResult {
    if asker.caller.int(1) == libc::F_SETFL {
        let fd = asker.duplicate(asker.caller.int(0))?;
        allow_signals(asker, &fd)?;
        let flags = OFlags::from_bits_retain(asker.caller.int(2).cast_unsigned());
        rustix::fs::fcntl_setfl(&fd, flags)?;
        return Ok(Answer::Return(0));
    }
    asker.caller.file(asker.caller.int(0))?;
    allow_owner(asker, asker.caller.int(2))?;
    Ok(Answer::Continue)
}

/// ioctl(2) with `FIOASYNC`.
pub(super) fn by_request(asker: Asker<'_>) -> CallResult {
    let fd = asker.duplicate(asker.caller.int(0))?;
    let is_on = asker.caller.bytes::<4>(asker.caller.call.args[2])? != [0; 4];
    if is_on {
        allow_signals(asker, &fd)?;
    }
    socket::set_async(fd.as_fd(), is_on)?;
    Ok(Answer::Return(0))
}

/// ioctl(2) with `FIOSETOWN` or `SIOCSPGRP`, which sockets have. The owner stands in memory, so the
/// monitor sets it: only the caller itself, whose number stays its own while it waits.
pub(super) fn of_socket(asker: Asker<'_>) -> CallResult {
    let fd = asker.duplicate(asker.caller.int(0))?;
    if FileType::from_raw_mode(rustix::fs::fstat(&fd)?.st_mode) != FileType::Socket {
        return Err(Errno::NOTTY);
    }
    let owner = i32::from_ne_bytes(asker.caller.bytes(asker.caller.call.args[2])?);
    allow_owner(asker, owner)?;
    let own = asker.caller.identity()?;
    let number = match u32::try_from(owner) {
        Ok(0) => 0,
        Ok(pid) if pid == own.inner_pid => own.pid.cast_signed(),
        _ => return Err(refuse(asker, Reach::OwnerInMemory)),
    };
    socket::set_owner(fd.as_fd(), number)?;
    if let Err(error) = asker.caller.certain(Ok(())) {
        // It has ended, and its number may be another's.
        socket::set_owner(fd.as_fd(), 0)?;
        return Err(error);
    }
    Ok(Answer::Return(0))
}

/// Decides about an owner, as fcntl(2) has it.
fn allow_owner(asker: Asker<'_>, owner: i32) -> Result<()> {
    let targets = match owner {
        0 => return Ok(()),
        group if group < 0 => Targets::Group(group.unsigned_abs()),
        pid => Targets::One(pid.unsigned_abs()),
    };
    let many = !asker.state.subjects.cannot_differ_yet();
    let own = asker.caller.identity()?;
    let keeps = match targets {
        Targets::One(pid) => own.pid != own.inner_pid || send::is_of(own, pid),
        _ => keeps_to_itself(asker, &targets),
    };
    if many || !keeps {
        // An owner may enter another domain, others may join its group, and a number of the
        // machine's come to a process outside before the call is made.
        return Err(refuse(asker, Reach::Owner));
    }
    allow(asker, &targets, signals())
}

/// Decides about having the owner of `fd` sent signals, which is done on that duplicate: the number
/// may be another file's by now. A terminal (`__tty_fasync` of `drivers/tty/tty_io.c`) makes the
/// group in its foreground the owner, outside or in another domain.
fn allow_signals(asker: Asker<'_>, fd: &Duplicate) -> Result<()> {
    if !rustix::termios::isatty(fd) {
        return Ok(());
    }
    let object = || "the foreground of a terminal (O_ASYNC)".to_owned();
    ask(asker, InitialSid::Kernel.into(), signals(), &object)
}
