//! The mounts that make a view, through the kernel's descriptor-based mount interface: nothing is
//! visible before it is complete.

use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags,
    fsconfig_create, fsconfig_set_string, fsmount, fsopen, move_mount, open_tree, unmount,
};

use super::step::{Step, ViewEntry};
use crate::sys;

/// Why the view could not be built. Nothing was started.
#[derive(Debug, thiserror::Error)]
#[error("cannot {act} `{}`: {source}", path.display())]
pub struct ViewError {
    act: &'static str,
    path: PathBuf,
    source: Errno,
}

/// Says what failed where.
pub(super) fn at<'a>(act: &'static str, path: &'a Path) -> impl Fn(Errno) -> ViewError + 'a {
    move |source| ViewError { act, path: path.to_owned(), source }
}

/// Everything that is about to be mounted.
pub(super) struct Mounts {
    /// What is put back, taken before anything was covered.
    originals: HashMap<PathBuf, OwnedFd>,
    /// Covers that are in place, by path.
    covers: HashMap<PathBuf, OwnedFd>,
    /// Directories that stay in covers, empty.
    ways: Vec<PathBuf>,
    /// Empty things that cover what is denied, and the file for `/etc/hosts`.
    voids: Option<Voids>,
    /// Bytes that a private directory takes at most.
    private_bytes: Option<u64>,
}

struct Voids {
    mount: OwnedFd,
    hosts: Option<OwnedFd>,
    attached: bool,
    /// How many empty things there are.
    made: usize,
}

/// So often is what somebody replaces meanwhile covered anew.
const MOST_TRIES: usize = 64;

/// Where the voids are attached meanwhile if the kernel clones only attached mounts.
const VOIDS: &str = "/proc";

impl Mounts {
    /// Takes hold of everything that `steps` put back; takes out of them what is gone by now.
    pub(super) fn open(
        steps: &mut Vec<Step>,
        private_bytes: Option<u64>,
        ways: Vec<PathBuf>,
    ) -> Result<Self, ViewError> {
        let mut originals = HashMap::new();
        for step in steps.iter().filter(|step| step.place == ViewEntry::Keep) {
            let tree = match clone_tree(CWD, &step.path) {
                Err(Errno::NOENT | Errno::NOTDIR) if is_gone(&step.path) => continue,
                tree => tree.map_err(at("take hold of", &step.path))?,
            };
            originals.insert(step.path.clone(), tree);
        }
        steps.retain(|step| step.place != ViewEntry::Keep || originals.contains_key(&step.path));
        Ok(Self { originals, covers: HashMap::new(), ways, voids: None, private_bytes })
    }

    /// Does one of `steps`; those before it are done.
    pub(super) fn put(&mut self, step: &Step, steps: &[Step]) -> Result<(), ViewError> {
        let act = match step.place {
            ViewEntry::Link(_) => return Ok(()),
            ViewEntry::Keep => "put back",
            ViewEntry::Private => "make private",
            ViewEntry::Absent => "hide what is in",
        };
        let failed = at(act, &step.path);
        if let Some(original) = self.originals.remove(&step.path) {
            return self.attach(&original, step).map_err(failed);
        }
        let inside = steps.iter().filter(|other| other.host.as_ref() == Some(&step.path));
        let cover = self.cover(step, inside).map_err(&failed)?;
        let innermost = |way: &Path| steps.iter().rev().find(|step| way.starts_with(&step.path));
        let is_here = |way: &&PathBuf| innermost(way).is_some_and(|it| it.path == step.path);
        for way in self.ways.iter().filter(|_| step.place == ViewEntry::Absent).filter(is_here) {
            let below = way.strip_prefix(&step.path).map_err(|_| failed(Errno::INVAL))?;
            make_directories(cover.as_fd(), below).map_err(&failed)?;
        }
        Self::seal(&cover, step).map_err(&failed)?;
        self.attach(&cover, step).map_err(failed)?;
        self.covers.insert(step.path.clone(), cover);
        Ok(())
    }

