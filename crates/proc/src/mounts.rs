//! Which mounts are somebody else's: to look at a name in them may wait for a server, and tells it.

use std::{
    ffi::OsString,
    os::unix::ffi::OsStringExt as _,
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
    /// Where each lies, with whether it is distant: of several at one place, the last.
    all: Vec<(PathBuf, bool)>,
}

impl Mounts {
    /// As `/proc/PID/mountinfo` tells them.
    #[must_use]
    pub fn parse(text: &[u8]) -> Self {
        let mut all: Vec<(PathBuf, bool)> = Vec::new();
        for line in text.split(|byte| *byte == b'\n') {
            let mut words = line.split(|byte| *byte == b' ');
            let Some(place) = words.nth(4) else { continue };
            let Some(kind) = words.skip_while(|word| *word != b"-").nth(1) else { continue };
            let place = PathBuf::from(unescaped(place));
            all.retain(|(known, _)| *known != place);
            all.push((place, is_distant(kind)));
        }
        Self { all }
    }

    /// Those of this process; none if they cannot be read.
    #[must_use]
    pub fn own() -> Self {
        Self::parse(&std::fs::read("/proc/self/mountinfo").unwrap_or_default())
    }

    /// Counts the mount that holds `path` as this machine's: who works there waits for it anyway.
    pub fn trust(&mut self, path: &Path) {
        if let Some(at) = self.innermost(path) {
            self.all[at].1 = false;
        }
    }

    /// Whether there are distant ones at all.
    #[must_use]
    pub fn has_distant(&self) -> bool {
        self.all.iter().any(|(_, is_distant)| *is_distant)
    }

    /// Whether `path`, without links, lies on a distant one.
    #[must_use]
    pub fn is_distant(&self, path: &Path) -> bool {
        self.innermost(path).is_some_and(|at| self.all[at].1)
    }

    fn innermost(&self, path: &Path) -> Option<usize> {
        let holding = self.all.iter().enumerate().filter(|(_, (place, _))| path.starts_with(place));
        holding.max_by_key(|(_, (place, _))| place.components().count()).map(|(at, _)| at)
    }
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
}
