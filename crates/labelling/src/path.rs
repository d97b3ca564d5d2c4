//! Labels of paths.

use crate::expression::{BadRule, anchored};
use crate::names::{NameRule, Names};
use crate::scope::Scope;
use crate::stem::{Tree, literal, stem, stem_dir, top};
use flask::{FileKind, FileRule, InitialSid, Sid};
use regex::bytes::{RegexSet, RegexSetBuilder};
use std::{
    collections::HashMap,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

/// How many levels below [`stem_dir`] the outermost files lie that a rule matches, if they all lie
/// on one.
pub fn depth(regex: &str) -> Option<usize> {
    let outermost = regex.strip_suffix("(/.*)?").unwrap_or(regex);
    let (mut slashes, mut in_set) = (0_usize, false);
    let mut chars = outermost.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => drop(chars.next()),
            '[' => in_set = true,
            ']' => in_set = false,
            // It may stand for slashes as well, or for parts that there need not be.
            '.' | '(' | '|' if !in_set => return None,
            '/' if !in_set => slashes += 1,
            _ => {}
        }
    }
    slashes.checked_sub(stem_dir(regex).components().count() - 1)
}

/// The labelling rules, made for looking up paths.
#[derive(Debug)]
pub struct PathRules {
    /// Rules with a literal path, by that path, in the order of the policy.
    trees: HashMap<PathBuf, Vec<(Tree, FileKind, usize)>>,
    /// The other rules: their stems' lengths, kinds and indices, beside one automaton for all.
    patterns: RegexSet,
    pattern_rules: Vec<(usize, FileKind, usize)>,
    scopes: Vec<Scope>,
    /// What refines a rule by names, by the index of the rule that it refines.
    refined: HashMap<usize, Vec<Refinement>>,
    /// The labels by rule.
    sids: Vec<Option<Sid>>,
}

/// The beginnings of names that a path ends in: a name, and how many of its components.
type Begun = Vec<(usize, usize)>;

/// A [`NameRule`] of a policy.
#[derive(Debug)]
struct Refinement {
    names: Names,
    outer: Option<Names>,
    kind: FileKind,
    deep: bool,
    /// Names count below here.
    top: PathBuf,
    rule: usize,
}

impl PathRules {
    /// Compiles the rules of a policy.
    pub fn new(rules: &[FileRule]) -> Result<Self, BadRule> {
        let mut trees: HashMap<PathBuf, Vec<_>> = HashMap::new();
        let mut sources = Vec::new();
        let mut pattern_rules = Vec::new();
        let mut refined: HashMap<usize, Vec<Refinement>> = HashMap::new();
        let bases = by_regex(rules);
        let is_plain =
            |rule: &&FileRule| literal(&rule.path).is_none() && !NameRule::is_one(&rule.path);
        for (index, rule) in rules.iter().enumerate() {
            if let Some(refinement) = NameRule::parse(&rule.path) {
                if let Some(base) = bases.get(refinement.base) {
                    let top = top(refinement.top.unwrap_or(refinement.base));
                    let NameRule { names, outer, deep, .. } = refinement;
                    let kind = rule.kind;
                    let one = Refinement { names, outer, kind, deep, top, rule: index };
                    refined.entry(*base).or_default().push(one);
                }
            } else if let Some(tree) = literal(&rule.path) {
                trees.entry(tree.path.clone()).or_default().push((tree, rule.kind, index));
            } else {
                sources.push(anchored(rule)?);
                pattern_rules.push((stem(&rule.path).len(), rule.kind, index));
            }
        }
        let sids = rules.iter().map(|rule| rule.sid).collect();
        // Each source is one alone, so together they can only be too big. A name may hold anything
        // but `/`, so a dot stands for anything, as it does for libselinux (`PCRE2_DOTALL`).
        let patterns = RegexSetBuilder::new(&sources)
            .unicode(false)
            .dot_matches_new_line(true)
            .build()
            .map_err(|source| BadRule { path: "all rules together".into(), source })?;
        let scopes = rules.iter().filter(is_plain).map(|rule| Scope::of(&rule.path)).collect();
        Ok(Self { trees, patterns, pattern_rules, scopes, refined, sids })
    }

