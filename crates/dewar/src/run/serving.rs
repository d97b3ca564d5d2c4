//! Who decides for a run: the daemon's security server, or one of its own.

use super::{RunRequest, UseDaemon, prepare::Profile, record::POLICY_NAME};
use crate::{failure::Usage, output::tell};
use anyhow::bail;
use daemon_client::{ClientError, DaemonDirs, NewRun, Policy, Registration, Writer};
use flask::{SecurityServer, Seqno};
use monitor::{ApplyError, Control, Receipt, RevokeMode, Trail};
use security_server::{PolicyErrors, Server};
use std::{path::PathBuf, sync::Arc};

/// The security server of a run, and how its policy is replaced.
pub(super) struct Serving {
    pub(super) server: Arc<dyn SecurityServer>,
    decider: Decider,
}

/// A security server whose policy can be replaced.
#[derive(Clone)]
pub(super) struct Decider {
    holds: Holds,
    /// What the command line adds to the policy of the profile.
    added: Arc<[(String, String)]>,
}

#[derive(Clone)]
enum Holds {
    Own(Arc<Server>),
    Daemon(Arc<Registration>),
}

impl Decider {
    /// Compiles a policy in CIL, with what the command line added to the first.
    pub(super) fn compile(&self, cil: &str) -> Result<Prepared, PolicyErrors> {
        let files = with_added(cil, &self.added);
        let policy = security_server::cil::compile(&files)?;
        Ok(Prepared { files, policy })
    }

    /// The state of the security server; `None` if it does not answer.
    pub(super) fn seqno(&self) -> Option<u32> {
        let seqno = match &self.holds {
            Holds::Own(server) => server.seqno(),
            Holds::Daemon(registration) => registration.server.seqno(),
        };
        seqno.ok().map(|seqno| seqno.0)
    }

    /// The sandbox follows the policy of the state `seqno`: the next change is compared with that.
    pub(super) fn applied(&self, seqno: u32) {
        if let Holds::Daemon(registration) = &self.holds {
            registration.server.applied(Seqno(seqno));
        }
    }

    /// Lets it decide by another policy, if the run can follow that. It does not hold in the
    /// sandbox before that is told.
    pub(super) fn load(
        &self,
        prepared: Prepared,
        control: &Control,
        mode: RevokeMode,
    ) -> Result<(), LoadError> {
        match &self.holds {
            Holds::Own(server) => {
                // Of a server that nobody has: what is refused never decides anything.
                let proposed = server.fork();
                proposed.reload(prepared.policy.clone())?;
                control.admits(&proposed, mode)?;
                server.reload(prepared.policy)?;
                Ok(())
            }
            Holds::Daemon(registration) => {
                let policy = Policy { files: prepared.files, ..Policy::default() };
                registration.load(&policy, mode.kills())?;
                Ok(())
            }
        }
    }
}

