//! What came of a case behind a wall.

use serde::Serialize;

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum Verdict {
    /// It did not happen.
    Stopped {
        /// Whether the sandbox has a record of it; `None` if it keeps none that could be read.
        recorded: Option<bool>,
        /// What the attack met, as far as it could tell.
        said: String,
    },
    /// It happened, and the sandbox names it at the end of the run.
    Reported {
        /// What happened.
        what: String,
    },
    /// It happened.
    GotThrough {
        /// What happened.
        what: String,
    },
    /// It does not happen here without any wall either.
    NotShown {
        /// Why not, as far as the attack could tell.
        why: String,
    },
    /// The wall cannot be asked for this.
    NotApplicable {
        /// Why not.
        why: String,
    },
}

impl Verdict {
    /// One word or two.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Stopped { .. } => "stopped",
            Self::Reported { .. } => "reported",
            Self::GotThrough { .. } => "GOT THROUGH",
            Self::NotShown { .. } => "not shown",
            Self::NotApplicable { .. } => "n/a",
        }
    }

    /// Whether something got through that nobody is told of.
    #[must_use]
    pub const fn is_bad(&self) -> bool {
        matches!(self, Self::GotThrough { .. })
    }

    /// Whether it happened.
    #[must_use]
    pub const fn happened(&self) -> bool {
        matches!(self, Self::GotThrough { .. } | Self::Reported { .. })
    }

    /// What there is to say beside the word.
    #[must_use]
    pub fn note(&self) -> String {
        match self {
            Self::Stopped { recorded: Some(true), .. } => "recorded".to_owned(),
            Self::Stopped { said, .. } => said.clone(),
            Self::Reported { what } | Self::GotThrough { what } => what.clone(),
            Self::NotShown { why } | Self::NotApplicable { why } => why.clone(),
        }
    }
}