    /// The label that the rules give a path.
    pub fn sid(&self, path: &Path, kind: FileKind) -> Sid {
        self.sid_by_names(path, path, kind)
    }

    /// The label that the rules give a path whose file a program outside knows as `named`: names
    /// count in both, and all other rules are about `path` alone.
    pub fn sid_by_names(&self, path: &Path, named: &Path, kind: FileKind) -> Sid {
        let labelled = self.rule_by_names(path, named, kind).and_then(|index| self.sids[index]);
        labelled.unwrap_or_else(|| InitialSid::File.into())
    }

    /// Whether every path below `from` has the same rule below `to`, so that a directory can move
    /// without what is in it falling under another rule before it has been seen. Says no when in
    /// doubt.
    pub fn agree(&self, from: &Path, to: &Path) -> bool {
        let inside = |dir: &Path| {
            self.tree(&dir.join("_"), FileKind::Any).map(|(_, index)| self.sids[index])
        };
        let below = |dir: &Path| self.trees.keys().any(|path| path != dir && path.starts_with(dir));
        inside(from) == inside(to)
            && self.agree_on_names(from, to)
            && !below(from)
            && !below(to)
            && self.scopes.iter().all(|scope| scope.agrees(from, to))
    }

    /// Whether no rule tells a file in `dir` from one of the same name anywhere below, but for
    /// those that refine others by names. Says no when in doubt.
    pub fn is_even_below(&self, dir: &Path) -> bool {
        !self.trees.keys().any(|path| path != dir && path.starts_with(dir))
            && self.scopes.iter().all(|scope| scope.is_even_below(dir))
    }

    /// Whether names that count have the same ends below `from` and below `to`, which one rule is
    /// about.
    fn agree_on_names(&self, from: &Path, to: &Path) -> bool {
        let rule = |dir: &Path| self.unrefined(&dir.join("_"), FileKind::Any);
        let refinements = |dir: &Path| rule(dir).and_then(|rule| self.refined.get(&rule));
        let (old, new) = match (refinements(from), refinements(to)) {
            (None, None) => return true,
            (Some(old), Some(new)) if rule(from) == rule(to) => (old, new),
            _ => return false,
        };
        old.iter().zip(new).all(|(old, new)| {
            let [from, to] = [(old, from), (new, to)].map(|(it, path)| it.below_top(path));
            old.names.begun(from) == new.names.begun(to)
                && (!old.deep || old.names_stand_in(from) == new.names_stand_in(to))
                && old.outer_names(from) == new.outer_names(to)
        })
    }

    /// The rule for a path, by its index: that with the longest literal stem, and of those the
    /// last; or the one that refines it by a name.
    pub fn rule(&self, path: &Path, kind: FileKind) -> Option<usize> {
        self.rule_by_names(path, path, kind)
    }

    fn rule_by_names(&self, path: &Path, named: &Path, kind: FileKind) -> Option<usize> {
        let rule = self.unrefined(path, kind)?;
        let Some(refinements) = self.refined.get(&rule) else { return Some(rule) };
        let is_about = |it: &&Refinement| it.is_about(path, kind) || it.is_about(named, kind);
        Some(refinements.iter().rev().find(is_about).map_or(rule, |it| it.rule))
    }

    fn unrefined(&self, path: &Path, kind: FileKind) -> Option<usize> {
        let tree = self.tree(path, kind);
        let matching = self.patterns.matches(path.as_os_str().as_bytes()).into_iter();
        let pattern = matching
            .map(|index| self.pattern_rules[index])
            .filter(|(_, rule, _)| fits(*rule, kind))
            .map(|(stem, _, index)| (stem, index))
            .max();
        tree.max(pattern).map(|(_, index)| index)
    }