/// Why a policy was not loaded. The former one is in force.
#[derive(Debug, thiserror::Error)]
pub(super) enum LoadError {
    /// The run cannot follow it: that would be no change.
    #[error(transparent)]
    Conflict(#[from] confine::Conflict),
    /// It is no policy.
    #[error(transparent)]
    Policy(#[from] PolicyErrors),
    /// The security server does not take it.
    #[error(transparent)]
    Load(#[from] security_server::LoadError),
    /// The daemon does not.
    #[error(transparent)]
    Daemon(#[from] ClientError),
    /// The sandbox cannot be made to follow.
    #[error(transparent)]
    Apply(#[from] ApplyError),
}

impl LoadError {
    /// Whether nothing was tried, because the run cannot follow the policy.
    pub(super) fn is_refusal(&self) -> bool {
        matches!(self, Self::Conflict(_) | Self::Daemon(ClientError::Conflict(_)))
    }
}

/// A policy that is ready to be loaded.
pub(super) struct Prepared {
    files: Vec<(String, String)>,
    policy: security_server::policy::Policy,
}

fn with_added(cil: &str, added: &[(String, String)]) -> Vec<(String, String)> {
    std::iter::once((POLICY_NAME.to_owned(), cil.to_owned())).chain(added.iter().cloned()).collect()
}

/// A callback for when the command runs.
pub(super) type Started = Box<dyn FnOnce(Control) + Send>;

impl Serving {
    /// The security server of the run called `id`, and where records go that it wants kept.
    pub(super) fn begin(
        request: &RunRequest,
        profile: &Profile,
        id: &str,
    ) -> anyhow::Result<(Self, Option<Trail>)> {
        let added = added(request)?;
        for rule in super::unchecked::unchecked(&profile.compiled.cil, &added) {
            tell!("dewar: {rule}");
        }
        let policy =
            Policy { files: with_added(&profile.compiled.cil, &added), ..Policy::default() };
        let added: Arc<[(String, String)]> = added.into();
        if request.daemon != UseDaemon::No
            && let Some((registration, spool)) = register(request, profile, id, &policy)?
        {
            if request.verbose {
                tell!("dewar: run {id} is served by a daemon");
            }
            let trail = Trail { sink: Box::new(spool), everything: request.record_all };
            let registration = Arc::new(registration);
            let server = Arc::clone(&registration.server);
            let decider = Decider { holds: Holds::Daemon(registration), added };
            return Ok((Self { server, decider }, Some(trail)));
        }
        let server = Arc::new(Server::from_cil(&policy.files)?);
        let decider = Decider { holds: Holds::Own(Arc::clone(&server)), added };
        Ok((Self { server, decider }, None))
    }

    /// What the policy of the run can be replaced by.
    pub(super) fn decider(&self) -> Decider {
        self.decider.clone()
    }

    /// What to do once the command runs: from then on changes of policy that the daemon makes reach
    /// it, and `note` hears of each that holds.
    pub(super) fn follower(&self, note: impl Fn(&Receipt) + Send + 'static) -> Started {
        let Holds::Daemon(registration) = &self.decider.holds else { return Box::new(drop) };
        let registration = Arc::clone(registration);
        Box::new(move |control| {
            let settled = control.settled();
            let mut told = String::new();
            let apply = move |_| match control.apply(RevokeMode::Repair) {
                Ok(receipt) => {
                    note(&receipt);
                    serde_json::to_vec(&receipt).ok()
                }
                Err(error) => {
                    // It is tried again and again.
                    let why = error.to_string();
                    if why != told {
                        tell!("dewar: a change of policy does not hold here yet: {why}");
                        told = why;
                    }
                    None
                }
            };
            if let Err(error) = registration.follow(settled, apply) {
                tell!("dewar: changes of policy do not reach this run: {error}");
            }
        })
    }

    /// That the daemon left questions without an answer, which is no denial that anybody records.
    pub(super) fn unanswered(&self) -> Option<String> {
        let Holds::Daemon(registration) = &self.decider.holds else { return None };
        let count = registration.server.unanswered();
        (count > 0).then(|| {
            format!(
                "the daemon that decides for this run was away or did not answer ({count} times): what it was asked about was \
                 denied, and nobody recorded it"
            )
        })
    }

    /// The run has ended.
    pub(super) fn end(&self) {
        let Holds::Daemon(registration) = &self.decider.holds else { return };
        if let Err(error) = registration.end() {
            tell!("dewar: the records of this run wait for the next `dewar daemon`: {error}");
        }
    }
}

/// Whether the policy of a run compiles, with what the command line adds to it.
pub(super) fn check(request: &RunRequest, profile: &Profile) -> anyhow::Result<()> {
    Server::from_cil(&with_added(&profile.compiled.cil, &added(request)?))?;
    Ok(())
}

/// What the command line adds to the policy of the profile.
fn added(request: &RunRequest) -> anyhow::Result<Vec<(String, String)>> {
    let read = |path: &PathBuf| {
        let text = std::fs::read_to_string(path);
        let text = text.map_err(|error| {
            Usage(format!("cannot read `{}`, which --cil names: {error}", path.display()))
        })?;
        Ok((path.display().to_string(), text))
    };
    request.cil.iter().map(read).collect()
}

/// A registration with the first daemon that answers.
fn register(
    request: &RunRequest,
    profile: &Profile,
    id: &str,
    policy: &Policy,
) -> anyhow::Result<Option<(Registration, Writer)>> {
    let command = request.command.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>();
    let profile = profile.compiled.name.clone();
    let name = request.name.clone();
    let run = NewRun { id: id.to_owned(), command: command.join(" "), profile, name };
    let mut absent: Option<PathBuf> = None;
    for place in [DaemonDirs::user()?, DaemonDirs::system()] {
        match daemon_client::register(&place, &run, policy) {
            Ok(registered) => return Ok(Some(registered)),
            Err(ClientError::Absent(path)) => absent = absent.or(Some(path)),
            // The policy itself: this process finds the same, and says it better.
            Err(ClientError::Refused(_)) if Server::from_cil(&policy.files).is_err() => {
                return Ok(None);
            }
            Err(error) if request.daemon == UseDaemon::Insist => return Err(error.into()),
            Err(error) => {
                tell!("dewar: this run decides by itself and is not in the journal: {error}");
                return Ok(None);
            }
        }
    }
    if request.daemon == UseDaemon::Insist {
        let path = absent.unwrap_or_default();
        bail!(
            "no daemon listens at `{}`; start one with `dewar daemon`, or leave --daemon out",
            path.display()
        );
    }
    Ok(None)
}
