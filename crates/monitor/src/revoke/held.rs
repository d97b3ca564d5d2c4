//! What a process holds that policy does not grant any more.

use super::receipt::Held;
use crate::{
    caller::read_text,
    file::class_of,
    gate::Gate,
    label::{Label, Status},
    socket::{class_of as socket_class, endpoint_label, unix_label},
    sys::socket::option,
};
use flask::{AccessVector, Class, Question, Sid, perm};
use rustix::{
    fs::{AtFlags, FileType, Mode, OFlags},
    io::{Errno, Result},
    net::{SocketAddrAny, SocketAddrUnix, getpeername, getsockname},
    process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open},
};
use std::{
    cell::RefCell,
    collections::HashMap,
    ffi::OsString,
    net::SocketAddr,
    os::{
        fd::{AsFd, AsRawFd, OwnedFd},
        unix::ffi::{OsStrExt, OsStringExt},
    },
    path::{Path, PathBuf},
    sync::Arc,
};

/// What a descriptor of a file can be used for.
const USES: AccessVector =
    AccessVector(perm::file::READ.0 | perm::file::WRITE.0 | perm::file::APPEND.0);

/// One permission that a process still holds.
#[derive(Debug)]
pub(super) struct Finding {
    pub(super) held: Held,
    pub(super) object: String,
    /// What of it policy took back.
    pub(super) lost: AccessVector,
    /// A duplicate of the socket.
    pub(super) socket: Option<OwnedFd>,
    /// The descriptor is closed by an exec.
    pub(super) cloexec: bool,
    /// The protection of the mapping, as `PROT_*`.
    pub(super) protection: u64,
}

impl Finding {
    pub(super) fn new(held: Held, object: impl Into<String>, lost: AccessVector) -> Self {
        let object = object.into();
        Self { held, object, lost, socket: None, cloexec: false, protection: 0 }
    }
}

/// Compares the policy before and after a change.
pub(super) struct Comparison<'a> {
    gate: &'a Gate,
    lost: RefCell<HashMap<(Sid, Sid, Sid, Class), AccessVector>>,
}

/// The proc file system's directory of one table of descriptors, and whose it is.
#[derive(Clone, Copy)]
pub(super) struct Subject {
    pub(super) pid: u32,
    /// A thread that uses the table.
    pub(super) tid: u32,
    pub(super) ssid: Sid,
}

impl<'a> Comparison<'a> {
    pub(super) fn new(gate: &'a Gate) -> Self {
        Self { gate, lost: RefCell::default() }
    }

    /// What `ssid` may no longer do to an object that was labelled `before` and is labelled `now`. Who cannot say what
    /// was granted before says everything.
    fn lost(&self, ssid: Sid, (before, now): (Sid, Sid), tclass: Class) -> AccessVector {
        let key = (ssid, before, now, tclass);
        if let Some(lost) = self.lost.borrow().get(&key) {
            return *lost;
        }
        let server = &self.gate.server;
        let granted = |decision: flask::Decision| {
            if decision.permissive { AccessVector::ALL } else { decision.allowed }
        };
        let before = server.compute_av_before(Question { ssid, tsid: before, tclass });
        let now = server.compute_av(Question { ssid, tsid: now, tclass });
        let now = now.map_or(AccessVector::NONE, granted);
        let lost = before.map_or(AccessVector::ALL, granted).missing_from(now);
        self.lost.borrow_mut().insert(key, lost);
        lost
    }

    fn lost_file(&self, ssid: Sid, label: &Label, class: Class) -> AccessVector {
        self.lost(ssid, (label.before(), label.sid), class)
    }

    /// What lies in the table of descriptors that a thread uses.
    pub(super) fn descriptors(&self, who: Subject) -> Result<Vec<Finding>> {
        let gate = self.gate;
        let name = format!("{}/task/{}/fd", who.pid, who.tid);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let table = rustix::fs::openat(&gate.view.proc, &name, flags, Mode::empty())?;
        let mut findings = Vec::new();
        for entry in rustix::fs::Dir::read_from(&table)? {
            let entry = entry?;
            let Some(fd) = entry.file_name().to_str().ok().and_then(|it| it.parse().ok()) else {
                continue;
            };
            // Closed meanwhile, by a thread that has not stopped.
            let Ok(status) = Status::at(&table, entry.file_name()) else { continue };
            match status.kind {
                FileType::Socket => findings.extend(self.socket(who, fd)),
                FileType::Unknown => findings.extend(self.watches(who, fd)),
                _ => findings.extend(self.file(who, fd, &status, &table)),
            }
        }
        Ok(findings)
    }

