//! What a profile lets its domains have done outside, by services that act for whoever connects.

use crate::Judge;
use profile::{Compiled, deputies, power};
use std::{collections::BTreeSet, path::Path};

/// A service that acts for whoever connects, and that a domain reaches.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Power {
    /// The domain; `None` for the base domain.
    pub domain: Option<String>,
    /// What whoever connects gets outside.
    pub gives: &'static str,
    /// Where: a path, `@NAME` or `ADDRESS:PORT`.
    pub address: String,
}

/// What the domains of `compiled`, by which `judge` judges, reach of that; the first address of
/// each kind. It need not be there: it may come.
#[must_use]
pub fn powers(compiled: &Compiled, judge: &Judge, home: &Path) -> Vec<Power> {
    let home = home.to_string_lossy();
    let known = deputies().iter().filter_map(|deputy| deputy.example(&home));
    let named = compiled.paths.iter().filter_map(|rule| rule.path.as_ref()?.to_str());
    let named = named.filter(|path| power(path).is_some()).map(str::to_owned);
    let addresses: BTreeSet<String> = named.chain(known).collect();
    let mut found = Vec::new();
    for (index, domain) in compiled.domains.iter().enumerate() {
        let name = Some(domain.name.clone()).filter(|_| index > 0);
        for address in &addresses {
            // A network of the run's own has no other addresses.
            let is_outside =
                address.starts_with(['/', '@']) || compiled.private_loopback != Some(true);
            let Some(gives) = power(address).filter(|_| is_outside) else { continue };
            if judge.reaches(address, name.as_deref()) {
                found.push(Power { domain: name.clone(), gives, address: address.clone() });
            }
        }
    }
    found.sort();
    found.dedup_by(|a, b| (&a.domain, a.gives) == (&b.domain, b.gives));
    found
}
