//! The thread that waits in a trapped call: its memory, its directories, who it is.

use crate::{
    LinkDirectories,
    sys::{
        limit, memory,
        notify::{Listener, Notification},
        thread,
    },
};
use proc::{Identity, ProcessTree};
use rustix::{
    fs::{AtFlags, Mode, OFlags},
    io::{Errno, Result},
};
use std::{
    cell::OnceCell,
    os::{
        fd::OwnedFd,
        unix::ffi::{OsStrExt, OsStringExt},
    },
    path::{Path, PathBuf},
};

/// `PATH_MAX` of `linux/limits.h`, the closing zero included.
const PATH_MAX: usize = 4096;
const PAGE: u64 = 4096;

/// A waiting thread.
///
/// It can be killed at any moment, and its number be another thread's, also one outside of the
/// sandbox. So whatever is read by that number counts only if the call still waits afterwards
/// ([`Caller::certain`]), and what is written goes to memory that was opened before that was seen.
#[derive(Clone, Copy)]
pub struct Caller<'a> {
    /// Says whether the call still waits.
    pub listener: &'a Listener,
    /// The processes of the sandbox.
    pub tree: &'a ProcessTree,
    /// The call that it waits in.
    pub call: &'a Notification,
    /// Filled in when somebody asks: finding out takes longer than most decisions.
    pub who: &'a OnceCell<Identity>,
    /// Its working directory at this call, filled in likewise.
    pub cwd: &'a OnceCell<OwnedFd>,
    /// Where the links lie that lead this call; absent where it makes no difference.
    pub links: Option<&'a LinkDirectories>,
}

impl<'a> Caller<'a> {
    /// What was read by the number of the thread, if it was the caller's.
    ///
    /// # Errors
    ///
    /// What reading came to; `ESRCH` if the caller waits no more.
    pub fn certain<T>(&self, read: Result<T>) -> Result<T> {
        if self.listener.is_valid(self.call.id) { read } else { Err(Errno::SRCH) }
    }

    /// Argument `n` as a C `int`.
    pub fn int(&self, n: usize) -> i32 {
        self.call.args[n] as i32
    }

    /// The string at argument `n`: a copy that the program cannot change any more.
    pub fn path(&self, n: usize) -> Result<PathBuf> {
        self.certain(self.text(self.call.args[n]))
    }

    fn text(&self, mut address: u64) -> Result<PathBuf> {
        let mut bytes = Vec::with_capacity(256);
        while bytes.len() < PATH_MAX {
            // A read never crosses into the next page, which may not exist.
            let room = (PAGE - address % PAGE).min(256) as usize;
            let start = bytes.len();
            bytes.resize(start + room, 0);
            let got = memory::read(self.call.tid, address, &mut bytes[start..])?;
            bytes.truncate(start + got);
            if let Some(end) = bytes[start..].iter().position(|byte| *byte == 0) {
                bytes.truncate(start + end);
                if bytes.len() >= PATH_MAX {
                    break;
                }
                return Ok(std::ffi::OsString::from_vec(bytes).into());
            }
            if got < room {
                return Err(Errno::FAULT);
            }
            address += got as u64;
        }
        Err(Errno::NAMETOOLONG)
    }

    /// `N` bytes at `address`.
    pub fn bytes<const N: usize>(&self, address: u64) -> Result<[u8; N]> {
        let mut buffer = [0; N];
        self.fill(address, &mut buffer)?;
        Ok(buffer)
    }

    /// `len` bytes at `address`. The caller of this function bounds `len`.
    pub fn buffer(&self, address: u64, len: usize) -> Result<Vec<u8>> {
        let mut buffer = vec![0; len];
        self.fill(address, &mut buffer)?;
        Ok(buffer)
    }

