//! Why nobody is asked, or an answer is not carried out.

use std::net::IpAddr;

/// Why nobody is asked, or an answer is not carried out: for who answers, or for the program
/// inside.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AskError {
    /// It has ended, or never was.
    #[error("there is no open question {0}")]
    NotOpen(u64),
    /// Nobody answers so.
    #[error("`{0}` is no answer")]
    NoAnswer(String),
    /// Not this question.
    #[error("`{choice}` cannot be done; {choices}")]
    NoChoice {
        /// What was answered.
        choice: &'static str,
        /// What can be.
        choices: String,
    },
    /// A letter grants no secret.
    #[error("it is a secret, looks like one, or acts for whoever connects: name it in full")]
    Unnamed,
    /// Their answer is being carried out.
    #[error("somebody else has answered it")]
    Answered,
    /// A no holds.
    #[error("it was refused before")]
    Refused,
    /// No terminal, and nobody who listens.
    #[error("nobody is there to be asked")]
    NobodyThere,
    /// More than the run may ask.
    #[error("too many questions in a minute")]
    TooMany,
    /// More than the bound of a profile gives.
    #[error("too much was granted to this run already")]
    GrantedTooMuch,
    /// Hosts were proposed.
    #[error("this run was started without a network")]
    Offline,
    /// Which of it, the program need not know.
    #[error(
        "a secret, what may hold one, what acts for whoever connects, what the profile keeps back, what was taken \
         while it ran, and what programs outside trust cannot be proposed"
    )]
    Secret,
    /// What is wrong in the profile is not for the program.
    #[error("it cannot be judged")]
    Unjudged,
    /// Nothing that a profile says is about it.
    #[error("no line of a profile would grant it")]
    NoLine,
    /// It takes another decision of a person's: which.
    #[error("{0}")]
    KeptBack(String),
    /// Something is wrong with the profile, or it cannot be written.
    #[error("{0:#}")]
    Profile(anyhow::Error),
    /// A name cannot be granted without.
    #[error("`{name}` has no address: {why}")]
    NoAddress {
        /// The name of a host.
        name: String,
        /// What the resolver said.
        why: std::io::Error,
    },
    /// The name does not say that.
    #[error("`{name}` leads to {address}: to mean that, write the address")]
    Near {
        /// The name of a host.
        name: String,
        /// An address of this machine, or of its link.
        address: IpAddr,
    },
    /// It has ended, or takes too long.
    #[error("the run does not answer")]
    Silent,
    /// It may have gone on with what was asked for.
    #[error("{0}; the change may still come about")]
    Late(Box<AskError>),
    /// The run has refused, or failed: its words.
    #[error("{0}")]
    ByRun(String),
    /// Its answer is about something else.
    #[error("the run gave an answer to something else")]
    OtherAnswer,
    /// Of several things, some were done.
    #[error("{why}; this run has been given already: {given}")]
    InPart {
        /// What kept the rest from being done.
        why: Box<AskError>,
        /// What was.
        given: String,
    },
    /// The run has not got what was written into its profile.
    #[error("{why}; the profile has it nevertheless: {undo:#}")]
    Written {
        /// What kept the run from getting it.
        why: Box<AskError>,
        /// What kept the profile from being put back.
        undo: anyhow::Error,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_what_has_been_done_nevertheless() {
        let late = || Box::new(AskError::Late(Box::new(AskError::Silent)));
        let told = "the run does not answer; the change may still come about";
        assert_eq!(late().to_string(), told);
        let part = AskError::InPart { why: late(), given: "read of /a".into() };
        assert_eq!(
            part.to_string(),
            format!("{told}; this run has been given already: read of /a")
        );
        let undo = anyhow::anyhow!("no space").context("cannot write p.toml");
        let written = AskError::Written { why: late(), undo };
        let nevertheless = "the profile has it nevertheless: cannot write p.toml: no space";
        assert_eq!(written.to_string(), format!("{told}; {nevertheless}"));
    }
}
