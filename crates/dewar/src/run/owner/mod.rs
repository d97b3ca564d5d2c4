//! The owner of a run's policy: the profile, what was changed since, and the security server that
//! decides by both.
//!
//! One change at a time: everything is checked and compiled first; then the security server takes
//! the new policy, and the monitor makes it reach what is held already. If that fails, the former
//! policy is put in force again; if that fails, too, the run ends.

mod amendable;
pub(super) mod history;
mod refused;
mod replaced;
mod resolved_profile;
mod rollback;

use super::{
    prepare::Profile,
    serving::{Decider, LoadError, Prepared},
};
use crate::control::{ChangeResult, Counters, PolicyChange, Reply, Request, Service, Status};
use crate::run::{Denial, counts::decisions, record::denial};
use crate::words::denied;
use amendable::{FAST, Giver, takes_reading};
use history::{History, Policies, remember};
use monitor::{ByName, Control, Receipt, RevokeMode, visible};
use profile::{AmendedObject, Amendment, AmendmentKind, Compiled, Documents};
use refused::RefusedChange;
use replaced::Replaced;
use resolved_profile::ResolvedProfile;
use rollback::Rollback;
use std::{
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError},
    thread,
    time::{Duration, Instant, SystemTime},
};

/// How long the end of a run waits for a change that is under way.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long who asks about a denial waits for a change before it looks whether it is to stop.
const MOMENT: Duration = Duration::from_millis(2);

/// What a run is beside its policy.
pub(super) struct Facts {
    /// What never changes of the status.
    pub(super) status: Status,
    /// Not every object manager decides, so nothing can be changed.
    pub(super) undecided: bool,
}

/// Owns the policy of a run that goes on, and changes it.
pub(super) struct Owner {
    decider: Decider,
    facts: Facts,
    control: OnceLock<Control>,
    /// No domain could reach an address when the run started.
    offline: bool,
    /// Its network has nothing but loopback, where every port is granted.
    own_loopback: bool,
    /// Held by a change from its beginning to its end: a program can make that long.
    turn: Mutex<()>,
    /// Held for moments, so that a run answers what it is while it changes.
    state: Mutex<State>,
}

struct State {
    input: PolicyInput,
    compiled: Arc<Compiled>,
    policies: Policies,
    changes: Vec<PolicyChange>,
    /// What was put in the place of the policy that the run began with, other than by amendments.
    replaced: Replaced,
}

/// What a policy is compiled from.
#[derive(Clone)]
struct PolicyInput {
    profile: Arc<ResolvedProfile>,
    /// Those that are enough, in their order.
    amendments: Arc<[Amendment]>,
}

impl Owner {
    /// The owner of what a run starts with.
    pub(super) fn new(decider: Decider, facts: Facts, profile: &Profile) -> Self {
        let (documents, compiled) = (profile.documents.clone(), Arc::clone(&profile.compiled));
        let hosts = compiled.named_hosts().map(|(name, found)| (name.to_owned(), found)).collect();
        let amendments: Arc<[Amendment]> = profile.proposing.amendments.clone().into();
        let profile = Arc::new(ResolvedProfile { documents, hosts });
        let policies = Policies::beginning_with(&profile, &amendments);
        let input = PolicyInput { profile, amendments };
        let replaced = Replaced::nothing(&decider);
        let state = State { input, compiled, policies, changes: Vec::new(), replaced };
        let offline = state.compiled.domains.iter().all(profile::Domain::is_offline);
        let own_loopback = state.compiled.private_loopback == Some(true);
        let (control, state) = (OnceLock::new(), Mutex::new(state));
        Self { decider, facts, control, offline, own_loopback, turn: Mutex::default(), state }
    }

    /// The sandbox runs.
    pub(super) fn begin(&self, control: Control) {
        // It is called once.
        let _ = self.control.set(control);
    }

    /// The policy that held in the state `seqno` of the security server, and every change so far.
    /// Waits a little for one that is under way.
    pub(super) fn history(&self) -> History {
        let until = Instant::now() + PATIENCE;
        while matches!(self.turn.try_lock(), Err(TryLockError::WouldBlock))
            && Instant::now() < until
        {
            thread::sleep(Duration::from_millis(2));
        }
        self.history_in(&self.state())
    }

