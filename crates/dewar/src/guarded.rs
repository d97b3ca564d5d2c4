//! Names that programs outside trust: what is said where one was refused, and the least that lets
//! it be changed.

use crate::{
    amend::literal,
    fitting::{Fitting, access},
    run::{Denial, executed_for, guarded_for},
};
use learn::{Judge, Line, Scope, What};
use monitor::{Record, visible};
use profile::{Kept, Variables};
use std::path::Path;

/// What makes its directory a repository.
pub(crate) const GIT: &str = ".git";

/// The list of what is guarded no more.
pub(crate) const UNGUARDED: &str = "files.unguarded";
/// What Git writes first, and makes into the file of the name without it.
const LOCK: &str = ".lock";
/// One pattern for both.
const WITH_LOCK: &str = "{,.lock}";

/// A name that programs outside trust, refused.
pub(crate) struct Guarded<'a> {
    object: &'a str,
    /// Who outside would execute it, or do what it says; `None` if it was to complete a repository.
    runs: Option<&'static str>,
}

/// Whether a guard is why: it gives names of its own types.
fn is_guarded(record: &Record) -> bool {
    let object = flask::type_of(&record.tcontext);
    ["_guarded_t", "_pointer_t"].iter().any(|ending| object.ends_with(ending))
}

impl<'a> Guarded<'a> {
    /// What a denial is about, if a guard is why.
    pub(crate) fn by_guard(record: &'a Record) -> Option<Self> {
        let runs = || guarded_for(Path::new(&record.object), record.tclass != "dir");
        is_guarded(record).then(|| Self { object: &record.object, runs: runs() })
    }

    /// The same where another line of the profile keeps such a name from being changed, or none
    /// grants it; outside of the workspace, also a name that a guard only tells of.
    pub(crate) fn otherwise(denial: &'a Denial, scope: &Scope) -> Option<Self> {
        let record = &denial.record;
        let need = learn::need(&access(record), &record.missing)?;
        let runs = executed_for(Path::new(&record.object), record.tclass != "dir", scope)?;
        let is_changed = matches!(need.what, What::Write(_));
        is_changed.then_some(Self { object: &record.object, runs: Some(runs) })
    }

    /// What a program outside would do with it.
    pub(crate) fn why(&self) -> String {
        match self.runs {
            Some(runs) => format!("outside, it would be for {runs}"),
            None => {
                "a directory with `objects` and `refs` is a repository, and Git would obey this"
                    .to_owned()
            }
        }
    }

    /// How to do without, for who makes a repository: its hooks are the first of this kind. All of
    /// the workspace is never let go.
    pub(crate) fn instead(&self, workspace: &Path) -> Option<String> {
        self.object.strip_suffix("/.git/hooks")?;
        let free = |repository| {
            let names = serde_json::json!([literal(repository)]);
            format!("; {UNGUARDED} = {names} takes the guard off all of it")
        };
        let free = self.repository(workspace).map(free).unwrap_or_default();
        Some(format!("clone into $TMPDIR, or make the repository outside of the run{free}"))
    }

