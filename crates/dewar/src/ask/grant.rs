//! What an answer gives: to the running sandbox, and to its profile.

use super::{
    case::{Case, Choice, write},
    error::AskError,
    proposed::addressed,
    queue::QuestionQueue,
};
use crate::{
    control::{ChangeResult, Reply, Request},
    fitting::undo,
};
use monitor::Verdict;
use profile::Amendment;

impl QuestionQueue {
    /// Carries `choice` out; what the calls that wait are told.
    pub(super) fn carry_out(&self, case: &Case, choice: Choice) -> Result<Verdict, AskError> {
        let amendments = match choice {
            Choice::Run | Choice::Profile => {
                case.amendments.as_deref().map(addressed).transpose()?
            }
            Choice::Once | Choice::No => None,
        };
        // Written first: once the sandbox has it, the call goes on, and the run may end.
        let written = match choice {
            Choice::No => return Ok(Verdict::Denied),
            Choice::Once => return Ok(Verdict::Once),
            Choice::Run => None,
            Choice::Profile => Some(write(&self.setup, &case.lines).map_err(AskError::Profile)?),
        };
        // What no running sandbox can be given, the next has, and this call.
        let Some(amendments) = amendments else { return Ok(Verdict::Once) };
        let given = self.admit(&amendments, Some(&case.taken)).map(|()| Verdict::Anew);
        given.map_err(|why| match written.map(|path| undo(&path)) {
            Some(Err(undo)) => AskError::Written { why: Box::new(why), undo },
            Some(Ok(_)) | None => why,
        })
    }

    /// What of `amendments` was taken since the run began, and by what.
    pub(super) fn taken(&self, amendments: &[Amendment]) -> Result<Vec<String>, AskError> {
        match self.request(Request::Taken(amendments.to_vec()))? {
            Reply::Taken(taken) => Ok(taken),
            Reply::Refused(why) => Err(AskError::ByRun(why)),
            _ => Err(AskError::OtherAnswer),
        }
    }

    /// Gives something to the running sandbox that it has asked for, one after the other; nothing
    /// that was taken before, but what the person who grants it was `told` of.
    pub(super) fn admit(
        &self,
        amendments: &[Amendment],
        told: Option<&[String]>,
    ) -> Result<(), AskError> {
        for (at, amendment) in amendments.iter().enumerate() {
            let request = Request::Admit(amendment.clone(), told.map(<[String]>::to_vec));
            self.change(request).map_err(|why| match &amendments[..at] {
                [] => why,
                given => {
                    let given: Vec<String> = given.iter().map(ToString::to_string).collect();
                    AskError::InPart { why: Box::new(why), given: given.join("; ") }
                }
            })?;
        }
        Ok(())
    }

    fn change(&self, request: Request) -> Result<(), AskError> {
        match self.request(request).map_err(|why| AskError::Late(Box::new(why)))? {
            Reply::Done(change) => match change.outcome {
                ChangeResult::Failed(why) => Err(AskError::ByRun(why)),
                ChangeResult::Receipt(_) => Ok(()),
            },
            Reply::Refused(why) => Err(AskError::ByRun(why)),
            _ => Err(AskError::OtherAnswer),
        }
    }
}
