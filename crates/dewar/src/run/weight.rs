//! Which denials matter: programs try much, and do without.

use super::{Denial, RunRecord};
use monitor::Record;

impl RunRecord {
    /// Denials, repetitions and those that were not kept counted.
    pub(crate) fn denied(&self) -> u64 {
        self.weighed().map(|denial| denial.record.count).sum::<u64>() + self.dropped
    }

    /// The denials, without what programs probe for and do without, unless the command failed and
    /// there are no others.
    fn weighed(&self) -> impl Iterator<Item = &Denial> {
        let (failed, only_probes) =
            (self.status != 0, self.denials.iter().all(|denial| denial.record.probed));
        self.denials.iter().filter(move |Denial { record, .. }| match failed {
            true => only_probes || !record.probed,
            false => !record.probed && !is_tried(record),
        })
    }

    /// The denial that is the likeliest to have mattered: of the kind that programs can do without
    /// the least, the last, as the program's end came after it. What this user may not do without
    /// Dewar either comes after all others.
    pub(crate) fn likeliest(&self) -> Option<&Denial> {
        let weight = |record: &Record| if record.natively { 0 } else { 1 + weight(record) };
        let rank = |denial: &&Denial| (weight(&denial.record), denial.record.time);
        self.weighed().max_by(|a, b| {
            let ((a, a_time), (b, b_time)) = (rank(a), rank(b));
            a.cmp(&b).then(a_time.total_cmp(&b_time))
        })
    }
}

/// Whether libraries try it to learn how a host would be reached, and do without.
fn is_tried(record: &Record) -> bool {
    record.tclass == "udp_socket" && record.missing == ["create"]
}

/// How little programs can do without what was denied: they try many files, and few hosts.
fn weight(record: &Record) -> u8 {
    const LOOKS: [&str; 2] = ["getattr", "search"];
    const READS: [&str; 5] = ["getattr", "search", "read", "open", "watch"];
    let only = |names: &[&str]| record.missing.iter().all(|name| names.contains(&name.as_str()));
    let executes = ["execute", "execute_no_trans", "entrypoint", "transition"];
    if record.tclass == "endpoint" || record.tclass.ends_with("_socket") {
        5
    } else if record.missing.iter().any(|name| executes.contains(&name.as_str())) {
        4
    } else if !only(&READS) {
        3
    } else if only(&LOOKS) {
        0
    } else if record.tclass == "dir" {
        1
    } else {
        2
    }
}
