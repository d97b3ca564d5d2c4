//! `files.guard`: names that programs outside trust, kept from being made and changed inside.

use crate::document::FileLists;
use crate::error::{Problem, Reporter};
use crate::source::{Located, TextSpan};

/// What a guard does about a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuardLevel {
    /// Keeps it from being made and changed, everywhere.
    Always,
    /// The same, but not in directories of packages.
    Deny,
    /// Is a directory of packages.
    But,
    /// Lets it be made, and keeps it from being changed.
    Make,
    /// Tells it at the end of the run.
    Report,
    /// The same; outside of the workspace, it is granted to who names it alone.
    Home,
}

/// A name that a program outside trusts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuardedName {
    /// What a guard does about it.
    pub level: GuardLevel,
    /// One or more components; a `*`, one in a component, stands for any characters, a `/` at the
    /// end for everything below.
    pub name: &'static str,
    /// Who executes it, or does what it says.
    pub runs: &'static str,
}

/// The names of the guard `host-trusted`.
pub fn host_trusted() -> impl Iterator<Item = GuardedName> {
    include_str!("../../../policy/guards/host-trusted").lines().filter_map(guarded_name)
}

fn guarded_name(line: &'static str) -> Option<GuardedName> {
    let (level, rest) = line.split_once(' ')?;
    let level = match level {
        "always" => GuardLevel::Always,
        "deny" => GuardLevel::Deny,
        "but" => GuardLevel::But,
        "make" => GuardLevel::Make,
        "report" => GuardLevel::Report,
        "home" => GuardLevel::Home,
        _ => return None,
    };
    let rest = rest.trim();
    let (name, runs) = rest.split_once(' ').unwrap_or((rest, ""));
    Some(GuardedName { level, name, runs: runs.trim() })
}

/// What `files.guard_action` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuardAction {
    /// What is guarded cannot be made or changed.
    Deny,
    /// It can, and the report at the end of the run says so.
    Report,
}

/// What a domain's `[files]` says about guards.
#[derive(Clone, Debug, Default)]
pub(crate) struct Guard {
    /// Whether there is one, and where that is said.
    set: Option<(bool, TextSpan)>,
    action: Option<GuardAction>,
}

impl Guard {
    /// Adds what one file says.
    pub(crate) fn add(&mut self, files: &FileLists, reporter: &mut Reporter) {
        if let Some(guard) = &files.guard {
            let set = reporter.take(parse_guard(guard), guard.place);
            self.set = set.map(|set| (set, guard.place)).or(self.set);
        }
        if let Some(action) = &files.guard_action {
            self.action = reporter.take(parse_action(action), action.place).or(self.action);
        }
    }

    /// Adds what the base domain says where this one says nothing.
    pub(crate) fn inherit(&mut self, base: &Self) {
        self.set = self.set.or(base.set);
        self.action = self.action.or(base.action);
    }

    /// What happens to guarded names, and where the guard is set; `None` without one.
    pub(crate) fn action(&self) -> Option<(GuardAction, TextSpan)> {
        let (_, place) = self.set.filter(|(set, _)| *set)?;
        Some((self.action.unwrap_or(GuardAction::Deny), place))
    }
}

fn parse_guard(text: &Located<String>) -> Result<bool, Problem> {
    match text.value.as_str() {
        "host-trusted" => Ok(true),
        "none" => Ok(false),
        _ => Err(Problem::bad(&text.value, "a guard", "write `host-trusted` or `none`")),
    }
}

fn parse_action(text: &Located<String>) -> Result<GuardAction, Problem> {
    match text.value.as_str() {
        "deny" => Ok(GuardAction::Deny),
        "report" => Ok(GuardAction::Report),
        _ => Err(Problem::bad(&text.value, "what a guard does", "write `deny` or `report`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_shipped_guard_is_a_name_or_a_comment() {
        let text = include_str!("../../../policy/guards/host-trusted");
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let name = guarded_name(line).unwrap_or_else(|| panic!("`{line}` is none"));
            let plain = |c: char| c.is_ascii_alphanumeric() || "./*_-".contains(c);
            assert!(name.name.chars().all(plain), "`{line}`");
            assert!(name.name.split('/').all(|part| part.matches('*').count() <= 1), "`{line}`");
            assert_eq!(name.runs.is_empty(), name.level == GuardLevel::But, "`{line}`");
        }
    }
}