    fn history_in(&self, state: &State) -> History {
        History::new(&state.policies, &self.facts.status.variables, &state.changes)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a change, and remembers it with what came of it.
    fn change(
        &self,
        (what, amendment): (String, Option<Amendment>),
        input: impl FnOnce(&PolicyInput) -> Result<PolicyInput, RefusedChange>,
        (mode, named): (RevokeMode, ByName<'_>),
    ) -> Reply {
        let when = SystemTime::now();
        let Some(control) = self.control.get() else {
            return Reply::Refused("the run has not started yet".into());
        };
        if self.facts.undecided {
            return Reply::Refused(
                "this run was started with --enforce: not everything in it is decided".into(),
            );
        }
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.state().input.clone();
        // Before anything is swapped: a request that cannot be met is no change.
        let prepared = input(&before).and_then(|input| {
            let is_new = !Arc::ptr_eq(&input.amendments, &before.amendments);
            Ok((self.compile(&input, is_new)?, input))
        });
        let ((compiled, policy), input) = match prepared {
            Ok(prepared) => prepared,
            Err(why) => return Reply::Refused(why.to_string()),
        };
        // What has been cancelled, or came to nothing more, would make every later change dearer.
        let amendments = compiled.amendments.iter().map(|at| input.amendments[*at].clone());
        let input = PolicyInput { amendments: amendments.collect(), ..input };
        let made = (compiled, policy);
        let outcome = match self.put_in_force(control, made, input, (mode, named)) {
            Ok(receipt) => ChangeResult::Receipt(receipt),
            Err(error) if error.is_refusal() => return Reply::Refused(error.to_string()),
            Err(error) => ChangeResult::Failed(error.to_string()),
        };
        let change = PolicyChange { when, what, outcome, amendment };
        let mut state = self.state();
        if change.amendment.is_none() {
            state.replaced.by_profile(&change);
        }
        remember(&mut state.changes, &change);
        Reply::Done(change)
    }

    /// Remembers what the daemon has changed, unless it is a change of this owner's.
    pub(super) fn note(&self, receipt: &Receipt) {
        let Ok(_turn) = self.turn.try_lock() else { return };
        let mut state = self.state();
        if !state.replaced.has_come_to(receipt.seqno) {
            let change = PolicyChange {
                when: SystemTime::now(),
                what: "dewar policy set".into(),
                outcome: ChangeResult::Receipt(receipt.clone()),
                amendment: None,
            };
            remember(&mut state.changes, &change);
        }
    }

    /// Refuses a last amendment that gives nothing if it `is_new`: another profile may deny what
    /// was given before.
    fn compile(
        &self,
        input: &PolicyInput,
        is_new: bool,
    ) -> Result<(Arc<Compiled>, Prepared), RefusedChange> {
        let compiled = input.profile.compile(&self.facts.status.variables, &input.amendments);
        let compiled = compiled?;
        if let Some(line) = compiled.granted_in_vain.as_ref().filter(|_| is_new) {
            return Err(RefusedChange::InVain(visible(line)));
        }
        if self.own_loopback && compiled.private_loopback != Some(true) {
            return Err(RefusedChange::Loopback);
        }
        // A mistake here is one of the compiler of profiles; the running policy stays.
        let policy = self.decider.compile(&compiled.cil)?;
        Ok((Arc::new(compiled), policy))
    }

    fn put_in_force(
        &self,
        control: &Control,
        (compiled, policy): (Arc<Compiled>, Prepared),
        input: PolicyInput,
        (mode, named): (RevokeMode, ByName<'_>),
    ) -> Result<Receipt, LoadError> {
        let former = Arc::clone(&self.state().compiled);
        let rollback = Rollback { owner: self, control, former: &former, armed: true };
        if let Err(error) = self.decider.load(policy, control, mode) {
            if error.is_refusal() {
                rollback.disarm();
            }
            return Err(error);
        }
        let receipt = control.apply_naming(mode, named)?;
        self.decider.applied(receipt.seqno);
        rollback.disarm();
        let mut state = self.state();
        state.replaced.follow(receipt.seqno);
        state.policies.push(receipt.seqno, &input.profile, &input.amendments);
        (state.compiled, state.input) = (compiled, input);
        Ok(receipt)
    }

    fn amend(&self, amendment: Amendment, mode: RevokeMode, giver: &Giver) -> Reply {
        let amendment = self.followed(amendment);
        if self.leaves_reads() && takes_reading(&amendment) && amendment.domain.is_some() {
            return Reply::Refused(FAST.into());
        }
        // Who may do nothing any more must not go on with what it has in memory.
        let takes_all = (AmendmentKind::Revoke, &AmendedObject::All);
        let mode =
            if (amendment.kind, &amendment.object) == takes_all { RevokeMode::End } else { mode };
        let mut what = amendment.to_string();
        if let Some(who) = &amendment.proposed {
            what += &format!(", {who}");
        }
        for (link, real) in &amendment.led {
            what += &format!(", and {}, where {} leads", real.display(), link.display());
        }
        let files = amendment.named_files(&self.facts.status.variables);
        let named = match amendment.kind {
            AmendmentKind::Grant if *giver == Giver::Nobody => ByName::Nothing,
            AmendmentKind::Grant => ByName::Gives(&files),
            AmendmentKind::Revoke => ByName::Takes(&files),
        };
        let input = |input: &PolicyInput| {
            self.check(&amendment, input)?;
            self.check_giver(&amendment, input, giver)?;
            let amendments = input.amendments.iter().cloned().chain([amendment.clone()]).collect();
            Ok(PolicyInput { amendments, ..input.clone() })
        };
        self.change((what, Some(amendment.clone())), input, (mode, named))
    }

    fn leaves_reads(&self) -> bool {
        self.control.get().is_some_and(Control::leaves_reads)
    }

    fn counters(&self) -> Counters {
        let Some(control) = self.control.get() else { return Counters::default() };
        let (denials, _) = control.denials();
        let most = denials.iter().rev().max_by_key(|record| record.count);
        let mut counters = Counters {
            decisions: control
                .decisions()
                .iter()
                .map(|(name, stats)| decisions(name, *stats))
                .collect(),
            denied: denials.iter().map(|record| record.count).sum(),
            most_denied: most.map(|r| format!("{} may not {} {}", r.comm, denied(r), r.object)),
            remarks: control.remarks(),
            ..Counters::default()
        };
        for process in control.processes().unwrap_or_default() {
            *counters.domains.entry(flask::domain_of(&process.context).to_owned()).or_default() +=
                1;
        }
        counters
    }

    /// A denial of now, with the changes that bear on it. `None`, after a moment, as long as one is
    /// under way: what it takes away is nothing to be asked about.
    pub(super) fn denial(&self, record: &monitor::Record) -> Option<Denial> {
        let _turn = match self.turn.try_lock() {
            Ok(turn) => turn,
            Err(TryLockError::Poisoned(turn)) => turn.into_inner(),
            Err(TryLockError::WouldBlock) => {
                std::thread::sleep(MOMENT);
                return None;
            }
        };
        let state = self.state();
        // A policy that nobody has changed has taken nothing.
        if state.changes.is_empty() {
            return Some(Denial { record: record.clone(), profile_rules: Vec::new() });
        }
        let history = self.history_in(&state);
        drop(state);
        Some(denial(&history, record))
    }

    fn denials(&self) -> Vec<Denial> {
        let (denials, _) = self.control.get().map(Control::denials).unwrap_or_default();
        let history = self.history();
        denials.iter().map(|record| denial(&history, record)).collect()
    }

    /// When the run began.
    pub(super) fn started(&self) -> SystemTime {
        self.facts.status.started
    }

    fn status(&self) -> Status {
        let state = self.state();
        Status {
            profile: state.compiled.name.clone(),
            domains: state.compiled.domains.iter().map(|domain| domain.name.clone()).collect(),
            changes: state.changes.len(),
            ..self.facts.status.clone()
        }
    }
}

impl Service for Owner {
    fn connector(&self, name: &str) -> Option<monitor::Connector> {
        self.control.get()?.connector(name)
    }

    fn names(&self) -> (String, Option<String>) {
        (self.facts.status.id.clone(), self.facts.status.name.clone())
    }

    fn answer(&self, request: Request) -> Reply {
        match request {
            Request::Status => Reply::Status(Box::new(self.status())),
            Request::Processes => match self.control.get().map(Control::processes) {
                Some(Ok(processes)) => Reply::Processes(processes),
                Some(Err(error)) => {
                    Reply::Refused(format!("cannot look into the sandbox: {error}"))
                }
                None => Reply::Processes(Vec::new()),
            },
            Request::Counters => Reply::Counters(self.counters()),
            Request::Denials => Reply::Denials(self.denials()),
            Request::History => Reply::History(self.state().changes.clone()),
            // It is answered with descriptors.
            Request::Connector(_) => Reply::Refused("a question without its descriptors".into()),
            Request::Amend(amendment, mode) => self.amend(amendment, mode, &Giver::Person),
            Request::Admit(amendment, told) => {
                let giver = told.map_or(Giver::Nobody, Giver::Told);
                self.amend(amendment, RevokeMode::Repair, &giver)
            }
            Request::Taken(amendments) => self.taken(&amendments),
            Request::Load(new, mode) => {
                let load = |input: &PolicyInput| {
                    let documents = Documents::from_texts(new.name.clone(), &new.texts);
                    let documents = documents?;
                    let profile = Arc::new(ResolvedProfile { documents, hosts: new.hosts.clone() });
                    Ok(PolicyInput { profile, amendments: input.amendments.clone() })
                };
                let what = (format!("dewar policy load {}", new.name), None);
                self.change(what, load, (mode, ByName::Nothing))
            }
        }
    }
}

/// The variables of a run, for those who are not in it.
pub(super) fn status(
    id: &str,
    name: Option<String>,
    command: Vec<String>,
    profile: &Profile,
) -> Status {
    Status {
        id: id.to_owned(),
        name,
        pid: std::process::id(),
        started: SystemTime::now(),
        command,
        profile: profile.compiled.name.clone(),
        argument: profile.argument.clone(),
        directory: std::env::current_dir().unwrap_or_default(),
        variables: profile.variables.clone(),
        domains: profile.compiled.domains.iter().map(|domain| domain.name.clone()).collect(),
        changes: 0,
    }
}
