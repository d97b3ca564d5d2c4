//! Names that count at any depth and in any case: `.git/config`, `.vscode`, `*.code-workspace`.

use std::{
    borrow::Cow,
    collections::HashMap,
    path::{Component, Path},
};

/// A set of names of one or more components, for finding them in paths.
///
/// Names are compared as a file system that folds case would (ext4, f2fs and tmpfs with
/// `casefold`): without case, and without characters that such a file system ignores.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// The components of each name, folded. A `*`, one in a component, stands for any characters.
    names: Vec<Vec<String>>,
    /// Names by their first component.
    by_first: HashMap<String, Vec<usize>>,
    /// Names whose first component has a `*`.
    by_pattern: Vec<usize>,
}

impl Names {
    /// The set of `names`, each as in a path.
    pub fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut this = Self::default();
        for name in names {
            let parts: Vec<String> =
                name.split('/').map(|part| folded(part.as_bytes()).into_owned()).collect();
            let index = this.names.len();
            if parts[0].contains('*') {
                this.by_pattern.push(index);
            } else {
                this.by_first.entry(parts[0].clone()).or_default().push(index);
            }
            this.names.push(parts);
        }
        this
    }

    /// Which name, by its index, stands somewhere in `path`: the innermost. Unless `deep`, it must
    /// end the path.
    #[must_use]
    pub fn find(&self, path: &Path, deep: bool) -> Option<usize> {
        let parts: Vec<Cow<'_, str>> = components(path).map(folded).collect();
        let ends = |at: usize, name: usize| deep || at + self.names[name].len() == parts.len();
        let found = |at: usize| {
            let mut names = self.starting(&parts[at]);
            names.find(|name| ends(at, *name) && self.stands_at(*name, &parts[at..]))
        };
        (0..parts.len()).rev().find_map(found)
    }

    /// Whether one of these names stands somewhere in `path` below one of `outer`. Unless `deep`,
    /// it must end the path.
    #[must_use]
    pub fn is_below(&self, outer: &Self, path: &Path, deep: bool) -> bool {
        let parts: Vec<Cow<'_, str>> = components(path).map(folded).collect();
        let Some(above) = outer.ends(&parts).min() else { return false };
        self.ends(&parts).any(|end| end > above && (deep || end == parts.len()))
    }

    /// How many components there are at the end of each name that stands in a path.
    fn ends<'a>(&'a self, parts: &'a [Cow<'_, str>]) -> impl Iterator<Item = usize> + 'a {
        let at = (0..parts.len()).map(|at| (at, &parts[at..]));
        at.flat_map(move |(at, rest)| {
            let names = self.starting(&rest[0]).filter(|name| self.stands_at(*name, rest));
            names.map(move |name| at + self.names[name].len())
        })
    }

    /// The names that may begin with a component.
    fn starting<'a>(&'a self, part: &str) -> impl Iterator<Item = usize> + 'a {
        let exact = self.by_first.get(part).into_iter().flatten();
        exact.chain(&self.by_pattern).copied()
    }

    fn stands_at(&self, name: usize, parts: &[Cow<'_, str>]) -> bool {
        let name = &self.names[name];
        name.len() <= parts.len() && name.iter().zip(parts).all(|(name, part)| is(name, part))
    }

    /// Whether `path` ends in the beginning of a name: the rest of it would lie below.
    #[must_use]
    pub fn begins(&self, path: &Path) -> bool {
        !self.begun(path).is_empty()
    }

    /// The beginnings of names that `path` ends in: a name, and how many of its components.
    pub(crate) fn begun(&self, path: &Path) -> Vec<(usize, usize)> {
        let parts: Vec<Cow<'_, str>> = components(path).map(folded).collect();
        let mut begun = Vec::new();
        for (index, name) in self.names.iter().enumerate() {
            for count in 1..name.len().min(parts.len() + 1) {
                let tail = &parts[parts.len() - count..];
                if name.iter().zip(tail).all(|(name, part)| is(name, part)) {
                    begun.push((index, count));
                }
            }
        }
        begun
    }
}

/// Whether a component has a folded name.
fn is(name: &str, part: &str) -> bool {
    name.split_once('*').map_or(name == part, |(start, end)| {
        part.strip_prefix(start).is_some_and(|rest| rest.ends_with(end))
    })
}

