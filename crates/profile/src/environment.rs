//! `[env]`: which environment variables a run sees.

use crate::document::EnvironmentLists;
use crate::error::{Problem, Reporter};
use crate::secret;
use crate::variables::Variables;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;

/// What becomes of a variable of outside, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It passes, by this pattern.
    Passes(String),
    /// The profile sets it.
    Set,
    /// It is kept out by this pattern.
    Dropped(String),
    /// It is kept out for what its value looks like.
    Secret(String),
    /// It is kept out, as no pattern names it.
    Unnamed,
    /// It is kept out, as its name is no text.
    NotText,
}

impl Fate {
    /// Whether a run sees a variable of that name.
    #[must_use]
    pub fn is_seen(&self) -> bool {
        matches!(self, Self::Passes(_) | Self::Set)
    }
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passes(pattern) => write!(f, "env.pass `{pattern}`"),
            Self::Set => write!(f, "env.set"),
            Self::Dropped(pattern) => write!(f, "env.drop `{pattern}`"),
            Self::Secret(kind) => write!(f, "its value looks like {kind}"),
            Self::Unnamed => write!(f, "no pattern of env.pass names it"),
            Self::NotText => write!(f, "its name is no text"),
        }
    }
}

/// Decides about environment variables by name. Nothing passes that no rule passes.
///
/// # Example
///
/// ```
/// # use profile::Environment;
/// let mut environment = Environment::default();
/// environment.pass("*");
/// environment.drop("*_TOKEN");
/// environment.pass("READ_TOKEN");
/// assert!(environment.passes("PATH"));
/// assert!(!environment.passes("GITHUB_TOKEN"));
/// assert!(environment.passes("READ_TOKEN"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// Name patterns with whether they pass.
    rules: Vec<(String, bool)>,
    /// Variables that the profile sets, whatever they were outside.
    pub set: BTreeMap<String, String>,
}

impl Environment {
    /// Lets variables through whose names match `pattern` (`*` stands for any characters, `?` for
    /// one).
    pub fn pass(&mut self, pattern: &str) {
        self.rules.push((pattern.to_owned(), true));
    }

    /// Keeps variables out whose names match `pattern`.
    pub fn drop(&mut self, pattern: &str) {
        self.rules.push((pattern.to_owned(), false));
    }

    /// Name patterns in the order in which they were given, with whether they let variables
    /// through.
    pub fn rules(&self) -> impl Iterator<Item = (&str, bool)> {
        self.rules.iter().map(|(pattern, pass)| (pattern.as_str(), *pass))
    }

    /// Whether a variable of that name passes, whatever its value: as the most specific matching
    /// rule says (a name without globs, then the most characters that are not globs); among equals,
    /// a rule that keeps it out. Case does not matter.
    #[must_use]
    pub fn passes(&self, name: &str) -> bool {
        self.rule(name).is_some_and(|(_, pass)| *pass)
    }

    fn rule(&self, name: &str) -> Option<&(String, bool)> {
        let matching = self.rules.iter().filter(|(pattern, _)| matches(pattern, name));
        matching.max_by_key(|(pattern, pass)| (specificity(pattern), !pass))
    }

    /// What becomes of a variable. One that a rule names without globs passes whatever it holds.
    #[must_use]
    pub fn fate(&self, name: &OsStr, value: &OsStr) -> Fate {
        let Some(name) = name.to_str() else { return Fate::NotText };
        if self.set.contains_key(name) {
            return Fate::Set;
        }
        match self.rule(name) {
            None => Fate::Unnamed,
            Some((pattern, false)) => Fate::Dropped(pattern.clone()),
            Some((pattern, true)) if specificity(pattern).0 => Fate::Passes(pattern.clone()),
            Some((pattern, true)) => match secret::kind(&value.to_string_lossy()) {
                Some(kind) => Fate::Secret(kind),
                None => Fate::Passes(pattern.clone()),
            },
        }
    }

