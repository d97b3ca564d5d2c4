//! Files that are mapped into the memory of a process.

use super::{
    held::{Comparison, Finding, Subject, place},
    receipt::Held,
};
use crate::{
    caller::read_text,
    label::{Label, Status},
};
use flask::{AccessVector, Class, FileKind, perm};
use rustix::io::Result;
use std::{collections::HashMap, sync::Arc};

impl Comparison<'_> {
    /// What is mapped into the memory of a process.
    pub(super) fn mappings(&self, who: Subject) -> Result<Vec<Finding>> {
        let text = read_text(&self.gate.view, &format!("{}/maps", who.tid))?;
        let mut known: HashMap<&str, Vec<Arc<Label>>> = HashMap::new();
        let mut findings = Vec::new();
        for line in text.lines() {
            let Some(map) = Map::parse(line) else { continue };
            let labels = known.entry(map.file).or_insert_with(|| self.labels_of_map(who, &map));
            let lost = labels.iter().map(|label| self.lost_file(who.ssid, label, Class::File));
            let mut lost = lost.fold(AccessVector::NONE, |all, lost| all | lost) & map.uses();
            if lost == perm::file::WRITE && !map.has(1, b'w') && !self.may_be_written(who, &map) {
                lost = AccessVector::NONE;
            }
            if !lost.is_empty() {
                let held = Held::Mapping(map.start, map.end);
                let protection = map.protection();
                findings.push(Finding {
                    protection,
                    ..Finding::new(held, map.path, Class::File, lost)
                });
            }
        }
        Ok(findings)
    }

    /// Whether the program may make a shared mapping one that it writes to.
    fn may_be_written(&self, who: Subject, map: &Map<'_>) -> bool {
        let Ok(text) = read_text(&self.gate.view, &format!("{}/smaps", who.tid)) else {
            return true;
        };
        let start = format!("{:08x}-", map.start);
        let mut own = text.lines().skip_while(|line| !line.starts_with(&start));
        let flags = own.find_map(|line| line.strip_prefix("VmFlags:"));
        flags.is_none_or(|flags| flags.split_whitespace().any(|flag| flag == "mw"))
    }

    /// The labels that a mapped file can have; none for what never had a name. Only a privileged monitor may follow the
    /// kernel's own link to it; else it is found by its name, or by its number among those seen.
    fn labels_of_map(&self, who: Subject, map: &Map<'_>) -> Vec<Arc<Label>> {
        let labels = &self.gate.labels;
        let Some(path) = place(&unescape(map.path)) else { return Vec::new() };
        let link = format!("{}/map_files/{:x}-{:x}", who.tid, map.start, map.end);
        let own = Status::at(&self.gate.view.proc, link.as_str());
        let status = own.ok().or_else(|| {
            let at_name = Status::at(rustix::fs::CWD, &path).ok();
            at_name.filter(|status| status.number == map.number)
        });
        if let Some(Ok(label)) = status.map(|status| labels.of_file(&status, || Ok(path.clone()))) {
            return vec![label];
        }
        let seen = labels.by_number(map.device, map.number);
        if seen.is_empty() {
            return vec![labels.at_path(&path)];
        }
        seen.iter().map(|label| labels.renewed(Some(&**label), &path, FileKind::File)).collect()
    }
}

/// A line of proc_pid_maps(5) about a file.
struct Map<'a> {
    start: u64,
    end: u64,
    permissions: &'a [u8],
    device: (u32, u32),
    number: u64,
    path: &'a str,
    /// Device, number and path.
    file: &'a str,
}

impl<'a> Map<'a> {
    fn parse(line: &'a str) -> Option<Self> {
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

    /// What memory that can be read at any time, written through to the file, and executed asks for.
    fn uses(&self) -> AccessVector {
        let mut uses = perm::file::READ;
        if self.has(3, b's') {
            uses |= perm::file::WRITE;
        }
        if self.has(2, b'x') {
            uses |= perm::file::EXECUTE;
        }
        uses
    }

    fn protection(&self) -> u64 {
        let bits =
            [(0, b'r', libc::PROT_READ), (1, b'w', libc::PROT_WRITE), (2, b'x', libc::PROT_EXEC)];
        let set = bits.iter().filter(|(index, letter, _)| self.has(*index, *letter));
        set.fold(0, |all, (_, _, bit)| all | *bit as u64)
    }
}

/// The kernel writes a line break in a path as `\012`.
fn unescape(path: &str) -> Vec<u8> {
    path.replace("\\012", "\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_maps_is_read() {
        let line = "7f00-8f00 r--s 00001000 fe:01 1234                       /a b/c (deleted)";
        let map = Map::parse(line).unwrap();
        assert_eq!((map.start, map.end, map.device, map.number), (0x7f00, 0x8f00, (0xfe, 1), 1234));
        assert_eq!(map.path, "/a b/c (deleted)");
        assert_eq!(map.uses(), perm::file::READ | perm::file::WRITE);
        assert_eq!(map.protection(), libc::PROT_READ as u64);
        assert!(Map::parse("7f00-8f00 rw-p 00000000 00:00 0 ").is_none());
        assert!(Map::parse("7f00-8f00 rw-p 00000000 00:00 0                  [stack]").is_none());
    }
}
