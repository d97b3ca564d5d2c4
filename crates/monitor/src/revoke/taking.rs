//! Whether a change takes anything from anybody, whoever holds it.

use super::held::{Comparison, Taking};
use flask::{Class, InitialSid, LabelError, Sid};
use std::net::IpAddr;

/// Of more labels nobody says that none of them matters.
const MOST_LABELS: u32 = 10_000;

impl Comparison<'_> {
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