    /// The innermost literal rule for a path: the length of its path, and its index.
    fn tree(&self, path: &Path, kind: FileKind) -> Option<(usize, usize)> {
        path.ancestors().find_map(|ancestor| {
            let rules = self.trees.get(ancestor)?.iter().rev();
            let applies = |tree: &Tree| tree.deep || ancestor == path;
            let mut rules = rules.filter(|(tree, rule, _)| applies(tree) && fits(*rule, kind));
            rules.next().map(|(_, _, index)| (ancestor.as_os_str().len(), *index))
        })
    }
}

impl Refinement {
    fn is_about(&self, path: &Path, kind: FileKind) -> bool {
        let path = self.below_top(path);
        let is_named = || match &self.outer {
            Some(outer) => self.names.is_below(outer, path, self.deep),
            None => self.names.find(path, self.deep).is_some(),
        };
        fits(self.kind, kind) && is_named()
    }

    /// Whether a name that counts stands in `path`, wherever.
    fn names_stand_in(&self, path: &Path) -> bool {
        self.names.find(path, true).is_some()
    }

    /// What counts in `path` of the names that others have to lie below: those that it ends in the
    /// beginning of; and whether one stands in it, and another below that.
    fn outer_names(&self, path: &Path) -> Option<(Begun, [bool; 2])> {
        let outer = self.outer.as_ref()?;
        let is_below = self.names.is_below(outer, path, true);
        Some((outer.begun(path), [outer.find(path, true).is_some(), is_below]))
    }

    fn below_top<'a>(&self, path: &'a Path) -> &'a Path {
        path.strip_prefix(&self.top).unwrap_or(path)
    }
}

/// Rules by their regular expressions: of equal ones the last.
fn by_regex(rules: &[FileRule]) -> HashMap<&str, usize> {
    let any = rules.iter().enumerate().filter(|(_, rule)| rule.kind == FileKind::Any);
    any.map(|(index, rule)| (rule.path.as_str(), index)).collect()
}

