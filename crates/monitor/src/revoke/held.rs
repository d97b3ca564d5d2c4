//! What a process holds that policy does not grant any more.

use super::naming::NamedFiles;
use super::receipt::{Action, Held};
use crate::gate::Gate;
use confine::PolicyState;
use file_manager::class_of;
use flask::{AccessVector, Class, Sid, perm};
use inode_labels::{FileRef, Status};
use proc::{DescriptorInfo, Descriptors, Watch, named};
use rustix::{
    fs::{AtFlags, FileType, Mode, OFlags, SeekFrom},
    io::{Errno, Result},
};
use std::{
    cell::{OnceCell, RefCell},
    collections::HashMap,
    os::fd::{AsFd, AsRawFd, OwnedFd},
    path::Path,
    sync::Arc,
};
use supervisor::{
    closing::Duplicate,
    is_alive,
    thread::{compare_file, same_descriptors, same_file, take_descriptor},
};

/// What a descriptor of a file can be used for.
pub(super) const USES: AccessVector =
    AccessVector(perm::file::READ.0 | perm::file::WRITE.0 | perm::file::APPEND.0);

/// What can be watched: of a watch, nobody tells which of them it is.
pub(super) const WATCHED: [Class; 4] = [Class::File, Class::Dir, Class::FifoFile, Class::SockFile];

/// One permission that a process still holds.
#[derive(Debug)]
pub(super) struct Finding {
    pub(super) held: Held,
    pub(super) object: String,
    /// What of it policy took back, as policy names it.
    pub(super) lost: Vec<&'static str>,
    /// A duplicate of the socket.
    pub(super) socket: Option<Duplicate>,
    /// What takes the place of the descriptor, if something is left to be done with it.
    pub(super) substitute: Option<OwnedFd>,
    /// The protection of the mapping, as `PROT_*`.
    pub(super) protection: u64,
    /// It takes a call in the place of the process to end it.
    pub(super) by_call: bool,
}

impl Finding {
    pub(super) fn new(
        held: Held,
        object: impl Into<String>,
        class: Class,
        lost: AccessVector,
    ) -> Self {
        let lost = lost.names(class).collect();
        Self { lost, ..Self::vague(held, object) }
    }

    /// What cannot be told in detail.
    pub(super) fn vague(held: Held, object: impl Into<String>) -> Self {
        let by_call = matches!(held, Held::Descriptor(_) | Held::Mapping(..) | Held::Watch(..));
        let (object, lost) = (object.into(), Vec::new());
        Self { held, object, lost, socket: None, substitute: None, protection: 0, by_call }
    }
}

/// The descriptors that nothing can be done with any more.
pub(super) fn replaced(done: &[(Finding, Result<Action>)]) -> Vec<i32> {
    let number = |(finding, result): &(Finding, Result<Action>)| match finding.held {
        Held::Descriptor(fd) if *result == Ok(Action::Replaced) => Some(fd),
        _ => None,
    };
    done.iter().filter_map(number).collect()
}

/// A subject, an object's label before and after the change, and its class.
pub(super) type Key = (Option<Sid>, Sid, Sid, Class);

/// What a change can take. To compare every decision takes longer than to stop a process, so it is
/// done only where it matters, and once.
pub(super) struct Taking {
    /// Something is labelled otherwise.
    pub(super) relabels: bool,
    /// What held before, which takes its time to be dropped.
    pub(super) old: Arc<PolicyState>,
    pub(super) known: OnceCell<bool>,
    /// Whether it can take that something is watched.
    pub(super) watching: OnceCell<bool>,
}

/// Compares the policy before and after a change.
pub(super) struct Comparison<'a> {
    pub(super) gate: &'a Gate,
    pub(super) lost: RefCell<HashMap<Key, AccessVector>>,
    /// Open files that were opened anew for reading, each with the new one.
    reopened: RefCell<Vec<(Duplicate, OwnedFd)>>,
    pub(super) taking: Taking,
    /// The files that whoever made the change has named.
    pub(super) named: NamedFiles,
}

/// One table of descriptors: a thread that uses it, its process and that one's label.
#[derive(Clone, Copy)]
pub(super) struct Subject {
    pub(super) pid: u32,
    /// A thread that uses the table.
    pub(super) tid: u32,
    /// `None` if its label cannot be found out: it may do nothing new, and what it holds may be
    /// from any domain.
    pub(super) ssid: Option<Sid>,
}

impl<'a> Comparison<'a> {
    pub(super) fn new(gate: &'a Gate, taking: Taking, named: NamedFiles) -> Self {
        Self { gate, lost: RefCell::default(), reopened: RefCell::default(), taking, named }
    }

