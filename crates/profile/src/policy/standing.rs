//! What amendments leave of a right that one rule of the profile gives.

use crate::amendment::{AmendmentKind, Clause, ClauseObject};
use crate::source::TextSpan;

/// Types that an amendment took: the domain, the type, and which amendment.
pub(super) type Taken = Vec<(usize, String, TextSpan)>;

/// What a domain has of something after its amendments: what grants it, and what took it.
#[derive(Clone, Copy, Default)]
pub(crate) struct Standing {
    pub(crate) granted: Option<TextSpan>,
    pub(crate) taken: Option<TextSpan>,
}

impl Standing {
    /// What the clauses of which `is_about` holds, in their order, make of what the profile grants.
    /// Unless they `may_give`, they only take and give back.
    pub(crate) fn new<'a>(
        granted: Option<TextSpan>,
        clauses: impl Iterator<Item = &'a Clause>,
        is_about: impl Fn(&ClauseObject) -> bool,
        may_give: bool,
    ) -> Self {
        let mut standing = Self { granted, taken: None };
        let mut given = None;
        for clause in clauses {
            let all = matches!(clause.object, ClauseObject::All);
            match clause.kind {
                AmendmentKind::Revoke if all || is_about(&clause.object) => {
                    (standing.taken, given) = (Some(clause.place), None);
                }
                AmendmentKind::Grant
                    if standing.taken.is_some() && (all || is_about(&clause.object)) =>
                {
                    standing.taken = None;
                }
                AmendmentKind::Grant if may_give && is_about(&clause.object) => {
                    given = Some(clause.place);
                }
                _ => {}
            }
        }
        standing.granted = standing.granted.filter(|_| standing.taken.is_none()).or(given);
        standing
    }
}

/// The clauses that are about a domain.
pub(super) fn about(clauses: &[Clause], domain: usize) -> impl Iterator<Item = &Clause> {
    clauses.iter().filter(move |clause| clause.is_about(domain))
}