    /// A new directory tree for `step`, with a place for each step `inside` of it.
    fn cover<'a>(
        &self,
        step: &Step,
        inside: impl Iterator<Item = &'a Step>,
    ) -> Result<OwnedFd, Errno> {
        let private = step.place == ViewEntry::Private;
        let cover = if private {
            new_tmpfs(c"1777", true, self.private_bytes)?
        } else {
            new_tmpfs(c"755", false, None)?
        };
        if !private {
            same_owner(&cover, &step.path)?;
        }
        for other in inside {
            let below = other.path.strip_prefix(&step.path).map_err(|_| Errno::INVAL)?;
            make_place(cover.as_fd(), below, other, self.originals.get(&other.path))?;
        }
        Ok(cover)
    }

    /// Nothing more is made in a cover that is nobody's.
    fn seal(cover: &OwnedFd, step: &Step) -> Result<(), Errno> {
        if step.place == ViewEntry::Private {
            return Ok(());
        }
        sys::set_mount_attributes(cover.as_fd(), c"", libc::MOUNT_ATTR_RDONLY, false)
    }

    /// Attaches `tree` at the place of `step`.
    fn attach(&self, tree: &OwnedFd, step: &Step) -> Result<(), Errno> {
        match step.host.as_ref().and_then(|host| Some((host, self.covers.get(host)?))) {
            Some((host, cover)) => {
                let below = step.path.strip_prefix(host).map_err(|_| Errno::INVAL)?;
                attach(tree, cover.as_fd(), below)
            }
            None => attach(tree, CWD, &step.path),
        }
    }

    /// Makes the empty file, the empty directory and the `hosts` file that cover others.
    pub(super) fn prepare_voids(&mut self, hosts: Option<&str>) -> Result<(), ViewError> {
        let failed = at("prepare empty files over", Path::new(VOIDS));
        self.voids = Some(Voids::new(hosts).map_err(failed)?);
        Ok(())
    }

    /// Covers the file or directory at `path` with an empty one that nobody can open; a directory
    /// has `mode`.
    pub(super) fn deny(&mut self, path: &Path, mode: Mode) -> Result<(), ViewError> {
        let mut attach_void = || {
            let voids = self.voids.as_mut().ok_or(Errno::INVAL)?;
            attach(&voids.make(is_directory(path).then_some(mode))?, CWD, path)
        };
        for _ in 0..MOST_TRIES {
            match attach_void() {
                // A terminal that was closed meanwhile, say.
                Err(Errno::NOENT | Errno::NOTDIR) if is_gone(path) => return Ok(()),
                // It was replaced.
                Err(Errno::NOENT | Errno::NOTDIR) => {}
                attached => return attached.map_err(at("deny", path)),
            }
        }
        Err(at("deny", path)(Errno::AGAIN))
    }

    /// Puts the new `hosts` file at `path`.
    pub(super) fn replace_hosts(&mut self, path: &Path) -> Result<(), ViewError> {
        let hosts = self.voids.as_mut().and_then(|voids| voids.hosts.take());
        let replaced = hosts.ok_or(Errno::INVAL).and_then(|hosts| attach(&hosts, CWD, path));
        replaced.map_err(at("replace", path))
    }

    /// Takes away what was needed only for building.
    pub(super) fn finish(self) -> Result<(), ViewError> {
        self.voids.map_or(Ok(()), Voids::finish).map_err(at("uncover", Path::new(VOIDS)))
    }

    /// Makes everything below `path` read-only.
    pub(super) fn make_read_only(&self, path: &Path) -> Result<(), ViewError> {
        make_read_only(path).map_err(at("make read-only", path))
    }
}

/// Whether there is nothing at `path` any more.
fn is_gone(path: &Path) -> bool {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    let found = path.symlink_metadata();
    found.is_err_and(|error| [NotFound, NotADirectory].contains(&error.kind()))
}

