//! Where programs outside look for what they execute, or for what they do.

use crate::Scope;
use profile::{GuardLevel, host_trusted};
use std::path::Path;

/// Places of a home in which programs outside look for what they execute, and who does. What writes
/// a file there is granted that file.
fn executed() -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = include_str!("../../../policy/guards/executed").lines();
    let lines = lines.filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_once(' ')).map(|(place, who)| (place, who.trim()))
}

impl Scope {
    /// Who outside executes what lies at a path, or does what it says, because of where that is in
    /// the home.
    #[must_use]
    pub fn executes(&self, path: &Path) -> Option<&'static str> {
        let mut all = executed();
        all.find(|(place, _)| path.starts_with(self.home.join(place))).map(|(_, who)| who)
    }

    /// The same of a directory.
    pub(crate) fn is_executed(&self, directory: &Path) -> bool {
        self.executes(directory).is_some()
    }
}

/// Paths that count in a home: those places, and what a guard tells of wherever it lies. None is a
/// pattern: whoever moves a directory by one that may be about it would be told to copy it.
pub fn names_of_home() -> impl Iterator<Item = &'static str> {
    let names = host_trusted().filter(|it| it.level == GuardLevel::Home).map(|it| it.name);
    let names = names.filter(|name| !name.contains('*')).map(|name| name.trim_end_matches('/'));
    executed().map(|(place, _)| place).chain(names)
}

/// Whether a directory holds names that programs outside trust, wherever it lies, such as `.git`.
#[must_use]
pub fn holds_trusted(directory: &Path) -> bool {
    let trusted = |level| matches!(level, GuardLevel::Always | GuardLevel::Deny);
    host_trusted().filter(|it| trusted(it.level)).any(|it| {
        let above = it.name.rsplit_once('/').map(|(above, _)| above);
        above.is_some_and(|above| directory.ends_with(above))
            || directory.ancestors().any(|at| at.ends_with(it.name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{collections::HashSet, path::Component};

    #[test]
    fn what_programs_outside_trust_is_known_wherever_it_lies() {
        for (directory, holds) in [
            ("/home/me/repo/.git", true),
            ("/home/me/repo/.git/hooks", true),
            ("/home/me/repo/.vscode/x", true),
            ("/home/me/repo/.git/objects", false),
            ("/home/me/repo", false),
        ] {
            assert_eq!(holds_trusted(Path::new(directory)), holds, "{directory}");
        }
    }

    #[test]
    fn every_line_names_a_directory_below_the_home_once() {
        let all: Vec<&str> = executed().map(|(place, _)| place).collect();
        let is_plain = |it: Component<'_>| matches!(it, Component::Normal(_));
        assert!(all.iter().all(|name| Path::new(name).components().all(is_plain)), "{all:?}");
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
        let scope = Scope { home: "/home/me".into(), ..Scope::default() };
        for (directory, is) in [
            ("/home/me/.local/bin", true),
            ("/home/me/.config/systemd/user", true),
            ("/home/me/.config/hypr", true),
            ("/home/me/.config", false),
            ("/home/me/.vimfiles", false),
            ("/home/you/.vim", false),
        ] {
            assert_eq!(scope.is_executed(Path::new(directory)), is, "{directory}");
        }
    }
}