    fn file(&self, who: Subject, fd: i32, status: &Status, table: &OwnedFd) -> Option<Finding> {
        let number = fd.to_string();
        let class = class_of(status.kind);
        let path = place(rustix::fs::readlinkat(table, &number, Vec::new()).ok()?.into_bytes())?;
        let label = self.gate.labels.of_file(status, || Ok(path.clone())).ok()?;
        let lost = self.lost_file(who.ssid, &label, class);
        if (lost & USES).is_empty() {
            return None;
        }
        let info = self.info(who, fd).ok()?;
        let used = match info.flags & OFlags::RWMODE {
            _ if info.flags.contains(OFlags::PATH) => AccessVector::NONE,
            OFlags::RDONLY => perm::file::READ,
            mode => {
                let appends = info.flags.contains(OFlags::APPEND);
                let writes = if appends { perm::file::APPEND } else { perm::file::WRITE };
                if mode == OFlags::RDWR { writes | perm::file::READ } else { writes }
            }
        };
        let lost = lost & used;
        (!lost.is_empty()).then(|| Finding {
            cloexec: info.flags.contains(OFlags::CLOEXEC),
            ..Finding::new(Held::Descriptor(fd), path.to_string_lossy(), lost)
        })
    }

    /// The watches of an inotify descriptor; nothing for others without a kind.
    fn watches(&self, who: Subject, fd: i32) -> Vec<Finding> {
        let Ok(info) = self.info(who, fd) else { return Vec::new() };
        let watch = |line: &str| {
            let word = |name: &str| {
                let mut words = line.strip_prefix("inotify ")?.split_whitespace();
                words.find_map(|word| word.strip_prefix(name)?.strip_prefix(':'))
            };
            let number = word("wd")?.parse().ok()?;
            let inode = u64::from_str_radix(word("ino")?, 16).ok()?;
            // `MKDEV` of `linux/kdev_t.h`.
            let device = u32::from_str_radix(word("sdev")?, 16).ok()?;
            let device = (device >> 20, device & 0xf_ffff);
            let label = self.gate.labels.by_number(device, inode)?;
            let lost =
                [Class::File, Class::Dir].map(|class| self.lost_file(who.ssid, &label, class));
            let lost = (lost[0] | lost[1]) & perm::file::WATCH;
            let object = format!("inode {inode} of device {}:{}", device.0, device.1);
            (!lost.is_empty()).then(|| Finding::new(Held::Watch(fd, number), object, lost))
        };
        info.text.lines().filter_map(watch).collect()
    }

    fn info(&self, who: Subject, fd: i32) -> Result<Info> {
        let name = format!("{}/task/{}/fdinfo/{fd}", who.pid, who.tid);
        let text = read_text(&self.gate.view, &name)?;
        let field = text.lines().find_map(|line| line.strip_prefix("flags:"));
        let bits = field.and_then(|field| u32::from_str_radix(field.trim(), 8).ok());
        let flags = OFlags::from_bits_retain(bits.ok_or(Errno::BADF)?);
        Ok(Info { flags, text })
    }

    fn socket(&self, who: Subject, fd: i32) -> Vec<Finding> {
        self.look_at_socket(who, fd).unwrap_or_else(|error| {
            let why = format!("a socket that cannot be looked at: {error}");
            vec![Finding::new(Held::Connection(fd), why, AccessVector::ALL)]
        })
    }

    fn look_at_socket(&self, who: Subject, fd: i32) -> Result<Vec<Finding>> {
        let pid = Pid::from_raw(who.pid as i32).ok_or(Errno::SRCH)?;
        let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
        let socket = pidfd_getfd(&pidfd, fd, PidfdGetfdFlags::empty())?;
        let number = |name| option(socket.as_fd(), name);
        let family = number(libc::SO_DOMAIN)?;
        let class = socket_class(family, number(libc::SO_TYPE)?, number(libc::SO_PROTOCOL)?);
        let mut findings = Vec::new();
        let found = match family {
            libc::AF_INET | libc::AF_INET6 => self.internet(who, fd, class, &socket),
            libc::AF_UNIX => {
                findings.extend(self.in_flight(who, fd, &socket));
                self.unix(who, fd, class, &socket)
            }
            _ => {
                let lost = self.lost(who.ssid, (who.ssid, who.ssid), class) & perm::socket::CREATE;
                let object = format!("a {class}");
                (!lost.is_empty()).then(|| Finding::new(Held::Connection(fd), object, lost))
            }
        };
        findings.extend(found.map(|found| Finding { socket: Some(socket), ..found }));
        Ok(findings)
    }

