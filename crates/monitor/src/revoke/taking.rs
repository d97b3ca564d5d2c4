//! Whether a change takes anything from anybody, whoever holds it.

use super::held::{Comparison, Taking, granted};
use confine::{KernelPolicy, PolicyState};
use flask::{AccessVector, Class, InitialSid, LabelError, Question, Sid};
use inode_labels::RuleChange;
use std::{cell::OnceCell, collections::HashSet, net::IpAddr, sync::Arc};

/// Of more labels nobody says that none of them matters.
const MOST_LABELS: u32 = 10_000;

impl Taking {
    /// A change of what held before, that labels nothing otherwise as far as is known.
    pub(super) fn new(old: &Arc<PolicyState>) -> Self {
        Self { relabels: false, old: Arc::clone(old), known: OnceCell::new() }
    }
}

impl Comparison<'_> {
    /// The labels of places of which `new` takes what it goes on granting elsewhere: a file there
    /// may have another label by another name, or by where it lay. Other kinds of files get what
    /// files get. None if nobody can say what was granted before, as a daemon that has begun anew:
    /// to label everything anew would take too long.
    pub(super) fn taken_labels(&self, new: &KernelPolicy) -> HashSet<Sid> {
        let labels: HashSet<Sid> = new.labels.files.iter().filter_map(|rule| rule.sid).collect();
        let mut taken = HashSet::new();
        if self.named.change == RuleChange::Gives {
            return taken;
        }
        for ssid in &new.plan.domains {
            for tclass in [Class::File, Class::Dir] {
                let now = |tsid: &Sid| (*tsid, self.granted(*ssid, *tsid, tclass));
                let now: Vec<(Sid, AccessVector)> = labels.iter().map(now).collect();
                let all = now.iter().fold(AccessVector::NONE, |all, (_, granted)| all | *granted);
                for (tsid, now) in now {
                    let elsewhere = all.missing_from(now);
                    if elsewhere.is_empty() {
                        continue;
                    }
                    let question = Question { ssid: *ssid, tsid, tclass };
                    let before = self.gate.state.server.compute_av_before(question);
                    let Ok(before) = before.map(granted) else { return HashSet::new() };
                    if !(before & elsewhere).is_empty() {
                        taken.insert(tsid);
                    }
                }
            }
        }
        taken
    }

    /// Whether something is granted no longer, or labelled otherwise.
    pub(super) fn takes(&self) -> bool {
        let Taking { relabels, old, known } = &self.taking;
        let domains = &old.plan.domains;
        *known.get_or_init(|| *relabels || domains.iter().any(|ssid| self.loses(*ssid)))
    }

    /// Whether a domain may do less than before to an object with any label, or to an endpoint that
    /// was asked for; yes when in doubt.
    pub(super) fn loses(&self, ssid: Sid) -> bool {
        let lost = |before, now, class| !self.lost(Some(ssid), (before, now), class).is_empty();
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
