//! What a change takes, and whether it takes anything from anybody.

use super::held::{Comparison, Taking, WATCHED};
use flask::{AccessVector, Class, Decision, InitialSid, LabelError, Question, Sid, perm};
use inode_labels::{Label, RuleChange};
use std::net::IpAddr;

/// Of more labels nobody says that none of them matters.
const MOST_LABELS: u32 = 10_000;

impl Comparison<'_> {
    /// What may no longer be done to an object that was labelled `before` and is labelled `now`, by
    /// `ssid` or any other domain, and may not be done by `ssid`: who holds it may have it from one
    /// that was granted it.
    pub(super) fn lost(
        &self,
        ssid: Option<Sid>,
        (before, now): (Sid, Sid),
        tclass: Class,
    ) -> AccessVector {
        let key = (ssid, before, now, tclass);
        if let Some(lost) = self.lost.borrow().get(&key) {
            return *lost;
        }
        let lost = match ssid {
            None => self.lost_by_any(|_| (before, now), tclass),
            Some(ssid) => {
                let by_others = self.lost(None, (before, now), tclass);
                by_others.missing_from(self.granted(ssid, now, tclass))
                    | self.lost_by(ssid, (before, now), tclass)
            }
        };
        self.lost.borrow_mut().insert(key, lost);
        lost
    }

    /// The same for what everybody owns who makes it, as sockets of a class.
    pub(super) fn lost_own(&self, ssid: Option<Sid>, tclass: Class) -> AccessVector {
        let by_others = self.lost_by_any(|ssid| (ssid, ssid), tclass);
        ssid.map_or(by_others, |ssid| by_others.missing_from(self.granted(ssid, ssid, tclass)))
    }

    /// What some domain, of the policy before or of this one, may no longer do to the object that
    /// is labelled for it as `labels` says.
    fn lost_by_any(&self, labels: impl Fn(Sid) -> (Sid, Sid), tclass: Class) -> AccessVector {
        let policy = self.gate.state.policy.load();
        let domains = self.taking.old.plan.domains.iter().chain(&policy.plan.domains);
        let lost = domains.map(|ssid| self.lost_by(*ssid, labels(*ssid), tclass));
        lost.fold(AccessVector::NONE, |all, lost| all | lost)
    }

    /// What `ssid` may not do to an object that is labelled `now`.
    pub(super) fn denied(&self, ssid: Option<Sid>, now: Sid, tclass: Class) -> AccessVector {
        let policy = self.gate.state.policy.load();
        let ssids = ssid.as_ref().map_or(policy.plan.domains.as_slice(), std::slice::from_ref);
        let denied = |ssid: &Sid| AccessVector::ALL.missing_from(self.granted(*ssid, now, tclass));
        ssids.iter().map(denied).fold(AccessVector::NONE, |all, denied| all | denied)
    }

    /// What `ssid` itself may no longer do to such an object: everything, if nobody can say what it
    /// was granted before.
    pub(super) fn lost_by(
        &self,
        ssid: Sid,
        (before, now): (Sid, Sid),
        tclass: Class,
    ) -> AccessVector {
        let question = Question { ssid, tsid: before, tclass };
        let before = self.gate.state.server.compute_av_before(question);
        // Who takes something means also what was let pass once.
        let questions = self.gate.questions.as_ref();
        let once = questions.map_or(AccessVector::NONE, |it| it.passed_once(question, now));
        let once = once & self.named.meant_of_once(tclass);
        (before.map_or(AccessVector::ALL, granted) | once)
            .missing_from(self.granted(ssid, now, tclass))
    }

    fn granted(&self, ssid: Sid, tsid: Sid, tclass: Class) -> AccessVector {
        let decision = self.gate.state.server.compute_av(Question { ssid, tsid, tclass });
        decision.map_or(AccessVector::NONE, granted)
    }

    /// What is taken of a file: by its label, and by each that counts beside it.
    pub(super) fn lost_file(&self, ssid: Option<Sid>, label: &Label, class: Class) -> AccessVector {
        let each = label.also().iter().chain([&label.sid]);
        let lost = each.map(|sid| self.lost(ssid, (label.before(), *sid), class));
        lost.fold(AccessVector::NONE, |all, lost| all | lost)
    }

    /// Whether something is granted no longer, or labelled otherwise.
    pub(super) fn takes(&self) -> bool {
        let Taking { relabels, old, known, .. } = &self.taking;
        let domains = &old.plan.domains;
        *known.get_or_init(|| *relabels || domains.iter().any(|ssid| self.loses(*ssid)))
    }

    /// Whether a file with a label that nobody knows may not be watched any longer.
    pub(super) fn takes_watching(&self) -> bool {
        let Taking { relabels, old, watching, .. } = &self.taking;
        let is_lost = |tsid: &Sid| {
            let lost = |ssid, class| self.lost_by(ssid, (*tsid, *tsid), class) & perm::file::WATCH;
            let each = |ssid: &Sid| WATCHED.iter().any(|class| !lost(*ssid, *class).is_empty());
            old.plan.domains.iter().any(each)
        };
        let any = || self.every_label().is_none_or(|labels| labels.iter().any(is_lost));
        let takes = self.named.change == RuleChange::MayTake;
        *watching.get_or_init(|| *relabels && takes || any())
    }

    /// Whether a domain may do less than before to an object with any label, or to an endpoint that
    /// was asked for; yes when in doubt.
    pub(super) fn loses(&self, ssid: Sid) -> bool {
        let lost = |before, now, class| !self.lost_by(ssid, (before, now), class).is_empty();
        let endpoint = |((class, ip, port), before): ((Class, IpAddr, u16), Sid)| {
            let now = self.gate.sockets.endpoints.label(&self.gate.state, class, ip, port);
            now.map_or(true, |now| lost(before, now, Class::Endpoint))
        };
        let Some(labels) = self.every_label() else { return true };
        if self.gate.sockets.endpoints.has_forgotten() {
            return true;
        }
        labels.into_iter().any(|tsid| Class::all().any(|class| lost(tsid, tsid, class)))
            || self.gate.sockets.endpoints.remembered().into_iter().any(endpoint)
    }

    /// All that the security server has numbers for: what no rule for files names, too, as the
    /// initial SIDs and what transitions make. `None` if it does not say, or there are too many.
    fn every_label(&self) -> Option<Vec<Sid>> {
        let mut labels: Vec<Sid> = InitialSid::all().map(Sid::from).collect();
        for number in InitialSid::COUNT + 1..MOST_LABELS {
            let sid = Sid::new(number)?;
            match self.gate.state.server.sid_to_context(sid) {
                Ok(_) => labels.push(sid),
                Err(LabelError::UnknownSid(_)) => return Some(labels),
                Err(_) => return None,
            }
        }
        None
    }
}

fn granted(decision: Decision) -> AccessVector {
    if decision.permissive { AccessVector::ALL } else { decision.allowed }
}
