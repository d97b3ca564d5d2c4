//! Who decides for a run: the daemon's security server, or one of its own.

use super::{
    RunRequest,
    prepare::{POLICY_NAME, Profile},
};
use crate::output::tell;
use ::daemon::{ClientError, NewRun, Place, Policy, Registration, Writer};
use anyhow::{Context as _, bail};
use flask::SecurityServer;
use monitor::{Control, Manner, Trail};
use security_server::Server;
use std::{path::PathBuf, sync::Arc};

/// Whether a run uses a daemon.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum UseDaemon {
    /// If one answers.
    #[default]
    IfThere,
    /// It fails without one.
    Insist,
    /// Never.
    No,
}

/// What decides, and takes another policy.
#[derive(Clone)]
pub(super) enum Decider {
    /// A security server in this process.
    Own(Arc<Server>),
    /// The daemon's.
    Daemon(Arc<Registration>),
}

impl Decider {
    /// Replaces the policy of this run by `policy`, which `cil` spells. It holds once it is applied.
    pub(super) fn replace(
        &self,
        cil: &str,
        policy: security_server::policy::Policy,
    ) -> Result<(), String> {
        match self {
            Self::Own(server) => server.reload(policy).map(drop).map_err(|e| e.to_string()),
            Self::Daemon(registration) => {
                let files = vec![(POLICY_NAME.to_owned(), cil.to_owned())];
                registration.load(&Policy { files }).map(drop).map_err(|e| e.to_string())
            }
        }
    }
}

/// See the file.
pub(super) struct Serving {
    pub(super) decider: Decider,
}

/// A callback for when the command runs.
type Started = Box<dyn FnOnce(Control) + Send>;

impl Serving {
    /// The security server of the run called `id`, and where records go that it wants kept.
    pub(super) fn begin(
        request: &RunRequest,
        profile: &Profile,
        id: &str,
    ) -> anyhow::Result<(Self, Option<Trail>)> {
        let policy = Policy { files: texts(request, profile)? };
        if request.daemon != UseDaemon::No
            && let Some((registration, spool)) = register(request, profile, id, &policy)?
        {
            if request.verbose {
                tell!("dewar: run {id} is served by a daemon");
            }
            let trail = Trail { sink: Box::new(spool), everything: request.record_all };
            return Ok((Self { decider: Decider::Daemon(Arc::new(registration)) }, Some(trail)));
        }
        let server = Arc::new(Server::from_cil(&policy.files)?);
        Ok((Self { decider: Decider::Own(server) }, None))
    }

    /// The security server.
    pub(super) fn server(&self) -> Arc<dyn SecurityServer> {
        match &self.decider {
            Decider::Own(server) => Arc::clone(server) as _,
            Decider::Daemon(registration) => Arc::clone(&registration.server) as _,
        }
    }

    fn registration(&self) -> Option<&Arc<Registration>> {
        match &self.decider {
            Decider::Own(_) => None,
            Decider::Daemon(registration) => Some(registration),
        }
    }

    /// What to do once the command runs: from then on changes of policy reach it.
    pub(super) fn started(&self) -> Option<Started> {
        let registration = Arc::clone(self.registration()?);
        Some(Box::new(move |control| {
            let apply = move |_| match control.apply(Manner::Repair) {
                Ok(receipt) => serde_json::to_vec(&receipt).ok(),
                Err(error) => {
                    tell!("dewar: a change of policy does not hold here yet: {error}");
                    None
                }
            };
            if let Err(error) = registration.follow(apply) {
                tell!("dewar: changes of policy do not reach this run: {error}");
            }
        }))
    }

    /// The run has ended.
    pub(super) fn end(&self) {
        let Some(registration) = self.registration() else { return };
        if let Err(error) = registration.end() {
            tell!("dewar: the records of this run wait for the next `dewar daemon`: {error}");
        }
    }
}

/// The policy: that of the profile, and what the command line adds.
fn texts(request: &RunRequest, profile: &Profile) -> anyhow::Result<Vec<(String, String)>> {
    let mut files = vec![(POLICY_NAME.to_owned(), profile.compiled.cil.clone())];
    for path in &request.cil {
        let text = std::fs::read_to_string(path);
        let text = text.with_context(|| format!("cannot read `{}`", path.display()))?;
        files.push((path.display().to_string(), text));
    }
    Ok(files)
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
    let run = NewRun { id: id.to_owned(), command: command.join(" "), profile };
    let mut absent: Option<PathBuf> = None;
    for place in [Place::user()?, Place::system()] {
        match ::daemon::register(&place, &run, policy) {
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
