//! What can be taken from, and given to, a run that goes on: the rest was settled in the kernel at
//! its start.

use super::{Owner, PolicyInput, refused::RefusedChange};
use crate::control::Reply;
use monitor::visible;
use profile::{AmendedObject, Amendment, AmendmentKind};
use std::sync::PoisonError;

/// Why reading cannot be taken from one domain in mode `fast`.
pub(super) const FAST: &str = "this run is in mode `fast`: opens for reading are left to the kernel, which does not tell \
                               domains apart. Take writing alone (--write), end the whole run (--kill, without \
                               --domain), or start it in mode `all`";

/// Who gives something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Giver {
    /// A person, by a command of their own.
    Person,
    /// A person who was asked by a program inside, and told what was taken of it before.
    Told(Vec<String>),
    /// A profile, without a question.
    Nobody,
}

impl Owner {
    /// Refuses to give back what was taken to whom was not told of it.
    pub(super) fn check_giver(
        &self,
        amendment: &Amendment,
        input: &PolicyInput,
        giver: &Giver,
    ) -> Result<(), RefusedChange> {
        let told: &[String] = match giver {
            Giver::Person => return Ok(()),
            Giver::Told(told) => told,
            Giver::Nobody => &[],
        };
        let taken = self.taken_by(amendment, input)?;
        match taken.filter(|taken| !told.contains(taken)) {
            Some(taken) => Err(RefusedChange::Taken(visible(&taken))),
            None => Ok(()),
        }
    }

    /// What of `amendments` was taken before.
    pub(super) fn taken(&self, amendments: &[Amendment]) -> Reply {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let input = self.state().input.clone();
        let each = amendments.iter().map(|it| self.taken_by(it, &input));
        match each.collect::<Result<Vec<_>, _>>() {
            Ok(taken) => Reply::Taken(taken.into_iter().flatten().collect()),
            Err(why) => Reply::Refused(why.to_string()),
        }
    }

    /// By what something was taken since the run began, of which `amendment` gives some back; in
    /// doubt, all of it was. What a proposal asks for, another profile may have taken. What a
    /// denial asks for, the first one did not grant.
    fn taken_by(
        &self,
        amendment: &Amendment,
        input: &PolicyInput,
    ) -> Result<Option<String>, RefusedChange> {
        let replaced = self.state().replaced.by(&self.decider);
        if let Some(by) = replaced.filter(|_| amendment.proposed.is_some()) {
            return Ok(Some(by));
        }
        let amendments: Vec<_> =
            input.amendments.iter().cloned().chain([self.followed(amendment.clone())]).collect();
        let compiled = input.profile.compile(&self.facts.status.variables, &amendments)?;
        Ok(compiled.given_back)
    }

    /// `amendment` with what its links lead to: where those of a revocation lead now, and where
    /// they led when what it gives back was taken. A grant alone gives what lies at its own path.
    pub(super) fn followed(&self, amendment: Amendment) -> Amendment {
        let led = match amendment.kind {
            AmendmentKind::Revoke => amendment.links(&self.facts.status.variables),
            AmendmentKind::Grant => {
                let input = self.state().input.clone();
                let is_it = |it: &&Amendment| {
                    it.kind == AmendmentKind::Revoke && it.object == amendment.object
                };
                input.amendments.iter().rfind(is_it).map(|it| it.led.clone()).unwrap_or_default()
            }
        };
        Amendment { led, ..amendment }
    }

    /// Says why something cannot be taken from, or given to, a run that goes on.
    pub(super) fn check(
        &self,
        amendment: &Amendment,
        input: &PolicyInput,
    ) -> Result<(), RefusedChange> {
        let revoked = |is: fn(&AmendedObject) -> bool| {
            let before = input.amendments.iter();
            before.filter(|a| a.kind == AmendmentKind::Revoke).any(|a| is(&a.object))
        };
        match (amendment.kind, &amendment.object) {
            (AmendmentKind::Grant, AmendedObject::Exec(_))
                if !revoked(|o| matches!(o, AmendedObject::Exec(_) | AmendedObject::Files(_))) =>
            {
                Err(RefusedChange::Exec)
            }
            (AmendmentKind::Grant, AmendedObject::Network { .. }) if self.offline => {
                Err(RefusedChange::Offline)
            }
            (AmendmentKind::Revoke, AmendedObject::Network { .. }) if self.own_loopback => {
                Err(RefusedChange::OwnLoopback)
            }
            (AmendmentKind::Grant, object)
                if *object != AmendedObject::All && everything_is_taken(input) =>
            {
                Err(RefusedChange::EverythingRevoked)
            }
            (AmendmentKind::Grant, AmendedObject::All) if !revoked(|_| true) => {
                Err(RefusedChange::NothingRevoked)
            }
            _ => Ok(()),
        }
    }
}

/// Whether it takes reading files from somebody.
pub(super) fn takes_reading(amendment: &Amendment) -> bool {
    amendment.kind == AmendmentKind::Revoke
        && matches!(amendment.object, AmendedObject::Files(_) | AmendedObject::All)
}

/// Whether everything was taken from all domains, and not given back.
fn everything_is_taken(input: &PolicyInput) -> bool {
    let all = |a: &&Amendment| a.object == AmendedObject::All && a.domain.is_none();
    input.amendments.iter().rfind(all).is_some_and(|a| a.kind == AmendmentKind::Revoke)
}
