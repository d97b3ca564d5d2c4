//! What is not granted, and what is not known.

use std::fmt;

/// A class or permission that the program does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the program has no {what} `{name}`")]
pub struct UnknownName {
    /// `class`, or `permission` of which.
    pub what: String,
    /// The name.
    pub name: String,
}

/// What was not granted. Everything that it names is visible to whoever may see the labels.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Denied {
    /// Security context of the subject; empty if its SID is unknown.
    pub scontext: String,
    /// Security context of the object.
    pub tcontext: String,
    /// Class of the object.
    pub tclass: String,
    /// The permissions that are missing.
    pub missing: Vec<String>,
    /// The security server has answered. If not, everything is denied.
    pub answered: bool,
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let type_of = |context: &str| match flask::type_of(context) {
            "" => "somebody unknown".to_owned(),
            name => flask::visible(name),
        };
        let (subject, object) = (type_of(&self.scontext), type_of(&self.tcontext));
        write!(f, "{subject} may not {} {object} ({})", self.missing.join(" "), self.tclass)?;
        if self.answered { Ok(()) } else { f.write_str(": the security server does not answer") }
    }
}

impl std::error::Error for Denied {}
