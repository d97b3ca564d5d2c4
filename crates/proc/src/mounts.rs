//! What mounts say of names: to look at one may wait for somebody's server, and tells it; and the
//! same files may lie at two of them.

use crate::Proc;
use rustix::{
    fs::{AtFlags, StatxFlags, statx},
    io::{Errno, Result},
};
use std::{
    collections::HashSet,
    ffi::OsString,
    os::{fd::AsFd, unix::ffi::OsStringExt as _},
    path::{Path, PathBuf},
};

/// File systems behind which a server, another program or an automounter stands.
const DISTANT: [&str; 14] = [
    "9p", "afs", "autofs", "ceph", "cifs", "coda", "fuse", "fuseblk", "gfs2", "lustre", "ncpfs",
    "nfs", "smb3", "smbfs",
];

/// The mounts of one mount namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mounts {
    /// Of several at one place, the last.
    all: Vec<Mount>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Mount {
    id: u32,
    /// The mount that it lies on.
    parent: u32,
    /// Where it lies.
    place: PathBuf,
    is_distant: bool,
    /// The file system, by its device; and what of it lies there.
    device: OsString,
    root: PathBuf,
}

impl Mounts {
    /// As `/proc/PID/mountinfo` tells them.
    #[must_use]
    pub fn parse(text: &[u8]) -> Self {
        let mut all: Vec<Mount> = Vec::new();
        for line in text.split(|byte| *byte == b'\n') {
            let mut words = line.split(|byte| *byte == b' ');
            let mut number = || std::str::from_utf8(words.next()?).ok()?.parse::<u32>().ok();
            let (Some(id), Some(parent)) = (number(), number()) else { continue };
            let (Some(device), Some(root), Some(place)) =
                (words.next(), words.next(), words.next())
            else {
                continue;
            };
            let Some(kind) = words.skip_while(|word| *word != b"-").nth(1) else { continue };
            let (device, root) = (unescaped(device), unescaped(root).into());
            let (place, is_distant) = (PathBuf::from(unescaped(place)), is_distant(kind));
            all.push(Mount { id, parent, place, is_distant, device, root });
        }
        Self { all: visible(all) }
    }

    /// Those of this process; none if they cannot be read.
    #[must_use]
    pub fn own() -> Self {
        Self::parse(&std::fs::read("/proc/self/mountinfo").unwrap_or_default())
    }

    /// Counts the mount that holds `path` as this machine's: who works there waits for it anyway.
    pub fn trust(&mut self, path: &Path) {
        if let Some(at) = self.innermost(path) {
            self.all[at].is_distant = false;
        }
    }

    /// Pairs of places at which the same files lie, each in both orders: mounted twice, or a part
    /// of what is mounted elsewhere as a whole (`mount --bind`).
    #[must_use]
    pub fn twice(&self) -> Vec<(PathBuf, PathBuf)> {
        let mut pairs = Vec::new();
        for (outer, whole) in self.all.iter().enumerate() {
            for (inner, part) in self.all.iter().enumerate() {
                let is_part = outer != inner && whole.device == part.device;
                let Some(rest) =
                    is_part.then(|| part.root.strip_prefix(&whole.root).ok()).flatten()
                else {
                    continue;
                };
                let seen = whole.place.join(rest);
                let seen = if rest.as_os_str().is_empty() { whole.place.clone() } else { seen };
                // Something else may be mounted above it.
                if seen != part.place && self.innermost(&seen) == Some(outer) {
                    pairs.push((seen.clone(), part.place.clone()));
                    pairs.push((part.place.clone(), seen));
                }
            }
        }
        pairs.sort();
        pairs.dedup();
        pairs
    }

    /// Whether there are distant ones at all.
    #[must_use]
    pub fn has_distant(&self) -> bool {
        self.all.iter().any(|mount| mount.is_distant)
    }

    /// Whether `path`, without links, lies on a distant one.
    #[must_use]
    pub fn is_distant(&self, path: &Path) -> bool {
        self.innermost(path).is_some_and(|at| self.all[at].is_distant)
    }

    fn innermost(&self, path: &Path) -> Option<usize> {
        let all = self.all.iter().enumerate();
        let holding = all.filter(|(_, mount)| path.starts_with(&mount.place));
        holding.max_by_key(|(_, mount)| mount.place.components().count()).map(|(at, _)| at)
    }
}

/// Those that a path leads to; of several at one place, the last.
fn visible(all: Vec<Mount>) -> Vec<Mount> {
    let is_covered = |mount: &Mount| {
        all.iter().any(|other| match mount.place.starts_with(&other.place) {
            true if mount.place == other.place => other.parent == mount.id,
            covers => covers && other.parent == mount.parent && other.id != mount.id,
        })
    };
    let mut covered: HashSet<u32> =
        all.iter().filter(|it| is_covered(it)).map(|it| it.id).collect();
    // What lies on a covered one is covered with it. A list has those first that others lie on, but
    // for what was moved.
    while let Some(more) = all.iter().find(|it| {
        covered.contains(&it.parent)
            && !covered.contains(&it.id)
            && all.iter().any(|on| on.id == it.parent && on.place != it.place)
    }) {
        covered.insert(more.id);
    }
    let mut visible: Vec<Mount> = Vec::new();
    for mount in all.into_iter().filter(|it| !covered.contains(&it.id)) {
        visible.retain(|known| known.place != mount.place);
        visible.push(mount);
    }
    visible
}