fn components(path: &Path) -> impl Iterator<Item = &[u8]> {
    path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.as_encoded_bytes()),
        _ => None,
    })
}

/// A name without case and without what is ignored. Bytes that are no text are characters that no
/// name has, and that a `*` stands for.
fn folded(name: &[u8]) -> Cow<'_, str> {
    let name = String::from_utf8_lossy(name);
    if name.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase()) {
        return name;
    }
    let shown = name.chars().filter(|c| !flask::is_ignorable(*c));
    // By way of upper case, as `ſ` is a lower-case letter that is the same as `s`; and from lower
    // case, as `ẞ` is an upper-case one that is the same as `ss`.
    let folded = shown.flat_map(char::to_lowercase).flat_map(char::to_uppercase);
    folded.flat_map(char::to_lowercase).collect::<String>().into()
}

/// How the top of a [`NameRule`] is written that is `/`: before the slash behind it, nothing.
const ROOT: &str = "/{0}";

/// A labelling rule that gives files another label because of their names: of those that the rule
/// with the regular expression `base` labels, the ones with a name of `names`.
///
/// It is written `(BASE){0}TOP/(.*/)?(?i:NAME|NAME)(/.*)?`, without the last group if it is not
/// about what lies below, and without the top if that is the path which the base names. With
/// `/(.*/)?(?i:NAME|NAME)` twice, it is about names of the second group below one of the first.
#[derive(Debug)]
pub struct NameRule<'a> {
    /// The regular expression of the rule that it refines.
    pub base: &'a str,
    /// The regular expression of the path below which names count, if it is not the base's own.
    pub top: Option<&'a str>,
    /// The names.
    pub names: Names,
    /// Names that one of `names` has to lie below.
    pub outer: Option<Names>,
    /// It is also about what lies below.
    pub deep: bool,
}

impl<'a> NameRule<'a> {
    /// Reads a rule's regular expression; `None` if it is an ordinary one.
    #[must_use]
    pub fn parse(regex: &'a str) -> Option<Self> {
        let (base, top, rest) = split(regex)?;
        let top = match top {
            "" => None,
            ROOT => Some("/"),
            top => Some(top),
        };
        let (names, deep) = match rest.strip_suffix(")(/.*)?") {
            Some(names) => (names, true),
            None => (rest.strip_suffix(')')?, false),
        };
        let (outer, names) = match names.split_once(INNER) {
            Some((outer, names)) => (Some(read(outer)), names),
            None => (None, names),
        };
        Some(Self { base, top, names: read(names), outer, deep })
    }

    /// Whether a rule's regular expression is of this kind.
    #[must_use]
    pub fn is_one(regex: &str) -> bool {
        Self::base(regex).is_some()
    }

    /// The regular expression of the rule that it refines.
    #[must_use]
    pub fn base(regex: &str) -> Option<&str> {
        split(regex).map(|(base, ..)| base)
    }
}

/// The base of such a rule, its top, and what follows the beginning of its names.
fn split(regex: &str) -> Option<(&str, &str, &str)> {
    let (base, rest) = regex.strip_prefix('(')?.split_once("){0}")?;
    let (top, names) = rest.split_once("/(.*/)?(?i:")?;
    names.contains(')').then_some((base, top, names))
}

/// What stands between names and those that lie below them.
const INNER: &str = ")/(.*/)?(?i:";

fn read(names: &str) -> Names {
    let names: Vec<String> = names.split('|').map(unescaped).collect();
    Names::new(names.iter().map(String::as_str))
}

