//! What may differ in suites of others.

/// Cases that pass natively, and not under Dewar.
pub(crate) struct Known {
    pub(crate) suite: &'static str,
    /// The name of a case, or the beginning of names before a `*`.
    pub(crate) case: &'static str,
    /// Under `open`, too; else under `workspace` alone.
    pub(crate) in_open: bool,
    pub(crate) reason: &'static str,
}

/// All of them.
pub(crate) const KNOWN: &[Known] = &[
    Known {
        suite: "stress-ng",
        case: "dccp",
        in_open: true,
        reason: "No profile grants protocols whose addresses nobody labels.",
    },
    Known { suite: "stress-ng", case: "sctp", in_open: true, reason: "As with `dccp`." },
    Known {
        suite: "stress-ng",
        case: "mknod",
        in_open: true,
        reason: "No profile grants to make a device; without privileges, the kernel makes one without a number only.",
    },
    Known {
        suite: "stress-ng",
        case: "sockdiag",
        in_open: true,
        reason: "It tells of every socket of the machine, whose names may be secrets.",
    },
    Known {
        suite: "stress-ng",
        case: "verity",
        in_open: true,
        reason: "It changes a file for good through a descriptor that is open only for reading (`FS_IOC_ENABLE_VERITY`).",
    },
    Known {
        suite: "stress-ng",
        case: "fstat",
        in_open: false,
        reason: "It lists `/dev`, of which the default profile grants single devices.",
    },
];
