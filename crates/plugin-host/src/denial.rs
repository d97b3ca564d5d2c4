//! Records of what plugins were denied.

use flask::{AccessVector, Explanation, Question, SecurityServer};
use std::{collections::VecDeque, sync::Mutex};

/// Older records are dropped beyond this many.
const KEPT: usize = 256;
/// Of one plugin, beyond this many.
const KEPT_EACH: usize = 32;

/// A permission that a plugin, or its host about it, was denied; or was granted only because the
/// domain is permissive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// The plugin's name.
    pub plugin: String,
    /// Who asked for what.
    pub question: Question,
    /// The file or address that it was about, if it was about one.
    pub object: Option<String>,
    /// What is missing.
    pub missing: AccessVector,
    /// It was let pass all the same: the domain is permissive.
    pub permissive: bool,
}

impl Denial {
    /// The names of the missing permissions.
    pub fn permissions(&self) -> impl Iterator<Item = &'static str> {
        self.missing.names(self.question.tclass)
    }

    /// Why, and what would change it. Slow: for people.
    ///
    /// # Errors
    ///
    /// [`flask::Unreachable`] when the security server does not answer.
    pub fn explain(&self, server: &dyn SecurityServer) -> Result<Explanation, flask::Unreachable> {
        server.explain(self.question, self.missing)
    }
}

/// The last denials, each once.
#[derive(Debug, Default)]
pub(crate) struct Journal(Mutex<VecDeque<Denial>>);

impl Journal {
    pub(crate) fn record(&self, denial: Denial) {
        let mut kept = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        // A plugin that asks for ever more does not push out what others were denied.
        if kept.contains(&denial) {
            return;
        }
        let own = kept.iter().filter(|other| other.plugin == denial.plugin).count();
        let crowded = own >= KEPT_EACH;
        if crowded || kept.len() == KEPT {
            let oldest = kept.iter().position(|other| !crowded || other.plugin == denial.plugin);
            oldest.map(|oldest| kept.remove(oldest));
        }
        kept.push_back(denial);
    }

    pub(crate) fn all(&self) -> Vec<Denial> {
        let kept = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        kept.iter().cloned().collect()
    }
}