fn unescaped(name: &str) -> String {
    name.replace("[^/]*", "*").replace('\\', "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{collection::vec, prelude::*};

    proptest! {
        #[test]
        fn names_below_others_are_those_of_a_path_that_ends_below_one(
            path in "(/(a|b|c|ab)){1,7}",
            inner in vec("(a|b|c\\*|a/b|b/c)", 1..3),
            outer in vec("(a|b|\\*b|b/a|c)", 1..3),
            deep in any::<bool>(),
        ) {
            let names = |names: &[String]| Names::new(names.iter().map(String::as_str));
            let (inner, outer, path) = (names(&inner), names(&outer), Path::new(&path));
            let mut ends = path.ancestors().take(if deep { usize::MAX } else { 1 });
            let is_below = ends.any(|end| {
                let above = end.parent().is_some_and(|above| outer.find(above, true).is_some());
                above && inner.find(end, false).is_some()
            });
            prop_assert_eq!(inner.is_below(&outer, path, deep), is_below);
        }
    }

    #[test]
    fn a_name_is_found_at_any_depth_and_in_any_case() {
        let names = [".git/config", ".vscode", "*.code-workspace", ".ass", "mise.*.toml", "c/x.*"];
        let names = Names::new(names);
        for (path, deep, want) in [
            ("/w/.git/config", true, Some(0)),
            ("/w/a/.GIT/Config", true, Some(0)),
            ("/w/.g\u{200c}it/config", true, Some(0)),
            ("/w/.v\u{17f}code/tasks.json", true, Some(1)),
            ("/w/.a\u{1e9e}", true, Some(3)),
            ("/w/.vscode/tasks.json", false, None),
            ("/w/.vscode", false, Some(1)),
            ("/w/My.Code-Workspace", false, Some(2)),
            ("/w/.git", true, None),
            ("/w/config", true, None),
            ("/w/x.git/config", true, None),
            ("/w/.vscode2", true, None),
            ("/w/mise.dev.toml", false, Some(4)),
            ("/w/Mise.a.b.toml", false, Some(4)),
            ("/w/mise..toml", false, Some(4)),
            // What stands before the `*` and behind it is not the same.
            ("/w/mise.toml", false, None),
            ("/w/c/x.y", false, Some(5)),
            ("/w/d/x.y", false, None),
        ] {
            assert_eq!(names.find(Path::new(path), deep), want, "{path}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_characters_of_a_name() {
        use std::{ffi::OsStr, os::unix::ffi::OsStrExt as _};
        let names = Names::new(["*.mk", ".envrc.*", ".git/config"]);
        for (path, want) in [
            (&b"/w/\xff.mk"[..], Some(0)),
            (b"/w/a\xffb\xc3.MK", Some(0)),
            (b"/w/.envrc.\xff", Some(1)),
            (b"/w/.ENVRC.\xff", Some(1)),
            (b"/w/.gi\xfft/config", None),
            (b"/w/\xff.git/config", None),
        ] {
            assert_eq!(names.find(Path::new(OsStr::from_bytes(path)), true), want, "{path:?}");
        }
    }

    #[test]
    fn the_beginning_of_a_name_is_seen() {
        let names = Names::new([".git/config", "a/b/c"]);
        assert_eq!(names.begun(Path::new("/w/.Git")), [(0, 1)]);
        assert_eq!(names.begun(Path::new("/w/a/b")), [(1, 2)]);
        assert!(names.begun(Path::new("/w/config")).is_empty());
        assert!(names.begins(Path::new("/w/.git")) && !names.begins(Path::new("/w/.git/config")));
    }

    #[test]
    fn a_rule_is_read_as_it_is_written() {
        let rule = NameRule::parse(
            r"(/w/a\.b(/.*)?){0}/(.*/)?(?i:\.git/config|[^/]*\.code-workspace)(/.*)?",
        )
        .unwrap();
        assert_eq!(rule.base, r"/w/a\.b(/.*)?");
        assert!(rule.deep);
        assert_eq!(rule.names.find(Path::new("x/.git/config"), true), Some(0));
        assert_eq!(rule.names.find(Path::new("x/y.code-workspace"), true), Some(1));
        assert_eq!(rule.top, None);
        let rule = NameRule::parse(r"(/w/\.vim){0}/w/a\.b/(.*/)?(?i:\.vim)").unwrap();
        assert_eq!((rule.base, rule.top), (r"/w/\.vim", Some(r"/w/a\.b")));
        let rule = NameRule::parse(r"(/w/\.vim){0}/{0}/(.*/)?(?i:\.vim)").unwrap();
        assert_eq!((rule.base, rule.top), (r"/w/\.vim", Some("/")));
        let rule = NameRule::parse(r"(/w){0}/(.*/)?(?i:\.vim|\.a/b)/(.*/)?(?i:node_modules)(/.*)?");
        let rule = rule.unwrap();
        assert_eq!(
            (rule.names.find(Path::new("node_modules/x"), true), rule.deep),
            (Some(0), true)
        );
        assert_eq!(rule.outer.unwrap().find(Path::new(".a/b"), true), Some(1));
        assert!(NameRule::parse(r"/w/(.*/)?\.env").is_none());
    }
}
