//! Moving a file of the very kind that was decided. Between decision and move, another file can
//! have come to the name, and rules tell kinds apart: a directory brings along what nobody has
//! looked at.

use super::confined::confined;
use landlock::{AccessFs, BitFlags};
use rustix::{
    fs::{FileType, Mode, OFlags},
    io::Result,
};

/// What gives a file of a kind a name.
const KINDS: [(FileType, AccessFs); 7] = [
    (FileType::RegularFile, AccessFs::MakeReg),
    (FileType::Directory, AccessFs::MakeDir),
    (FileType::Symlink, AccessFs::MakeSym),
    (FileType::Fifo, AccessFs::MakeFifo),
    (FileType::Socket, AccessFs::MakeSock),
    (FileType::CharacterDevice, AccessFs::MakeChar),
    (FileType::BlockDevice, AccessFs::MakeBlock),
];

/// Makes a move, in a thread that Landlock lets move files of no other `kinds`.
///
/// # Errors
///
/// `ACCESS` or `XDEV` if another kind has come to the name; else as of `make`.
pub(super) fn move_only(
    kinds: &[FileType],
    make: impl FnOnce() -> Result<()> + Send,
) -> Result<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::open("/", flags, Mode::empty())?;
    let access = |of: &dyn Fn(FileType) -> bool| -> BitFlags<AccessFs> {
        let all = KINDS.into_iter().filter(|(kind, _)| of(*kind));
        all.fold(AccessFs::Refer.into(), |all, (_, access)| all | access)
    };
    confined(access(&|_| true), (&root, access(&|kind| kinds.contains(&kind))), make)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::symlink};

    #[test]
    fn what_is_moved_is_of_a_kind_that_was_named() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        for directory in ["from", "to", "from/directory", "from/directory/in"] {
            fs::create_dir(at(directory)).unwrap();
        }
        fs::write(at("from/file"), "").unwrap();
        symlink("x", at("from/link")).unwrap();
        let file = [FileType::RegularFile];
        for (name, kinds, moves) in [
            ("link", &file[..], false),
            ("directory", &file, false),
            ("file", &[FileType::Symlink, FileType::Directory], false),
            ("file", &file, true),
            ("link", &[FileType::Symlink], true),
            ("directory", &[FileType::Directory], true),
        ] {
            for to in ["to", "from/directory", "from"] {
                if to.ends_with(name) {
                    continue;
                }
                let (from, to) = (at("from").join(name), at(to).join("x"));
                let moved = move_only(kinds, || rustix::fs::rename(&from, &to));
                assert_eq!(moved.is_ok(), moves, "{name} {to:?} {moved:?}");
                if moves {
                    fs::rename(to, from).unwrap();
                }
            }
        }
    }
}
