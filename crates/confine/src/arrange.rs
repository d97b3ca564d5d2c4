//! What the view must leave out so that the kernel alone keeps it away: hidden and denied places.

use crate::{
    launch::View,
    plan::{Plan, Rights, Subtree},
};
use flask::FileKind;
use labelling::PathRules;
use landlock::{AccessFs, BitFlags};
use proc::Proc;
use rustix::fs::{Access, FileType};
use std::{
    collections::{BTreeSet, HashSet},
    fs::Metadata,
    io::ErrorKind,
    os::unix::fs::{FileTypeExt as _, MetadataExt},
    path::{Path, PathBuf},
};

/// Trees that the kernel makes; their top is never left out.
const KERNEL_TREES: [&str; 3] = ["/proc", "/sys", "/dev"];
/// Directories that a run with a view of its own has for itself: private temporary directories
/// replace them.
pub const PRIVATE: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];
/// Where the kernel has pseudoterminals.
pub(crate) const TERMINALS: &str = "/dev/pts";
/// Files that are looked at to find those that a denied pattern names.
const MOST_FILES: usize = 20_000;

/// Which files the kernel keeps away by itself, and what still has to be decided.
#[derive(Debug, Default)]
pub(crate) struct Arrangement {
    pub(crate) view: View,
    /// Something hidden can be looked at unless that is decided.
    pub(crate) looks: bool,
    /// Rules whose files are all covered.
    covered: HashSet<usize>,
    /// The view's `keep`, for looking up.
    keep: HashSet<PathBuf>,
    /// Directories of the view's `keep` with something hidden in them.
    opened: Vec<PathBuf>,
    /// Where somebody may connect to sockets.
    sockets: Vec<PathBuf>,
    /// Not even the existence of what is hidden may show.
    strict: bool,
}

impl Arrangement {
    /// For a sandbox with a mount namespace. If it `grows`, what no list grants stays in its view.
    pub(crate) fn with_mounts(
        plan: &Plan,
        rules: &PathRules,
        shown: &[PathBuf],
        (private_tmp, strict, grows): (bool, bool, bool),
    ) -> Self {
        let tops = absent(plan);
        let mut keep = keep(plan);
        // What may be granted later has to be there: then only what is hidden itself is covered.
        let (absent, opened) = if grows {
            (Vec::new(), tops)
        } else {
            let mut opened = opened(plan, &tops);
            opened.extend(listings(plan, &tops).filter(|path| hides_in(plan, path)));
            keep.extend(listings(plan, &tops));
            keep.extend(keep_patterns(plan, rules, &tops));
            keep.extend(opened.iter().cloned());
            keep.extend_from_slice(shown);
            (tops, opened)
        };
        let mut this = Self {
            keep: keep.iter().cloned().collect(),
            opened,
            strict,
            sockets: plan.sockets.clone(),
            view: View { private_tmp, ways: ways(plan, &absent), absent, keep, ..View::default() },
            ..Self::default()
        };
        for place in &plan.places {
            this.cover(place, place.around, &|place| Some(vec![place.tree.path.clone()]));
        }
        for pattern in &plan.patterns {
            let around =
                plan.innermost(&pattern.tree.path).map_or(Rights::empty(), |place| place.any);
            this.cover(pattern, around, &|pattern| matches(rules, pattern));
        }
        if plan.grants_in(Path::new(TERMINALS)) {
            this.view.denied.extend(other_terminals());
        }
        this
    }

    /// For a sandbox that sees the file system as it is. If not `strict`, what is hidden shows that
    /// it exists, and its attributes, as what no list grants does: to keep that back, each look at
    /// a file has to be decided.
    pub(crate) fn without_mounts(plan: &Plan, strict: bool) -> Self {
        let hidden = plan.places.iter().chain(&plan.patterns).any(|place| place.hidden);
        Self { looks: strict && hidden, ..Self::default() }
    }

