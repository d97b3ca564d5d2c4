//! Labels of files: by rule at first sight, afterwards with the inode.

use avc::Hint;
use flask::{FileKind, FileRule, InitialSid, Sid};
use regex::bytes::{RegexSet, RegexSetBuilder};
use rustix::fs::{AtFlags, FileType, StatxFlags};
use std::{
    collections::HashMap,
    ffi::OsStr,
    os::{fd::BorrowedFd, unix::ffi::OsStrExt},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

/// A labelled object, and where the last answer about it lies.
#[derive(Debug)]
pub(crate) struct Label {
    pub(crate) sid: Sid,
    pub(crate) hint: Hint,
}

impl Label {
    pub(crate) fn new(sid: Sid) -> Arc<Self> {
        Arc::new(Self { sid, hint: Hint::default() })
    }
}

/// A labelling rule does not compile.
#[derive(Debug, thiserror::Error)]
#[error("labelling rule `{path}` is not a regular expression")]
pub struct BadRule {
    path: String,
    #[source]
    source: regex::Error,
}

/// One literal path of a labelling rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tree {
    pub(crate) path: PathBuf,
    /// The rule covers everything below, too.
    pub(crate) deep: bool,
}

/// The literal path that a rule's regular expression stands for: `/a/b` or `/a/b(/.*)?`, with `\` before special
/// characters.
pub(crate) fn literal(regex: &str) -> Option<Tree> {
    let (stem, deep) = match regex.strip_suffix("(/.*)?") {
        Some(stem) => (stem, true),
        None if regex == "/.*" => ("/", true),
        None => (regex, false),
    };
    let mut path = String::new();
    let mut chars = stem.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => path.push(chars.next().filter(|c| !c.is_alphanumeric())?),
            '.' | '*' | '+' | '?' | '(' | ')' | '[' | ']' | '{' | '}' | '|' | '^' | '$' => {
                return None;
            }
            c => path.push(c),
        }
    }
    let path = if path.is_empty() { "/".into() } else { path };
    Some(Tree { path: path.into(), deep })
}

/// The part of a regular expression before its first special character, without the `\` of escaped ones.
fn stem(regex: &str) -> String {
    let mut stem = String::new();
    let mut chars = regex.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(escaped) if !escaped.is_alphanumeric() => stem.push(escaped),
                _ => break,
            },
            '*' | '?' | '{' => {
                // What they repeat is not sure to be there.
                stem.pop();
                break;
            }
            c if ".+()[]}|^$".contains(c) => break,
            c => stem.push(c),
        }
    }
    stem
}

/// The directory that everything which a rule can match lies in or below.
pub(crate) fn stem_dir(regex: &str) -> PathBuf {
    let stem = stem(regex);
    PathBuf::from(&stem[..=stem.rfind('/').unwrap_or(0)])
}

/// The labelling rules, made for looking up paths.
#[derive(Debug)]
pub(crate) struct PathRules {
    /// Rules with a literal path, by that path, in the order of the policy.
    trees: HashMap<PathBuf, Vec<(Tree, FileKind, usize)>>,
    /// The other rules: their stems' lengths, kinds and indices, beside one automaton for all.
    patterns: RegexSet,
    pattern_rules: Vec<(usize, FileKind, usize)>,
    /// The labels by rule.
    sids: Vec<Option<Sid>>,
}

impl PathRules {
    /// Compiles the rules of a policy.
    pub(crate) fn new(rules: &[FileRule]) -> Result<Self, BadRule> {
        let mut trees: HashMap<PathBuf, Vec<_>> = HashMap::new();
        let mut sources = Vec::new();
        let mut pattern_rules = Vec::new();
        for (index, rule) in rules.iter().enumerate() {
            if let Some(tree) = literal(&rule.path) {
                trees.entry(tree.path.clone()).or_default().push((tree, rule.kind, index));
            } else {
                sources.push(anchored(rule)?);
                pattern_rules.push((stem(&rule.path).len(), rule.kind, index));
            }
        }
        let sids = rules.iter().map(|rule| rule.sid).collect();
        // Each source compiled alone, so together they can only be too big.
        let patterns = RegexSetBuilder::new(&sources)
            .unicode(false)
            .build()
            .map_err(|source| BadRule { path: "all rules together".into(), source })?;
        Ok(Self { trees, patterns, pattern_rules, sids })
    }

