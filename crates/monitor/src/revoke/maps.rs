//! Files that are mapped into the memory of a process.

use super::{
    held::{Comparison, Finding, Subject},
    receipt::Held,
};
use flask::{AccessVector, Class, FileKind, perm};
use inode_labels::{FileRef, Label, Status};
use proc::{Mapping, named};
use rustix::{
    fs::{CWD, FileType, Mode, OFlags, ResolveFlags, openat2},
    io::{Errno, Result},
};
use std::{
    collections::HashMap,
    ops::BitOr,
    os::fd::{AsFd as _, OwnedFd},
    path::Path,
    sync::Arc,
};

impl Comparison<'_> {
    /// What is mapped into the memory of a process.
    pub(super) fn mappings(&self, who: Subject) -> Result<Vec<Finding>> {
        let text = self.gate.state.targets.tree.proc.maps(who.tid)?;
        let mut known: HashMap<&str, AccessVector> = HashMap::new();
        let mut findings = Vec::new();
        for line in text.lines() {
            let Some(map) = Mapping::parse(line) else { continue };
            let lost = *known.entry(map.file).or_insert_with(|| self.lost_map(who, &map));
            let mut lost = lost & uses(&map);
            if lost == perm::file::WRITE && !map.is_writable() && !self.may_be_written(who, &map) {
                lost = AccessVector::NONE;
            }
            if !lost.is_empty() {
                let held = Held::Mapping(map.start, map.end);
                let protection = protection(&map);
                findings.push(Finding {
                    protection,
                    ..Finding::new(held, map.path, Class::File, lost)
                });
            }
        }
        Ok(findings)
    }

    /// Whether the program may make a shared mapping one that it writes to.
    fn may_be_written(&self, who: Subject, map: &Mapping<'_>) -> bool {
        let smaps = self.gate.state.targets.tree.proc.smaps(who.tid);
        smaps.map_or(true, |smaps| proc::may_be_written(&smaps, map.start))
    }

    /// What may no longer be done to a mapped file: nothing is lost of what never had a name. Only
    /// a privileged monitor may follow the kernel's own link to it; else it is found by its name,
    /// and where that leaves a doubt, it is whatever it can be.
    fn lost_map(&self, who: Subject, map: &Mapping<'_>) -> AccessVector {
        let path = || {
            let is_there = |path: &Path| of_number(map, path).is_some();
            named(&map.path_bytes(), is_there).ok_or(Errno::NOENT)
        };
        self.denied_by_name(who.ssid, FileType::RegularFile, path) | self.lost_label(who, map)
    }

    fn lost_label(&self, who: Subject, map: &Mapping<'_>) -> AccessVector {
        let labels = &self.gate.state.labels;
        let text = map.path_bytes();
        let here = |path: &Path| of_number(map, path).is_some();
        let Some(path) = named(&text, here) else { return AccessVector::NONE };
        let lost = |label: Arc<Label>| self.lost_file(who.ssid, &label, Class::File);
        let link = format!("{}/map_files/{:x}-{:x}", who.tid, map.start, map.end);
        let proc = self.gate.state.targets.tree.proc.as_fd();
        let file = FileRef::Name(proc, Path::new(&link));
        let by_link = Status::at(proc, &link);
        if let Ok(label) = by_link.and_then(|it| labels.of_file(&it, file, || Ok(path.clone()))) {
            return lost(label);
        }
        let mut found = Vec::new();
        if let Some((status, file)) = of_number(map, &path) {
            let file = FileRef::Fd(file.as_fd());
            found.extend(labels.of_file(&status, file, || Ok(path.clone())));
            // The text of a name that is there is the way to it.
            if !found.is_empty() && (status.device == map.device || map.is_at_its_path()) {
                return found.into_iter().map(lost).fold(AccessVector::NONE, BitOr::bitor);
            }
        }
        if labels.has_forgotten() && self.takes() {
            return AccessVector::ALL;
        }
        let seen = labels.by_number(map.device, map.number).into_iter();
        found.extend(seen.map(|label| labels.renewed_if_old(label, &path, FileKind::File)));
        let places = [Some(path), named(&text, |_| false)].into_iter().flatten();
        found.extend(places.map(|path| labels.at_path(&path)));
        found.into_iter().map(lost).fold(AccessVector::NONE, BitOr::bitor)
    }
}

/// The file at `path`, no link on the way followed, if it has the number of the mapped one.
fn of_number(map: &Mapping<'_>, path: &Path) -> Option<(Status, OwnedFd)> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS).ok()?;
    let status = Status::of(file.as_fd()).ok()?;
    (status.number == map.number).then_some((status, file))
}

/// What memory that can be read at any time, written through to the file, and executed asks for.
fn uses(map: &Mapping<'_>) -> AccessVector {
    let mut uses = perm::file::READ;
    if map.is_shared() {
        uses |= perm::file::WRITE;
    }
    if map.is_executable() {
        uses |= perm::file::EXECUTE;
    }
    uses
}

fn protection(map: &Mapping<'_>) -> u64 {
    let bits = [
        (map.is_readable(), libc::PROT_READ),
        (map.is_writable(), libc::PROT_WRITE),
        (map.is_executable(), libc::PROT_EXEC),
    ];
    bits.into_iter().filter(|(is, _)| *is).fold(0, |all, (_, bit)| all | bit as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_is_used_as_its_permissions_say() {
        let map = Mapping::parse("7f00-8f00 r--s 00001000 fe:01 1234  /a").unwrap();
        assert_eq!(uses(&map), perm::file::READ | perm::file::WRITE);
        assert_eq!(protection(&map), libc::PROT_READ as u64);
        let map = Mapping::parse("7f00-8f00 r-xp 00001000 fe:01 1234  /a").unwrap();
        assert_eq!(uses(&map), perm::file::READ | perm::file::EXECUTE);
    }
}