    /// All that a process holds: for each of its tables of descriptors, with the memory that all
    /// share in the first.
    pub(super) fn everything(
        &self,
        pid: u32,
        ssid: Option<Sid>,
    ) -> Result<Vec<(Subject, Vec<Finding>)>> {
        let mut all = Vec::new();
        for tid in self.tables(pid)? {
            let who = Subject { pid, tid, ssid };
            let held = self.descriptors(who).and_then(|mut findings| {
                if all.is_empty() {
                    findings.extend(self.mappings(who)?);
                }
                Ok(findings)
            });
            match held {
                Ok(findings) => all.push((who, findings)),
                // It has ended meanwhile.
                Err(Errno::NOENT | Errno::SRCH) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(all)
    }

    /// Of each of the findings that a process was repaired of by calls in its place, whether it is
    /// as it was.
    pub(super) fn still_held(&self, who: Subject, findings: &[Finding]) -> Result<Vec<bool>> {
        let is_mapping = |finding: &Finding| matches!(finding.held, Held::Mapping(..));
        let maps = match findings.iter().any(is_mapping) {
            true => self.mappings(who)?,
            false => Vec::new(),
        };
        let overlaps = |start: u64, end: u64| {
            maps.iter().any(|map| matches!(map.held, Held::Mapping(s, e) if s < end && e > start))
        };
        let held = |finding: &Finding| match finding.held {
            Held::Descriptor(fd) | Held::Connection(fd) | Held::Listener(fd) => {
                let instead = finding.substitute.as_ref().unwrap_or(&self.gate.refusal);
                Ok(!self.is_replaced(who, fd, instead)?)
            }
            Held::Mapping(start, end) => Ok(overlaps(start, end)),
            Held::Watch(fd, number) => {
                let info = self.info(who, fd)?;
                // One that cannot be read may be this one.
                Ok(info.watches().any(|it| it.is_none_or(|it| it.number == number)))
            }
            Held::InFlight(_) | Held::Call | Held::Settled | Held::Unknown => Ok(false),
        };
        findings.iter().map(held).collect()
    }

    /// Whether a descriptor leads to the open file that was put in its place.
    ///
    /// Where kcmp(2) is refused: to the same file, by the same path, and open for the same. What
    /// was taken is another file than the refusal (`/proc/PID/io` of the monitor, by whose path
    /// nobody else makes a file), or was open for writing, too, which its substitute is not.
    fn is_replaced(&self, who: Subject, fd: i32, instead: &OwnedFd) -> Result<bool> {
        if let Ok(is_same) = compare_file(who.tid, fd, instead.as_fd()) {
            return Ok(is_same);
        }
        let shown = |table: &str, fd: i32| -> Result<_> {
            let proc = &self.gate.state.targets.tree.proc;
            let name = format!("{table}/fd/{fd}");
            let link = rustix::fs::statat(proc, &name, AtFlags::SYMLINK_NOFOLLOW)?;
            let path = proc.descriptor_link(table, fd)?;
            Ok((Status::at(proc, &name)?, path, link.st_mode & 0o600))
        };
        let theirs = match shown(&format!("{}/task/{}", who.pid, who.tid), fd) {
            // Closed meanwhile, by a thread that has not stopped.
            Err(Errno::NOENT) => return Ok(false),
            theirs => theirs?,
        };
        Ok(theirs == shown("self", instead.as_raw_fd())?)
    }

    /// Of the threads of a process that have not ended, one for each table of descriptors.
    fn tables(&self, pid: u32) -> Result<Vec<u32>> {
        let mut tables: Vec<u32> = Vec::new();
        for tid in self.gate.state.targets.tree.proc.threads(pid)? {
            let known = || tables.iter().any(|other| same_descriptors(*other, tid));
            if is_alive(&self.gate.state.targets.tree, tid) && !known() {
                tables.push(tid);
            }
        }
        Ok(tables)
    }

    /// What lies in the table of descriptors that a thread uses.
    fn descriptors(&self, who: Subject) -> Result<Vec<Finding>> {
        let gate = self.gate;
        let of = format!("{}/task/{}", who.pid, who.tid);
        let table = gate.state.targets.tree.proc.descriptors(of)?;
        let mut findings = Vec::new();
        for fd in table.numbers()? {
            let found = Status::at(&table, fd.to_string()).and_then(|status| {
                Ok(match status.kind {
                    FileType::Socket => self.socket(who, fd, status.number)?,
                    FileType::Unknown => self.without_kind(who, fd, &table)?,
                    _ => self.file(who, fd, &status, &table)?.into_iter().collect(),
                })
            });
            match found {
                Ok(found) => findings.extend(found),
                // Closed meanwhile, by a thread that has not stopped.
                Err(Errno::NOENT) => {}
                Err(error) => {
                    let why = format!("a file that cannot be looked at: {error}");
                    findings.push(Finding::vague(Held::Descriptor(fd), why));
                }
            }
        }
        Ok(findings)
    }

    fn file(
        &self,
        who: Subject,
        fd: i32,
        status: &Status,
        table: &Descriptors,
    ) -> Result<Option<Finding>> {
        let number = fd.to_string();
        let class = class_of(status.kind);
        let path = || named(&table.link(fd)?, |path| status.lies_at(path)).ok_or(Errno::NOENT);
        // What never had a name is no object of policy, and ends here with `ENOENT`.
        let file = FileRef::Name(table.as_fd(), Path::new(&number));
        let label = self.gate.state.labels.of_file(status, file, path)?;
        let lost = self.lost_file(who.ssid, &label, class)
            | self.denied_by_name(who.ssid, status.kind, path);
        if (lost & USES).is_empty() {
            return Ok(None);
        }
        // The permissions of the link say what the descriptor is open for; none, if only to be
        // looked at, or for ioctl(2), which takes both (access mode 3 of open(2)).
        let link = rustix::fs::statat(table, number.as_str(), AtFlags::SYMLINK_NOFOLLOW)?;
        let is_open_to = |bit| link.st_mode & bit != 0;
        let mut used = AccessVector::NONE;
        if is_open_to(0o400) {
            used |= perm::file::READ;
        }
        if is_open_to(0o200) {
            used |= perm::file::WRITE;
        }
        if used.is_empty() && !self.is_place(who, fd)? {
            used = perm::file::READ | perm::file::WRITE;
        }
        let lost = lost & used;
        if lost.is_empty() {
            return Ok(None);
        }
        let object = path().unwrap_or_default().to_string_lossy().into_owned();
        let found = Finding::new(Held::Descriptor(fd), object, class, lost);
        let reads = is_open_to(0o400) && (lost & perm::file::READ).is_empty();
        let substitute = match reads && status.kind == FileType::RegularFile {
            // What cannot be opened anew is taken as a whole.
            true => self.for_reading(who, fd, status, table).ok(),
            false => None,
        };
        Ok(Some(Finding { substitute, ..found }))
    }

    /// Whether a descriptor is a place alone (`O_PATH`).
    fn is_place(&self, who: Subject, fd: i32) -> Result<bool> {
        let flags = self.info(who, fd)?.flags().ok_or(Errno::BADMSG)?;
        Ok(flags.contains(OFlags::PATH))
    }

    /// The file of a descriptor, opened anew for reading alone, at the same place; once for all
    /// descriptors of one open file.
    fn for_reading(
        &self,
        who: Subject,
        fd: i32,
        status: &Status,
        table: &Descriptors,
    ) -> Result<OwnedFd> {
        let copy = |file: &OwnedFd| file.try_clone().map_err(|_| Errno::MFILE);
        let mut reopened = self.reopened.borrow_mut();
        let mut known = reopened.iter();
        if let Some((_, new)) = known.find(|(old, _)| same_file(who.tid, fd, old.as_fd())) {
            return copy(new);
        }
        let old = take_descriptor(who.tid, who.pid, fd)?;
        let info = self.info(who, fd)?;
        let kept = OFlags::NONBLOCK | OFlags::DIRECT | OFlags::NOATIME;
        let kept = info.flags().ok_or(Errno::BADMSG)? & kept;
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | kept;
        let new = rustix::fs::openat(table, fd.to_string(), flags, Mode::empty())?;
        if Status::of(new.as_fd())? != *status {
            return Err(Errno::STALE);
        }
        let position = info.position().ok_or(Errno::BADMSG)?;
        rustix::fs::seek(&new, SeekFrom::Start(position))?;
        reopened.push((old, copy(&new)?));
        Ok(new)
    }

    /// The watches of an inotify descriptor, and what a device has made that was taken; nothing for
    /// others without a kind.
    fn without_kind(&self, who: Subject, fd: i32, table: &Descriptors) -> Result<Vec<Finding>> {
        let info = self.info(who, fd)?;
        let mut findings = Vec::new();
        let link = table.link(fd)?;
        if self.is_made_by_lost(who.ssid, &link) {
            let object = String::from_utf8_lossy(&link);
            findings.push(Finding::vague(Held::Descriptor(fd), object));
        }
        for watch in info.watches() {
            let watch = watch.ok_or(Errno::BADMSG)?;
            findings.extend(self.watch(who, fd, &watch));
        }
        Ok(findings)
    }

    fn watch(&self, who: Subject, fd: i32, watch: &Watch) -> Option<Finding> {
        let held = Held::Watch(fd, watch.number);
        let object =
            format!("inode {} of device {}:{}", watch.inode, watch.device.0, watch.device.1);
        let labels = &self.gate.state.labels;
        // Not where births are not told: of these files no label is remembered.
        if labels.may_have_another(watch.device, watch.inode) && self.takes_watching() {
            return Some(Finding::vague(held, object));
        }
        let known = labels.by_number(watch.device, watch.inode);
        let lost = known
            .iter()
            .flat_map(|label| WATCHED.map(|class| self.lost_file(who.ssid, label, class)));
        let lost = lost.fold(AccessVector::NONE, |all, lost| all | lost) & perm::file::WATCH;
        (!lost.is_empty()).then(|| Finding::new(held, object, Class::File, lost))
    }

    pub(super) fn info(&self, who: Subject, fd: i32) -> Result<DescriptorInfo> {
        self.gate
            .state
            .targets
            .tree
            .proc
            .descriptor(format_args!("{}/task/{}", who.pid, who.tid), fd)
    }
}