/// Whether there is a directory at `path`, which no file system is asked for: that on it may be
/// another user's (FUSE), or have no server any more.
fn is_directory(path: &Path) -> bool {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).is_ok()
}

/// Covers files by empty ones that nobody can open.
pub(super) fn deny_files(paths: &[&Path]) -> Result<(), Errno> {
    let mut voids = Voids::new(None)?;
    let covers: Result<Vec<_>, Errno> = paths.iter().map(|_| voids.make(None)).collect();
    // They may lie over what is to be covered.
    voids.finish()?;
    paths.iter().zip(covers?).try_for_each(|(path, cover)| attach(&cover, CWD, path))
}

/// Makes everything below `path`, in this mount namespace, read-only.
pub(super) fn make_read_only(path: &Path) -> Result<(), Errno> {
    let tree = clone_tree(CWD, path)?;
    sys::set_mount_attributes(tree.as_fd(), c"", libc::MOUNT_ATTR_RDONLY, true)?;
    attach(&tree, CWD, path)
}

/// A new, empty file system of the type `kind`, not attached anywhere.
pub(super) fn new_mount(
    kind: &str,
    options: &[(&CStr, &CStr)],
    attributes: MountAttrFlags,
) -> Result<OwnedFd, Errno> {
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (key, value) in options {
        fsconfig_set_string(&context, *key, *value)?;
    }
    fsconfig_create(&context)?;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

/// Attaches the detached `tree` at `path` below `dir`, on top of what is mounted there.
pub(super) fn attach(tree: &OwnedFd, dir: BorrowedFd<'_>, path: &Path) -> Result<(), Errno> {
    move_mount(tree, c"", dir, path, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
}

/// Of at most `bytes`, files without content included.
fn new_tmpfs(mode: &CStr, executable: bool, bytes: Option<u64>) -> Result<OwnedFd, Errno> {
    /// About what the kernel needs for one.
    const INODE: u64 = 1024;
    let mut attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    attributes.set(MountAttrFlags::MOUNT_ATTR_NOEXEC, !executable);
    let text = |number: u64| CString::new(number.to_string()).map_err(|_| Errno::INVAL);
    let limits = bytes
        .map(|bytes| Ok::<_, Errno>((text(bytes)?, text(bytes.div_ceil(INODE))?)))
        .transpose()?;
    let mut options = vec![(c"mode", mode)];
    if let Some((bytes, inodes)) = &limits {
        options.extend([(c"size", bytes.as_c_str()), (c"nr_inodes", inodes.as_c_str())]);
    }
    new_mount("tmpfs", &options, attributes)
}

/// A detached copy of the mounts at and below `path`.
fn clone_tree(dir: BorrowedFd<'_>, path: impl rustix::path::Arg) -> Result<OwnedFd, Errno> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_SYMLINK_NOFOLLOW;
    open_tree(dir, path, flags)
}

/// Gives the root of `cover` the owner of the directory that it hides, as far as allowed.
fn same_owner(cover: &OwnedFd, hidden: &Path) -> Result<(), Errno> {
    let (of, now) = (rustix::fs::stat(hidden)?, rustix::fs::fstat(cover)?);
    if (of.st_uid, of.st_gid) == (now.st_uid, now.st_gid) {
        return Ok(());
    }
    let (uid, gid) = (Uid::from_raw(of.st_uid), Gid::from_raw(of.st_gid));
    match rustix::fs::chownat(cover, c"", Some(uid), Some(gid), AtFlags::EMPTY_PATH) {
        // An owner that this user namespace does not know stays the caller.
        Err(Errno::PERM | Errno::INVAL) => Ok(()),
        answer => answer,
    }
}

/// Makes the file, directory or link in `cover` on which `step` is put.
fn make_place(
    cover: BorrowedFd<'_>,
    below: &Path,
    step: &Step,
    original: Option<&OwnedFd>,
) -> Result<(), Errno> {
    make_directories(cover, below.parent().unwrap_or(Path::new("")))?;
    if let ViewEntry::Link(target) = &step.place {
        let target = CString::new(target.as_bytes()).map_err(|_| Errno::INVAL)?;
        return rustix::fs::symlinkat(&target, cover, below);
    }
    let directory = match original {
        Some(original) => {
            FileType::from_raw_mode(rustix::fs::fstat(original)?.st_mode) == FileType::Directory
        }
        None => true,
    };
    if directory { make_directory(cover, below) } else { make_file(cover, below, 0o444).map(drop) }
}

/// Makes a directory, and those above it.
fn make_directories(dir: BorrowedFd<'_>, below: &Path) -> Result<(), Errno> {
    let mut path = PathBuf::new();
    for component in below.components() {
        path.push(component);
        make_directory(dir, &path)?;
    }
    Ok(())
}

fn make_directory(dir: BorrowedFd<'_>, path: &Path) -> Result<(), Errno> {
    let mode = Mode::from_raw_mode(0o755);
    match rustix::fs::mkdirat(dir, path, mode) {
        Err(Errno::EXIST) => Ok(()),
        // Whatever the mask says.
        Ok(()) => rustix::fs::chmodat(dir, path, mode, AtFlags::empty()),
        failed => failed,
    }
}

fn make_file(
    dir: BorrowedFd<'_>,
    path: impl rustix::path::Arg,
    mode: u32,
) -> Result<OwnedFd, Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let file = rustix::fs::openat(dir, path, flags, Mode::from_raw_mode(mode))?;
    rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))?;
    Ok(file)
}

