//! The status page: what of the policy a program can see change by one load from memory.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicU32, Ordering, fence},
};

/// As `struct selinux_kernel_status` of the Linux kernel. C reads it where it lies.
#[derive(Debug)]
#[repr(C)]
pub struct Status {
    version: AtomicU32,
    /// Odd while something changes.
    sequence: AtomicU32,
    enforcing: AtomicU32,
    policyload: AtomicU32,
    deny_unknown: AtomicU32,
    writing: Mutex<()>,
}

impl Status {
    pub(crate) fn new(enforcing: bool, deny_unknown: bool) -> Self {
        Self {
            version: AtomicU32::new(1),
            sequence: AtomicU32::new(0),
            enforcing: AtomicU32::new(enforcing.into()),
            policyload: AtomicU32::new(1),
            deny_unknown: AtomicU32::new(deny_unknown.into()),
            writing: Mutex::new(()),
        }
    }

    /// A number that grows with every change, and is the same as long as there is none. The answer
    /// of a check may be kept for as long as that.
    #[must_use]
    pub fn sequence(&self) -> u32 {
        // Odd is on its way: it is not the number of anything that was answered.
        self.sequence.load(Ordering::Acquire)
    }

    /// Whether denials are enforced, or only recorded.
    #[must_use]
    pub fn enforcing(&self) -> bool {
        self.enforcing.load(Ordering::Acquire) != 0
    }

    /// How many policies were loaded, the first included; a boolean is no new policy.
    #[must_use]
    pub fn policyload(&self) -> u32 {
        self.policyload.load(Ordering::Acquire)
    }

    /// Whether classes and permissions that the policy lacks are denied.
    #[must_use]
    pub fn deny_unknown(&self) -> bool {
        self.deny_unknown.load(Ordering::Acquire) != 0
    }

    /// A change that `loaded` a policy, which denies unknown classes or not, or a boolean.
    pub(crate) fn change(&self, loaded: Option<bool>) {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        self.sequence.fetch_add(1, Ordering::AcqRel);
        fence(Ordering::SeqCst);
        if let Some(deny_unknown) = loaded {
            self.policyload.fetch_add(1, Ordering::AcqRel);
            self.deny_unknown.store(deny_unknown.into(), Ordering::Release);
        }
        self.sequence.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn set_enforcing(&self, enforcing: bool) {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        self.sequence.fetch_add(1, Ordering::AcqRel);
        self.enforcing.store(enforcing.into(), Ordering::Release);
        self.sequence.fetch_add(1, Ordering::AcqRel);
    }
}
