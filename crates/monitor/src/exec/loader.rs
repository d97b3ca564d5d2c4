//! What the kernel loads beside a program: the interpreter that the program's own header names
//! (`PT_INTERP` of elf(5)). It is executed before the program is, and bears no name in the call.

use super::refusals::Why;
use avc::Hint;
use file_manager::{FileObject, Seen};
use flask::{AccessVector, FileKind, perm};
use inode_labels::Status;
use mediation::call::Asker;
use proc::{Mapping, mapped_files};
use rustix::{
    fs::{CWD, FileType, Mode, OFlags, ResolveFlags, openat2},
    io::{Errno, Result},
};
use std::{
    ffi::OsString,
    os::{
        fd::{AsFd as _, AsRawFd as _, OwnedFd},
        unix::ffi::OsStringExt as _,
    },
    path::PathBuf,
};
use supervisor::memory;

/// As the kernel opens and maps it, and as SELinux asks: it is no program that a domain is entered
/// by, so that `execute_no_trans` is not asked.
const WANTED: AccessVector = AccessVector(perm::file::READ.0 | perm::file::EXECUTE.0);

/// Whether `asker` may execute all that a process has mapped at its exec stop beside `program`;
/// else why it is killed, if that is not on record yet.
pub(super) fn allow(
    asker: Asker<'_>,
    pid: u32,
    program: &OwnedFd,
) -> std::result::Result<(), Option<Why>> {
    let unknown = |_| Some(Why::Loader);
    let maps = asker.state.targets.tree.proc.maps(pid).map_err(unknown)?;
    let mut files = mapped_files(&maps).map_err(unknown)?;
    let (status, all) = (Status::of(program.as_fd()).map_err(unknown)?, files.len());
    files.retain(|map| is_mapped(asker, (program, &status), map) != Ok(true));
    if all - files.len() > 1 {
        return Err(Some(Why::Loader));
    }
    files.iter().try_for_each(|map| allow_mapped(asker, map))
}

fn allow_mapped(asker: Asker<'_>, map: &Mapping<'_>) -> std::result::Result<(), Option<Why>> {
    let unknown = |_| Some(Why::Loader);
    let (path, file) = found(map).map_err(unknown)?;
    let seen = Seen::of(asker, file.as_fd()).map_err(unknown)?;
    if is_mapped(asker, (&file, &seen.status), map) != Ok(true) {
        return Err(Some(Why::Loader));
    }
    seen.allow(asker, WANTED, &file).map_err(|_| None)?;
    if seen.status.device == map.device {
        return Ok(());
    }
    // Where stat(2) tells another device, the mapping's may have two files of that number. Its path
    // is that of the mapped file for certain.
    let tsid = asker.labels().of_place(&path, FileKind::File);
    let target = FileObject { tsid, tclass: seen.class, hint: &Hint::default() };
    target.allow(asker, WANTED, &|| path.to_string_lossy().into_owned()).map_err(|_| None)
}

/// What lies where a mapped file is called to lie, and that place.
fn found(map: &Mapping<'_>) -> Result<(PathBuf, OwnedFd)> {
    if map.is_deleted() {
        return Err(Errno::NOENT);
    }
    let path = PathBuf::from(OsString::from_vec(map.path_bytes()));
    // The kernel's name has no links in it.
    let limits = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let file = openat2(CWD, &path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), limits)?;
    Ok((path, file))
}

/// Whether `map` is one of this file. Btrfs and overlayfs tell stat(2) other numbers than they show
/// of a mapping; then this process maps the file itself, to see what is shown of it.
fn is_mapped(
    asker: Asker<'_>,
    (file, status): (&OwnedFd, &Status),
    map: &Mapping<'_>,
) -> Result<bool> {
    if status.file_number() == (map.device, map.number) {
        return Ok(true);
    }
    if status.device == map.device || status.kind != FileType::RegularFile {
        return Ok(false);
    }
    let tree = &asker.state.targets.tree;
    let name = file.as_raw_fd().to_string();
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(&tree.own_fds, name, flags, Mode::empty())?;
    let own = memory::Mapped::new(file.as_fd())?;
    let maps = tree.proc.maps(std::process::id())?;
    let mut maps = maps.lines().filter_map(Mapping::parse);
    let shown = maps.find(|it| it.start == own.address()).ok_or(Errno::NOENT)?;
    Ok((shown.device, shown.number) == (map.device, map.number))
}
