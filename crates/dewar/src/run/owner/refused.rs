//! Why a run that goes on is not changed as somebody asks. Nothing was tried then.

use monitor::visible;
use profile::{ProfileError, ProfileErrors};
use security_server::PolicyErrors;

/// A change that cannot be made.
#[derive(Debug, thiserror::Error)]
pub(super) enum RefusedChange {
    #[error(
        "what can be executed was settled in the kernel when the run started: only what was \
         revoked can be given back"
    )]
    Exec,
    #[error(
        "this run was started without a network: its domains can make no such socket, and it may \
         have a network namespace of its own. Start it under a profile that names an endpoint"
    )]
    Offline,
    #[error(
        "this run has a loopback of its own, and what is sent there is not decided. Its endpoints \
         are nobody outside; take everything (--all), or start it without `network.loopback`"
    )]
    OwnLoopback,
    #[error("everything was revoked; `dewar grant --all` gives it back")]
    EverythingRevoked,
    #[error("nothing was revoked")]
    NothingRevoked,
    #[error("that may give back what was taken while it ran ({0}); `dewar grant` does")]
    Taken(String),
    #[error("that would give nothing: the profile denies or hides it ({0})")]
    InVain(String),
    #[error(
        "this run has a network of its own, with a loopback and nothing else, where nothing is \
         decided: a profile for it has `network.loopback = \"private\"`. Start it anew under that \
         profile"
    )]
    Loopback,
    #[error("{}", told(.0))]
    Profile(#[from] ProfileErrors),
    /// A mistake of the compiler of profiles.
    #[error("the new policy is unusable: {0}")]
    Policy(#[from] PolicyErrors),
}

/// Mistakes in a text that a person wrote, in one line each.
fn told(errors: &ProfileErrors) -> String {
    let one = |error: &ProfileError| match error.problem.help() {
        Some(help) => format!("{}: {help}", error.problem),
        None => error.problem.to_string(),
    };
    visible(&errors.errors().iter().map(one).collect::<Vec<_>>().join("; "))
}