impl Voids {
    fn new(hosts: Option<&str>) -> Result<Self, Errno> {
        let mount = new_tmpfs(c"700", false, None)?;
        if let Some(text) = hosts {
            let file = make_file(mount.as_fd(), c"hosts", 0o644)?;
            write_all(&file, text.as_bytes())?;
        }
        let mut voids = Self { mount, hosts: None, attached: false, made: 0 };
        if hosts.is_some() {
            voids.hosts = Some(voids.clone_of(c"hosts")?);
        }
        Ok(voids)
    }

    /// A detached mount of an empty directory or file: one of its own for each place, since a label
    /// belongs to an inode.
    fn make(&mut self, directory: Option<Mode>) -> Result<OwnedFd, Errno> {
        self.made += 1;
        let name = CString::new(self.made.to_string()).map_err(|_| Errno::INVAL)?;
        if let Some(mode) = directory {
            rustix::fs::mkdirat(&self.mount, &name, mode)?;
            // Whatever the mask says.
            rustix::fs::chmodat(&self.mount, &name, mode, AtFlags::empty())?;
        } else {
            make_file(self.mount.as_fd(), &name, 0)?;
        }
        self.clone_of(&name)
    }

    /// A detached mount, read-only, of something in here.
    fn clone_of(&mut self, name: &CStr) -> Result<OwnedFd, Errno> {
        let tree = self.clone_writable(name)?;
        sys::set_mount_attributes(tree.as_fd(), c"", libc::MOUNT_ATTR_RDONLY, false)?;
        Ok(tree)
    }

    /// Takes away what was needed only for making.
    fn finish(self) -> Result<(), Errno> {
        if self.attached { unmount(VOIDS, UnmountFlags::DETACH) } else { Ok(()) }
    }

    fn clone_writable(&mut self, name: &CStr) -> Result<OwnedFd, Errno> {
        match clone_tree(self.mount.as_fd(), name) {
            // Before Linux 6.15 only attached mounts can be cloned.
            Err(Errno::INVAL) if !self.attached => {
                attach(&self.mount, CWD, Path::new(VOIDS))?;
                self.attached = true;
                clone_tree(self.mount.as_fd(), name)
            }
            answer => answer,
        }
    }
}

fn write_all(file: &OwnedFd, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        let written = rustix::io::write(file, bytes)?;
        bytes = &bytes[written..];
    }
    Ok(())
}