    /// The repository in the workspace that it is a part of, and that can be let go as a whole.
    pub(crate) fn repository(&self, workspace: &Path) -> Option<&'a str> {
        let mut above = Path::new(self.object).ancestors();
        let git = above.find(|path| path.ends_with(GIT))?;
        let repository = git.parent().filter(|it| !workspace.starts_with(it))?;
        repository.to_str()
    }

    /// Why nothing is granted to who has not named it.
    pub(crate) fn unnamed(&self, workspace: &Path) -> String {
        let instead = self.instead(workspace).map(|it| format!("; or {it}")).unwrap_or_default();
        format!("{}; to allow it, name it in full{instead}", self.why())
    }

    /// The lines that take the guard off, and what else of the profile keeps it from being changed.
    pub(crate) fn lines(
        &self,
        fitting: &Fitting,
        domain: Option<&str>,
    ) -> Result<Vec<Line>, String> {
        let line = |domain: Option<&str>, key: &str, value| Line {
            domain: domain.map(str::to_owned),
            key: key.to_owned(),
            value,
            comment: String::new(),
        };
        let scope = &fitting.scope;
        let text = |path: &str| scope.text(Path::new(path));
        if self.runs.is_none() {
            let repository = self.object.rsplit_once('/').map_or("/", |(directory, _)| directory);
            if scope.workspace.starts_with(repository) {
                return Err(format!(
                    "{}; only all of {} could be named: make the repository outside of the run",
                    self.why(),
                    text(repository)
                ));
            }
            return Ok(vec![line(None, UNGUARDED, text(repository))]);
        }
        let locked = self.object.strip_suffix(LOCK);
        let locked = locked.filter(|file| guarded_for(Path::new(file), true).is_some());
        let value = match locked {
            Some(file) => text(file) + WITH_LOCK,
            None => text(self.object),
        };
        let mut lines = vec![line(None, UNGUARDED, value)];
        let judge = fitting.judge(&lines).map_err(|error| format!("{error:#}"))?;
        let names = locked.into_iter().chain([self.object]);
        let kept = names.filter(|name| !judge.rights(Path::new(name), domain).write);
        lines.extend(kept.map(|name| line(domain, "files.write", text(name))));
        Ok(lines)
    }
}

/// What is said of a line that lets be changed what programs outside trust, where `judge` has it.
pub(crate) fn frees(line: &Line, judge: &Judge, scope: &Scope) -> Option<String> {
    let is_unguarded = line.key == UNGUARDED;
    if !is_unguarded && line.key != "files.write" {
        return None;
    }
    let path = scope.path(line.value.strip_suffix(WITH_LOCK).unwrap_or(&line.value))?;
    match executed_for(&path, true, scope) {
        Some(runs) => Some(format!("UNGUARDED: outside, it is for {runs}")),
        None if judge.rights(&path.join(GIT).join("hooks"), line.domain.as_deref()).write
            && path.join(GIT).exists() =>
        {
            Some("UNGUARDED: the hooks and the configuration of a repository, for Git".into())
        }
        None => is_unguarded.then(|| {
            let shown = visible(&scope.text(&path));
            format!("UNGUARDED: all in {shown} that programs outside trust: hooks, settings, instructions")
        }),
    }
}

/// Whether a directory holds names that programs outside trust: nobody grants all of it for another
/// one.
pub(crate) fn holds_guarded(directory: &Path, scope: &Scope) -> bool {
    executed_for(directory, false, scope).is_some()
        || learn::holds_trusted(directory)
        || directory.join(GIT).exists()
}

/// Why a run may not change what it was denied, or make something in it, whatever its profile
/// grants on that path; and the path.
pub(crate) fn kept(denial: &Denial) -> Option<(Kept, &str)> {
    let object = denial.record.object.as_str();
    let directory = object.rsplit_once('/').map(|(directory, _)| directory);
    let directory = directory.filter(|_| denial.record.missing.iter().any(|it| it == "add_name"));
    let why = |path| {
        let mut rules = denial.profile_rules.iter();
        rules.find_map(|rule| Kept::of(path, rule)).map(|kept| (kept, path))
    };
    why(object).or_else(|| directory.and_then(why))
}

/// The links of guarded names that led to `place`, as patterns; `place` itself, where Git's
/// configuration did.
pub(crate) fn links_to(place: &str, variables: Option<&Variables>) -> Vec<String> {
    let led = variables.iter().flat_map(|variables| &variables.led);
    let here = led.filter(|(_, led)| profile::fixed_path(led) == Path::new(place));
    let named = |link: &Path| if link.is_symlink() { link.to_owned() } else { place.into() };
    here.map(|(link, _)| literal(&named(link).to_string_lossy())).collect()
}