impl<Fd: AsFd> Proc<Fd> {
    /// The device of the file system that a file of this process lies on, which is not always that
    /// of the file (`s_dev` of `linux/fs.h`).
    ///
    /// # Errors
    ///
    /// As of [`Proc::text`]; `ENOENT` for a mount that this process has none of.
    pub fn device_of(&self, file: impl AsFd) -> Result<(u32, u32)> {
        let mount = statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID)?;
        if mount.stx_mask & StatxFlags::MNT_ID.bits() == 0 {
            return Err(Errno::OPNOTSUPP);
        }
        device_of(&self.text("self/mountinfo")?, mount.stx_mnt_id).ok_or(Errno::NOENT)
    }
}

fn device_of(mountinfo: &str, mount: u64) -> Option<(u32, u32)> {
    let mut lines = mountinfo.lines().map(|line| line.split(' '));
    let mut found =
        lines.find_map(|mut words| (words.next()?.parse() == Ok(mount)).then_some(words))?;
    let (major, minor) = found.nth(1)?.split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

fn is_distant(kind: &[u8]) -> bool {
    // `fuse.sshfs`, `nfs4`.
    let kind = kind.split(|byte| *byte == b'.').next().unwrap_or_default();
    let kind = kind.strip_suffix(b"4").unwrap_or(kind);
    DISTANT.iter().any(|distant| distant.as_bytes() == kind)
}

/// Blanks and backslashes stand there as three octal digits.
fn unescaped(text: &[u8]) -> OsString {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, after)) = rest.split_first() {
        let digits = after.get(..3).filter(|_| first == b'\\');
        let code = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|code| u8::from_str_radix(code, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[3..];
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    OsString::from_vec(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_on_a_server_or_an_automounter_is_told_from_what_is_here() {
        let text = b"20 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
            21 20 0:20 / /net rw shared:1 - autofs systemd-1 rw\n\
            22 20 0:21 / /home rw - autofs map rw\n\
            23 22 0:22 / /home/me rw - nfs4 server:/me rw\n\
            24 20 0:23 / /mnt/my\\040disk rw - fuse.sshfs x rw\n\
            25 20 0:24 / /srv rw - nfs a rw\n\
            26 20 0:25 / /srv rw - xfs b rw\n";
        let mut mounts = Mounts::parse(text);
        let distant = |mounts: &Mounts, path: &str| mounts.is_distant(Path::new(path));
        for (path, is) in [
            ("/usr/x", false),
            ("/net", true),
            ("/net/data.example/x", true),
            ("/network", false),
            ("/home/me/x", true),
            ("/home/you", true),
            ("/mnt/my disk/x", true),
            ("/mnt/other", false),
            ("/srv/x", false),
        ] {
            assert_eq!(distant(&mounts, path), is, "{path}");
        }
        mounts.trust(Path::new("/home/me/work"));
        assert!(!distant(&mounts, "/home/me/x") && distant(&mounts, "/home/you"));
        assert!(mounts.has_distant() && !Mounts::default().has_distant());
    }

    #[test]
    fn what_is_mounted_twice_lies_at_two_places() {
        let text = b"20 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
            21 20 8:1 /home/me/.ssh /srv/my\\040keys rw - ext4 /dev/sda1 rw\n\
            22 20 8:2 /@home /data rw - btrfs /dev/sdb rw\n\
            23 20 8:2 / /all rw - btrfs /dev/sdb rw\n\
            24 20 8:1 /nix/store /nix/store rw - ext4 /dev/sda1 ro\n\
            25 20 8:1 /data/x /mnt rw - ext4 /dev/sda1 rw\n\
            26 20 0:4 net:[4026531840] /run/netns/a rw - nsfs nsfs rw\n";
        let one = [("/all/@home", "/data"), ("/home/me/.ssh", "/srv/my keys")];
        let pairs = one.iter().flat_map(|(a, b)| [(a, b), (b, a)]);
        let mut expected: Vec<(PathBuf, PathBuf)> =
            pairs.map(|(a, b)| (PathBuf::from(a), PathBuf::from(b))).collect();
        expected.sort();
        // Of `/data/x` on the first disk nothing shows: another one lies above it.
        assert_eq!(Mounts::parse(text).twice(), expected);
    }

    #[test]
    fn a_file_system_is_told_by_the_mount() {
        let text = "20 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
            22 20 0:40 /@home /data rw - btrfs /dev/sdb rw";
        assert_eq!(device_of(text, 22), Some((0, 40)));
        assert_eq!(device_of(text, 2), None);
        let proc = Proc::open().unwrap();
        let here = std::fs::File::open("/proc").unwrap();
        let device = rustix::fs::fstat(&here).unwrap().st_dev;
        let device = (rustix::fs::major(device), rustix::fs::minor(device));
        assert_eq!(proc.device_of(&here), Ok(device));
    }

    #[test]
    fn what_another_mount_covers_is_none() {
        let pairs = |text: &str| Mounts::parse(text.as_bytes()).twice();
        let both = |a: &str, b: &str| vec![(PathBuf::from(a), b.into()), (b.into(), a.into())];
        // `/a/me` was mounted before `/a`, of which a part is mounted at `/s`.
        let below = "21 20 0:30 / /a/me rw - tmpfs none rw\n\
            22 20 0:31 / /a rw - tmpfs none rw\n\
            23 20 0:31 /me/sub /s rw - tmpfs none rw\n";
        assert_eq!(pairs(below), both("/a/me/sub", "/s"));
        // The same, where something lay on it, and where `/a` is covered whole.
        let on_it = below.to_owned() + "24 21 0:32 / /a/me/sub rw - tmpfs none rw\n";
        assert_eq!(pairs(&on_it), both("/a/me/sub", "/s"));
        let whole = below.to_owned() + "25 22 0:33 / /a rw - tmpfs none rw\n";
        assert_eq!(pairs(&whole), []);
        // On what covers it lies the second place.
        let on_top = whole + "26 25 0:31 /me/sub /a/x rw - tmpfs none rw\n";
        assert_eq!(pairs(&on_top), both("/a/x", "/s"));
    }
}