    /// A structure of `size` bytes at `address`. What later versions of it have behind the `N`
    /// bytes that are known must be zero (`copy_struct_from_user` of `linux/uaccess.h`).
    ///
    /// # Errors
    ///
    /// `EINVAL` if it is shorter, `E2BIG` if it is longer than a page or the rest is not zero; else
    /// as [`Caller::bytes`].
    pub fn extensible<const N: usize>(&self, address: u64, size: u64) -> Result<[u8; N]> {
        if size < N as u64 {
            return Err(Errno::INVAL);
        }
        if size > PAGE {
            return Err(Errno::TOOBIG);
        }
        let all = self.buffer(address, size as usize)?;
        match all.split_first_chunk() {
            Some((known, newer)) if newer.iter().all(|byte| *byte == 0) => Ok(*known),
            _ => Err(Errno::TOOBIG),
        }
    }

    fn fill(&self, address: u64, buffer: &mut [u8]) -> Result<()> {
        if self.certain(memory::read(self.call.tid, address, buffer))? == buffer.len() {
            Ok(())
        } else {
            Err(Errno::FAULT)
        }
    }

    /// Writes `bytes` at `address`: only where the program said that it expects a result.
    ///
    /// # Errors
    ///
    /// `EFAULT`; `ESRCH` if the caller waits no more.
    pub fn put(&self, address: u64, bytes: &[u8]) -> Result<()> {
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        let name = format!("{}/mem", self.call.tid);
        let memory = rustix::fs::openat(&self.tree.proc, name, flags, Mode::empty());
        // What is open is that memory, whoever has the number by then.
        let memory = self.certain(memory)?;
        match rustix::io::pwrite(&memory, bytes, address) {
            Ok(count) if count == bytes.len() => Ok(()),
            _ => Err(Errno::FAULT),
        }
    }

    /// The directory that a relative path starts from: `dirfd`, or the working directory for
    /// `AT_FDCWD`.
    pub fn base(&self, dirfd: i32) -> Result<OwnedFd> {
        match dirfd {
            libc::AT_FDCWD => self.cwd()?.try_clone().map_err(|_| Errno::MFILE),
            fd if fd >= 0 => self.link(&format!("{}/fd/{fd}", self.call.tid)),
            _ => Err(Errno::BADF),
        }
    }

