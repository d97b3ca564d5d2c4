//! Files that are mapped into the memory of a process.

use super::{
    held::{Comparison, Finding, Subject},
    receipt::Held,
};
use flask::{AccessVector, Class, FileKind, perm};
use inode_labels::{Label, Status};
use proc::{Mapping, named};
use rustix::io::Result;
use std::{collections::HashMap, sync::Arc};

impl Comparison<'_> {
    /// What is mapped into the memory of a process.
    pub(super) fn mappings(&self, who: Subject) -> Result<Vec<Finding>> {
        let text = self.gate.state.targets.tree.proc.maps(who.tid)?;
        let mut known: HashMap<&str, Vec<Arc<Label>>> = HashMap::new();
        let mut findings = Vec::new();
        for line in text.lines() {
            let Some(map) = Mapping::parse(line) else { continue };
            let labels = known.entry(map.file).or_insert_with(|| self.labels_of_map(who, &map));
            let lost = labels.iter().map(|label| self.lost_file(who.ssid, label, Class::File));
            let mut lost = lost.fold(AccessVector::NONE, |all, lost| all | lost) & uses(&map);
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

    /// The labels that a mapped file can have; none for what never had a name. Only a privileged
    /// monitor may follow the kernel's own link to it; else it is found by its name, or by its
    /// number among those seen.
    fn labels_of_map(&self, who: Subject, map: &Mapping<'_>) -> Vec<Arc<Label>> {
        let labels = &self.gate.state.labels;
        let Some(path) = named(&map.path_bytes()) else { return Vec::new() };
        let link = format!("{}/map_files/{:x}-{:x}", who.tid, map.start, map.end);
        let own = Status::at(&self.gate.state.targets.tree.proc, link.as_str());
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
