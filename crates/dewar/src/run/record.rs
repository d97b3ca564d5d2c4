//! What is kept of a run.

use super::{
    counts::Spent,
    link::Answered,
    owner::history::{History, MOST_CHANGES},
    planted::PlantedRecord,
    unseen::Unseen,
};
use crate::control::{Decisions, Denial, PolicyChange};
use monitor::{Deed, DeedKind, Record};
use profile::{Amendment, AmendmentKind};
use serde::{Deserialize, Serialize};
use std::{borrow::Cow, collections::BTreeSet, path::PathBuf};

/// What is kept of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct RunRecord {
    /// What `dewar ps` called it.
    pub(crate) id: String,
    /// What `dewar run --name` called it.
    pub(crate) name: Option<String>,
    /// When it ended, in seconds since 1970.
    pub(crate) time: f64,
    /// When it began; 0 if nobody knows.
    pub(crate) started: f64,
    /// `all` or `fast`.
    pub(crate) mode: String,
    /// The command and its arguments.
    pub(crate) command: Vec<String>,
    /// The profile.
    pub(crate) profile: String,
    /// The profile as it was named, and the directory where that was.
    pub(crate) argument: String,
    pub(crate) directory: PathBuf,
    /// Where what was learned from it went, if anything was.
    pub(crate) learned: Option<PathBuf>,
    /// What the variables of the profile stood for; what the run could not change is among them.
    pub(crate) variables: Option<profile::Variables>,
    /// The exit status that a shell would show; 0 while it goes on.
    pub(crate) status: i32,
    /// It has not ended, and this is what is on record of it so far.
    #[serde(skip)]
    pub(crate) goes_on: bool,
    /// What was denied to it and is not in its view, as far as that can be told while it goes on.
    #[serde(skip)]
    pub(crate) out_of_view: Vec<String>,
    /// Decisions by object manager.
    pub(crate) decisions: Vec<Decisions>,
    /// What deciding took, by system call, the dearest first; empty unless it was asked for.
    #[serde(default)]
    pub(crate) spent: Vec<Spent>,
    /// Denials, each kind once.
    pub(crate) denials: Vec<Denial>,
    /// Denials that were not kept.
    pub(crate) dropped: u64,
    /// What the kernel refused root although policy grants it, by the capability that would have
    /// helped.
    #[serde(default)]
    pub(crate) lacking: Vec<(String, u64)>,
    /// What was denied to nobody, and may be why the command failed all the same.
    pub(crate) remarks: Vec<String>,
    /// That the command was ended at a limit of its profile.
    pub(crate) time_limit: Option<String>,
    /// What the command names outside of the workspace, and did not see.
    #[serde(default)]
    pub(crate) unseen: Vec<Unseen>,
    /// Directories of `PATH` that it did not see.
    #[serde(default)]
    pub(crate) path_unseen: Vec<PathBuf>,
    /// That another program was run than would have been outside.
    #[serde(default)]
    pub(crate) another: Option<String>,
    /// Hosts that the profile grants and that had no address at the start, each with the domain.
    #[serde(default)]
    pub(crate) unfound: BTreeSet<(String, String)>,
    /// That the workspace is a part of a project, of which the rest is out of reach.
    #[serde(default)]
    pub(crate) above: Option<String>,
    /// Variables that the profile kept out, by name or for what they hold.
    #[serde(default)]
    pub(crate) kept_out: Vec<String>,
    /// Layers that refused without a record, if they refused anything.
    pub(crate) unrecorded: Vec<String>,
    /// Changes of its policy.
    pub(crate) changes: Vec<PolicyChange>,
    /// What was asked, and answered.
    pub(crate) answers: Vec<Answered>,
    /// Whether the profile sets a guard, so that what follows was looked for.
    pub(crate) guarded: bool,
    /// What programs outside would execute because of it.
    pub(crate) planted: Vec<PlantedRecord>,
    /// How much more of that there was.
    pub(crate) planted_more: u64,
    /// How many runs began inside of it.
    #[serde(default)]
    pub(crate) runs_inside: u32,
    /// What was written, removed, executed and contacted, as far as the monitor decided it.
    pub(crate) deeds: Vec<Deed>,
    /// How much more of each kind there was.
    pub(crate) deeds_more: Vec<(DeedKind, u64)>,
}

/// The name of the compiled policy in the security server's messages.
pub(super) const POLICY_NAME: &str = "policy";

impl RunRecord {
    /// Its name, or else its id.
    pub(crate) fn called(&self) -> &str {
        self.name.as_ref().unwrap_or(&self.id)
    }

    /// The profile to look at or to change, as it was named: of a run that was learned from, what
    /// was learned.
    pub(crate) fn fitted(&self) -> Cow<'_, str> {
        let learned = self.learned.as_ref().filter(|file| file.exists());
        learned.map_or_else(|| (&*self.argument).into(), |file| file.to_string_lossy())
    }

    /// All that it was granted while it ran; `None` if nobody knows, as another profile was in
    /// force, or not every change was kept.
    pub(crate) fn granted(&self) -> Option<Vec<Amendment>> {
        if self.learned.is_some() {
            return None;
        }
        let all = self.changes.iter().map(|change| change.amendment.clone());
        let all: Vec<Amendment> = all.collect::<Option<_>>()?;
        let is_grant = |it: &Amendment| it.kind == AmendmentKind::Grant;
        let is_whole = all.len() < MOST_CHANGES;
        is_whole.then(|| all.into_iter().filter(is_grant).collect())
    }
}

pub(super) fn denial(history: &History, record: &Record) -> Denial {
    let mut profile_rules = Vec::new();
    if let Some(compiled) = history.policy(record.seqno) {
        let lines = record.rules.iter().filter_map(|rule| policy_line(rule));
        let granting = lines.filter_map(|line| compiled.origin(line));
        let (subject, object) =
            (flask::type_of(&record.scontext), flask::type_of(&record.tcontext));
        let missing: Vec<&str> = record.missing.iter().map(String::as_str).collect();
        let revoked = compiled.revoked(subject, object, &missing);
        let withheld = revoked.or_else(|| compiled.withheld(subject, object));
        profile_rules.extend(granting.chain(withheld).map(|origin| origin.to_string()));
        if profile_rules.is_empty() {
            profile_rules.extend(compiled.shown(subject, object).map(|origin| origin.to_string()));
        }
    }
    Denial { record: record.clone(), profile_rules }
}

/// The line of the compiled policy that a rule in an explanation stands in.
fn policy_line(rule: &str) -> Option<usize> {
    let place = rule.split(|c: char| c.is_whitespace() || "()[]".contains(c));
    let mut places = place.filter_map(|word| word.strip_prefix(POLICY_NAME)?.strip_prefix(':'));
    places.find_map(|rest| rest.split(':').next()?.parse().ok())
}
