//! A profile, and the addresses of the hosts that it names.

use profile::{Amendment, Compiled, Documents, ProfileErrors, Variables};
use std::{collections::BTreeMap, io, net::IpAddr};

/// A profile, and the addresses of the hosts that it names.
pub(super) struct ResolvedProfile {
    pub(super) documents: Documents,
    pub(super) hosts: BTreeMap<String, Vec<IpAddr>>,
}

impl ResolvedProfile {
    pub(super) fn compile(
        &self,
        variables: &Variables,
        amendments: &[Amendment],
    ) -> Result<Compiled, ProfileErrors> {
        let unknown = || io::Error::other("it was not resolved");
        let known = |name: &&str| self.hosts.get(*name).cloned().ok_or_else(unknown);
        let mut resolver = |names: &[&str]| names.iter().map(known).collect();
        self.documents.compile(variables, &mut resolver, amendments)
    }
}
