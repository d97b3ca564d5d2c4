//! Paths without symbolic links, as realpath(3) finds them, for many paths in a row; and paths by
//! their words alone.
//!
//! Most of the paths that a run starts with lie in few directories. realpath(3) asks the kernel
//! about each component of each path anew. [`RealPaths`] remembers every directory that it has
//! resolved: a further path in it costs one system call.
//!
//! The last component is asked about each time. What lies above it is as old as the value: make one
//! for a few paths in a row, and throw it away when mounts have changed.
#![forbid(unsafe_code)]

use std::{
    cell::RefCell,
    collections::HashMap,
    ffi::{OsStr, OsString},
    fs, io,
    os::unix::ffi::OsStrExt as _,
    path::{Component, Path, PathBuf},
};

/// The kernel's own limit on symbolic links in one path (`MAXSYMLINKS`).
pub const MOST_LINKS: usize = 40;
/// `EINVAL`: what readlink(2) says of a file that is no link.
const NO_LINK: i32 = 22;
/// `ELOOP`.
const TOO_MANY_LINKS: i32 = 40;

/// What was found out so far: for each name in a directory that is resolved, where it leads; or the
/// errno of a name that leads nowhere.
#[derive(Debug, Default)]
pub struct RealPaths(RefCell<HashMap<PathBuf, Result<PathBuf, i32>>>);

impl RealPaths {
    /// Nothing is known yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// `path` without symbolic links, `.` and `..`. A relative one begins in the working directory.
    ///
    /// # Errors
    ///
    /// As realpath(3), if something on the way does not exist or cannot be searched.
    pub fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        self.begin(path, true)
    }

    /// As [`RealPaths::resolve`], for a directory of many files: it is remembered as well.
    ///
    /// # Errors
    ///
    /// As [`RealPaths::resolve`].
    pub fn directory(&self, path: &Path) -> io::Result<PathBuf> {
        self.begin(path, false)
    }

    fn begin(&self, path: &Path, anew: bool) -> io::Result<PathBuf> {
        if path.as_os_str().is_empty() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let begin = if path.is_absolute() { PathBuf::from("/") } else { self.working_directory()? };
        self.walk(begin, path, 0, anew).map_err(io::Error::from_raw_os_error)
    }

    /// `path` without symbolic links as far as it exists; what lies behind stays as it is written.
    /// A link that leads nowhere is where it leads: whoever makes that is found there.
    #[must_use]
    pub fn existing_part(&self, path: &Path) -> PathBuf {
        self.resolve(path).unwrap_or_else(|_| way(path).pop().unwrap_or_default())
    }

    fn working_directory(&self) -> io::Result<PathBuf> {
        // As the kernel tells it, it has no links.
        std::env::current_dir()
    }

    /// `path` from `at` on, which is resolved. The last component is looked up `anew`.
    fn walk(&self, mut at: PathBuf, path: &Path, links: usize, anew: bool) -> Result<PathBuf, i32> {
        let mut components = path.components().peekable();
        while let Some(component) = components.next() {
            match component {
                Component::Normal(name) => {
                    let anew = anew && components.peek().is_none();
                    at = self.entry(&at, name, links, anew)?;
                }
                Component::ParentDir => drop(at.pop()),
                Component::RootDir => at = PathBuf::from("/"),
                Component::CurDir | Component::Prefix(_) => {}
            }
        }
        Ok(at)
    }

    /// Where `name` in `directory` leads, which is resolved.
    fn entry(
        &self,
        directory: &Path,
        name: &OsStr,
        links: usize,
        anew: bool,
    ) -> Result<PathBuf, i32> {
        let path = directory.join(name);
        if !anew && let Some(known) = self.0.borrow().get(&path) {
            return known.clone();
        }
        let found = match fs::read_link(&path) {
            Ok(_) if links == MOST_LINKS => Err(TOO_MANY_LINKS),
            Ok(target) => self.walk(directory.to_owned(), &target, links + 1, anew),
            Err(error) if error.raw_os_error() == Some(NO_LINK) => Ok(path.clone()),
            Err(error) => Err(error.raw_os_error().unwrap_or(NO_LINK)),
        };
        self.0.borrow_mut().insert(path, found.clone());
        found
    }
}

