//! What a directory holds, as lines that can be compared.

use rustix::fs::FileType;
use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    os::unix::{ffi::OsStrExt as _, fs::MetadataExt as _},
    path::{Path, PathBuf},
    time::SystemTime,
};

/// Younger files were written by the run, and have its time; older ones were given theirs.
const RECENT_S: i64 = 24 * 3600;

/// Each path below a directory with what is to be the same.
pub(crate) type Tree = BTreeMap<PathBuf, String>;

/// Looks at everything below `top`. Of files for which `names_only` holds, only name and kind
/// count.
pub(crate) fn tree(top: &Path, names_only: &dyn Fn(&Path) -> bool) -> Tree {
    let mut tree = Tree::new();
    let mut todo = vec![top.to_owned()];
    while let Some(path) = todo.pop() {
        let metadata = std::fs::symlink_metadata(&path).expect("look at a file");
        if metadata.is_dir() {
            let entries = std::fs::read_dir(&path).expect("read a directory");
            todo.extend(entries.map(|entry| entry.expect("an entry").path()));
        }
        let name = path.strip_prefix(top).expect("a path below").to_owned();
        let line = if names_only(&name) { kind(&metadata) } else { describe(&path, &metadata) };
        tree.insert(name, line);
    }
    tree
}

fn kind(metadata: &std::fs::Metadata) -> String {
    format!("{:?}", FileType::from_raw_mode(metadata.mode()))
}

fn describe(path: &Path, metadata: &std::fs::Metadata) -> String {
    let mut line = format!(
        "{} {:o} {}:{}",
        kind(metadata),
        metadata.mode() & 0o7777,
        metadata.uid(),
        metadata.gid(),
    );
    if !metadata.is_dir() {
        line += &format!(" links={}", metadata.nlink());
    }
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a clock").as_secs();
    if metadata.mtime() < now as i64 - RECENT_S {
        line += &format!(" mtime={}.{:09}", metadata.mtime(), metadata.mtime_nsec());
    }
    if metadata.is_symlink() {
        line += &format!(" -> {:?}", std::fs::read_link(path).expect("read a link"));
    } else if metadata.is_file() {
        line += &content(path);
    }
    line + &attributes(path)
}

fn content(path: &Path) -> String {
    // Who is not root cannot read what a program made unreadable; its length is known.
    let Ok(bytes) = std::fs::read(path) else { return " unreadable".into() };
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    format!(" {} bytes #{:016x}", bytes.len(), hasher.finish())
}

/// Extended attributes that a user can set.
fn attributes(path: &Path) -> String {
    let mut names = vec![0; 4096];
    let Ok(length) = rustix::fs::llistxattr(path, &mut names[..]) else { return String::new() };
    let names = names[..length].split(|byte| *byte == 0).filter(|name| name.starts_with(b"user."));
    let value = |name: &[u8]| {
        let mut value = vec![0; 4096];
        let length = rustix::fs::lgetxattr(path, std::ffi::OsStr::from_bytes(name), &mut value[..]);
        format!(" {}={:?}", name.escape_ascii(), length.map(|length| value[..length].to_vec()))
    };
    names.map(value).collect()
}