    /// The working directory.
    pub fn cwd(&self) -> Result<&'a OwnedFd> {
        if let Some(known) = self.cwd.get() {
            return Ok(known);
        }
        let cwd = self.link(&format!("{}/cwd", self.call.tid))?;
        Ok(self.cwd.get_or_init(|| cwd))
    }

    /// What a magic link of the caller leads to.
    fn link(&self, name: &str) -> Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&self.tree.proc, name, flags, Mode::empty());
        self.certain(fd).map_err(|error| if error == Errno::NOENT { Errno::BADF } else { error })
    }

    /// The file behind descriptor `fd` of the caller, as an `O_PATH` descriptor.
    pub fn file(&self, fd: i32) -> Result<OwnedFd> {
        if fd < 0 {
            return Err(Errno::BADF);
        }
        self.base(fd)
    }

    /// The flags that descriptor `fd` of the caller was opened with.
    pub fn flags(&self, fd: i32) -> Result<OFlags> {
        let info = self.tree.proc.descriptor(self.call.tid, fd);
        self.certain(info)?.flags().ok_or(Errno::BADF)
    }

    /// Whether its table of descriptors takes one more: `EMFILE` where not, which the kernel says
    /// before it looks for a file. Another thread can fill the table before the descriptor is
    /// there.
    pub fn has_room(&self) -> Result<()> {
        self.has_room_for(1)
    }

    /// The same for `more`.
    pub fn has_room_for(&self, more: u64) -> Result<()> {
        if self.certain(self.is_below_limit(more))? { Ok(()) } else { Err(Errno::MFILE) }
    }

    fn is_below_limit(&self, more: u64) -> Result<bool> {
        let (tid, proc) = (self.call.tid, &self.tree.proc);
        let most = limit::open_files(tid).or_else(|_| proc.limit(tid, "Max open files"))?;
        // Since Linux 6.2, the size is how many are open; before, 0.
        let open = rustix::fs::statat(proc, format!("{tid}/fd"), AtFlags::empty())?.st_size as u64;
        if open > 0 && open.saturating_add(more) <= most {
            return Ok(true);
        }
        let open = proc.descriptors(tid)?.numbers()?.into_iter();
        let below = open.filter(|fd| u64::from(fd.cast_unsigned()) < most).count() as u64;
        Ok(below + more <= most)
    }

    /// Sends the caller what the kernel would send it for a call that is made in its place: the
    /// thread, as another one could take its time to end the process.
    pub fn signal(&self, signal: i32) {
        let Ok(identity) = self.identity() else { return };
        // The thread is the caller for as long as the call waits.
        if self.listener.is_valid(self.call.id) {
            let _ = thread::signal_thread(identity.pid, self.call.tid, signal);
        }
    }

    /// Who the caller is.
    pub fn identity(&self) -> Result<&'a Identity> {
        if let Some(known) = self.who.get() {
            return Ok(known);
        }
        let identity = self.certain(self.tree.proc.identity(self.call.tid))?;
        Ok(self.who.get_or_init(|| identity))
    }

    /// The name of its process: that of the first thread, as others are called by what they do.
    pub fn comm(&self) -> String {
        let Ok(own) = self.identity() else { return String::new() };
        let is_first = own.pid == self.call.tid;
        let first = (!is_first).then(|| self.certain(self.tree.proc.identity(own.pid)).ok());
        first.flatten().map_or_else(|| own.comm.clone(), |first| first.comm)
    }

    /// The program that the caller runs; empty when it cannot be told.
    pub fn program(&self) -> PathBuf {
        let link =
            rustix::fs::readlinkat(&self.tree.proc, format!("{}/exe", self.call.tid), Vec::new());
        self.certain(link)
            .map(|link| Path::new(std::ffi::OsStr::from_bytes(link.as_bytes())).to_owned())
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of a caller that is gone may be anybody's: here, of the test itself.
    #[test]
    fn nothing_is_read_from_or_written_to_whoever_has_the_number_of_a_caller_that_is_gone() {
        let text = *b"secret\0\0";
        let address = text.as_ptr() as u64;
        let tid = rustix::thread::gettid().as_raw_pid().cast_unsigned();
        let call = Notification { id: 1, tid, nr: 0, args: [address; 6] };
        // Of no listener is this a call that waits.
        let listener = Listener::new(std::fs::File::open("/dev/null").unwrap().into());
        let proc = std::fs::File::open("/proc").unwrap();
        let tree = ProcessTree::new(proc.into(), tid, None).unwrap();
        let (who, cwd) = (OnceCell::new(), OnceCell::new());
        let caller = Caller {
            listener: &listener,
            tree: &tree,
            call: &call,
            who: &who,
            cwd: &cwd,
            links: None,
        };
        assert_eq!(memory::read(tid, address, &mut [0; 8]), Ok(8), "it could be read");
        assert_eq!(caller.path(0), Err(Errno::SRCH));
        assert_eq!(caller.bytes::<8>(address), Err(Errno::SRCH));
        assert_eq!(caller.buffer(address, 8), Err(Errno::SRCH));
        assert_eq!(caller.put(address, b"changed!"), Err(Errno::SRCH));
        assert_eq!(caller.cwd().err(), Some(Errno::SRCH));
        assert_eq!(caller.file(0).err(), Some(Errno::SRCH));
        assert_eq!(caller.flags(0).err(), Some(Errno::SRCH));
        assert_eq!(caller.has_room(), Err(Errno::SRCH));
        assert!(caller.identity().is_err() && caller.program() == Path::new(""));
        assert_eq!(std::hint::black_box(text), *b"secret\0\0");
    }
}
