//! Audit records on their way from a run to the journal: a file that both hold open.
//!
//! The run appends lines; the daemon takes them. What was written stays when either is killed. When
//! the daemon is away for so long that the file is full, or the disk is, records are dropped and
//! counted, and the journal shows the gap.
//!
//! The first page is the header: what the daemon has taken (its to write), and how many records
//! were dropped (the run's). The file only grows; what has been taken is cut out of it, so that it
//! needs no room.

use rustix::fs::{FallocateFlags, fallocate};
use std::{
    fs::File,
    io::{self, Write},
    os::{
        fd::{AsRawFd as _, OwnedFd},
        unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _},
    },
    path::Path,
};

/// Where the lines begin.
pub const HEADER_BYTES: u64 = 4096;

/// Bytes that may wait to be taken.
const LIMIT: u64 = 64 << 20;

/// Where in the header.
const TAKEN: u64 = 8;
const DROPPED: u64 = 16;
const MAGIC: &[u8; 8] = b"dewar sp";

/// Room that a spool may take at most. More than may wait, because file systems set some aside
/// ahead of a file's end, and may take a while to give back what was cut out.
const MOST_ROOM: u64 = 4 * LIMIT;

/// The longest line; a longer one is dropped.
const MOST_LINE: u64 = 1 << 20;

/// The number of dropped records is the run's to write, and believed up to here.
const MOST_DROPPED: u64 = 1 << 32;

/// How many records were dropped: the number, and beside it the same with every bit turned, so that
/// damage is not taken for one.
fn dropped(file: &File) -> io::Result<u64> {
    let (dropped, turned) = (number(file, DROPPED)?, number(file, DROPPED + 8)?);
    if dropped == !turned && dropped <= MOST_DROPPED {
        return Ok(dropped);
    }
    Err(io::Error::new(io::ErrorKind::InvalidData, "its count of dropped records is damaged"))
}

fn with_turned(dropped: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&dropped.to_le_bytes());
    bytes[8..].copy_from_slice(&(!dropped).to_le_bytes());
    bytes
}

fn number(file: &File, at: u64) -> io::Result<u64> {
    let mut bytes = [0; 8];
    file.read_exact_at(&mut bytes, at)?;
    Ok(u64::from_le_bytes(bytes))
}

/// The run's end.
#[derive(Debug)]
pub struct Writer {
    file: File,
    at: u64,
    taken: u64,
    dropped: u64,
    limit: u64,
}

impl Writer {
    /// Goes on behind what the file holds.
    ///
    /// # Errors
    ///
    /// Whatever the system says; `InvalidData` if it is no spool.
    pub fn new(fd: OwnedFd) -> io::Result<Self> {
        let file = File::from(fd);
        let mut magic = [0; 8];
        file.read_exact_at(&mut magic, 0)?;
        if magic != *MAGIC {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the file is no spool"));
        }
        let (taken, dropped) = (number(&file, TAKEN)?, dropped(&file)?);
        let at = file.metadata()?.len().max(HEADER_BYTES);
        Ok(Self { file, at, taken, dropped, limit: LIMIT })
    }

    /// Lets at most so many bytes wait, instead of 64 MiB.
    #[must_use]
    pub fn with_limit(self, limit: u64) -> Self {
        Self { limit, ..self }
    }

    /// Appends one record. One that finds no room is counted.
    pub fn append(&mut self, line: &[u8]) {
        if self.has_room(line.len() as u64) && self.file.write_all_at(line, self.at).is_ok() {
            self.at += line.len() as u64;
            return;
        }
        // What was written of it must not be taken for a record. Neither can fail in a way that
        // could be told.
        let _ = self.file.set_len(self.at);
        self.dropped += 1;
        let _ = self.file.write_all_at(&with_turned(self.dropped), DROPPED);
    }

    fn has_room(&mut self, len: u64) -> bool {
        if len > MOST_LINE {
            return false;
        }
        if self.at + len > self.taken + self.limit {
            self.taken = number(&self.file, TAKEN).unwrap_or(self.taken).max(HEADER_BYTES);
        }
        self.at + len <= self.taken + self.limit
    }
}