    fn internet(&self, who: Subject, fd: i32, class: Class, socket: &OwnedFd) -> Option<Finding> {
        let ip = |address: SocketAddrAny| SocketAddr::try_from(address).ok();
        let own = getsockname(socket).ok().and_then(ip);
        let peer = getpeername(socket).ok().flatten().and_then(ip);
        let uses = perm::endpoint::NAME_CONNECT | perm::endpoint::SENDTO;
        if let Some(peer) = peer
            && let Some(lost) = self.lost_endpoint(who, class, peer, uses)
        {
            return Some(Finding::new(Held::Connection(fd), peer.to_string(), lost));
        }
        let lost = self.lost_endpoint(who, class, own?, perm::endpoint::NAME_BIND)?;
        let held = if peer.is_some() { Held::Connection(fd) } else { Held::Listener(fd) };
        Some(Finding::new(held, own?.to_string(), lost))
    }

    /// What was taken back at an address that had been decided; `None` for nothing.
    fn lost_endpoint(
        &self,
        who: Subject,
        class: Class,
        address: SocketAddr,
        uses: AccessVector,
    ) -> Option<AccessVector> {
        let before = self.gate.endpoints.decided(class, address)?;
        let ip = address.ip().to_canonical();
        let now = endpoint_label(self.gate, class, ip, address.port()).ok()?;
        let lost = self.lost(who.ssid, (before, now), Class::Endpoint) & uses;
        (!lost.is_empty()).then_some(lost)
    }

    fn unix(&self, who: Subject, fd: i32, class: Class, socket: &OwnedFd) -> Option<Finding> {
        let peer = SocketAddrUnix::try_from(getpeername(socket).ok()??).ok()?;
        let lost = self.lost(who.ssid, unix_label(self.gate, &peer)?, class);
        // The bit of `connectto` is that of `sendto`: the one permission that is asked for on the name of a peer.
        let lost = lost & perm::unix_stream_socket::CONNECTTO;
        let name = peer.path_bytes().or(peer.abstract_name()).unwrap_or_default();
        let object = format!("unix:{}", String::from_utf8_lossy(name).trim_end_matches('\0'));
        (!lost.is_empty()).then(|| Finding::new(Held::Connection(fd), object, lost))
    }

    /// Descriptors that somebody has sent and nobody has received: only the socket as a whole can be emptied.
    fn in_flight(&self, who: Subject, fd: i32, socket: &OwnedFd) -> Option<Finding> {
        let info = self.info(who, fd).ok()?;
        let count = info.text.lines().find_map(|line| line.strip_prefix("scm_fds:"))?;
        if count.trim() == "0" {
            return None;
        }
        let peeked = super::flight::peek(socket.as_fd());
        let complete = peeked.complete && count.trim().parse() == Ok(peeked.descriptors.len());
        let lost = |fd: &OwnedFd| self.is_lost(who, fd);
        if complete && !peeked.descriptors.iter().any(lost) {
            return None;
        }
        let object = format!("{} descriptors in flight", count.trim());
        let socket = socket.try_clone().ok();
        let finding = Finding::new(Held::InFlight(fd), object, AccessVector::ALL);
        Some(Finding { socket, ..finding })
    }

    /// Whether a descriptor of the monitor's own is one that `who` would lose. What it is opened for is not looked at.
    fn is_lost(&self, who: Subject, fd: &OwnedFd) -> bool {
        let Ok(status) = Status::of(fd.as_fd()) else { return true };
        if status.kind == FileType::Socket {
            return self.is_socket_lost(who, fd).unwrap_or(true);
        }
        let path = || crate::caller::path_of(&self.gate.view, fd);
        let Some(path) = path().ok().and_then(|path| place(path.into_os_string().into_vec()))
        else {
            return false;
        };
        let Ok(label) = self.gate.labels.of_file(&status, || Ok(path)) else { return true };
        !(self.lost_file(who.ssid, &label, class_of(status.kind)) & USES).is_empty()
    }

