//! Calls that change extended attributes: setxattr, removexattr and their kin.

use super::{
    FileAsker, acl,
    attribute::{Which, opening, path_at, path_with_flags, target},
    memory::stays_plain,
};
use flask::perm;
use mediation::call::{Answer, CallResult};
use rustix::{
    fs::{FileType, Stat, XattrFlags},
    io::{Errno, Result},
};
use std::{
    ffi::{CStr, CString},
    os::{fd::OwnedFd, unix::ffi::OsStringExt},
};
use syscalls::Sysno;

/// `XATTR_SIZE_MAX` and `XATTR_NAME_MAX` of `linux/limits.h`.
const XATTR_SIZE_MAX: u64 = 65_536;
const XATTR_NAME_MAX: usize = 255;
/// `struct xattr_args` of `linux/xattr.h`: where the value lies, its length, flags.
const ARGS_BYTES: usize = 16;

pub(super) fn decide(asker: FileAsker<'_>) -> CallResult {
    use Sysno::*;
    match asker.number {
        setxattr | lsetxattr | fsetxattr | setxattrat => set(asker),
        _ => remove(asker),
    }
}

/// Whether the call names its file by a directory, a path and flags.
fn is_at(asker: FileAsker<'_>) -> bool {
    matches!(asker.number, Sysno::setxattrat | Sysno::removexattrat)
}

/// How the call names its file.
fn which(asker: FileAsker<'_>) -> Result<Which> {
    Ok(match asker.number {
        Sysno::setxattr | Sysno::removexattr => path_at(0, true),
        Sysno::lsetxattr | Sysno::lremovexattr => path_at(0, false),
        Sysno::fsetxattr | Sysno::fremovexattr => Which::Open(0),
        _ => match path_with_flags(asker, 2)? {
            // As fsetxattr and fremovexattr do it: of the working directory, the second does not
            // (`path_setxattrat` and `path_removexattrat` of `fs/xattr.c`).
            Which::Descriptor(n)
                if asker.caller.int(n) >= 0 || asker.number == Sysno::removexattrat =>
            {
                Which::Open(n)
            }
            which => which,
        },
    })
}

/// The name of the attribute.
fn name(asker: FileAsker<'_>) -> Result<CString> {
    let n = if is_at(asker) { 3 } else { 1 };
    let name = asker.caller.path(n)?.into_os_string().into_vec();
    if name.is_empty() || name.len() > XATTR_NAME_MAX {
        return Err(Errno::RANGE);
    }
    CString::new(name).map_err(|_| Errno::INVAL)
}

/// Where the value lies, its length, and the flags.
fn value(asker: FileAsker<'_>) -> Result<(u64, u64, u32)> {
    let args = &asker.caller.call.args;
    if !is_at(asker) {
        return Ok((args[2], args[3], args[4] as u32));
    }
    let known: [u8; ARGS_BYTES] = asker.caller.extensible(args[4], args[5])?;
    let word = |at: usize| u32::from_ne_bytes(known[at..][..4].try_into().unwrap_or_default());
    let address = u64::from_ne_bytes(known[..8].try_into().unwrap_or_default());
    Ok((address, word(8).into(), word(12)))
}

/// The file of the call, decided: an `O_PATH` descriptor of it.
fn decided(asker: FileAsker<'_>, which: Which, name: &CStr) -> Result<OwnedFd> {
    let has = |prefix: &str| name.to_bytes().starts_with(prefix.as_bytes());
    let refused = |status: &Stat| {
        let kind = FileType::from_raw_mode(status.st_mode);
        let plain = matches!(kind, FileType::RegularFile | FileType::Directory);
        // Users' own attributes are for files and directories; others are the administrator's.
        let refused = (has("user.") && !plain) || has("trusted.") || has("security.");
        refused.then_some(Errno::PERM)
    };
    target(asker, which, perm::file::SETATTR, &refused)
}

fn set(asker: FileAsker<'_>) -> CallResult {
    let (address, length, flags) = value(asker)?;
    let which = which(asker)?;
    let flags = XattrFlags::from_bits_retain(flags);
    if flags.intersects(!(XattrFlags::CREATE | XattrFlags::REPLACE)) {
        return Err(Errno::INVAL);
    }
    let name = name(asker)?;
    if length > XATTR_SIZE_MAX {
        return Err(Errno::TOOBIG);
    }
    let value = asker.caller.buffer(address, length as usize)?;
    let object = decided(asker, which, &name)?;
    if acl::is_acl(&name) && stays_plain(*asker, &object)? {
        // A list of rights sets the mode as chmod(2) does.
        return Err(Errno::OPNOTSUPP);
    }
    let path = asker.state.on_behalf.fs_state.path_of(&object);
    opening(asker, &object, || rustix::fs::setxattr(path, &name, &value, flags))
        .map_err(|errno| acl::refused(*asker, (&name, &value), errno))?;
    Ok(Answer::Return(0))
}

fn remove(asker: FileAsker<'_>) -> CallResult {
    let which = which(asker)?;
    let name = name(asker)?;
    let object = decided(asker, which, &name)?;
    rustix::fs::removexattr(asker.state.on_behalf.fs_state.path_of(&object), name)?;
    Ok(Answer::Return(0))
}