    /// The label of a path at first sight.
    pub(crate) fn sid(&self, path: &Path, kind: FileKind) -> Sid {
        let labelled = self.rule(path, kind).and_then(|index| self.sids[index]);
        labelled.unwrap_or_else(|| InitialSid::File.into())
    }

    /// The rule for a path, by its index: that with the longest literal stem, and of those the last.
    pub(crate) fn rule(&self, path: &Path, kind: FileKind) -> Option<usize> {
        let fits = |rule: FileKind| rule == FileKind::Any || kind == FileKind::Any || rule == kind;
        let tree = path.ancestors().find_map(|ancestor| {
            let rules = self.trees.get(ancestor)?.iter().rev();
            let applies = |tree: &Tree| tree.deep || ancestor == path;
            let mut rules = rules.filter(|(tree, rule, _)| applies(tree) && fits(*rule));
            rules.next().map(|(_, _, index)| (ancestor.as_os_str().len(), *index))
        });
        let matching = self.patterns.matches(path.as_os_str().as_bytes()).into_iter();
        let pattern = matching
            .map(|index| self.pattern_rules[index])
            .filter(|(_, rule, _)| fits(*rule))
            .map(|(stem, _, index)| (stem, index))
            .max();
        tree.max(pattern).map(|(_, index)| index)
    }
}

fn anchored(rule: &FileRule) -> Result<String, BadRule> {
    let source = format!("^(?:{})$", rule.path);
    match regex::bytes::RegexBuilder::new(&source).unicode(false).build() {
        Ok(_) => Ok(source),
        Err(source) => Err(BadRule { path: rule.path.clone(), source }),
    }
}

/// An inode for as long as it lives: its number is used again, its birth time is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Inode {
    device: (u32, u32),
    number: u64,
    birth: (i64, u32),
}

/// What the kernel says of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Status {
    pub(crate) kind: FileType,
    pub(crate) device: (u32, u32),
    pub(crate) number: u64,
    birth: Option<(i64, u32)>,
}

impl Status {
    /// Asks about the file behind `fd`, which may be an `O_PATH` descriptor.
    pub(crate) fn of(fd: BorrowedFd<'_>) -> rustix::io::Result<Self> {
        let mask = StatxFlags::TYPE | StatxFlags::INO | StatxFlags::BTIME;
        let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
        let statx = rustix::fs::statx(fd, c"", flags, mask)?;
        let born = statx.stx_mask & StatxFlags::BTIME.bits() != 0;
        Ok(Self {
            kind: FileType::from_raw_mode(statx.stx_mode.into()),
            device: (statx.stx_dev_major, statx.stx_dev_minor),
            number: statx.stx_ino,
            birth: born.then_some((statx.stx_btime.tv_sec, statx.stx_btime.tv_nsec)),
        })
    }

    fn inode(&self) -> Option<Inode> {
        self.birth.map(|birth| Inode { device: self.device, number: self.number, birth })
    }
}

/// The label of every file seen. Bounded: beyond [`Labels::MOST`] inodes it starts anew from the rules.
#[derive(Debug)]
pub(crate) struct Labels {
    rules: PathRules,
    seen: Mutex<HashMap<Inode, Arc<Label>>>,
}

impl Labels {
    /// About 8 MiB of labels.
    const MOST: usize = 100_000;

    pub(crate) fn new(rules: PathRules) -> Self {
        Self { rules, seen: Mutex::default() }
    }

    /// The label of a file: its inode's, or at first sight that of its path, which `path` finds out.
    pub(crate) fn of_file(
        &self,
        status: &Status,
        path: impl FnOnce() -> rustix::io::Result<PathBuf>,
    ) -> rustix::io::Result<Arc<Label>> {
        let inode = status.inode();
        if let Some(label) = inode.and_then(|inode| self.lock().get(&inode).cloned()) {
            return Ok(label);
        }
        let label = Label::new(self.of_path(&path()?, file_kind(status.kind)));
        if let Some(inode) = inode {
            self.insert(inode, &label);
        }
        Ok(label)
    }

    /// The label that a file at `path` would have at first sight.
    pub(crate) fn of_path(&self, path: &Path, kind: FileKind) -> Sid {
        self.rules.sid(path, kind)
    }

    /// Gives a file that the sandbox has just created the label that the security server computed for it.
    pub(crate) fn created(&self, status: &Status, sid: Sid) {
        if let Some(inode) = status.inode() {
            self.insert(inode, &Label::new(sid));
        }
    }

