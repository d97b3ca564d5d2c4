//! open, openat, openat2, creat.

use super::{
    FileAsker,
    attribute::{granted_mode, lends_ids},
    entry::{allow_new, entry_path, note_entry},
    limited,
    missing_name::{MissingName, New},
    object::{Seen, has_name},
    path_cache::{CachedPath, KnownPaths},
};
use confine::{Rights, launch::OpenAccess};
use flask::{AccessVector, Class, Sid, perm};
use inode_labels::{FileRef, Status};
use landlock::AccessFs;
use mediation::{
    call::{Answer, CallResult},
    inside::{InsideRequest, request},
    subject::proc_files,
};
use rustix::{
    fs::{Access, AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, accessat, fcntl_getfl},
    io::{Errno, Result, fcntl_dupfd_cloexec},
};
use std::{
    ffi::OsStr,
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
    sync::Arc,
};
use supervisor::{Name, WalkedPath, resolve, walk_for_caller, walk_to_create};
use syscalls::Sysno;

/// How often a name may change under an open that creates.
const MOST_TRIES: usize = 16;

/// The arguments of an open, copied.
pub(super) struct Open {
    pub(super) dirfd: i32,
    pub(super) path: PathBuf,
    pub(super) flags: OFlags,
    pub(super) mode: Mode,
    /// Limits on the way.
    pub(super) limits: ResolveFlags,
    /// What was known of paths when it began.
    pub(super) paths: Arc<KnownPaths>,
}

pub(super) fn decide(asker: FileAsker<'_>) -> CallResult {
    let open = arguments(asker)?;
    if let Some(asked) = InsideRequest::of(&open.path, open.writes()) {
        return request(*asker, asked);
    }
    let makes = open.path.as_os_str() != "" && (open.creates() || open.is_temporary());
    // What is asked of openat2 lies in memory, for the program to change. Of a new file, the bits
    // are left out that policy does not grant. The envelope refuses no open for neither.
    if asker.number == Sysno::openat2 || open.is_for_neither() || makes && lends_ids(open.mode) {
        return open.make(asker);
    }
    if asker.exact().contains(open.rights()) && !open.may_be_about_itself() {
        let left = open.leave_to_kernel(asker);
        if matches!(left, Ok(Answer::Continue)) && (open.writes() || open.creates()) {
            asker.state.on_behalf.lacking.watch_open(asker.caller, open.name());
        }
        return left;
    }
    open.make(asker)
}

fn arguments(asker: FileAsker<'_>) -> Result<Open> {
    let caller = asker.caller;
    let flags = |n| OFlags::from_bits_retain(caller.int(n) as u32);
    let mode = |n| Mode::from_bits_retain(caller.call.args[n] as u32 & 0o7777);
    let (dirfd, n, flags, mode) = match asker.number {
        Sysno::openat2 => return limited::arguments(asker),
        Sysno::open => (libc::AT_FDCWD, 0, flags(1), mode(2)),
        Sysno::creat => {
            (libc::AT_FDCWD, 0, OFlags::CREATE | OFlags::WRONLY | OFlags::TRUNC, mode(1))
        }
        _ => (caller.int(0), 1, flags(2), mode(3)),
    };
    limited::check(flags)?;
    let (paths, limits) = (asker.files.paths.now(), ResolveFlags::empty());
    Ok(Open { dirfd, path: caller.path(n)?, flags, mode, limits, paths })
}

impl Open {
    pub(super) fn creates(&self) -> bool {
        self.flags.contains(OFlags::CREATE)
    }

    pub(super) fn is_temporary(&self) -> bool {
        self.flags.contains(OFlags::TMPFILE)
    }

    /// Whether it may be one of the opens that the envelope refuses though they ask for nothing:
    /// see [`proc_files::is_for_process`].
    fn may_be_about_itself(&self) -> bool {
        let is = |name: &&str| self.path.ends_with(name);
        self.writes() && (proc_files::OWN.iter().any(is) || self.path.ends_with(proc_files::MEM))
    }

    pub(super) fn follows(&self) -> bool {
        let exclusive = self.creates() && self.flags.contains(OFlags::EXCL);
        !exclusive && !self.flags.contains(OFlags::NOFOLLOW)
    }

