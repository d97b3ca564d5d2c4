//! What no profile grants: Dewar's own files, and changing what the policy of the run was read
//! from.

use crate::error::Reporter;
use crate::merged::Profile;
use crate::pattern::{self, Pattern};
use crate::rights::{Entry, List, Standing};
use crate::source::TextSpan;
use crate::variables::Variables;
use std::path::{Path, PathBuf};

/// Why a run may not change a file, whatever its profile grants on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// The profile was read from it, or something else of the run.
    Needed,
    /// A link leads to it that has a guarded name.
    Led,
    /// Tools are told there which registries to ask.
    Registries,
}

impl Kept {
    /// Why `path` cannot be changed, by what is said of a denial where [`crate::Origin`]s are.
    #[must_use]
    pub fn of(path: &str, said: &str) -> Option<Self> {
        let why = said.strip_prefix(path)?.strip_prefix(": ")?;
        [Self::Needed, Self::Led, Self::Registries].into_iter().find(|kept| kept.why() == why)
    }

    /// The reason in words.
    #[must_use]
    pub fn why(self) -> &'static str {
        match self {
            Self::Needed => "this run depends on it",
            Self::Led => "a link leads to it that has a guarded name",
            Self::Registries => "it says which registries are reached",
        }
    }
}

/// Adds to each domain of `profile` what it must not get, as far as it would.
pub(crate) fn guard(profile: &mut Profile, variables: &Variables, reporter: &mut Reporter) {
    let Profile { domains, registries, .. } = profile;
    let sources: Vec<PathBuf> = reporter.sources.paths().map(Path::to_owned).collect();
    let kept = variables.kept.iter().map(|path| (path, List::Deny, "Dewar keeps it for itself"));
    let fixed = variables.fixed.iter().chain(&sources);
    let fixed = fixed.map(|path| (path, List::Readonly, Kept::Needed.why()));
    let led = variables.led.iter().map(|(_, place)| (place, List::Readonly, Kept::Led.why()));
    // Else a run could say what the next one reaches.
    let tools = registries.iter().filter_map(|tool| variables.registries.get(tool));
    let said = tools.flat_map(|tool| &tool.files);
    let said = said.map(|path| (path, List::Readonly, Kept::Registries.why()));
    for (path, list, why) in kept.chain(fixed).chain(led).chain(said) {
        let text = path.to_string_lossy();
        let patterns = pattern::parse(&escaped(&text), variables);
        let patterns = patterns.map_err(|problem| reporter.report(problem, None));
        for pattern in patterns.unwrap_or_default() {
            let gets = |domain: &&mut crate::merged::Domain| {
                domain.own.iter().any(|own| grants(own, list, &pattern))
            };
            let mut losing = domains.iter_mut().filter(gets).peekable();
            if losing.peek().is_none() {
                continue;
            }
            let place = reporter.sources.add_amendment(format!("{}: {why}", path.display()), &text);
            losing.for_each(|domain| domain.own.push(entry(pattern.clone(), list, place)));
        }
    }
}

fn entry(pattern: Pattern, list: List, place: TextSpan) -> Entry {
    Entry { pattern, list, layer: usize::MAX, place, standing: Standing::Elsewhere }
}

/// Whether `own` may grant, somewhere in `pattern`, what `list` takes away.
fn grants(own: &Entry, list: List, pattern: &Pattern) -> bool {
    let is_grant = match list {
        List::Readonly => own.list == List::Write,
        _ => !own.list.restricts() && !matches!(own.list, List::Names | List::Unguarded),
    };
    is_grant && !own.pattern.common(pattern).is_ok_and(|common| common.is_empty())
}

/// The pattern that stands for that very path.
fn escaped(path: &str) -> String {
    path.chars().flat_map(|c| if c == '/' { vec![c] } else { vec!['\\', c] }).collect()
}