    /// The rights to a place that the kernel refuses whatever the envelope says, as long as the run
    /// lasts: it is left out, or its permissions keep the user away.
    pub(crate) fn shielded_for_good(&self, place: &Subtree) -> Rights {
        let path = &place.tree.path;
        let keeps_away = || match std::fs::symlink_metadata(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => false,
            found => is_kept_away(path, found.as_ref().ok()),
        };
        let is_shielded = self.leaves_out(path)
            || !place.is_pattern && (place.kind == FileKind::Symlink || keeps_away());
        if is_shielded { Rights::all() } else { Rights::empty() }
    }

    /// The same as things are when the run starts: also what is covered, or is not there, until
    /// somebody outside replaces or makes it.
    pub(crate) fn shielded(&self, place: &Subtree) -> Rights {
        let path = &place.tree.path;
        if self.leaves_out(path) {
            return Rights::all();
        }
        // Nothing can be read or overwritten where nothing is, but it can be made.
        let but_making = !BitFlags::from(AccessFs::MakeReg);
        let is_covered = self.covered.contains(&place.rule);
        match std::fs::symlink_metadata(path) {
            _ if place.is_pattern && is_covered => but_making,
            // It is what the link leads to that is opened, and the link is nobody's to replace.
            _ if place.kind == FileKind::Symlink => Rights::all(),
            _ if place.kind == FileKind::File && place.only.as_deref().is_some_and(no_file) => {
                but_making
            }
            _ if place.is_pattern => Rights::empty(),
            Err(error) if error.kind() == ErrorKind::NotFound => but_making,
            found if is_covered || is_kept_away(path, found.as_ref().ok()) => Rights::all(),
            _ => Rights::empty(),
        }
    }

    /// Whether a path lies in what the view leaves out, and in nothing that it puts back there.
    fn leaves_out(&self, path: &Path) -> bool {
        let is_absent = self.view.absent.iter().any(|top| path.starts_with(top));
        is_absent && !path.ancestors().any(|above| self.keep.contains(above))
    }

    /// Covers a place that is refused in the middle of what is granted.
    fn cover(
        &mut self,
        place: &Subtree,
        around: Rights,
        files: &dyn Fn(&Subtree) -> Option<Vec<PathBuf>>,
    ) {
        if self.leaves_out(&place.tree.path) {
            return;
        }
        let content = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::ReadDir;
        let is_granted_around = around.intersects(content);
        let path = &place.tree.path;
        let is_opened = place.hidden && self.opened.iter().any(|top| path.starts_with(top));
        // What does not exist says so by itself.
        self.looks |= place.hidden
            && (is_granted_around || self.strict || !is_opened)
            && files(place).is_none_or(|files| files.iter().any(|file| exists(file)));
        if place.any.intersects(content) || !(is_granted_around || is_opened) {
            return;
        }
        // The files of processes come and go. To be connected to, a socket has to be there.
        let is_connected = !place.hidden && self.sockets.iter().any(|it| it.starts_with(path));
        if place.is_pattern && path.starts_with("/proc") || is_connected {
            return;
        }
        if let Some(files) = files(place) {
            // The view is built over the machine's own /proc, and the sandbox gets another.
            let hides = place.hidden && !path.starts_with("/proc");
            let covers = if hides { &mut self.view.hollow } else { &mut self.view.denied };
            covers.extend(files);
            self.covered.insert(place.rule);
        }
    }
}

/// The kind of file as labelling rules name it.
#[must_use]
pub fn file_kind(kind: FileType) -> FileKind {
    match kind {
        FileType::RegularFile => FileKind::File,
        FileType::Directory => FileKind::Dir,
        FileType::CharacterDevice => FileKind::Char,
        FileType::BlockDevice => FileKind::Block,
        FileType::Fifo => FileKind::Pipe,
        FileType::Socket => FileKind::Socket,
        FileType::Symlink => FileKind::Symlink,
        FileType::Unknown => FileKind::Any,
    }
}

/// The path of this process's controlling terminal.
fn own_terminal() -> Option<PathBuf> {
    Proc::open().and_then(|proc| proc.stat(std::process::id())).ok()?.terminal_path()
}

