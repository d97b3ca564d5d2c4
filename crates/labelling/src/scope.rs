//! Where in a tree a pattern of a labelling rule can tell files apart.

use crate::stem::split_at_stem_dir;
use std::path::{Path, PathBuf};

/// Which paths a pattern can tell apart.
#[derive(Debug)]
pub(crate) struct Scope {
    /// Where its files lie, at any depth.
    top: PathBuf,
    /// It looks at the last component only, at every depth.
    floats: bool,
    /// It matches only directly in `top`.
    shallow: bool,
}

impl Scope {
    pub(crate) fn of(regex: &str) -> Self {
        let (top, rest) = split_at_stem_dir(regex);
        // A set never holds a slash; as patterns are written, it says so.
        let rest = rest.replace("[^/", "[^");
        let name = rest.strip_suffix("(/.*)?").unwrap_or(&rest);
        let floats = name.strip_prefix("(.*/)?").is_some_and(|name| !name.contains('/'));
        Self { top, floats, shallow: rest == name && !rest.contains('/') && !rest.contains(".*") }
    }

    /// Whether it tells nothing below `from` from the same below `to`.
    pub(crate) fn agrees(&self, from: &Path, to: &Path) -> bool {
        let [holds_from, holds_to] = [from, to].map(|path| path.starts_with(&self.top));
        if self.top.starts_with(from) || self.top.starts_with(to) {
            return false;
        }
        self.shallow || (holds_from == holds_to && (!holds_from || self.floats))
    }

    /// Whether it tells no file in `dir` from one of the same name below.
    pub(crate) fn is_even_below(&self, dir: &Path) -> bool {
        if self.top == dir {
            return self.floats;
        }
        !self.top.starts_with(dir) && (self.shallow || self.floats || !dir.starts_with(&self.top))
    }
}

#[cfg(test)]
mod tests {
    use crate::PathRules;
    use flask::{FileKind, FileRule, Sid};
    use std::path::Path;

    #[test]
    fn a_rule_below_a_directory_is_seen_from_it() {
        let rule = |(path, number): (&str, u32)| FileRule {
            path: path.into(),
            kind: FileKind::Any,
            sid: Sid::new(number),
        };
        let rules = [
            ("/ws(/.*)?", 102),
            ("/ws/git/hooks(/.*)?", 103),
            ("/ws/(.*/)?key", 104),
            ("/ws/in/[^/]*\\.sock", 105),
            ("/ws/lib/(.*/)?a/b", 106),
        ];
        let rules = PathRules::new(&rules.map(rule)).unwrap();
        for (dir, want) in [
            ("/ws", false),
            ("/ws/git", false),
            ("/ws/git/hooks", true),
            ("/ws/a", true),
            ("/ws/in", false),
            ("/ws/in/side", true),
            ("/ws/lib/x", false),
            ("/tmp", true),
        ] {
            assert_eq!(rules.is_even_below(Path::new(dir)), want, "{dir}");
        }
    }

    /// Names are escaped in an expression, which makes it longer than its stem.
    #[test]
    fn names_with_dots_before_other_letters_are_told_apart_as_others_are() {
        let rule =
            |path: &str| FileRule { path: path.into(), kind: FileKind::Any, sid: Sid::new(102) };
        for (rules, dir, want) in [
            (&["/a\\.b\\.é/(.*/)?key"][..], "/a.b.é", true),
            (&["/a\\.b\\.é/(.*/)?x/key"], "/a.b.é", false),
            (&["(/a|/b)"], "/a", false),
            (&["(/a\\.é(/.*)?){0}/(.*/)?(?i:key)(/.*)?", "/a\\.é(/.*)?"], "/c", true),
        ] {
            let rules: Vec<FileRule> = rules.iter().map(|path| rule(path)).collect();
            let rules = PathRules::new(&rules).unwrap();
            assert_eq!(rules.is_even_below(Path::new(dir)), want, "{dir}");
        }
    }
}
