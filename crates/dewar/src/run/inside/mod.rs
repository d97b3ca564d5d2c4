//! A run inside a run.
//!
//! The kernel lets a process have one supervisor of its calls, so a second monitor cannot decide
//! inside the first (docs/decisions/inside.md). A run that asks for the profile which holds already
//! gets its command started in the run around it, where that profile decides, unless policy has
//! changed since. For any other, the monitor around it decides by both ([`enter`]). What cannot be
//! held so is refused by name, before anything is started.

mod enter;

pub(super) use enter::compile;

use super::{
    RunRequest, UseDaemon,
    prepare::{DEFAULT, Profile},
};
use crate::{failure::Usage, output::tell, trust};
use anyhow::bail;
use confine::launch::{CommandStatus, Inherited};
use monitor::Enforce;
use profile::{Documents, Source, Variables};
use rustix::process::{
    DumpableBehavior, Resource, dumpable_behavior, getrlimit, set_dumpable_behavior,
};
use std::{
    ffi::OsString,
    os::unix::{ffi::OsStrExt as _, process::CommandExt as _},
    path::Path,
    process::Command,
};

/// Says inside of a run which one it is, and under what.
pub(super) const VARIABLE: &str = "DEWAR_RUN";

/// The variable for run `id`: its name, and what its policy was made from, unless something was
/// added to that or left out.
pub(super) fn variable(id: &str, request: &RunRequest, profile: &Profile) -> (OsString, OsString) {
    let is_plain = request.cil.is_empty()
        && !request.allow_degraded
        && request.without.is_empty()
        && request.enforce == Enforce::ALL;
    let Variables { workspace, home, .. } = &profile.variables;
    let mark = is_plain.then(|| mark(&profile.documents, workspace, home));
    (VARIABLE.into(), format!("{id}:{}", mark.unwrap_or_default()).into())
}

/// What a policy is made from: the texts, and the places that variables stand for. A Dewar that was
/// built otherwise says the same.
fn mark(documents: &Documents, workspace: &Path, home: &Path) -> String {
    let texts = documents.texts();
    let texts = texts.iter().map(|(_, text)| text.as_bytes());
    digest(texts.chain([workspace, home].map(|path| path.as_os_str().as_bytes())))
}

fn digest<'a>(parts: impl Iterator<Item = &'a [u8]>) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
    }
    hasher.finalize().to_hex().to_string()
}

/// Whether this process is in a run: there, and nowhere else, a process is told that nobody may
/// look at it while its monitor may. The environment is not asked, which anybody can have set.
pub(crate) fn is_inside() -> bool {
    let Ok(DumpableBehavior::Dumpable) = dumpable_behavior() else { return false };
    if set_dumpable_behavior(DumpableBehavior::NotDumpable).is_err() {
        return false;
    }
    let inside = matches!(dumpable_behavior(), Ok(DumpableBehavior::Dumpable));
    let _ = set_dumpable_behavior(DumpableBehavior::Dumpable);
    inside
}

/// Whether this process has entered a domain of the run around it, where a command would have that
/// one's rights and not those that a run begins with: the mark by which the monitor knows its
/// processes (`mediation/src/subject/mark.rs`) holds the number of the entry.
fn has_entered() -> bool {
    getrlimit(Resource::Locks).current.is_some_and(|mark| mark >> 32 != 0)
}

/// Whether the run around still has the policy that it was started with, as its monitor says by a
/// file that no kernel has.
fn is_unchanged() -> bool {
    const UNCHANGED: &str = "/proc/self/attr/dewar/unchanged";
    std::fs::File::options().write(true).open(UNCHANGED).is_ok()
}

/// What the run around cannot follow, with whether it is asked for. What only says more or less is
/// not among it.
fn not_followed(request: &RunRequest) -> [(bool, &'static str); 13] {
    [
        (request.dry_run, "--dry-run"),
        (!request.cil.is_empty(), "--cil"),
        (request.audit.is_some(), "--audit"),
        (request.name.is_some(), "--name"),
        (request.json, "--json"),
        (request.ask.is_some(), "--ask"),
        (request.mode.is_some(), "--mode"),
        (matches!(request.daemon, UseDaemon::Insist), "--daemon"),
        (request.record_all, "--record all"),
        (!request.without.is_empty(), "--without"),
        (request.enforce != Enforce::ALL, "--enforce"),
        (request.stats, "--stats"),
        (request.show_env, "--show-env"),
    ]
}

/// Runs the command in the run that this process is in, under what is asked for; `None` outside of
/// any run.
pub(super) fn run(
    request: &RunRequest,
    inherited: &Inherited,
) -> anyhow::Result<Option<CommandStatus>> {
    if !is_inside() {
        return Ok(None);
    }
    let told = std::env::var(VARIABLE).unwrap_or_default();
    let (id, around) = told.split_once(':').unwrap_or(("of another name", ""));
    // Behind it stands the domain, in a run inside.
    let id = id.split('/').next().unwrap_or(id);
    let advice = "Start the command without `dewar run`: the policy of the run around it holds";
    if let Some((_, option)) = not_followed(request).into_iter().find(|(is, _)| *is) {
        bail!(
            "this is inside of run {id} already, which cannot follow {option}; nothing was started. {advice}"
        );
    }
    // Of a home that the view leaves out, only the name is left.
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let workspace = real(request.workspace.as_deref().unwrap_or(Path::new(".")));
    let home = real(&std::env::home_dir().unwrap_or_default());
    let project = match request.profile {
        Some(_) => None,
        None => trust::find(&workspace, None)?,
    };
    let documents = match &project {
        Some(project) => project.documents.clone(),
        None => {
            let named = request.profile.as_deref().unwrap_or(DEFAULT);
            Documents::read(&Source::from_argument(named))?
        }
    };
    let is_same = !around.is_empty() && mark(&documents, &workspace, &home) == around;
    // What holds already, its user has trusted.
    if let Some(project) = project.filter(|_| !is_same) {
        bail!(Usage(format!(
            "{} is not used unasked inside of run {id}, where nobody can say whether it is trusted: name it, by `-p {}`, or \
             another profile; nothing was started",
            project.shown(),
            project.shown()
        )));
    }
    if !is_same || has_entered() || !is_unchanged() {
        return enter::run(request, inherited, (id, &documents)).map(Some);
    }
    tell!(
        "dewar: inside of run {id}, which was started with this very profile: the command runs in it, by its policy, limits \
         and record"
    );
    let error = Command::new(&request.command[0]).args(&request.command[1..]).exec();
    let errno = rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::NOENT);
    super::summary::tell_not_executed(&request.command[0], errno, None);
    Ok(Some(CommandStatus::NotExecuted(errno)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_tells_what_a_policy_is_made_from_whoever_computes_it() {
        let digest = |parts: &[&str]| digest(parts.iter().map(|part| part.as_bytes()));
        assert_ne!(digest(&["a", "bc"]), digest(&["ab", "c"]));
        let empty = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262";
        assert_eq!(digest(&[]), empty, "the digest of nothing, by BLAKE3's own test vectors");
    }
}
