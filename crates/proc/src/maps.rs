//! `/proc/PID/maps` and `smaps`: proc_pid_maps(5).

use crate::descriptor::DELETED;
use rustix::io::{Errno, Result};

/// What the kernel writes for a line break in a path: other backslashes stay as they are.
const LINE_FEED: &str = "\\012";

/// A line of `maps` about a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping<'a> {
    /// The first address.
    pub start: u64,
    /// The address behind the last.
    pub end: u64,
    permissions: &'a [u8],
    /// Major and minor number of the file's device.
    pub device: (u32, u32),
    /// The file's inode.
    pub number: u64,
    /// The file's path, as the kernel writes it.
    pub path: &'a str,
    /// Device, number and path, as one text.
    pub file: &'a str,
}

impl<'a> Mapping<'a> {
    /// Reads a line; `None` for memory that is of no file.
    #[must_use]
    pub fn parse(line: &'a str) -> Option<Self> {
        let hex = |text: &str| u64::from_str_radix(text, 16).ok();
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let (permissions, rest) = rest.split_once(' ')?;
        let (_offset, file) = rest.split_once(' ')?;
        let (device, rest) = file.split_once(' ')?;
        let (major, minor) = device.split_once(':')?;
        let (number, path) = rest.split_once(' ')?;
        let path = path.trim_start();
        let device = (hex(major)? as u32, hex(minor)? as u32);
        path.starts_with('/').then_some(Self {
            start: hex(start)?,
            end: hex(end)?,
            permissions: permissions.as_bytes(),
            device,
            number: number.parse().ok()?,
            path,
            file,
        })
    }

    fn has(&self, index: usize, letter: u8) -> bool {
        self.permissions.get(index) == Some(&letter)
    }

    /// Whether it can be read.
    #[must_use]
    pub fn is_readable(&self) -> bool {
        self.has(0, b'r')
    }

    /// Whether it can be written to.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        self.has(1, b'w')
    }

    /// Whether it can be executed.
    #[must_use]
    pub fn is_executable(&self) -> bool {
        self.has(2, b'x')
    }

    /// Whether what is written reaches the file.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.has(3, b's')
    }

    /// The path as bytes.
    #[must_use]
    pub fn path_bytes(&self) -> Vec<u8> {
        self.path.replace(LINE_FEED, "\n").into_bytes()
    }

    /// Whether the kernel says that the file was deleted there, or replaced.
    #[must_use]
    pub fn is_deleted(&self) -> bool {
        self.path.as_bytes().ends_with(DELETED)
    }

    /// Whether the file certainly lies where its path says: it was not deleted there, and the text
    /// has one meaning.
    #[must_use]
    pub fn is_at_its_path(&self) -> bool {
        !self.is_deleted() && !self.path.contains(LINE_FEED)
    }
}

/// The files that `maps` names, each once.
///
/// # Errors
///
/// `ENOENT` if one has no path.
pub fn mapped_files(maps: &str) -> Result<Vec<Mapping<'_>>> {
    let mut files: Vec<Mapping<'_>> = Vec::new();
    for line in maps.lines() {
        let is_file = line.split_ascii_whitespace().nth(4).is_some_and(|number| number != "0");
        match Mapping::parse(line) {
            Some(map) if files.iter().all(|it| it.file != map.file) => files.push(map),
            // No path leads to it.
            None if is_file => return Err(Errno::NOENT),
            _ => {}
        }
    }
    Ok(files)
}

/// Whether the process may make the shared mapping at `start` one that it writes to, by its
/// `smaps`; yes when in doubt.
#[must_use]
pub fn may_be_written(smaps: &str, start: u64) -> bool {
    let start = format!("{start:08x}-");
    let mut own = smaps.lines().skip_while(|line| !line.starts_with(&start));
    let flags = own.find_map(|line| line.strip_prefix("VmFlags:"));
    flags.is_none_or(|flags| flags.split_whitespace().any(|flag| flag == "mw"))
}

/// Where the kernel's own code page begins, by the `maps` of a process.
#[must_use]
pub fn vdso(maps: &str) -> Option<u64> {
    let line = maps.lines().find(|line| line.ends_with("[vdso]"))?;
    u64::from_str_radix(line.split('-').next()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_maps_is_read() {
        let line = "7f00-8f00 r--s 00001000 fe:01 1234                       /a b/c (deleted)";
        let map = Mapping::parse(line).unwrap();
        assert_eq!((map.start, map.end, map.device, map.number), (0x7f00, 0x8f00, (0xfe, 1), 1234));
        assert_eq!(map.path, "/a b/c (deleted)");
        assert!(map.is_readable() && map.is_shared() && !map.is_writable() && !map.is_executable());
        assert!(!map.is_at_its_path());
        let at = |path| Mapping { path, ..map }.is_at_its_path();
        assert!(at("/a b/c") && !at("/a\\012b/c"));
        assert!(Mapping::parse("7f00-8f00 rw-p 00000000 00:00 0 ").is_none());
        assert!(
            Mapping::parse("7f00-8f00 rw-p 00000000 00:00 0                  [stack]").is_none()
        );
    }

    #[test]
    fn a_mapping_that_may_become_writable_says_so() {
        let smaps = "00007f00-00008f00 r--s 0 fe:01 1 /a\nSize: 4 kB\nVmFlags: rd mr mw me ms\n\
                     0000af00-0000bf00 r--s 0 fe:01 1 /a\nSize: 4 kB\nVmFlags: rd mr me ms\n";
        assert!(may_be_written(smaps, 0x7f00));
        assert!(!may_be_written(smaps, 0xaf00));
        assert!(may_be_written("", 0x7f00));
    }

    #[test]
    fn the_code_page_of_the_kernel_is_found() {
        let maps = "7f00-8f00 r--p 0 fe:01 1 /a\n7ffd1000-7ffd3000 r-xp 0 00:00 0   [vdso]\n";
        assert_eq!(vdso(maps), Some(0x7ffd_1000));
    }

    #[test]
    fn each_file_is_named_once_and_what_has_no_path_is_an_error() {
        let line =
            |path: &str| format!("7f00-8f00 r-xp 00000000 fe:01 12                   {path}\n");
        let stack = "7ffd1000-7ffd3000 rw-p 00000000 00:00 0                   [stack]\n8000-9000 rw-p 0 00:00 0 \n";
        let maps = [&line("/a"), &line("/a"), &line("/ld.so"), stack].concat();
        let named: Vec<&str> = mapped_files(&maps).unwrap().iter().map(|it| it.path).collect();
        assert_eq!(named, ["/a", "/ld.so"]);
        assert_eq!(mapped_files(&line("anon_inode:x")), Err(Errno::NOENT));
    }
}
