//! What the kernel was told at the start of a run: filter, envelope, view and capabilities hold
//! until its end.
//!
//! One constructor, [`KernelPolicy::new`], says what the kernel can be told of a policy.
//! [`Settled`] is what it was told of the first. Every later policy is compared with that before
//! anything happens ([`Settled::compare`]): what the kernel does by itself cannot be taken back by
//! deciding, and what it does not let through cannot be given.

mod conflict;
mod files;
mod inside;

pub use conflict::Conflict;
pub use files::OutOfReach;

use crate::{
    filter::Traps,
    launch::Envelope,
    plan::{Plan, Rights, entered},
    policy::{KernelPolicy, Sockets, allowed},
};
use files::{Grants, Hidden};
use flask::{AccessVector, Class, SecurityServer, Sid, Unreachable, perm};
use landlock::AccessFs;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// A permission on a domain's own label that the kernel grants without asking anybody, for some
/// filters.
struct Undecided {
    name: &'static str,
    class: Class,
    requested: AccessVector,
    when: fn(&Traps) -> bool,
}

const UNDECIDED: [Undecided; 6] = [
    Undecided {
        name: "fork",
        class: Class::Process,
        requested: perm::process::FORK,
        when: |traps| traps.forks,
    },
    Undecided {
        name: "unix_stream_socket create",
        class: Class::UnixStreamSocket,
        requested: perm::socket::CREATE,
        when: |_| true,
    },
    Undecided {
        name: "unix_stream_socket listen",
        class: Class::UnixStreamSocket,
        requested: perm::socket::LISTEN,
        when: |traps| !traps.listens,
    },
    Undecided {
        name: "tcp_socket listen",
        class: Class::TcpSocket,
        requested: perm::socket::LISTEN,
        when: |traps| !traps.listens,
    },
    // Of the next, somebody has one only in a network of the run's own.
    Undecided {
        name: "udp_socket create",
        class: Class::UdpSocket,
        requested: perm::socket::CREATE,
        when: |traps| !traps.datagrams,
    },
    Undecided {
        name: "rawip_socket create",
        class: Class::RawipSocket,
        requested: perm::socket::CREATE,
        when: |traps| !traps.datagrams,
    },
];

/// Where an envelope grants executing in vain: nothing is there, and around it nothing is granted.
fn missing(envelope: &Envelope) -> Vec<PathBuf> {
    let executes = envelope.rules.iter().filter(|(_, rights)| rights.contains(AccessFs::Execute));
    let (there, missing): (Vec<&Path>, Vec<&Path>) =
        executes.map(|(path, _)| path.as_path()).partition(|path| path.symlink_metadata().is_ok());
    let is_granted = |path: &Path| there.iter().any(|around| path.starts_with(around));
    missing.into_iter().filter(|path| !is_granted(path)).map(Path::to_owned).collect()
}

/// What holds in the kernel until the end of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Settled {
    /// The numbers of the domains that processes are told apart by.
    domains: Vec<u32>,
    traps: Traps,
    /// What the kernel grants without asking: the number of a domain, and the row of [`UNDECIDED`].
    undecided: Vec<(u32, usize)>,
    sockets: Sockets,
    /// The capabilities that the first policy granted; and those that processes have, some whatever
    /// policy says.
    capabilities: u64,
    kept: u64,
    /// What the first policy granted and hid.
    grants: Grants,
    /// What the envelope grants below each path; `None` without an envelope.
    envelope: Option<Vec<(PathBuf, u64)>>,
    /// Where the envelope was to grant executing, and nothing was.
    #[serde(default)]
    missing: Vec<PathBuf>,
    view: Hidden,
}

/// What a policy takes that the kernel goes on granting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uncovered {
    /// Named for people.
    pub what: String,
    hint: &'static str,
    /// Who loses it.
    pub domains: Vec<Sid>,
}

impl Settled {
    /// What a filter with these traps, this envelope and this view do from now on.
    pub(crate) fn new(
        policy: &KernelPolicy,
        server: &dyn SecurityServer,
        traps: Traps,
        spec: &crate::launch::LaunchSpec,
    ) -> Result<Self, Unreachable> {
        let mut undecided = Vec::new();
        for &domain in &policy.plan.domains {
            for (row, what) in UNDECIDED.iter().enumerate() {
                let granted = allowed(server, domain, what.class)?.contains(what.requested);
                if (what.when)(&traps) && granted {
                    undecided.push((domain.get(), row));
                }
            }
        }
        let envelope = spec.envelope.as_ref().map(|envelope| {
            envelope.rules.iter().map(|(path, rights)| (path.clone(), rights.bits())).collect()
        });
        Ok(Self {
            domains: policy.plan.domains.iter().map(|domain| domain.get()).collect(),
            traps,
            undecided,
            sockets: policy.sockets.clone(),
            capabilities: policy.capabilities,
            kept: spec.capabilities,
            grants: Grants::of(&policy.plan),
            envelope,
            missing: spec.envelope.as_ref().map(missing).unwrap_or_default(),
            view: Hidden::by(&spec.view),
        })
    }