/// The terminals that are open now, but for those that the command gets: who reads another one gets
/// what is typed there.
fn other_terminals() -> Vec<PathBuf> {
    let own: Vec<PathBuf> = ["/proc/self/fd/0", "/proc/self/fd/1", "/proc/self/fd/2"]
        .iter()
        .filter_map(|stream| std::fs::read_link(stream).ok())
        .chain(own_terminal())
        .collect();
    let Ok(entries) = std::fs::read_dir(TERMINALS) else { return Vec::new() };
    let is_number = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.as_encoded_bytes().iter().all(u8::is_ascii_digit))
    };
    let paths = entries.flatten().map(|entry| entry.path());
    paths.filter(|path| is_number(path) && !own.contains(path)).collect()
}

fn no_file(path: &Path) -> bool {
    std::fs::symlink_metadata(path).map_or(true, |found| !found.is_file())
}

fn exists(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok()
}

/// Directories whose content is left out: the outermost ones around something hidden in which
/// nothing is granted but what lies deeper.
fn absent(plan: &Plan) -> Vec<PathBuf> {
    let mut tops = BTreeSet::new();
    for place in plan.places.iter().chain(&plan.patterns).filter(|place| place.hidden) {
        let path = &place.tree.path;
        let Some(top) = path.ancestors().filter(|path| path.parent().is_some()).last() else {
            continue;
        };
        let granted = |path: &Path| plan.innermost(path).is_some_and(|place| !place.any.is_empty());
        let around = path.ancestors().skip(usize::from(!place.is_pattern));
        let ungranted = around.filter(|path| path.parent().is_some()).all(|path| !granted(path));
        if ungranted && !KERNEL_TREES.iter().any(|tree| top == Path::new(tree)) {
            tops.insert(top.to_owned());
        }
    }
    tops.into_iter().collect()
}

/// What stays where its parent directory is left out.
fn keep(plan: &Plan) -> Vec<PathBuf> {
    let granted = plan.places.iter().filter(|place| !place.any.is_empty());
    let granted = granted.map(|place| place.tree.path.clone());
    // To be connected to, it has to be there.
    let is_socket = |path: &&PathBuf| {
        std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket())
    };
    let paths = granted.chain(plan.sockets.iter().filter(is_socket).cloned());
    paths.filter(|path| !PRIVATE.iter().any(|private| path == Path::new(private))).collect()
}

/// Directories on the way to what a rule names, where all around is left out: whether they are
/// there is no secret, and programs make them anew (`mkdir -p`) before they use what lies in them.
fn ways(plan: &Plan, absent: &[PathBuf]) -> Vec<PathBuf> {
    let places = plan.places.iter().chain(&plan.patterns);
    let above = places.flat_map(|place| place.tree.path.ancestors().skip(1));
    let inside = |path: &&Path| absent.iter().any(|top| path.starts_with(top) && *path != top);
    let ways: BTreeSet<&Path> = above.filter(inside).collect();
    let is_shown = |path: &Path| plan.innermost(path).is_none_or(|place| !place.hidden);
    let is_directory = |path: &Path| path.symlink_metadata().is_ok_and(|found| found.is_dir());
    ways.into_iter()
        .filter(|path| is_shown(path) && is_directory(path))
        .map(Path::to_owned)
        .collect()
}

/// Whether some place or pattern hides something in a directory.
fn hides_in(plan: &Plan, directory: &Path) -> bool {
    let mut all = plan.places.iter().chain(&plan.patterns).filter(|place| place.hidden);
    all.any(|hidden| hidden.tree.path.starts_with(directory))
}

/// Granted patterns whose files lie in what is left out.
fn left_out<'a>(plan: &'a Plan, absent: &'a [PathBuf]) -> impl Iterator<Item = &'a Subtree> {
    let granted = plan.patterns.iter().filter(|pattern| !pattern.any.is_empty());
    granted.filter(move |pattern| {
        let path = &pattern.tree.path;
        absent.iter().any(|top| path.starts_with(top))
            && plan.innermost(path).is_none_or(|place| place.any.is_empty())
    })
}