    /// Access mode 3 takes both permissions, too: see open(2).
    pub(super) fn writes(&self) -> bool {
        self.flags & OFlags::RWMODE != OFlags::RDONLY || self.flags.intersects(OFlags::TRUNC)
    }

    /// For neither reading nor writing, but for ioctl(2).
    fn is_for_neither(&self) -> bool {
        self.flags & OFlags::RWMODE == OFlags::RWMODE
    }

    /// Whether it would write to a directory, which nobody may, that may be seen.
    pub(super) fn writes_directory(&self, asker: FileAsker<'_>, seen: &Seen) -> bool {
        let makes = self.creates() || self.is_temporary();
        let is_plain = !self.flags.contains(OFlags::PATH) && !makes;
        let writes = self.writes() && is_plain && seen.class == Class::Dir;
        writes && seen.grants(*asker, perm::file::GETATTR)
    }

    /// What the kernel would have to be exact about for the program to make this call itself.
    fn rights(&self) -> Rights {
        let mut rights = Rights::empty();
        if self.flags.contains(OFlags::PATH) {
            return rights;
        }
        if !matches!(self.flags & OFlags::RWMODE, OFlags::WRONLY) {
            rights |= AccessFs::ReadFile | AccessFs::ReadDir;
        }
        if self.writes() || self.creates() || self.is_temporary() {
            rights |= AccessFs::WriteFile | AccessFs::Truncate;
        }
        if self.creates() || self.is_temporary() {
            rights |= AccessFs::MakeReg;
        }
        rights
    }

    /// What the open asks of an existing file.
    pub(super) fn requested(&self, class: Class) -> AccessVector {
        if self.flags.contains(OFlags::PATH) {
            return perm::file::GETATTR;
        }
        let mut requested = perm::file::OPEN;
        if self.flags & OFlags::RWMODE != OFlags::WRONLY {
            requested |= perm::file::READ;
        }
        if self.writes() && class != Class::Dir {
            // Also to append: F_SETFL and ftruncate, which run, make an open descriptor write
            // anywhere.
            requested |= perm::file::WRITE;
        }
        requested
    }

