//! Which denials matter: programs try much, and do without.

use super::{Denial, RunRecord};
use monitor::{DeedKind, Record};
use std::path::Path;

/// What programs keep of their own in the home, by how their file names begin: without
/// it they begin anew each time.
const MEMORIES: [(&str, &[&str]); 21] = [
    ("bash", &[".bash_history", ".bashrc", ".bash_profile", ".bash_logout", ".profile"]),
    ("fish", &[".config/fish", ".local/share/fish", ".bash_history"]),
    ("vim", &[".viminfo"]),
    ("emacs", &[".emacs.d"]),
    ("nano", &[".local/share/nano"]),
    ("sqlite", &[".sqlite_history"]),
    ("python", &[".python_history"]),
    ("top", &[".config/procps"]),
    ("jshell", &[".java/.userPrefs"]),
    ("java", &[".java/.userPrefs"]),
    ("irb", &[".irb_history"]),
    ("ruby", &[".irb_history"]),
    ("node", &[".node_repl_history"]),
    ("octave", &[".octave_hist", ".local/share/octave"]),
    ("htop", &[".config/htop"]),
    ("mc", &[".config/mc", ".local/share/mc"]),
    ("svn", &[".subversion"]),
    ("gunicorn", &[".gunicorn"]),
    // Counters of how it is used, also by what it starts (`vet`, `compile`); a lock of modules.
    ("go", &[".config/go", "go/pkg/mod/cache/lock"]),
    ("", &[".config/go/telemetry"]),
    // Locks, and when each package was used last.
    ("cargo", &[".cargo/.package-cache", ".cargo/.package-cache-mutate", ".cargo/.global-cache"]),
];

/// A socket of several paths, as the monitor calls it.
const MPTCP: &str = "a new socket of MPTCP";

impl RunRecord {
    /// Denials, repetitions and those that were not kept counted.
    pub(crate) fn denied(&self) -> u64 {
        self.weighed().map(|denial| denial.record.count).sum::<u64>() + self.dropped
    }

    /// The same with what programs mostly do without.
    pub(crate) fn denied_in_all(&self) -> u64 {
        self.denials.iter().map(|denial| denial.record.count).sum::<u64>() + self.dropped
    }

    /// How many denials it does not speak of, as programs mostly do without.
    pub(crate) fn unspoken(&self) -> u64 {
        self.denied_in_all().saturating_sub(self.denied())
    }

    /// The denials, without what programs probe for and do without, unless the command failed and
    /// there are no others.
    fn weighed(&self) -> impl Iterator<Item = &Denial> {
        let (failed, only_probes) =
            (self.status != 0, self.denials.iter().all(|denial| self.is_probed(&denial.record)));
        self.denials.iter().filter(move |Denial { record, .. }| match failed {
            true => only_probes || !self.is_probed(record),
            false => !self.is_probed(record) && !self.is_tried(record),
        })
    }

    /// Whether programs probe for it, and do without.
    fn is_probed(&self, record: &Record) -> bool {
        // Go's servers listen by TCP then, and who watches files does so by inotify.
        record.probed
            || self.is_memory(record)
            || record.object == MPTCP
            || record.call == "fanotify_init"
    }

    /// Whether a program was kept from its own memory.
    fn is_memory(&self, record: &Record) -> bool {
        let program = Path::new(&record.program).file_name().unwrap_or_default().to_string_lossy();
        let home = self.variables.as_ref().map(|variables| &variables.home);
        let Some(place) = home.and_then(|it| Path::new(&record.object).strip_prefix(it).ok())
        else {
            return false;
        };
        // Or a directory on the way there, where there is none yet.
        let makes = record.call.starts_with("mkdir");
        let is_in = |it: &str| place.starts_with(it) || makes && Path::new(it).starts_with(place);
        MEMORIES
            .iter()
            .any(|(begin, places)| program.starts_with(begin) && places.iter().any(|it| is_in(it)))
    }

    /// Whether a library tries it to learn how a host would be reached, and does without: which of
    /// its addresses is the nearest, where the same process then reaches one, or whether there is
    /// IPv6, or whether a port can be shared. Who reaches none has looked up a name, unless it is a
    /// server: that looks up its own. The same of a link in the place of a copy.
    fn is_tried(&self, record: &Record) -> bool {
        let knows_hosts = || {
            self.deeds.iter().any(|deed| match deed.kind {
                DeedKind::Contacted => deed.pid == record.pid,
                // Servers hand on what they have bound.
                DeedKind::Bound => deed.comm == record.comm,
                _ => false,
            })
        };
        match record.tclass.as_str() {
            "udp_socket" => record.missing == ["create"] && knows_hosts(),
            // Git copies instead.
            "file" => record.missing == ["link"] && learn::copies(&record.program, &record.object),
            // It fails as on a kernel without it.
            "tcp_socket" => record.missing == ["setopt"] && record.object == "SO_REUSEPORT",
            "endpoint" => record.missing == ["name_bind"] && record.object == "[::1]:0",
            // Emacs looks itself whether something was typed.
            _ => record.object.ends_with("(O_ASYNC)"),
        }
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

/// How little programs can do without what was denied: they try many files, and few hosts.
fn weight(record: &Record) -> u8 {
    const LOOKS: [&str; 2] = ["getattr", "search"];
    const READS: [&str; 5] = ["getattr", "search", "read", "open", "watch"];
    let only = |names: &[&str]| record.missing.iter().all(|name| names.contains(&name.as_str()));
    let executes = ["execute", "execute_no_trans", "entrypoint", "transition"];
    // By these most tell the system's log, and go on without it.
    let tells = ["unix_dgram_socket", "netlink_audit_socket"];
    if tells.contains(&record.tclass.as_str()) {
        2
    } else if record.tclass == "endpoint" || record.tclass.ends_with("_socket") {
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

#[cfg(test)]
mod tests;
