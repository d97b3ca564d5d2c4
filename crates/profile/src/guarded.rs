//! What no profile grants: Dewar's own files, changing what the policy of the run was read from,
//! and with all settings of the system those that not everybody may read.

use crate::error::Reporter;
use crate::merged::Profile;
use crate::mounted::Mounted;
use crate::pattern::{self, Pattern};
use crate::rights::{List, ListedPattern, Standing};
use crate::source::TextSpan;
use crate::variables::{Variables, fixed_path, is_left};
use std::path::{Path, PathBuf};

/// Why a run may not change a file, whatever its profile grants on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// The profile was read from it, or something else of the run.
    Needed,
    /// A link leads to it, or by it, that has a guarded name; or Git's configuration does.
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
            Self::Led => "what has a guarded name leads there",
            Self::Registries => "it says which registries are reached",
        }
    }
}

/// Adds to each domain of `profile` what it must not get, as far as it would.
pub(crate) fn guard(
    profile: &mut Profile,
    (variables, mounted): (&Variables, &Mounted),
    reporter: &mut Reporter,
) {
    let Profile { domains, registries, left, .. } = profile;
    let sources: Vec<PathBuf> = reporter.sources.ways().map(Path::to_owned).collect();
    let kept = variables.kept.iter().map(|path| (path, List::Deny, "Dewar keeps it for itself"));
    let misleading = variables.misleading.iter();
    let misleading = misleading.map(|path| (path, List::Deny, "it would lead a tool astray"));
    let fixed = variables.fixed.iter().chain(&sources);
    let fixed = fixed.map(|path| (path, List::Unwritten, Kept::Needed.why()));
    let led = variables.led.iter().map(|(_, place)| (place, List::Unwritten, Kept::Led.why()));
    // Else a run could say what the next one reaches.
    let tools = registries.iter().filter_map(|tool| variables.registries.get(tool));
    let said = tools.flat_map(|tool| &tool.files);
    let said = said.map(|path| (path, List::Unwritten, Kept::Registries.why()));
    for (entry, list, why) in kept.chain(misleading).chain(fixed).chain(led).chain(said) {
        let path = fixed_path(entry);
        let text = path.to_string_lossy();
        let patterns = pattern::parse(&escaped(&text), variables);
        let patterns = patterns.map_err(|problem| reporter.report(problem, None));
        let mut patterns = patterns.unwrap_or_default();
        let elsewhere: Vec<Pattern> =
            patterns.iter().flat_map(|pattern| mounted.elsewhere(pattern)).collect();
        patterns.extend(elsewhere);
        if list == List::Deny {
            // What a profile names below it would stand over it.
            let own = domains.iter().flat_map(|domain| &domain.own);
            let below: Vec<Pattern> =
                own.flat_map(|own| patterns.iter().flat_map(|it| granted_below(own, it))).collect();
            patterns.extend(below);
        }
        for pattern in patterns {
            // Who names that very file means it.
            let is_freed = |own: &[ListedPattern]| {
                why == Kept::Led.why()
                    && own.iter().any(|it| {
                        it.list == List::Unguarded && it.pattern.regex() == pattern.regex()
                    })
            };
            let granted = domains.iter_mut().filter_map(|domain| {
                if is_freed(&domain.own) {
                    return None;
                }
                let standing = standing(&domain.own, list, &pattern, variables.shares_temporary)?;
                Some((domain, standing))
            });
            let mut losing = granted.peekable();
            if losing.peek().is_none() {
                continue;
            }
            let place = reporter.sources.add_amendment(format!("{}: {why}", path.display()), &text);
            if is_left(entry) {
                left.push((pattern, place));
                continue;
            }
            losing.for_each(|(domain, standing)| {
                let (pattern, layer) = (pattern.clone(), usize::MAX);
                domain.own.push(ListedPattern {
                    pattern,
                    list,
                    layer,
                    place,
                    standing,
                    rank: None,
                    beside: false,
                    alone: false,
                });
            });
        }
    }
}