    /// The same of a socket, which can hold others in turn.
    fn is_socket_lost(&self, who: Subject, socket: &OwnedFd) -> Result<bool> {
        let number = |name| option(socket.as_fd(), name);
        let family = number(libc::SO_DOMAIN)?;
        let class = socket_class(family, number(libc::SO_TYPE)?, number(libc::SO_PROTOCOL)?);
        let own = format!("self/fdinfo/{}", socket.as_raw_fd());
        let info = read_text(&self.gate.view, &own)?;
        let holds = info.lines().any(|line| line.starts_with("scm_fds:") && !line.ends_with("\t0"));
        Ok(holds
            || match family {
                libc::AF_INET | libc::AF_INET6 => self.internet(who, -1, class, socket).is_some(),
                libc::AF_UNIX => self.unix(who, -1, class, socket).is_some(),
                _ => false,
            })
    }

    /// What is mapped into the memory of a process.
    pub(super) fn mappings(&self, who: Subject) -> Result<Vec<Finding>> {
        let text = read_text(&self.gate.view, &format!("{}/maps", who.tid))?;
        let mut known: HashMap<&str, Option<Arc<Label>>> = HashMap::new();
        let mut findings = Vec::new();
        for line in text.lines() {
            let Some(map) = Map::parse(line) else { continue };
            let label = known.entry(map.file).or_insert_with(|| self.label_of_map(who, &map));
            let Some(label) = label else { continue };
            let lost = self.lost_file(who.ssid, label, Class::File) & map.uses();
            if !lost.is_empty() {
                let held = Held::Mapping(map.start, map.end);
                let protection = map.protection();
                findings.push(Finding { protection, ..Finding::new(held, map.path, lost) });
            }
        }
        Ok(findings)
    }

    /// The label of a mapped file. Only a privileged monitor may follow the kernel's own link to it; else it is found by
    /// its number among those seen, or by its name.
    fn label_of_map(&self, who: Subject, map: &Map<'_>) -> Option<Arc<Label>> {
        let labels = &self.gate.labels;
        let path = place(unescape(map.path))?;
        let link = format!("{}/map_files/{:x}-{:x}", who.tid, map.start, map.end);
        if let Ok(status) = Status::at(&self.gate.view.proc, link.as_str()) {
            return labels.of_file(&status, || Ok(path)).ok();
        }
        let at_name = Status::at(rustix::fs::CWD, &path).ok();
        match at_name.filter(|status| status.number == map.number) {
            Some(status) => labels.of_file(&status, || Ok(path)).ok(),
            None => {
                labels.by_number(map.device, map.number).or_else(|| Some(labels.at_path(&path)))
            }
        }
    }
}

struct Info {
    flags: OFlags,
    text: String,
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

    /// What memory that can be read at any time, written through to the file, and executed asks for. A shared mapping
    /// counts as one that can be written: the program may make it so.
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

/// Where a file lies, or lay when it was deleted; `None` for what never had a name: pipes, sockets, memory.
fn place(link: Vec<u8>) -> Option<PathBuf> {
    const DELETED: &[u8] = b" (deleted)";
    let path = Path::new(std::ffi::OsStr::from_bytes(link.strip_suffix(DELETED).unwrap_or(&link)));
    let memory = ["/memfd:", "/dev/zero", "/SYSV", "/anon_hugepage"];
    let deleted = link.ends_with(DELETED);
    let text = path.to_string_lossy();
    if !path.is_absolute() || (deleted && memory.iter().any(|start| text.starts_with(start))) {
        return None;
    }
    Some(PathBuf::from(OsString::from_vec(path.as_os_str().as_bytes().to_vec())))
}

impl Status {
    /// Asks about the file at `name`, links followed: also one of the links of `/proc`.
    fn at(directory: impl AsFd, name: impl rustix::path::Arg) -> Result<Self> {
        let mask = Self::MASK;
        let statx = rustix::fs::statx(directory, name, AtFlags::STATX_DONT_SYNC, mask)?;
        Ok(Self::from_statx(&statx))
    }
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

    #[test]
    fn what_never_had_a_name_has_no_place() {
        let place = |text: &str| place(text.as_bytes().to_vec());
        assert_eq!(place("/a/b (deleted)"), Some("/a/b".into()));
        assert_eq!(place("/memfd:x (deleted)"), None);
        assert_eq!(place("pipe:[1]"), None);
    }
}