/// What decides where `path` leads: each link on the way; of each directory that it leaves by `..`,
/// `DIRECTORY/..`; and the end, last, which need not be there. What lies above each has no links.
///
/// What the kernel leads by the links of `/proc` nobody can lead elsewhere.
#[must_use]
pub fn way(path: &Path) -> Vec<PathBuf> {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut at = PathBuf::from("/");
    let mut rest = backwards(&path);
    let (mut way, mut links) = (Vec::new(), 0);
    while let Some(name) = rest.pop() {
        let next = at.join(&name);
        if name == ".." {
            if at.pop() {
                way.push(next);
            }
            continue;
        }
        match fs::read_link(&next) {
            Ok(target) if links < MOST_LINKS => {
                links += 1;
                rest.extend(backwards(&target));
                if !next.starts_with("/proc") {
                    way.push(next);
                }
            }
            _ => at = next,
        }
    }
    way.push(at);
    way
}

/// The components of a path, the first one last.
fn backwards(path: &Path) -> Vec<OsString> {
    let names = path.components().filter(|part| *part != Component::CurDir);
    names.rev().map(|part| part.as_os_str().to_owned()).collect()
}

/// `path` without `.`, `..` and doubled slashes, by its words alone.
#[must_use]
pub fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::from("/");
    for part in path.components() {
        match part {
            Component::Normal(name) => out.push(name),
            Component::ParentDir => drop(out.pop()),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    out
}

/// Whether `..` follows a name in `path`: if that is a link, [`normal`] does not say where the path
/// leads.
///
/// # Example
///
/// ```
/// # use std::path::Path;
/// assert!(realpath::climbs(Path::new("a/../b")));
/// assert!(!realpath::climbs(Path::new("../a/b")));
/// ```
#[must_use]
pub fn climbs(path: &Path) -> bool {
    let mut behind = path.components().skip_while(|part| !matches!(part, Component::Normal(_)));
    behind.any(|part| part == Component::ParentDir)
}

/// Bytes as a path.
#[must_use]
pub fn path_from(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn paths_are_those_that_realpath_finds() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        let top = directory.path().canonicalize()?;
        fs::create_dir_all(top.join("a/b"))?;
        fs::write(top.join("a/b/file"), "")?;
        symlink("a/b", top.join("near"))?;
        symlink(top.join("near"), top.join("far"))?;
        symlink("../near/file", top.join("a/up"))?;
        symlink("nothing", top.join("dangling"))?;
        symlink("loop", top.join("loop"))?;
        let paths = RealPaths::new();
        for name in [
            "a",
            "a/b/file",
            "near",
            "near/file",
            "far/file",
            "a/up",
            "far/../b",
            "./a/./b",
            "dangling",
            "dangling/x",
            "loop",
            "none",
            "none/x",
            "a/b/file/x",
            "",
        ] {
            let path = top.join(name);
            let kind = |error: io::Error| error.raw_os_error();
            // Twice: found out, and remembered.
            for _ in 0..2 {
                let want = path.canonicalize().map_err(kind);
                assert_eq!(paths.resolve(&path).map_err(kind), want, "{name}");
            }
        }
        Ok(())
    }

    #[test]
    fn what_does_not_exist_stays_as_it_is_written_behind_links_that_lead_nowhere_too()
    -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        let top = directory.path().canonicalize()?;
        fs::create_dir(top.join("real"))?;
        symlink("real", top.join("link"))?;
        symlink("link/nothing", top.join("dangling"))?;
        symlink("loop", top.join("loop"))?;
        let paths = RealPaths::new();
        for (name, want) in [
            ("link", "real"),
            ("link/none/x", "real/none/x"),
            ("dangling", "real/nothing"),
            ("dangling/x", "real/nothing/x"),
            ("dangling/../x", "real/x"),
            ("none", "none"),
            ("loop", "loop"),
        ] {
            assert_eq!(paths.existing_part(&top.join(name)), top.join(want), "{name}");
        }
        Ok(())
    }

    #[test]
    fn a_way_has_each_link_and_each_directory_that_is_left() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        let top = directory.path().canonicalize()?;
        fs::create_dir_all(top.join("real/in"))?;
        symlink("real", top.join("link"))?;
        symlink("./link/in/../file", top.join("far"))?;
        symlink("loop", top.join("loop"))?;
        for (name, want) in [
            ("real/in", &["real/in"][..]),
            ("link/none/x", &["link", "real/none/x"]),
            ("far", &["far", "link", "real/in/..", "real/file"]),
        ] {
            let want: Vec<PathBuf> = want.iter().map(|name| top.join(name)).collect();
            assert_eq!(way(&top.join(name)), want, "{name}");
        }
        assert_eq!(way(&top.join("loop")).last(), Some(&top.join("loop")));
        assert_eq!(way(Path::new("/../.")), [Path::new("/")]);
        Ok(())
    }

    #[test]
    fn normal_paths_keep_to_the_root() {
        assert_eq!(normal(Path::new("/a/../../b/./c//d")), Path::new("/b/c/d"));
    }
}