/// Directories that stay, though something is hidden in them, as a pattern lets files be made
/// there: what is hidden is covered instead.
fn opened(plan: &Plan, absent: &[PathBuf]) -> Vec<PathBuf> {
    let makes = |pattern: &&Subtree| pattern.any.contains(AccessFs::MakeReg);
    let directories = left_out(plan, absent).filter(makes).map(|pattern| &pattern.tree.path);
    directories.filter(|path| hides_in(plan, path)).cloned().collect()
}

/// Directories that can be listed, inside of what is left out. What is left out itself shows what
/// is granted in it.
fn listings<'a>(plan: &'a Plan, absent: &'a [PathBuf]) -> impl Iterator<Item = PathBuf> + 'a {
    let inside = |path: &&PathBuf| absent.iter().any(|top| path.starts_with(top) && path != &top);
    plan.listings.iter().filter(inside).cloned()
}

/// What stays for the sake of granted patterns where their parent directories are left out: the
/// directory that a pattern's files lie in, so that they can be made there, too; or the files that
/// exist, where something is hidden in it.
fn keep_patterns(plan: &Plan, rules: &PathRules, absent: &[PathBuf]) -> Vec<PathBuf> {
    let kept = left_out(plan, absent).flat_map(|pattern| match &pattern.only {
        Some(path) => vec![path.clone()],
        None if hides_in(plan, &pattern.tree.path) => matches(rules, pattern).unwrap_or_default(),
        None => vec![pattern.tree.path.clone()],
    });
    kept.collect()
}

/// The existing files that a pattern names; `None` when there were too many to look at.
fn matches(rules: &PathRules, pattern: &Subtree) -> Option<Vec<PathBuf>> {
    let mut todo = vec![(pattern.tree.path.clone(), 1)];
    let mut found = Vec::new();
    let mut looked_at = 0;
    while let Some((directory, depth)) = todo.pop() {
        // What cannot be listed cannot be opened by the sandbox either: it has no more rights than
        // this process.
        let Ok(entries) = std::fs::read_dir(&directory) else { continue };
        for entry in entries.flatten() {
            looked_at += 1;
            if looked_at > MOST_FILES {
                return None;
            }
            let Ok(kind) = entry.file_type() else { continue };
            let kind = FileType::from_raw_mode(kind_mode(kind));
            if rules.rule(&entry.path(), file_kind(kind)) == Some(pattern.rule) {
                found.push(entry.path());
            } else if kind == FileType::Directory && pattern.depth.is_none_or(|most| depth < most) {
                todo.push((entry.path(), depth + 1));
            }
        }
    }
    Some(found)
}

fn kind_mode(kind: std::fs::FileType) -> u32 {
    let table = [
        (kind.is_dir(), libc::S_IFDIR),
        (kind.is_symlink(), libc::S_IFLNK),
        (kind.is_char_device(), libc::S_IFCHR),
        (kind.is_block_device(), libc::S_IFBLK),
        (kind.is_fifo(), libc::S_IFIFO),
        (kind.is_socket(), libc::S_IFSOCK),
    ];
    table.into_iter().find(|(is, _)| *is).map_or(libc::S_IFREG, |(_, mode)| mode)
}

/// Whether the permissions of what is at `path`, or of a directory on the way, let the user do
/// nothing with it, and are not the user's to change. Without `found`, it could not be looked at.
fn is_kept_away(path: &Path, found: Option<&Metadata>) -> bool {
    let user = rustix::process::geteuid();
    // Root without its capabilities can still open what it owns; whether it will is not for this
    // process to try.
    if user.is_root() {
        return false;
    }
    let is_others = |metadata: &Metadata| metadata.uid() != user.as_raw();
    let Some(found) = found else {
        // The nearest that can be looked at is the one that lets nobody through.
        let above =
            path.ancestors().skip(1).find_map(|above| std::fs::symlink_metadata(above).ok());
        return above.is_some_and(|above| is_others(&above));
    };
    let may = |what| rustix::fs::access(path, what).is_ok();
    let nothing =
        [Access::READ_OK, Access::WRITE_OK, Access::EXEC_OK].into_iter().all(|what| !may(what));
    !found.is_symlink() && is_others(found) && nothing
}