    /// Whether the kernel lets nobody execute at `path`, although policy did at the start, as
    /// nothing was there.
    #[must_use]
    pub fn was_missing(&self, path: &Path) -> bool {
        self.missing.iter().any(|missing| path.starts_with(missing))
    }

    /// Whether opens for reading never come to the monitor.
    #[must_use]
    pub fn reads_pass(&self) -> bool {
        self.traps.reads_pass()
    }

    /// Whether the kernel was given an envelope.
    #[must_use]
    pub fn has_envelope(&self) -> bool {
        self.envelope.is_some()
    }

    /// Whether calls that only look at a name come to the monitor.
    #[must_use]
    pub fn looks_are_decided(&self) -> bool {
        self.traps.looks
    }

    /// Whether what datagrams reach in the internet is decided: in a network of the run's own it
    /// need not be.
    #[must_use]
    pub fn datagrams_are_decided(&self) -> bool {
        self.traps.datagrams
    }

    /// What `now` takes while the kernel goes on granting it.
    ///
    /// # Errors
    ///
    /// [`Conflict`]: what it would give in vain.
    pub fn compare(
        &self,
        server: &dyn SecurityServer,
        now: &KernelPolicy,
    ) -> Result<Vec<Uncovered>, Conflict> {
        if now.plan.domains.iter().any(|domain| !self.domains.contains(&domain.get())) {
            return Err(Conflict::Domain);
        }
        self.refuse_given(now)?;
        let mut taken = Vec::new();
        let mut take = |what: String, hint, domains: Vec<Sid>| {
            if !domains.is_empty() {
                taken.push(Uncovered { what, hint, domains });
            }
        };
        for (row, what) in UNDECIDED.iter().enumerate() {
            take(what.name.into(), "", self.losing(server, now, row)?);
        }
        for (bit, name) in Class::Capability.permissions().iter().enumerate() {
            let capability = AccessVector(1 << bit);
            if self.capabilities & 1 << bit != 0 {
                let mut losing = Vec::new();
                for &domain in &now.plan.domains {
                    let own = allowed(server, domain, Class::Capability)?;
                    losing.extend((!own.contains(capability)).then_some(domain));
                }
                take(format!("capability {name}"), "", losing);
            }
        }
        let all = || now.plan.domains.clone();
        let grants = Grants::of(&now.plan);
        if self.reads_pass() && self.grants.loses_reads(&grants) {
            let what = "reading files, which mode `fast` leaves to the kernel, or writing or \
                        executing where other rules keep it from being told apart from reading";
            let hint = ". Or take writing (--write) or executing (--exec) from a whole directory, \
                        or start it in mode `all`";
            take(what.into(), hint, all());
        }
        if !self.traps.looks
            && let Some(path) = self.grants.newly_hidden(&grants, &self.view)
        {
            take(
                format!("seeing that {} exists", path.display()),
                ". Or deny it, and do not hide it",
                all(),
            );
        }
        Ok(taken)
    }

    /// Of the domains that can be entered, or that a process may still be in, those that lose what
    /// row `row` names.
    fn losing(
        &self,
        server: &dyn SecurityServer,
        now: &KernelPolicy,
        row: usize,
    ) -> Result<Vec<Sid>, Unreachable> {
        let what = &UNDECIDED[row];
        let mut losing = Vec::new();
        for &domain in &now.plan.domains {
            let was_granted = self.undecided.contains(&(domain.get(), row));
            if was_granted && !allowed(server, domain, what.class)?.contains(what.requested) {
                losing.push(domain);
            }
        }
        Ok(losing)
    }

