//! Where the security server is: in this process, or the daemon's.

use crate::{
    Daemon, OpenError, PolicyFault,
    source::{Read, Source, read},
};
use daemon_client::{
    Administration, ClientError, DaemonDirs, NewRun, Policy, Registration, Target, Writer,
};
use flask::{SecurityServer, Seqno};
use security_server::{Server, UnknownBoolean, policy::HandleUnknown};
use std::{io, sync::Arc};

/// What may stand before the rest of an id, which has at most 64 letters.
const MOST_NAME: usize = 24;

/// Why a change was not made. What was before is in force.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChangeError {
    /// The policy.
    #[error(transparent)]
    Policy(#[from] PolicyFault),
    /// The policy has no such boolean.
    #[error(transparent)]
    Boolean(#[from] UnknownBoolean),
    /// The daemon.
    #[error(transparent)]
    Daemon(#[from] ClientError),
    /// The security server does not answer.
    #[error(transparent)]
    Unreachable(#[from] flask::Unreachable),
}

/// The security server that decides.
pub(crate) enum Hold {
    Own(Arc<Server>),
    Daemon(Arc<Registration>, DaemonDirs),
}

/// A registration with the first daemon that answers; `None` if there need not be one.
pub(crate) fn register(
    wanted: Daemon,
    name: &str,
    policy: &Policy,
) -> Result<Option<(Hold, Writer)>, OpenError> {
    let command = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    let run = NewRun {
        id: id(name)?,
        command: command.collect::<Vec<_>>().join(" "),
        profile: "object manager".into(),
        // No run is called as runs are numbered; its id begins with its name.
        name: Some(name.to_owned()).filter(|name| !runs::is_id(name)),
    };
    let mut absent = None;
    for place in [DaemonDirs::user()?, DaemonDirs::system()] {
        match daemon_client::register(&place, &run, policy) {
            Ok((registration, spool)) => {
                return Ok(Some((Hold::Daemon(Arc::new(registration), place), spool)));
            }
            Err(error @ ClientError::Absent(_)) => absent = absent.or(Some(error)),
            Err(error) => return Err(error.into()),
        }
    }
    match absent {
        Some(error) if wanted == Daemon::Insist => Err(error.into()),
        _ => Ok(None),
    }
}

/// An id that no run had before: what the program calls itself, and a run's id.
fn id(name: &str) -> io::Result<String> {
    let letters = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' });
    let name: String = letters.take(MOST_NAME).collect();
    Ok(format!("{name}-{}", runs::new_id()?))
}

impl Hold {
    pub(crate) fn server(&self) -> Arc<dyn SecurityServer> {
        match self {
            Self::Own(server) => Arc::clone(server) as Arc<dyn SecurityServer>,
            Self::Daemon(registration, _) => {
                Arc::clone(&registration.server) as Arc<dyn SecurityServer>
            }
        }
    }

    /// Replaces the policy. Returns its state, and whether it denies what it does not know.
    pub(crate) fn load(
        &self,
        sources: &[Source],
        classes: &[(String, Vec<String>)],
    ) -> Result<(Seqno, bool), ChangeError> {
        let Read { policy, files } = read(sources)?;
        let deny_unknown = policy.handle_unknown != HandleUnknown::Allow;
        let seqno = match self {
            Self::Own(server) => server.reload(policy).map_err(PolicyFault::from)?,
            Self::Daemon(registration, _) => {
                registration.load(&Policy { files, classes: classes.to_vec() }, false)?
            }
        };
        Ok((seqno, deny_unknown))
    }

    /// Changes booleans. Returns the state; with the daemon, every member has applied it then, this
    /// one too.
    pub(crate) fn set_booleans(&self, booleans: &[(&str, bool)]) -> Result<Seqno, ChangeError> {
        match self {
            Self::Own(server) => Ok(server.set_booleans(booleans)?),
            Self::Daemon(registration, place) => {
                let target = Target::Run(registration.id().to_owned());
                let booleans: Vec<_> =
                    booleans.iter().map(|(name, on)| ((*name).to_owned(), *on)).collect();
                Administration::connect(place)?.set(target, &booleans)?;
                Ok(registration.server.seqno()?)
            }
        }
    }
}