    fn insert(&self, inode: Inode, label: &Arc<Label>) {
        let mut seen = self.lock();
        if seen.len() >= Self::MOST {
            seen.clear();
        }
        seen.insert(inode, Arc::clone(label));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Inode, Arc<Label>>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The kind of file as labelling rules name it.
pub(crate) fn file_kind(kind: FileType) -> FileKind {
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

/// `path` without `.`, `..` and doubled slashes, by its words alone.
pub(crate) fn normal(path: &Path) -> PathBuf {
    use std::path::Component;
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

/// Bytes as a path.
pub(crate) fn path_from(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sid(number: u32) -> Sid {
        Sid::new(number).unwrap()
    }

    fn rules(rules: &[(&str, FileKind, u32)]) -> PathRules {
        let rules: Vec<FileRule> = rules
            .iter()
            .map(|(path, kind, number)| FileRule {
                path: (*path).into(),
                kind: *kind,
                sid: Sid::new(*number),
            })
            .collect();
        PathRules::new(&rules).unwrap()
    }

    #[test]
    fn the_longest_stem_wins_then_the_later_rule() {
        use FileKind::Any;
        let rules = rules(&[
            ("/.*", Any, 101),
            ("/usr(/.*)?", Any, 102),
            (r"/usr/lib/[^/]*\.so", Any, 103),
            ("/usr/lib(/.*)?", Any, 104),
            ("/srv", Any, 105),
            ("/home/u/[^/]*", Any, 106),
            ("/home/u/[^/]*_history", Any, 107),
            ("/dev/null", FileKind::Char, 108),
            (r"/w/\.conf(/.*)?", Any, 109),
            (r"/w/\.conf/secret[^/]*(/.*)?", Any, 110),
        ]);
        for (path, want) in [
            ("/", 101),
            ("/etc/passwd", 101),
            ("/usr", 102),
            ("/usr/bin/ls", 102),
            ("/usrx", 101),
            ("/usr/lib/libc.so", 103),
            ("/usr/lib/x/libc.so", 104),
            ("/srv", 105),
            ("/srv/x", 101),
            ("/home/u/.profile", 106),
            ("/home/u/.sh_history", 107),
            ("/w/.conf/x", 109),
            ("/w/.conf/secret1/k", 110),
        ] {
            assert_eq!(rules.sid(Path::new(path), FileKind::File), sid(want), "{path}");
        }
        assert_eq!(rules.sid(Path::new("/dev/null"), FileKind::Char), sid(108));
        assert_eq!(rules.sid(Path::new("/dev/null"), FileKind::File), sid(101));
    }

    #[test]
    fn without_a_rule_a_file_has_the_initial_label() {
        let rules = rules(&[("/usr(/.*)?", FileKind::Any, 102)]);
        assert_eq!(rules.sid(Path::new("/etc"), FileKind::Dir), InitialSid::File.into());
    }

    #[test]
    fn literal_rules_are_told_from_patterns() {
        let tree = |path: &str, deep| Some(Tree { path: path.into(), deep });
        assert_eq!(literal(r"/a\.b(/.*)?"), tree("/a.b", true));
        assert_eq!(literal("/a"), tree("/a", false));
        assert_eq!(literal("(/.*)?"), tree("/", true));
        assert_eq!(literal("/.*"), tree("/", true));
        assert_eq!(literal("/a/.*"), None);
        assert_eq!(literal(r"/a\d"), None);
        assert_eq!(stem_dir(r"/home/u/[^/]*_history"), Path::new("/home/u/"));
        assert_eq!(stem_dir(r"/home/u/x*"), Path::new("/home/u/"));
        assert_eq!(stem_dir(r"/home/\.u/x[ab]"), Path::new("/home/.u/"));
    }

    #[test]
    fn normal_paths_keep_to_the_root() {
        assert_eq!(normal(Path::new("/a/../../b/./c//d")), Path::new("/b/c/d"));
    }

    #[test]
    fn a_renamed_file_keeps_its_label() {
        let labels = Labels::new(rules(&[]));
        let file = tempfile::NamedTempFile::new().unwrap();
        let status = Status::of(std::os::fd::AsFd::as_fd(file.as_file())).unwrap();
        labels.created(&status, sid(109));
        let unused = || -> rustix::io::Result<PathBuf> { panic!("the inode is known") };
        assert_eq!(labels.of_file(&status, unused).unwrap().sid, sid(109));
    }
}
