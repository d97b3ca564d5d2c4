//! Calls that open much of the kernel: rings, keys, mounts, namespaces, handles.

use super::{answer, descriptor, enter, path};
use rustix::process::Pid;
use std::{
    ffi::{CString, c_int},
    io,
    os::{
        fd::{AsRawFd as _, BorrowedFd, OwnedFd},
        unix::process::CommandExt as _,
    },
    path::Path,
    process::Command,
};

/// An input/output ring with room for a few calls.
pub(crate) fn io_uring() -> io::Result<OwnedFd> {
    let mut parameters = [0_u64; 15];
    // SAFETY: `struct io_uring_params` has 120 bytes, all integers that may be zero; the kernel
    // writes it in place.
    descriptor(unsafe { libc::syscall(libc::SYS_io_uring_setup, 4, parameters.as_mut_ptr()) })
}

/// A map in the kernel, by `bpf`.
pub(crate) fn bpf_map() -> io::Result<OwnedFd> {
    // BPF_MAP_CREATE: an array of one entry of 4 bytes.
    let mut attributes = [0_u32; 18];
    attributes[..4].copy_from_slice(&[2, 4, 4, 1]);
    let size = size_of_val(&attributes);
    // SAFETY: the attributes are `size` bytes of integers, and name no memory.
    descriptor(unsafe { libc::syscall(libc::SYS_bpf, 0, attributes.as_ptr(), size) })
}

/// Memory whose faults this process answers.
pub(crate) fn userfaultfd(flags: c_int) -> io::Result<OwnedFd> {
    // SAFETY: one number.
    descriptor(unsafe { libc::syscall(libc::SYS_userfaultfd, flags | libc::O_CLOEXEC) })
}

/// A counter of this process's own instructions, by software, of what happens in user space.
pub(crate) fn perf_event() -> io::Result<OwnedFd> {
    let mut attributes = [0_u32; 32];
    // Type software, size, event task-clock; disabled, without kernel and hypervisor.
    (attributes[0], attributes[1], attributes[2]) = (1, 128, 1);
    attributes[10] = 1 | 1 << 5 | 1 << 6;
    let (pid, cpu, group, flags) = (0, -1, -1, 0);
    // SAFETY: the attributes are as long as they say, integers all, and name no memory.
    descriptor(unsafe {
        libc::syscall(libc::SYS_perf_event_open, attributes.as_ptr(), pid, cpu, group, flags)
    })
}

/// The keyring of this user.
const USER_KEYRING: c_int = -4;

/// Gives this user's keyring a key that everybody of this user may read.
pub(crate) fn add_key(name: &str, content: &[u8]) -> io::Result<c_int> {
    let name = CString::new(name).map_err(io::Error::other)?;
    let (kind, data) = (c"user".as_ptr(), content.as_ptr());
    // SAFETY: two strings that end in NUL, and bytes with their length; the kernel copies all.
    let key = answer(unsafe {
        libc::syscall(libc::SYS_add_key, kind, name.as_ptr(), data, content.len(), USER_KEYRING)
    })?;
    // KEYCTL_SETPERM: everything, for whoever possesses it and for the user.
    // SAFETY: three numbers.
    answer(unsafe { libc::syscall(libc::SYS_keyctl, 5, key, 0x3f3f_0000_u32) })?;
    c_int::try_from(key).map_err(io::Error::other)
}

/// Takes a key out of this user's keyring.
pub(crate) fn remove_key(key: c_int) {
    // KEYCTL_UNLINK.
    // SAFETY: three numbers.
    let _ = unsafe { libc::syscall(libc::SYS_keyctl, 9, key, USER_KEYRING) };
}

/// What a key of this user's keyring holds.
pub(crate) fn read_key(name: &str) -> io::Result<Vec<u8>> {
    let name = CString::new(name).map_err(io::Error::other)?;
    let kind = c"user".as_ptr();
    // KEYCTL_SEARCH.
    // SAFETY: numbers, and two strings that end in NUL.
    let key = answer(unsafe {
        libc::syscall(libc::SYS_keyctl, 10, USER_KEYRING, kind, name.as_ptr(), 0)
    })?;
    let mut content = vec![0; 256];
    // KEYCTL_READ.
    // SAFETY: the kernel writes at most as many bytes as the buffer has.
    let length = answer(unsafe {
        libc::syscall(libc::SYS_keyctl, 11, key, content.as_mut_ptr(), content.len())
    })?;
    content.truncate(usize::try_from(length).unwrap_or(0));
    Ok(content)
}