    /// The variables of a run, given those outside, and the names of those that are kept out for
    /// what they hold. A name that is not Unicode never passes.
    #[must_use]
    pub fn apply(
        &self,
        outside: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> (BTreeMap<OsString, OsString>, Vec<OsString>) {
        let (mut inside, mut secret) = (BTreeMap::new(), Vec::new());
        for (name, value) in outside {
            match self.fate(&name, &value) {
                Fate::Passes(_) => drop(inside.insert(name, value)),
                Fate::Secret(_) => secret.push(name),
                _ => {}
            }
        }
        inside.extend(self.set.iter().map(|(name, value)| (name.into(), value.into())));
        (inside, secret)
    }

    /// Adds the rules of one file. What it says of a pattern counts, and not what the files that it
    /// extends say of the same one.
    pub(crate) fn add(
        &mut self,
        lists: &EnvironmentLists,
        variables: &Variables,
        reporter: &mut Reporter,
    ) {
        let said = |pattern: &str| {
            let mut own = lists.pass.iter().chain(&lists.drop);
            own.any(|it| it.value.eq_ignore_ascii_case(pattern))
        };
        self.rules.retain(|(pattern, _)| !said(pattern));
        for (list, pass) in [(&lists.pass, true), (&lists.drop, false)] {
            for pattern in list {
                if reporter.take(check(&pattern.value), pattern.place).is_some() {
                    self.rules.push((pattern.value.clone(), pass));
                }
            }
        }
        for (name, value) in &lists.set {
            let good = check(&name.value).and_then(|()| check_value(&name.value, &value.value));
            let good = reporter.take(good, name.place).is_some();
            let value = reporter.take(variables.expand(&value.value), value.place);
            if let Some(value) = value.filter(|_| good) {
                self.set.insert(name.value.clone(), value);
            }
        }
    }
}

fn check(name: &str) -> Result<(), Problem> {
    let good = !name.is_empty() && !name.contains(['=', '\0']);
    good.then_some(()).ok_or_else(|| Problem::BadValue {
        value: name.to_owned(),
        expected: "the name of a variable",
        help: "write a name such as `PATH` or `LC_*`; values go into `env.set`".to_owned(),
    })
}

fn check_value(name: &str, value: &str) -> Result<(), Problem> {
    let good = !name.contains(['*', '?']) && !value.contains('\0');
    good.then_some(()).ok_or_else(|| Problem::BadValue {
        value: name.to_owned(),
        expected: "a variable that can be set",
        help: "write one name without globs, and a value without NUL".to_owned(),
    })
}

fn specificity(pattern: &str) -> (bool, usize) {
    let globs = pattern.chars().filter(|c| matches!(c, '*' | '?')).count();
    (globs == 0, pattern.chars().count() - globs)
}

/// `*` and `?` over bytes, without case, falling back to the last star.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut i, mut j) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while j < name.len() {
        match pattern.get(i) {
            Some(b'*') => {
                star = Some((i + 1, j));
                i += 1;
            }
            Some(p) if *p == b'?' || p.eq_ignore_ascii_case(&name[j]) => (i, j) = (i + 1, j + 1),
            _ => match star {
                Some((after, from)) => {
                    star = Some((after, from + 1));
                    (i, j) = (after, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern[i..].iter().all(|p| *p == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_specific_rule_decides_and_a_tie_keeps_out() {
        let mut environment = Environment::default();
        assert!(!environment.passes("PATH"), "nothing passes without a rule");
        environment.pass("*");
        environment.drop("*_TOKEN");
        environment.pass("GITHUB_*");
        environment.pass("HF_TOKEN");
        environment.drop("HF_TOKEN");
        for (name, want) in
            [("PATH", true), ("NPM_TOKEN", false), ("GITHUB_TOKEN", true), ("HF_TOKEN", false)]
        {
            assert_eq!(environment.passes(name), want, "{name}");
        }
    }

    #[test]
    fn case_and_values_that_look_like_secrets_do_not_help_them_in() {
        let mut environment = Environment::default();
        environment.pass("*");
        environment.pass("HTTPS_PROXY");
        environment.drop("*_TOKEN");
        environment.set.insert("CI".into(), "1".into());
        let fate = |name: &str, value: &str| environment.fate(name.as_ref(), value.as_ref());
        let proxy = "http://me:hunter2@proxy:3128";
        assert_eq!(fate("npm_token", "x"), Fate::Dropped("*_TOKEN".into()));
        assert_eq!(fate("http_proxy", proxy), Fate::Secret("an address with a password".into()));
        assert_eq!(fate("HTTPS_PROXY", proxy), Fate::Passes("HTTPS_PROXY".into()));
        assert_eq!(fate("CI", "x"), Fate::Set);
        assert_eq!(fate("PATH", "/bin"), Fate::Passes("*".into()));
        assert_eq!(Environment::default().fate("A".as_ref(), "x".as_ref()), Fate::Unnamed);
    }

    #[test]
    fn set_replaces_what_comes_from_outside() {
        let mut environment = Environment::default();
        environment.pass("A*");
        environment.set.insert("AB".into(), "inside".into());
        let outside = [("AB", "outside"), ("AC", "1"), ("B", "2")];
        let (inside, _) =
            environment.apply(outside.map(|(name, value)| (name.into(), value.into())));
        let want = [("AB", "inside"), ("AC", "1")];
        assert!(inside.into_iter().eq(want.map(|(name, value)| (name.into(), value.into()))));
    }
}