    pub(super) fn name(&self) -> Name<'_> {
        Name { dirfd: self.dirfd, path: &self.path, follow: self.follows() }
    }

    pub(super) fn missing_name(&self) -> MissingName<'_> {
        let requested = self.requested(Class::File);
        let new = if self.creates() { New::IfMissing } else { New::No };
        MissingName { name: self.name(), requested, new }
    }

    /// Whether a file without a name may be made in `parent`.
    pub(super) fn allow_temporary(&self, asker: FileAsker<'_>, parent: &OwnedFd) -> Result<Sid> {
        if Seen::of(*asker, parent.as_fd())?.class != Class::Dir {
            return Err(Errno::NOTDIR);
        }
        self.allow_new(asker, parent, OsStr::new(""))
    }

    /// Whether a file `name` may be made in `parent`; its label.
    pub(super) fn allow_new(
        &self,
        asker: FileAsker<'_>,
        parent: &OwnedFd,
        name: &OsStr,
    ) -> Result<Sid> {
        let requested = perm::file::CREATE | self.requested(Class::File);
        allow_new(asker, parent, name, FileType::RegularFile, requested)
    }

    /// Opens on the program's behalf.
    pub(super) fn make(&self, asker: FileAsker<'_>) -> CallResult {
        asker.same_ids()?;
        if self.path.as_os_str().is_empty() {
            return Err(Errno::NOENT);
        }
        let acts = self.creates() || self.is_temporary() || self.flags.contains(OFlags::TRUNC);
        if acts && !self.flags.contains(OFlags::PATH) {
            // Nothing is made or cut for a descriptor that cannot be delivered.
            asker.caller.has_room()?;
            return self.open_decided(asker);
        }
        // To look at the table each time would cost more than most opens: it only says which of two
        // errors comes first.
        self.open_decided(asker).or_else(|errno| asker.caller.has_room().and(Err(errno)))
    }

    fn open_decided(&self, asker: FileAsker<'_>) -> CallResult {
        let cloexec = self.flags.contains(OFlags::CLOEXEC);
        if let Some(fd) = self.known_file(asker)? {
            return Ok(Answer::Open { fd, cloexec });
        }
        for _ in 0..MOST_TRIES {
            let (found, is_own) = self.find(asker);
            let found = found.map_err(|errno| self.not_found(asker, errno, is_own))?;
            let looked_into = proc_files::allow(*asker, &found)?;
            let opened = match &found.object {
                Some(object) => self.existing(asker, object, (&found, is_own)).map(Some),
                None if self.creates() => self.new_file(asker, &found),
                None => return Err(self.not_found(asker, Errno::NOENT, is_own)),
            };
            if let Some(fd) = opened? {
                if let Some(process) = looked_into {
                    process.has_stayed(*asker)?;
                }
                return Ok(Answer::Open { fd, cloexec });
            }
        }
        Err(Errno::AGAIN)
    }

    /// The file that the path is known to lead to, opened to be read; `None` if it is not known, or
    /// another is there by now. What is known to be missing is looked for.
    fn known_file(&self, asker: FileAsker<'_>) -> Result<Option<OwnedFd>> {
        let acts = self.creates() || self.is_temporary() || self.writes();
        if acts || asker.is_inside() || !self.limits.is_empty() {
            return Ok(None);
        }
        let Some(known) = self.paths.get(self.name()) else { return Ok(None) };
        if let CachedPath::Missing = *known {
            let there = accessat(CWD, &self.path, Access::EXISTS, AtFlags::empty());
            return if there == Err(Errno::NOENT) { Err(Errno::NOENT) } else { Ok(None) };
        }
        if !known.is_file() {
            return Ok(None);
        }
        known.allow(*asker, |class| self.requested(class))?;
        let flags = self.flags | OFlags::CLOEXEC | OFlags::NOCTTY;
        Ok(known.open(&asker.state.targets.tree, &self.path, flags))
    }

    /// What the program is told where the path leads nowhere; remembered, if that cannot change.
    fn not_found(&self, asker: FileAsker<'_>, errno: Errno, is_own: bool) -> Errno {
        let ended = self.missing_name().ended(asker, errno);
        let stays = !is_own && !self.creates() && !ended.refused && !asker.is_inside();
        if stays && (errno, ended.errno) == (Errno::NOENT, Errno::NOENT) {
            self.paths.missing(asker.state, self.name());
        }
        ended.errno
    }

    /// What the path leads to, and whether that is so for this process alone. An object outside of
    /// `/proc` is found by the kernel in one go: no link on the way was one that leads each process
    /// elsewhere, or it has been left again.
    fn find(&self, asker: FileAsker<'_>) -> (Result<WalkedPath>, bool) {
        if !self.limits.is_empty() {
            return (limited::find(*asker, self), true);
        }
        if self.creates() && !self.flags.contains(OFlags::PATH) {
            return walk_to_create(asker.caller, self.name());
        }
        if !self.creates() {
            match resolve(asker.caller, self.name()) {
                Ok(object) if asker.state.targets.tree.is_proc(object.as_fd()) == Ok(false) => {
                    return (
                        Ok(WalkedPath { object: Some(object), ..WalkedPath::default() }),
                        false,
                    );
                }
                Err(Errno::NOENT) if self.paths.is_plainly_missing(asker.state, self.name()) => {
                    return (Err(Errno::NOENT), false);
                }
                _ => {}
            }
        }
        walk_for_caller(asker.caller, self.name())
    }

    fn existing(
        &self,
        asker: FileAsker<'_>,
        object: &OwnedFd,
        (found, is_own): (&WalkedPath, bool),
    ) -> Result<OwnedFd> {
        if self.creates() && self.flags.contains(OFlags::EXCL) {
            return Err(Errno::EXIST);
        }
        let seen = Seen::of(*asker, object.as_fd())?;
        if self.creates() && seen.class == Class::Dir && !self.flags.contains(OFlags::PATH) {
            return Err(Errno::ISDIR);
        }
        let wants_dir = found.wants_dir || self.flags.contains(OFlags::DIRECTORY);
        let is_link = seen.status.kind == FileType::Symlink;
        if is_link && !wants_dir && !self.flags.contains(OFlags::PATH) {
            return Err(Errno::LOOP);
        }
        if wants_dir && seen.status.kind != FileType::Directory {
            return Err(Errno::NOTDIR);
        }
        if self.writes_directory(asker, &seen) {
            return Err(Errno::ISDIR);
        }
        if self.is_temporary() {
            let sid = self.allow_temporary(asker, object)?;
            let mode = granted_mode(asker, sid, self.mode, &|| "a file without a name".into());
            return self.reopen(*asker, object, seen.status.kind, mode);
        }
        // Memory is reached only by a link that leads each process elsewhere.
        let is_named = !is_own && seen.place(asker.state, object).is_ok_and(Path::is_absolute);
        let has_name = is_named || has_name(*asker, object)?;
        if has_name && !proc_files::is_for_process(*asker, found, object)? {
            if let Some(held) = self.held(asker, found, &seen)? {
                return Ok(held);
            }
            seen.allow(*asker, self.requested(seen.class), object)?;
            if !is_own && !self.creates() && !asker.is_inside() {
                self.paths.found(asker.state, self.name(), object, &seen)?;
            }
            if self.writes() && asker.files.plantings.are_watched() {
                asker
                    .files
                    .plantings
                    .note_at(|| seen.place(asker.state, object).map(Path::to_owned), false);
            }
        } else {
            // A pipe, a socket or memory without a name, reached through a descriptor.
            let opens = !self.flags.contains(OFlags::PATH);
            let wanted = opens.then(|| OpenAccess::of(self.flags));
            proc_files::allow_held(*asker, found.descriptor, object, wanted)?;
        }
        self.reopen(*asker, object, seen.status.kind, Mode::empty())
    }

    /// A duplicate of the process's own descriptor, by whose link in `/proc` a file was found that
    /// policy does not let it open: `/dev/stdout` is what the caller of Dewar has given. It is what
    /// dup(2) gives, so it shares its place and is not cut.
    fn held(
        &self,
        asker: FileAsker<'_>,
        found: &WalkedPath,
        seen: &Seen,
    ) -> Result<Option<OwnedFd>> {
        let opens = !self.flags.intersects(OFlags::PATH | OFlags::DIRECTORY);
        let descriptor = found.descriptor.filter(|_| opens && seen.class == Class::File);
        let Some(fd) = descriptor.filter(|_| !seen.grants(*asker, self.requested(seen.class)))
        else {
            return Ok(None);
        };
        let held = asker.duplicate(fd)?;
        let is_same = Status::of(held.as_fd())?.file_number() == seen.status.file_number();
        let has = fcntl_getfl(&held)?;
        let gives = OpenAccess::of(has).gives(OpenAccess::of(self.flags));
        (is_same && gives && !has.contains(OFlags::PATH))
            .then(|| fcntl_dupfd_cloexec(&held, 0))
            .transpose()
    }

    /// Makes the file; `None` when somebody else made it meanwhile.
    fn new_file(&self, asker: FileAsker<'_>, found: &WalkedPath) -> Result<Option<OwnedFd>> {
        let Some((parent, name)) = &found.entry else {
            return Err(self.missing_name().ended(asker, Errno::NOENT).errno);
        };
        if found.wants_dir {
            return Err(Errno::ISDIR);
        }
        let requested = perm::file::CREATE | self.requested(Class::File);
        let sid = allow_new(asker, parent, name, FileType::RegularFile, requested)?;
        // EXCL follows no link, and fcntl(2) does not tell of it.
        let flags = self.flags | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOCTTY;
        let object = || entry_path(asker, parent, name);
        let mode = granted_mode(asker, sid, self.mode, &object);
        let making = asker.labels().making(name);
        let opened = asker.with_umask(|| rustix::fs::openat(parent, name, flags, mode));
        match opened {
            Ok(fd) => {
                let file = FileRef::Open(fd.as_fd(), asker.state.targets.tree.own_fds.as_fd());
                asker.labels().created(&Status::of(fd.as_fd())?, file, sid);
                drop(making);
                note_entry(asker, parent, name, true);
                Ok(Some(fd))
            }
            Err(Errno::EXIST) if !self.flags.contains(OFlags::EXCL) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
