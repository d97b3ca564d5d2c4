//! Lines that are written without waiting for whoever reads them.

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::write,
};
use std::{
    os::fd::AsFd,
    sync::{Mutex, PoisonError},
};

/// What a pipe takes at once where it has room at all.
const PIECE: usize = 4096;

/// Held by whoever writes to standard output or error, which may be one pipe: nobody else of this
/// process takes the room that was found.
static STANDARD: Mutex<()> = Mutex::new(());

/// [`write_lines`] to standard output or error.
pub(crate) fn write_standard(fd: impl AsFd, lines: &[u8]) -> usize {
    let _writing = STANDARD.lock().unwrap_or_else(PoisonError::into_inner);
    write_lines(fd, lines)
}

/// Writes lines, as many as are taken now; how many bytes that were.
pub(crate) fn write_lines(fd: impl AsFd, lines: &[u8]) -> usize {
    let mut written = 0;
    while written < lines.len() && has_room(&fd) {
        let rest = &lines[written..];
        let first = &rest[..rest.len().min(PIECE)];
        // A line that is longer goes in pieces.
        let end = memchr::memrchr(b'\n', first).map_or(first.len(), |at| at + 1);
        match write(&fd, &rest[..end]) {
            Ok(count) => written += count,
            Err(_) => break,
        }
    }
    written
}

fn has_room(fd: &impl AsFd) -> bool {
    poll(&mut [PollFd::new(fd, PollFlags::OUT)], Some(&Timespec::default())) == Ok(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        io::{self, Read as _},
        sync::mpsc::channel,
        thread,
        time::Duration,
    };

    #[test]
    fn a_pipe_that_nobody_reads_is_filled_with_whole_lines_and_not_waited_for() {
        let (mut reader, writer) = io::pipe().unwrap();
        let (tell, told) = channel();
        thread::spawn(move || {
            let lines = [&[b'x'; 99][..], b"\n"].concat().repeat(600);
            let written: usize = (0..10).map(|_| write_lines(&writer, &lines)).sum();
            let _ = tell.send(written);
        });
        let written = told.recv_timeout(Duration::from_secs(20)).expect("it waits for a reader");
        let mut all = Vec::new();
        reader.read_to_end(&mut all).unwrap();
        assert_eq!(all.len(), written);
        assert!(all.split_inclusive(|byte| *byte == b'\n').all(|line| line.len() == 100));
        assert!((50_000..600_000).contains(&written), "{written} bytes");
    }
}
