//! What an object manager asks a security server, and what comes back.

use crate::{AccessVector, Class, Decision, LabelRules, Seqno, Sid};

/// Who asks, for what, and of which class that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Question {
    /// Label of the subject.
    pub ssid: Sid,
    /// Label of the object.
    pub tsid: Sid,
    /// Class of the object.
    pub tclass: Class,
}

/// The security server gave no answer. Whoever asked denies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreachable;

impl std::fmt::Display for Unreachable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the security server does not answer")
    }
}

impl std::error::Error for Unreachable {}

/// Why no label came back.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LabelError {
    /// The context is malformed, or names a user, role, type or level that the policy lacks or does
    /// not combine.
    InvalidContext(String),
    /// The SID was never given out by this security server.
    UnknownSid(Sid),
    /// No answer.
    Unreachable,
}

impl std::fmt::Display for LabelError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::InvalidContext(context) => {
                write!(f, "`{context}` is not a valid security context in this policy")
            }
            Self::UnknownSid(sid) => write!(f, "SID {sid} is unknown to this security server"),
            Self::Unreachable => Unreachable.fmt(f),
        }
    }
}

impl std::error::Error for LabelError {}

impl From<Unreachable> for LabelError {
    fn from(_: Unreachable) -> Self {
        Self::Unreachable
    }
}

/// Why a set of permissions was granted or denied, in words for a person.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explanation {
    /// The rules that bear on the question, as the policy spells them, with their place
    /// (`FILE:LINE`) where known.
    pub rules: Vec<String>,
    /// For what is denied: what took it away (a constraint, a bound, …) or that no rule grants it.
    pub reason: String,
    /// For what is denied: the rule that would grant it.
    pub would_allow: Option<String>,
}

/// The security server as object managers see it: embedded in the process or behind a port.
///
/// Implementations never block for long and never panic on foreign input; a caller that gets no
/// answer denies.
pub trait SecurityServer: Send + Sync {
    /// The current policy state. Every [`Decision`] given before a change carries a smaller number.
    ///
    /// # Errors
    ///
    /// [`Unreachable`] when the server does not answer.
    fn seqno(&self) -> Result<Seqno, Unreachable>;

    /// The access vector of `q`: what `q.ssid` may do to `q.tsid`. Unknown SIDs are allowed
    /// nothing.
    ///
    /// # Errors
    ///
    /// [`Unreachable`] when the server does not answer; the caller denies.
    fn compute_av(&self, q: Question) -> Result<Decision, Unreachable>;

    /// The access vector of `q` as it was before the last change of policy: an object manager that
    /// has to find what the change took away compares the two.
    ///
    /// # Errors
    ///
    /// [`Unreachable`] when the server does not answer or does not know any more. Then everything
    /// may have been granted.
    fn compute_av_before(&self, q: Question) -> Result<Decision, Unreachable> {
        let _ = q;
        Err(Unreachable)
    }

    /// The label of a new object of class `q.tclass` that `q.ssid` creates in (or, for a process,
    /// by executing) `q.tsid`. `name` is the last component of a new file's path, for rules that
    /// name it.
    ///
    /// # Errors
    ///
    /// [`LabelError`] when a SID is unknown, the label computed is invalid, or there is no answer.
    fn compute_create(&self, q: Question, name: Option<&str>) -> Result<Sid, LabelError>;

    /// The label of the member that `q.ssid` sees of the polyinstantiated object `q.tsid` (Flask,
    /// section 4.1).
    ///
    /// # Errors
    ///
    /// As for [`SecurityServer::compute_create`].
    fn compute_member(&self, q: Question) -> Result<Sid, LabelError>;

    /// The SID of a security context. Equal contexts have equal SIDs for the life of the server.
    ///
    /// # Errors
    ///
    /// [`LabelError`] when the context is invalid in the current policy, or there is no answer.
    fn context_to_sid(&self, context: &str) -> Result<Sid, LabelError>;

    /// The security context of a SID.
    ///
    /// # Errors
    ///
    /// [`LabelError`] when the SID is unknown, or there is no answer.
    fn sid_to_context(&self, sid: Sid) -> Result<String, LabelError>;

    /// The labelling rules of the current policy.
    ///
    /// # Errors
    ///
    /// [`Unreachable`] when the server does not answer.
    fn label_rules(&self) -> Result<LabelRules, Unreachable>;

    /// Why `requested` is granted or denied. Slow: for people, never on the path of a decision.
    ///
    /// # Errors
    ///
    /// [`Unreachable`] when the server does not answer.
    fn explain(&self, q: Question, requested: AccessVector) -> Result<Explanation, Unreachable>;
}
