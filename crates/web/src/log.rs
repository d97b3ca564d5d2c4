//! The access log: a line per request, in the common format with the service time and the plugin
//! behind.

use crate::lines::{write_lines, write_standard};
use rustix::fs::OFlags;
use std::{
    fs::{File, OpenOptions},
    io::{self, Write as _},
    net::IpAddr,
    os::unix::fs::OpenOptionsExt,
    path::Path,
    sync::Arc,
};

/// Lines are written when there are so many bytes of them, or once a second.
const FULL: usize = 64 << 10;
/// Bytes of lines that wait for a reader who is slow. Requests do not wait for whoever reads logs.
const MOST: usize = 1 << 20;
/// What of a target is logged, as it is written. A line is not longer than a pipe takes at once.
const MAX_TARGET: usize = 1024;

/// Where lines go.
#[derive(Clone)]
pub(crate) struct LogFile(Arc<Out>);

enum Out {
    File(File),
    Standard,
}

impl LogFile {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        if path == Path::new("-") {
            return Ok(Self(Arc::new(Out::Standard)));
        }
        // Whoever could write where it lies may have left a link to another file, or a pipe that
        // nobody reads.
        let is_systems = ["/dev", "/proc"].iter().any(|top| path.starts_with(top));
        let links = if is_systems { OFlags::empty() } else { OFlags::NOFOLLOW };
        let flags = (links | OFlags::NONBLOCK).bits();
        let mut options = OpenOptions::new();
        options.append(true).create(true).mode(0o640).custom_flags(flags.cast_signed());
        let file = options.open(path)?;
        Ok(Self(Arc::new(Out::File(file))))
    }

    /// Writes lines, as many as are taken now; how many bytes that were.
    fn write(&self, lines: &[u8]) -> usize {
        match &*self.0 {
            Out::File(file) => write_lines(file, lines),
            Out::Standard => write_standard(io::stdout(), lines),
        }
    }
}

/// One request, as the log has it.
pub(crate) struct Line<'l> {
    pub(crate) peer: Option<IpAddr>,
    pub(crate) method: &'l str,
    pub(crate) target: &'l str,
    pub(crate) version: &'static str,
    pub(crate) status: u16,
    pub(crate) bytes: u64,
    pub(crate) us: u64,
    pub(crate) plugin: Option<&'l str>,
}

/// The lines of one worker.
pub(crate) struct Log {
    file: Option<LogFile>,
    lines: Vec<u8>,
}

impl Log {
    pub(crate) fn new(file: Option<LogFile>) -> Self {
        Self { file, lines: Vec::new() }
    }

    /// Lines from now on go there; how many were lost.
    pub(crate) fn turn_to(&mut self, file: Option<LogFile>) -> u64 {
        let lost = self.flush() + self.lose();
        self.file = file;
        lost
    }

    /// Adds a line; how many were lost for it, because nobody takes them.
    pub(crate) fn add(&mut self, date: &str, line: &Line<'_>) -> u64 {
        if self.file.is_none() {
            return 0;
        }
        let out = &mut self.lines;
        match line.peer {
            Some(peer) => drop(write!(out, "{peer}")),
            None => out.extend_from_slice(b"unix:"),
        }
        out.extend_from_slice(b" - - [");
        out.extend_from_slice(date.as_bytes());
        out.extend_from_slice(b"] \"");
        escape(out, line.method);
        out.push(b' ');
        escape(out, line.target);
        out.push(b' ');
        out.extend_from_slice(line.version.as_bytes());
        out.extend_from_slice(b"\" ");
        number(out, u64::from(line.status));
        out.push(b' ');
        number(out, line.bytes);
        out.push(b' ');
        number(out, line.us);
        out.extend_from_slice(b"us ");
        out.extend_from_slice(line.plugin.unwrap_or("-").as_bytes());
        out.push(b'\n');
        if self.lines.len() >= FULL { self.flush() } else { 0 }
    }

    /// Writes what waits; how many lines were lost.
    pub(crate) fn flush(&mut self) -> u64 {
        let written = self.file.as_ref().map_or(0, |file| file.write(&self.lines));
        self.lines.drain(..written);
        if self.lines.len() > MOST { self.lose() } else { 0 }
    }

    fn lose(&mut self) -> u64 {
        let lost = memchr::memchr_iter(b'\n', &self.lines).count();
        self.lines.clear();
        lost as u64
    }
}

/// `text` without what could end its field, or steer a terminal.
fn escape(out: &mut Vec<u8>, text: &str) {
    let shown = text.as_bytes();
    let shown = &shown[..shown.len().min(MAX_TARGET)];
    if shown.iter().all(|byte| matches!(byte, 0x20..=0x7e) && !matches!(byte, b'"' | b'\\')) {
        out.extend_from_slice(shown);
        return;
    }
    let end = out.len() + MAX_TARGET;
    for byte in shown {
        if out.len() >= end {
            return;
        }
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', *byte]),
            0x20..=0x7e => out.push(*byte),
            byte => drop(write!(out, "\\x{byte:02x}")),
        }
    }
}

/// `value` in digits.
pub(crate) fn number(out: &mut Vec<u8>, value: u64) {
    let mut digits = [0_u8; 20];
    let (mut at, mut rest) = (digits.len(), value);
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_one_line_whatever_the_client_writes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let mut log = Log::new(Some(LogFile::open(&path).unwrap()));
        let line = Line {
            peer: "127.0.0.1".parse().ok(),
            method: "GET",
            target: "/a\"\u{1b}[2J\\\u{9b}",
            version: "HTTP/1.1",
            status: 200,
            bytes: 1205,
            us: 7,
            plugin: Some("gray"),
        };
        assert_eq!(log.add("06/Nov/1994:08:49:37 +0000", &line), 0);
        assert_eq!(log.flush(), 0);
        let text = std::fs::read_to_string(&path).unwrap();
        let want = "127.0.0.1 - - [06/Nov/1994:08:49:37 +0000] \"GET /a\\\"\\x1b[2J\\\\\\xc2\\x9b HTTP/1.1\" \
                    200 1205 7us gray\n";
        assert_eq!(text, want);
    }
}