/// What `own` grants below what `pattern` stands for, without granting all of that; all that it
/// grants if that cannot be told.
fn granted_below(own: &ListedPattern, pattern: &Pattern) -> Vec<Pattern> {
    if !grants(own, List::Deny, pattern) || own.pattern.covers(pattern) {
        return Vec::new();
    }
    own.pattern.common(pattern).unwrap_or_else(|_| vec![own.pattern.clone()])
}

/// Where what may grant, somewhere in `pattern`, what `list` takes away stands to the directories
/// for temporary files; `None` if nothing does. What a run has of such a directory as a whole is
/// its own, and not the machine's file, unless it `shares` the machine's directory.
fn standing(
    own: &[ListedPattern],
    list: List,
    pattern: &Pattern,
    shares: bool,
) -> Option<Standing> {
    let granting: Vec<&ListedPattern> =
        own.iter().filter(|own| grants(own, list, pattern)).collect();
    let is_whole = granting.iter().all(|entry| entry.standing == Standing::Whole);
    match list {
        _ if granting.is_empty() => None,
        List::Unwritten if is_whole => shares.then_some(Standing::Whole),
        _ => Some(Standing::Elsewhere),
    }
}

/// Whether `own` may grant, somewhere in `pattern`, what `list` takes away.
fn grants(own: &ListedPattern, list: List, pattern: &Pattern) -> bool {
    let is_grant = match list {
        List::Unwritten => own.list == List::Write,
        _ => !own.list.restricts() && !matches!(own.list, List::Names | List::Unguarded),
    };
    is_grant && !own.pattern.common(pattern).is_ok_and(|common| common.is_empty())
}

/// The directory that holds the system's settings, and the secrets of its services.
const SETTINGS: &str = "/etc";

/// Where the files lie that [`Variables::confidential`] names, each with a place that says why.
pub(crate) fn confidential(
    variables: &Variables,
    reporter: &mut Reporter,
) -> Vec<(Pattern, TextSpan)> {
    let mut all = Vec::new();
    for path in &variables.confidential {
        let text = path.to_string_lossy();
        let patterns = pattern::parse(&escaped(&text), variables);
        let patterns = patterns.map_err(|problem| reporter.report(problem, None));
        let said = format!("{}: not everybody may read it, and no list names it", path.display());
        let place = reporter.sources.add_amendment(said, &text);
        all.extend(patterns.unwrap_or_default().into_iter().map(|pattern| (pattern, place)));
    }
    all
}

/// Denies a domain those of `files` that it has only as a part of all settings.
pub(crate) fn withhold(entries: &mut Vec<ListedPattern>, files: &[(Pattern, TextSpan)]) {
    if files.is_empty() {
        return;
    }
    let says = |entry: &&ListedPattern| !matches!(entry.list, List::Names | List::Unguarded);
    let (mut whole, mut named) = (Vec::new(), Vec::new());
    for entry in entries.iter().filter(says) {
        match entry.pattern.literal_start() {
            top if top == SETTINGS => whole.push(entry),
            top if Path::new(&top).starts_with(SETTINGS) => named.push(entry),
            _ => {}
        }
    }
    let has = |pattern: &Pattern| {
        // A glob grants just what it matches.
        let pattern = &pattern.clone().with_nothing_below();
        whole.iter().any(|entry| !entry.list.restricts() && entry.pattern.covers(pattern))
            && !named.iter().any(|entry| entry.pattern.covers(pattern))
    };
    let only = files.iter().filter(|(pattern, _)| has(pattern)).map(|(pattern, place)| {
        let (pattern, list, standing) = (pattern.clone(), List::Deny, Standing::Elsewhere);
        let (rank, beside, alone) = (None, false, false);
        ListedPattern { pattern, list, layer: 0, place: *place, standing, rank, beside, alone }
    });
    let only: Vec<ListedPattern> = only.collect();
    entries.extend(only);
}

/// The pattern that stands for that very path.
fn escaped(path: &str) -> String {
    path.chars().flat_map(|c| if c == '/' { vec![c] } else { vec!['\\', c] }).collect()
}
