//! The domains that a run can reach: which exec leads where.

use flask::{
    AccessVector, Class, FileRule, InitialSid, LabelError, Question, SecurityServer, Sid,
    Unreachable, perm,
};

/// The classes of files that a program can make.
const MADE: [Class; 5] =
    [Class::File, Class::Dir, Class::LnkFile, Class::FifoFile, Class::SockFile];

/// A directory in which some domain's new files get another label than its: domain, label of the
/// directory, and the new label, if policy computes one.
pub(super) type Relabel = (Sid, Sid, Option<Sid>);

fn relabels(server: &dyn SecurityServer, domains: &[Sid], types: &[Sid]) -> Vec<Relabel> {
    let mut found = Vec::new();
    for (&ssid, &tsid) in domains.iter().flat_map(|it| types.iter().map(move |tsid| (it, tsid))) {
        for tclass in MADE {
            let made = server.compute_create(Question { ssid, tsid, tclass }, None).ok();
            if made != Some(tsid) && !found.contains(&(ssid, tsid, made)) {
                found.push((ssid, tsid, made));
            }
        }
    }
    found
}

/// What a run can come to.
pub(super) struct Closure {
    /// The domains that it can reach.
    pub(super) domains: Vec<Sid>,
    /// Every label that a file of it can have.
    pub(super) types: Vec<Sid>,
    /// Where these domains make files of another label.
    pub(super) relabels: Vec<Relabel>,
}

impl Closure {
    /// The same for a run whose files have the labels `types` at first.
    pub(super) fn new(
        server: &dyn SecurityServer,
        mut types: Vec<Sid>,
    ) -> Result<Self, Unreachable> {
        loop {
            let domains = reachable(server, &types)?;
            let relabels = relabels(server, &domains, &types);
            let before = types.len();
            for label in relabels.iter().filter_map(|(.., made)| *made) {
                if !types.contains(&label) {
                    types.push(label);
                }
            }
            if types.len() == before {
                return Ok(Self { domains, types, relabels });
            }
        }
    }
}

/// Every label that a file can have when it is first met.
pub(crate) fn file_types(rules: &[FileRule]) -> Vec<Sid> {
    let mut types: Vec<Sid> = rules.iter().filter_map(|rule| rule.sid).collect();
    types.push(InitialSid::File.into());
    types.sort_unstable();
    types.dedup();
    types
}

/// The initial domain and every domain that execs can lead to from it.
pub(super) fn reachable(
    server: &dyn SecurityServer,
    types: &[Sid],
) -> Result<Vec<Sid>, Unreachable> {
    let mut domains = vec![Sid::from(InitialSid::Init)];
    let mut next = 0;
    while let Some(&domain) = domains.get(next) {
        next += 1;
        for &file in types {
            if let Some(new) = entered(server, domain, file)?
                && !domains.contains(&new)
            {
                domains.push(new);
            }
        }
    }
    Ok(domains)
}

/// Whether policy computes another domain for some file that some domain may execute.
pub(super) fn moves(
    server: &dyn SecurityServer,
    domains: &[Sid],
    types: &[Sid],
) -> Result<bool, Unreachable> {
    for &domain in domains {
        for &file in types {
            let executes = allows(server, (domain, file, Class::File), perm::file::EXECUTE)?;
            if executes && computed(server, domain, file) != Ok(None) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

fn allows(
    server: &dyn SecurityServer,
    (ssid, tsid, tclass): (Sid, Sid, Class),
    requested: AccessVector,
) -> Result<bool, Unreachable> {
    let decision = server.compute_av(Question { ssid, tsid, tclass })?;
    Ok(decision.permissive || decision.allowed.contains(requested))
}

/// The other domain that policy computes for `domain` when that executes a file labelled `file`;
/// whether it may be entered is another question.
///
/// # Errors
///
/// Why policy computes none.
pub fn computed(
    server: &dyn SecurityServer,
    domain: Sid,
    file: Sid,
) -> Result<Option<Sid>, LabelError> {
    let question = Question { ssid: domain, tsid: file, tclass: Class::Process };
    let new = server.compute_create(question, None)?;
    Ok((new != domain).then_some(new))
}

/// The other domain that `domain` enters by executing a file labelled `file`, if policy lets it.
///
/// # Errors
///
/// The security server does not answer.
pub fn entered(
    server: &dyn SecurityServer,
    domain: Sid,
    file: Sid,
) -> Result<Option<Sid>, Unreachable> {
    if !allows(server, (domain, file, Class::File), perm::file::EXECUTE)? {
        return Ok(None);
    }
    let Ok(Some(new)) = computed(server, domain, file) else { return Ok(None) };
    Ok(may_enter(server, domain, file, new)?.then_some(new))
}

/// Whether policy lets `domain` enter `new` by executing a file labelled `file`.
fn may_enter(
    server: &dyn SecurityServer,
    domain: Sid,
    file: Sid,
    new: Sid,
) -> Result<bool, Unreachable> {
    let transition = (domain, new, Class::Process);
    Ok(allows(server, transition, perm::process::TRANSITION)?
        && allows(server, (new, file, Class::File), perm::file::ENTRYPOINT)?)
}

/// Whether `domain`, which may execute a file labelled `file`, can run it: in the domain that
/// policy computes, and in no other.
pub(super) fn runs(
    server: &dyn SecurityServer,
    domain: Sid,
    file: Sid,
) -> Result<bool, Unreachable> {
    match computed(server, domain, file) {
        Ok(Some(new)) => may_enter(server, domain, file, new),
        Ok(None) => allows(server, (domain, file, Class::File), perm::file::EXECUTE_NO_TRANS),
        Err(_) => Ok(false),
    }
}