impl Write for Writer {
    /// Appends one record: whatever is written at once.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.append(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What was read at once.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// Whole lines.
    pub bytes: Vec<u8>,
    /// Where the next begins.
    pub at: u64,
    /// Records that were dropped up to now, from the run's beginning.
    pub dropped: u64,
}

/// The daemon's end.
#[derive(Debug)]
pub struct Reader {
    file: File,
    cut: u64,
    /// What could not be cut out.
    stays: u64,
}

impl Reader {
    /// A new spool.
    ///
    /// # Errors
    ///
    /// Whatever the system says.
    pub fn create(path: &Path) -> io::Result<Self> {
        let file =
            File::options().read(true).write(true).create_new(true).mode(0o600).open(path)?;
        let mut header = [0; HEADER_BYTES as usize];
        header[..8].copy_from_slice(MAGIC);
        header[TAKEN as usize..][..8].copy_from_slice(&HEADER_BYTES.to_le_bytes());
        header[DROPPED as usize..][..16].copy_from_slice(&with_turned(0));
        file.write_all_at(&header, 0)?;
        Ok(Self { file, cut: HEADER_BYTES, stays: 0 })
    }

    /// A spool that there is.
    ///
    /// # Errors
    ///
    /// Whatever the system says.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::options().read(true).write(true).open(path)?;
        Ok(Self { file, cut: HEADER_BYTES, stays: 0 })
    }

    /// A descriptor for the run, opened for it: its flags and its offset are none of the reader's.
    ///
    /// # Errors
    ///
    /// Whatever the system says.
    pub fn share(&self) -> io::Result<OwnedFd> {
        let path = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        Ok(File::options().read(true).write(true).open(path)?.into())
    }

    /// Whole lines from `at` on, up to about `most` bytes, or one that is longer. All of the file
    /// is the run's to write: whether the lines are records, the journal finds out.
    ///
    /// # Errors
    ///
    /// The file is not what a run makes of it, or the system says so.
    pub fn read(&self, at: u64, most: usize) -> io::Result<Batch> {
        let at = at.max(HEADER_BYTES);
        let dropped = dropped(&self.file)?;
        let file = self.file.metadata()?;
        if file.blocks().saturating_mul(512) > MOST_ROOM + self.stays {
            return Err(io::Error::other("it takes more room than a run's records may"));
        }
        let left = usize::try_from(file.len().saturating_sub(at)).unwrap_or(usize::MAX);
        let mut bytes = self.lines(at, left.min(most))?;
        if bytes.is_empty() && left > most {
            bytes = self.lines(at, left.min(MOST_LINE as usize))?;
            if bytes.is_empty() && left as u64 > MOST_LINE {
                return Err(io::Error::other("a line is longer than a record may be"));
            }
        }
        Ok(Batch { at: at + bytes.len() as u64, bytes, dropped })
    }

    /// The whole lines among the bytes from `at` on.
    fn lines(&self, at: u64, most: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; most];
        let read = self.file.read_at(&mut bytes, at)?;
        let whole =
            bytes[..read].iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        bytes.truncate(whole);
        Ok(bytes)
    }

    /// Where the file ends.
    ///
    /// # Errors
    ///
    /// Whatever the system says.
    pub fn end(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// How many bytes behind `at` are no whole line.
    ///
    /// # Errors
    ///
    /// Whatever the system says.
    pub fn rest(&self, at: u64) -> io::Result<u64> {
        Ok(self.file.metadata()?.len().saturating_sub(at.max(HEADER_BYTES)))
    }

    /// Tells the run that everything before `at` lies in the journal, and gives the room back.
    ///
    /// # Errors
    ///
    /// Whatever the system says.
    pub fn taken(&mut self, at: u64) -> io::Result<()> {
        self.file.write_all_at(&at.to_le_bytes(), TAKEN)?;
        let cut = at & !(HEADER_BYTES - 1);
        if cut > self.cut {
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            // A file system that cannot do that keeps them until the run ends.
            if fallocate(&self.file, flags, self.cut, cut - self.cut).is_err() {
                self.stays += cut - self.cut;
            }
            self.cut = cut;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spool() -> (tempfile::TempDir, Reader, Writer) {
        let directory = tempfile::tempdir().unwrap();
        let reader = Reader::create(&directory.path().join("x")).unwrap();
        let writer = Writer::new(reader.share().unwrap()).unwrap();
        (directory, reader, writer)
    }

    #[test]
    fn lines_are_taken_once_each_and_whole() {
        let (_directory, mut reader, mut writer) = spool();
        writer.append(b"one\n");
        writer.append(b"tw");
        let batch = reader.read(0, 100).unwrap();
        assert_eq!((&batch.bytes[..], batch.dropped), (&b"one\n"[..], 0));
        reader.taken(batch.at).unwrap();
        assert_eq!(reader.rest(batch.at).unwrap(), 2);
        writer.append(b"o\n");
        assert_eq!(reader.read(batch.at, 100).unwrap().bytes, b"two\n");
    }

    #[test]
    fn what_finds_no_room_is_counted_until_there_is_room_again() {
        let (_directory, mut reader, writer) = spool();
        let mut writer = writer.with_limit(10);
        for _ in 0..4 {
            writer.append(b"12345\n");
        }
        let batch = reader.read(0, 100).unwrap();
        assert_eq!((&batch.bytes[..], batch.dropped), (&b"12345\n"[..], 3));
        reader.taken(batch.at).unwrap();
        writer.append(b"again\n");
        assert_eq!(reader.read(batch.at, 100).unwrap().bytes, b"again\n");
    }

    #[test]
    fn room_is_given_back_and_positions_stay() {
        use std::os::unix::fs::MetadataExt as _;
        let (directory, mut reader, mut writer) = spool();
        let line = [b'x'; 1023].iter().chain(b"\n").copied().collect::<Vec<_>>();
        let mut at = 0;
        for _ in 0..1000 {
            writer.append(&line);
            let batch = reader.read(at, 1 << 20).unwrap();
            assert_eq!(batch.bytes, line);
            at = batch.at;
            reader.taken(at).unwrap();
        }
        let file = std::fs::metadata(directory.path().join("x")).unwrap();
        assert_eq!(file.len(), HEADER_BYTES + 1000 * 1024);
        assert!(file.blocks() * 512 < 64 << 10, "{} blocks", file.blocks());
    }

    #[test]
    fn what_a_run_does_to_its_end_stays_there() {
        use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
        let (_directory, reader, mut writer) = spool();
        fcntl_setfl(&writer.file, OFlags::APPEND | OFlags::NONBLOCK).unwrap();
        assert!(!fcntl_getfl(&reader.file).unwrap().intersects(OFlags::APPEND | OFlags::NONBLOCK));
        fcntl_setfl(&writer.file, OFlags::empty()).unwrap();
        writer.append(b"one\n");
        for damage in [u64::MAX, 1 << 20, 1] {
            writer.file.write_all_at(&damage.to_le_bytes(), DROPPED).unwrap();
            assert_eq!(reader.read(0, 100).unwrap_err().kind(), io::ErrorKind::InvalidData);
        }
        writer.file.write_all_at(&with_turned(u64::MAX), DROPPED).unwrap();
        assert_eq!(reader.read(0, 100).unwrap_err().kind(), io::ErrorKind::InvalidData);
        writer.file.write_all_at(&with_turned(7), DROPPED).unwrap();
        assert_eq!(reader.read(0, 100).unwrap().dropped, 7);
        writer.file.set_len(0).unwrap();
        assert_eq!(reader.read(0, 100).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_spool_that_takes_too_much_room_is_not_read() {
        let (_directory, reader, writer) = spool();
        let room = MOST_ROOM + (1 << 20);
        fallocate(&writer.file, FallocateFlags::KEEP_SIZE, HEADER_BYTES, room).unwrap();
        assert!(reader.read(0, 100).is_err());
    }

    #[test]
    fn another_file_is_no_spool() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[0; 8192]).unwrap();
        assert_eq!(Writer::new(file.into()).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