fn fits(rule: FileKind, kind: FileKind) -> bool {
    rule == FileKind::Any || kind == FileKind::Any || rule == kind
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
    fn a_name_of_any_bytes_is_matched() {
        use std::ffi::OsStr;
        let rules =
            rules(&[(r"/w/(.*/)?\.env", FileKind::Any, 102), ("/w/s[^a]x", FileKind::Any, 103)]);
        for odd in [&b"\n"[..], b"\r", b"\xff", b"\0x", "\u{2028}".as_bytes()] {
            let path = [b"/w/a", odd, b"b/.env"].concat();
            assert_eq!(rules.sid(Path::new(OsStr::from_bytes(&path)), FileKind::File), sid(102));
        }
        assert_eq!(rules.sid(Path::new("/w/s\nx"), FileKind::File), sid(103));
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
    fn the_depth_of_a_rule_is_known_unless_it_stands_for_any() {
        for (regex, want) in [
            (r"/home/u/\.foo[^/]*", Some(1)),
            (r"/home/u/data/[^/]+(/.*)?", Some(1)),
            (r"/home/u/[^/]*/x[a-c]/\.y", Some(3)),
            (r"/home/u/(.*/)?key", None),
            (r"/home/u/.*", None),
            (r"/home/u/x", Some(1)),
        ] {
            assert_eq!(depth(regex), want, "{regex}");
        }
    }

    #[test]
    fn a_name_refines_the_rule_that_is_about_its_place() {
        use FileKind::{Any, Dir, File, Symlink};
        let rules = rules(&[
            ("/ws(/.*)?", Any, 102),
            ("/ws/secret(/.*)?", Any, 103),
            (r"/ws/\.vscode/settings(/.*)?", Any, 104),
            ("/ws/out[^/]*", Any, 105),
            (r"(/ws(/.*)?){0}/(.*/)?(?i:\.git/config|\.vscode)(/.*)?", Any, 106),
            (r"(/ws(/.*)?){0}/(.*/)?(?i:\.git)", Symlink, 107),
            (r"(/ws/out[^/]*){0}/(.*/)?(?i:outside)(/.*)?", Any, 108),
            (r"(/ws(/.*)?){0}/(.*/)?(?i:pack)(/.*)?", Any, 102),
            (r"(/ws(/.*)?){0}/(.*/)?(?i:\.vscode)/(.*/)?(?i:pack)(/.*)?", Any, 109),
        ]);
        for (path, kind, want) in [
            ("/ws/pack/.vscode/x", File, 102),
            ("/ws/.vscode/a/Pack/x", File, 109),
            ("/ws/.vscode/pack", Symlink, 109),
            ("/ws/pack/.vscode/pack/x", File, 109),
            ("/ws/a/.vscode/tasks.json", File, 106),
            ("/ws/.VSCode", Dir, 106),
            ("/ws/a/.git/config", File, 106),
            ("/ws/a/.git", Dir, 102),
            ("/ws/a/.git", Symlink, 107),
            ("/ws/.vscode/settings", File, 104),
            ("/ws/secret/.vscode/x", File, 103),
            ("/ws/outline", File, 105),
            ("/ws/OUTSIDE", File, 102),
            ("/ws/outside", File, 108),
        ] {
            assert_eq!(rules.sid(Path::new(path), kind), sid(want), "{path} {kind:?}");
        }
        for (path, named, want) in [
            ("/ws/a/config", "/ws/a/.git/config", 106),
            ("/ws/secret/config", "/ws/secret/.git/config", 103),
            ("/ws/secret", "/ws/.git/config", 103),
            ("/ws/.vscode/settings", "/ws/.git/config", 104),
            ("/ws/a/.vscode/x", "/ws/a/x", 106),
            ("/ws/a", "/ws/secret", 102),
        ] {
            let found = rules.sid_by_names(Path::new(path), Path::new(named), File);
            assert_eq!(found, sid(want), "{path} as {named}");
        }
        for (from, to, want) in [
            ("/ws/a", "/ws/b", true),
            ("/ws/a/.git", "/ws/b/.git", true),
            ("/ws/a/git", "/ws/a/.git", false),
            ("/ws/a/.git", "/ws/a/git", false),
            ("/ws/a/.vscode/x", "/ws/a/x", false),
            ("/ws/a", "/ws/.vscode", false),
            ("/ws/pack/a", "/ws/pack/b", true),
            ("/ws/pack/a", "/ws/pack/.vscode", false),
            ("/ws/pack/.vscode/pack", "/ws/pack/b", false),
        ] {
            assert_eq!(rules.agree(Path::new(from), Path::new(to)), want, "{from} {to}");
        }
    }

    #[test]
    fn a_directory_moves_only_where_the_same_rules_hold() {
        use FileKind::Any;
        let rules = rules(&[
            ("/.*", Any, 101),
            ("/ws(/.*)?", Any, 102),
            ("/ws/git/hooks(/.*)?", Any, 103),
            ("/ws/(.*/)?key", Any, 104),
            ("/ws/[^/]*\\.pem", Any, 105),
            ("/ws/lib/(.*/)?a/b", Any, 106),
        ]);
        for (from, to, want) in [
            ("/ws/a", "/ws/b", true),
            ("/ws/a/b", "/ws/c", true),
            ("/ws/git", "/ws/b", false),
            ("/ws/b", "/ws/git", false),
            ("/ws/a", "/srv/a", false),
            ("/ws", "/wt", false),
            ("/ws/lib/a", "/ws/lib/b", false),
            ("/srv/a", "/srv/b", true),
        ] {
            assert_eq!(rules.agree(Path::new(from), Path::new(to)), want, "{from} {to}");
        }
    }
}
