//! What is known of a run's denials by its profile.

use crate::{
    entries::{OUTSIDE, directory_of, made_first},
    fitting::{Fitting, access},
    guarded::{self, Guarded},
    misplaced,
    proposal::{KEPT_BACK, Proposal, of_file},
    run::{Denial, RunRecord},
};
use learn::{Judge, Line, Scope};
use profile::Variables;

/// A run, and what is known of its denials by its profile.
pub(super) struct Told<'a> {
    pub(super) run: &'a RunRecord,
    /// Where it took place.
    pub(super) scope: Scope,
    /// Those that `allow` leaves, and why.
    left: Vec<(&'a Denial, String)>,
    /// What `allow` would write where a name would be changed that programs outside trust, or an
    /// entry of a directory.
    lines: Vec<(&'a Denial, String)>,
    /// Of programs that are called like one of a domain that has what they were denied.
    entries: Vec<(&'a Denial, String)>,
}

/// Denials of which is asked what the profile says.
const MOST: usize = 100;

impl<'a> Told<'a> {
    /// Nothing is looked up.
    pub(super) fn of(run: &'a RunRecord) -> Self {
        let scope = scope(run.variables.as_ref());
        let (left, lines, entries) = (Vec::new(), Vec::new(), entries(run));
        let mut told = Self { run, scope: scope.clone(), left, lines, entries };
        let is_guarded = |denial: &Denial| guarded(denial, &scope).is_some();
        let is_told = |denial: &Denial| is_guarded(denial) || is_entry(denial);
        let denials: Vec<&Denial> =
            run.denials.iter().filter(|denial| !is_inside(denial)).take(MOST).collect();
        let Some(fitting) = (!denials.is_empty()).then(|| of_file(run).ok()).flatten() else {
            return told;
        };
        let named = denials.iter().map(|denial| denial.record.object.clone().into());
        let named: Vec<_> = named.collect();
        let fitting = fitting.unresolved();
        let judge = fitting.judge(&[]).ok();
        let Some((proposal, judge)) = Proposal::of(&fitting, &denials, &named).ok().zip(judge)
        else {
            return told;
        };
        let unnamed = Proposal::of(&fitting, &denials, &[]).ok();
        // Those for something that has to be made before have their own words.
        let is_later = |line: &Line| made_first(line, &judge, &fitting.scope).is_some();
        for denial in denials {
            let why = unnamed.as_ref().and_then(|it| it.left_for(denial));
            let has_own_words = is_guarded(denial) || guarded::kept(denial).is_some();
            if let Some(why) = why.filter(|why| !has_own_words && !why.ends_with(OUTSIDE)) {
                told.left.push((denial, why.to_owned()));
            }
            let lines = proposal.lines_for(denial);
            let is_final = |why: &&str| is_guarded(denial) || why.ends_with(OUTSIDE);
            if let Some(why) = proposal.left_for(denial).filter(is_final) {
                told.lines.push((denial, format!("no line helps: {why}")));
            } else if is_told(denial) && !lines.is_empty() && !lines.iter().any(is_later) {
                let lines: Vec<String> = lines.iter().map(Line::alone).collect();
                told.lines.push((denial, lines.join(", and ")));
            }
        }
        told
    }

    /// What is said in the place of a line, as `allow` says it.
    pub(super) fn left(&self, denial: &Denial) -> Option<String> {
        let (_, why) = self.left.iter().find(|(left, _)| std::ptr::eq(*left, denial))?;
        Some(match why.starts_with(KEPT_BACK) {
            true => format!("no line helps: {why}"),
            false => why.clone(),
        })
    }

    /// How the program enters the domain that has what it was denied.
    pub(super) fn entry(&self, denial: &Denial) -> Option<&str> {
        let (_, entry) = self.entries.iter().find(|(told, _)| std::ptr::eq(*told, denial))?;
        Some(entry)
    }

    /// What `allow` would write, if that is known.
    pub(super) fn lines(&self, denial: &Denial) -> Option<&str> {
        let (_, lines) = self.lines.iter().find(|(told, _)| std::ptr::eq(*told, denial))?;
        Some(lines)
    }
}

/// The lines by which programs enter the domains that have what they were denied.
fn entries(run: &RunRecord) -> Vec<(&Denial, String)> {
    if run.denials.is_empty() {
        return Vec::new();
    }
    let Some(fitting) = of_file(run).ok().map(Fitting::unresolved) else { return Vec::new() };
    let Some(compiled) = fitting.compile(&[]).ok().filter(|it| it.domains.len() > 1) else {
        return Vec::new();
    };
    let Ok(judge) = Judge::new(&compiled) else { return Vec::new() };
    let mut entries = Vec::new();
    for denial in run.denials.iter().take(MOST) {
        let asked = (&denial.record, &access(&denial.record));
        if let Some(line) = misplaced::entry(asked, (&fitting, &compiled, &judge))
            && let Some(told) = misplaced::told(&line)
        {
            entries.push((denial, format!("{}, {told}", line.alone())));
        }
    }
    entries
}

/// Whether an entry of a directory was to be made, renamed or removed.
fn is_entry(denial: &Denial) -> bool {
    !is_inside(denial) && directory_of(&access(&denial.record)).is_some()
}

/// Whether it was denied to a run inside.
fn is_inside(denial: &Denial) -> bool {
    flask::domain_of(&denial.record.scontext).contains('/')
}

/// Where a run took place, as far as that is known.
pub(super) fn scope(variables: Option<&Variables>) -> Scope {
    let known = |it: &Variables| Scope {
        workspace: it.workspace.clone(),
        home: it.home.clone(),
        tmp: it.tmp.clone(),
        ..Scope::default()
    };
    variables.map(known).unwrap_or_default()
}

/// What a denial is about, if programs outside trust that by its name.
pub(super) fn guarded<'a>(denial: &'a Denial, scope: &Scope) -> Option<Guarded<'a>> {
    let by_another =
        || Guarded::otherwise(denial, scope).filter(|_| guarded::kept(denial).is_none());
    Guarded::by_guard(&denial.record).or_else(by_another)
}
