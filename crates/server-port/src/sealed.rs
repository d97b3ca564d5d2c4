//! What is too long for a message: memory behind a descriptor, sealed so that whoever reads it sees
//! one state of it.

use rustix::fs::{
    MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create,
};
use std::{
    borrow::Cow,
    fs::File,
    io::{self, Read as _, Seek as _, Write as _},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

/// The longest reply that is read.
const MOST_BYTES: usize = 64 << 20;

/// A descriptor whose reader finds `bytes` there, and can rely on nobody changing them.
///
/// # Errors
///
/// Whatever the system says: no memory, no descriptors.
pub fn sealed(bytes: &[u8]) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let mut file = File::from(memfd_create(c"dewar-message", flags)?);
    file.write_all(bytes)?;
    file.rewind()?;
    fcntl_add_seals(
        &file,
        SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL,
    )?;
    Ok(file.into())
}

/// The bytes behind a descriptor that [`sealed`] made, in whatever process.
///
/// # Errors
///
/// `InvalidData` if it is not sealed, or holds more than `most` bytes; whatever the system says.
pub fn read_sealed(fd: OwnedFd, most: usize) -> io::Result<Vec<u8>> {
    let len = sealed_len(&fd, most)?;
    let mut file = File::from(fd);
    file.rewind()?;
    let mut bytes = Vec::with_capacity(len);
    file.take(most as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// How many bytes are behind a descriptor that [`sealed`] made, before they are read.
///
/// # Errors
///
/// As for [`read_sealed`].
pub fn sealed_len(fd: &OwnedFd, most: usize) -> io::Result<usize> {
    let invalid = |why| io::Error::new(io::ErrorKind::InvalidData, why);
    // Only memory can be sealed, so that reading it never waits for anybody.
    let seals = fcntl_get_seals(fd).map_err(|_| invalid("the descriptor is not sealed memory"))?;
    if !seals.contains(SealFlags::WRITE | SealFlags::SHRINK) {
        return Err(invalid("the memory is not sealed"));
    }
    let len = usize::try_from(fstat(fd)?.st_size).unwrap_or(usize::MAX);
    if len > most {
        return Err(invalid("the memory holds more than is taken"));
    }
    Ok(len)
}

/// Memory that whoever is given its descriptor can read until this is dropped. Then it is gone,
/// though they may still have the descriptor: what a process has answered is not its memory for as
/// long as its clients like.
pub struct Lent(OwnedFd);

impl Lent {
    /// # Errors
    ///
    /// As for [`sealed`].
    pub(crate) fn new(bytes: &[u8]) -> io::Result<Self> {
        // Nobody else can keep it from shrinking: without `ALLOW_SEALING` no seal is added.
        let lent = Self(memfd_create(c"dewar-answer", MemfdFlags::CLOEXEC)?);
        let mut file = File::from(lent.0.try_clone()?);
        file.write_all(bytes)?;
        file.rewind()?;
        Ok(lent)
    }
}

impl AsFd for Lent {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        // It fails for no memory of this kind.
        let _ = ftruncate(&self.0, 0);
    }
}

/// The bytes of a reply, whether they came as a message or, being longer, as memory that is lent
/// until the next request.
///
/// # Errors
///
/// `InvalidData` for more than 64 MiB, or what is no file; `UnexpectedEof` if it was taken back
/// meanwhile; whatever the system says.
pub fn received<'a>(reply: &mut ipc::Reply<'a>) -> io::Result<Cow<'a, [u8]>> {
    match reply.descriptors.pop() {
        Some(memory) if reply.body.is_empty() => Ok(read_lent(memory)?.into()),
        // Something else that came with the message.
        other => {
            reply.descriptors.extend(other);
            Ok(reply.body.into())
        }
    }
}

fn read_lent(fd: OwnedFd) -> io::Result<Vec<u8>> {
    let mut file = File::from(fd);
    let found = file.metadata()?;
    let len = usize::try_from(found.len()).unwrap_or(usize::MAX);
    if !found.is_file() || len > MOST_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "that is no answer"));
    }
    let mut bytes = vec![0; len];
    file.rewind()?;
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_is_read_as_it_was_and_no_longer_than_allowed() {
        let bytes: Vec<u8> = (0..200_000_u32).map(|n| n as u8).collect();
        assert_eq!(read_sealed(sealed(&bytes).unwrap(), 1 << 20).unwrap(), bytes);
        let error = read_sealed(sealed(&bytes).unwrap(), 1 << 10).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn memory_that_can_still_change_is_refused() {
        let open = memfd_create(c"open", MemfdFlags::ALLOW_SEALING).unwrap();
        let pipe = std::io::pipe().unwrap().0;
        for fd in [open, pipe.into()] {
            assert_eq!(read_sealed(fd, 10).unwrap_err().kind(), io::ErrorKind::InvalidData);
        }
    }

    #[test]
    fn what_is_lent_is_read_until_it_is_taken_back_whoever_has_its_descriptor() {
        let bytes = vec![7; 100_000];
        let lent = Lent::new(&bytes).unwrap();
        let theirs = lent.as_fd().try_clone_to_owned().unwrap();
        assert_eq!(read_lent(theirs.try_clone().unwrap()).unwrap(), bytes);
        fcntl_add_seals(&theirs, SealFlags::SHRINK).unwrap_err();
        drop(lent);
        assert_eq!(fstat(&theirs).unwrap().st_blocks, 0);
        assert_eq!(read_lent(theirs).unwrap(), b"");
        assert!(read_lent(std::io::pipe().unwrap().0.into()).is_err());
    }

    #[test]
    fn nobody_can_write_what_is_sealed() {
        let fd = sealed(b"x").unwrap();
        assert!(File::from(fd).write_all(b"y").is_err());
    }
}