    fn refuse_given(&self, now: &KernelPolicy) -> Result<(), Conflict> {
        let given = |what: &str| Err(Conflict::Given(what.into()));
        let decided = (self.traps.datagrams, self.traps.listens);
        if let Some(what) = self.sockets.undecided(&now.sockets, decided) {
            return given(what);
        }
        let added = now.capabilities & !self.kept;
        let names = Class::Capability.permissions().iter().enumerate();
        if let Some((_, name)) = names.into_iter().find(|(bit, _)| added & 1 << bit != 0) {
            return given(&format!("capability {name}, which every process has lost for good"));
        }
        let plan = &now.plan;
        if let Some(path) = self.not_in_envelope(plan, AccessFs::Execute.into()) {
            return given(&format!(
                "executing {}: what can be executed at most was settled in the kernel",
                path.display()
            ));
        }
        let reads = AccessFs::ReadFile | AccessFs::ReadDir;
        if self.reads_pass()
            && let Some(path) = self.not_in_envelope(plan, reads)
        {
            return given(&format!(
                "reading {}: this run is in mode `fast`, so what can be read was settled in the kernel",
                path.display()
            ));
        }
        Ok(())
    }

    /// A place where `plan` grants more of `rights` than the envelope.
    fn not_in_envelope<'a>(&self, plan: &'a Plan, rights: Rights) -> Option<&'a std::path::Path> {
        let envelope = self.envelope.as_ref()?;
        let inside = |path: &std::path::Path| {
            let around = envelope.iter().filter(|(top, _)| path.starts_with(top));
            around.fold(0, |all, (_, rights)| all | rights)
        };
        let places = plan.places.iter().chain(&plan.patterns);
        let path = |place: &'a crate::plan::Subtree| place.tree.path.as_path();
        places
            .filter(|place| (place.any & rights).bits() & !inside(path(place)) != 0)
            .map(path)
            .next()
    }

    /// Of the domains that processes may be in, those whose processes end: who loses what the
    /// kernel goes on granting, and who could enter such a domain. What a domain without a way in
    /// has lost, its last processes end with.
    ///
    /// # Errors
    ///
    /// The security server does not answer.
    pub fn ending(
        &self,
        server: &dyn SecurityServer,
        now: &KernelPolicy,
        taken: &[Uncovered],
    ) -> Result<Vec<(Sid, String)>, Unreachable> {
        let mut ending: Vec<(Sid, String)> = Vec::new();
        for uncovered in taken {
            let name = |domain: &Sid| (*domain, uncovered.what.clone());
            ending.extend(uncovered.domains.iter().map(name));
        }
        let types = crate::plan::file_types(&now.labels.files);
        let mut at = 0;
        while let Some((into, what)) = ending.get(at).cloned() {
            at += 1;
            for &from in &now.plan.domains {
                let known = ending.iter().any(|(domain, _)| *domain == from);
                if known || from == into {
                    continue;
                }
                for &file in &types {
                    if entered(server, from, file)? == Some(into) {
                        ending.push((from, what.clone()));
                        break;
                    }
                }
            }
        }
        let domains = self.domains.iter().filter_map(|number| Sid::new(*number));
        for domain in domains.filter(|domain| !now.plan.domains.contains(domain)) {
            for (row, what) in UNDECIDED.iter().enumerate() {
                let had = self.undecided.contains(&(domain.get(), row));
                if had && !allowed(server, domain, what.class)?.contains(what.requested) {
                    ending.push((domain, what.name.into()));
                    break;
                }
            }
        }
        Ok(ending)
    }

    /// Whether a change to the policy of `server` can hold; by killing if need be, if `kills`.
    ///
    /// # Errors
    ///
    /// [`Conflict`]: why not.
    pub fn admits(&self, server: &dyn SecurityServer, kills: bool) -> Result<(), Conflict> {
        let taken = self.compare(server, &KernelPolicy::new(server)?)?;
        refuse_taken(&taken, kills)
    }
}

/// What the kernel goes on granting is taken by killing, or not at all.
///
/// # Errors
///
/// [`Conflict::Taken`], unless `kills`.
pub fn refuse_taken(taken: &[Uncovered], kills: bool) -> Result<(), Conflict> {
    match taken.first() {
        Some(Uncovered { what, hint, .. }) if !kills => {
            Err(Conflict::Taken { what: what.clone(), hint })
        }
        _ => Ok(()),
    }
}

/// Whether the policy of `server` can hold in the run that has said `settled` of itself (as JSON);
/// by killing if need be, if `kills`. Whoever changes the policy of a run that goes on asks this
/// first, of a server that nobody else has yet.
///
/// # Errors
///
/// [`Conflict`]: why not.
pub fn admits(settled: &[u8], server: &dyn SecurityServer, kills: bool) -> Result<(), Conflict> {
    let settled: Settled = serde_json::from_slice(settled).map_err(|_| Conflict::Unreadable)?;
    settled.admits(server, kills)
}