/// Mounts a file system in memory that bears a name, for this process's namespace alone.
pub(crate) fn mount_own(name: &str, to: &str) -> io::Result<()> {
    let (name, to) = (path(name.as_ref())?, path(to.as_ref())?);
    let none = std::ptr::null();
    private_mounts()?;
    // SAFETY: three strings that end in NUL; without data.
    let done = unsafe { libc::mount(name.as_ptr(), to.as_ptr(), c"tmpfs".as_ptr(), 0, none) };
    answer(done.into()).map(drop)
}

/// Takes a mount away, for this process's namespace alone.
pub(crate) fn unmount_own(place: &Path) -> io::Result<()> {
    let place = path(place)?;
    private_mounts()?;
    // SAFETY: a string that ends in NUL.
    answer(unsafe { libc::umount2(place.as_ptr(), libc::MNT_DETACH) }.into()).map(drop)
}

/// Nothing that is mounted from here on reaches another namespace; fails where this process has
/// none of its own.
fn private_mounts() -> io::Result<()> {
    let parent = rustix::process::getppid().map_or(1, Pid::as_raw_pid);
    let of = |pid: i32| std::fs::read_link(format!("/proc/{pid}/ns/mnt")).ok();
    let own = std::fs::read_link("/proc/self/ns/mnt")?;
    if of(parent).is_some_and(|its| its == own) {
        return Err(io::Error::other("no mount namespace of its own"));
    }
    let (none, flags) = (std::ptr::null(), libc::MS_REC | libc::MS_PRIVATE);
    // SAFETY: one string that ends in NUL.
    let done = unsafe { libc::mount(none, c"/".as_ptr(), none, flags, none.cast()) };
    answer(done.into()).map(drop)
}

/// Starts a program in new user and UTS namespaces.
pub(crate) fn in_new_namespaces(command: &mut Command) {
    let begin = || {
        // SAFETY: one number.
        let both = unsafe { libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWUTS) };
        answer(both.into()).map(drop)
    };
    // SAFETY: `begin` makes one system call.
    unsafe { command.pre_exec(begin) };
}

/// The name that a process's machine has.
pub(crate) fn machine_name_of(pid: i32) -> Option<String> {
    let namespace = std::fs::File::open(format!("/proc/{pid}/ns/uts")).ok()?;
    // A thread of its own enters, and ends there.
    let name = std::thread::spawn(move || {
        use std::os::fd::AsFd as _;
        enter(namespace.as_fd()).ok()?;
        Some(rustix::system::uname().nodename().to_string_lossy().into_owned())
    });
    name.join().ok()?
}

/// The handle of a file: kind, and bytes.
pub(crate) fn handle(file: &Path) -> io::Result<Vec<u8>> {
    let file = path(file)?;
    // `struct file_handle`: two numbers, and up to 128 bytes.
    let mut handle = [0_u32; 34];
    handle[0] = 128;
    let mut mount = 0;
    let (at, flags) = (libc::AT_FDCWD, 0);
    // SAFETY: the kernel writes at most the 128 bytes that the handle says it has room for, and one
    // number.
    answer(unsafe {
        libc::syscall(
            libc::SYS_name_to_handle_at,
            at,
            file.as_ptr(),
            handle.as_mut_ptr(),
            &raw mut mount,
            flags,
        )
    })?;
    let length = 8 + handle[0] as usize;
    Ok(handle.iter().flat_map(|word| word.to_ne_bytes()).take(length).collect())
}

/// Opens a file by its handle.
pub(crate) fn open_handle(place: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<OwnedFd> {
    let mut handle = [0_u32; 34];
    for (word, piece) in handle.iter_mut().zip(bytes.chunks_exact(4)) {
        *word = u32::from_ne_bytes([piece[0], piece[1], piece[2], piece[3]]);
    }
    handle[0] = handle[0].min(128);
    let (call, flags) = (libc::SYS_open_by_handle_at, libc::O_RDONLY | libc::O_CLOEXEC);
    // SAFETY: the kernel reads at most 128 bytes behind the two numbers, and the handle has as
    // many.
    descriptor(unsafe { libc::syscall(call, place.as_raw_fd(), handle.as_ptr(), flags) })
}
