//! A trapped call with its subject: what it asks for, and with whose rights it is made.

use crate::{
    cache::{AccessRequest, CheckedCache, Denied},
    link_deputy,
    state::MonitorState,
};
use audit::{Access, Refusal, attempt};
use flask::Question;
use rustix::{
    fs::Mode,
    io::{self, Errno},
    process::Gid,
    thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities},
};
use std::{collections::BTreeSet, os::fd::AsFd};
use supervisor::{Caller, Targets, closing::Duplicate, missing_capabilities, thread};
use syscalls::Sysno;

pub use supervisor::{Answer, CallResult};

/// A call with its subject.
#[derive(Clone, Copy)]
pub struct Asker<'a> {
    /// What deciding takes.
    pub state: &'a MonitorState,
    /// The thread that waits for the answer.
    pub caller: Caller<'a>,
    /// The label of its process.
    pub ssid: flask::Sid,
    /// Which call it is.
    pub number: Sysno,
}

impl Asker<'_> {
    /// Asked right before what is done in the caller's place.
    ///
    /// # Errors
    ///
    /// `ACCESS` if another policy has come into force since this call was let in. What began before
    /// that, the change waits for, or says that it is not complete.
    pub fn not_overtaken(&self) -> io::Result<()> {
        let is_overtaken = self.state.targets.quiesce.is_overtaken(self.caller.call.id);
        if is_overtaken { Err(Errno::ACCESS) } else { Ok(()) }
    }

    /// Runs `make` under the caller's file mode creation mask, unless it was overtaken. It must not
    /// wait for others.
    pub fn with_umask<T>(&self, make: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        self.not_overtaken()?;
        let mask = Mode::from_bits_retain(self.caller.identity()?.umask);
        self.state.on_behalf.fs_state.with_umask(mask, make)
    }

    /// The same in the caller's working directory.
    pub fn in_cwd<T>(&self, make: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        self.in_directory(self.caller.cwd()?, make)
    }

    /// The same in `directory`.
    pub fn in_directory<T>(
        &self,
        directory: impl AsFd,
        make: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        self.not_overtaken()?;
        let mask = Mode::from_bits_retain(self.caller.identity()?.umask);
        let places = (directory, &self.state.targets.tree.own_fds);
        self.state.on_behalf.fs_state.in_cwd(places, mask, make)
    }

    /// Asks whether the subject may; records what is to be recorded.
    pub fn ask(&self, cache: &CheckedCache, request: &AccessRequest<'_>) -> Result<(), Denied> {
        if !cache.decides {
            return Ok(());
        }
        let &AccessRequest { tsid, tclass, requested, hint, object } = request;
        let question = Question { ssid: self.ssid, tsid, tclass };
        let asked = cache.avc.ask(question, requested, hint);
        let (granted, audit) = (asked.granted(), asked.is_recorded());
        let trail = &self.state.records.audit;
        let lent = !granted && attempt::is_lent(question, requested, object);
        if audit || trail.wants_everything() {
            let (object, granted, quiet) = (object(), granted || lent, !audit || lent);
            let verdict = asked.verdict();
            let access = Access { question, requested, verdict, granted, quiet, object };
            let known = if granted || quiet { Some(access) } else { attempt::defer(access) };
            if let Some(access) = known {
                trail.record(self.caller, self.number, &access);
            }
        }
        let leads = cache.bounds_links && (granted || lent);
        if leads && link_deputy::allow(*self, cache, request).is_err() {
            self.refuse(&link_deputy::refusal(request));
            return Err(Denied);
        }
        if granted || lent {
            self.state.records.activity.note((self.caller, self.number), tclass, requested, object);
            return Ok(());
        }
        missing_capabilities::note_denial();
        Err(Denied)
    }

    /// Rights that the kernel refuses the subject exactly where policy does: it may make such calls
    /// itself. The kernel knows nothing of runs inside.
    pub fn exact(&self) -> confine::Rights {
        if self.is_inside() { confine::Rights::empty() } else { self.state.exact() }
    }

    /// Records a refusal that policy has no say in; the errno that the program sees.
    pub fn refuse(&self, refusal: &Refusal) -> Errno {
        self.state.records.audit.refuse(self.caller, (self.ssid, self.number), refusal);
        missing_capabilities::note_denial();
        refusal.errno
    }

    /// Makes a call until it is done, or the caller has something else to do; with its result,
    /// whether policy has changed since it was decided. Not begun if this was overtaken.
    pub fn wait<T>(&self, make: impl Fn() -> io::Result<T>) -> io::Result<(T, bool)> {
        self.not_overtaken()?;
        let Targets { listener, quiesce, .. } = &self.state.targets;
        let wait = || quiesce.waits.until_done(self.caller, listener, make);
        quiesce.outside(self.caller.call, wait)
    }

    /// A duplicate of descriptor `fd` of the calling thread.
    pub fn duplicate(&self, fd: i32) -> io::Result<Duplicate> {
        let taken = thread::take_descriptor(self.caller.call.tid, self.caller.identity()?.pid, fd);
        let fd = match taken {
            Err(Errno::PERM) => return Err(self.refuse(&out_of_reach(self.number, fd))),
            Err(Errno::OPNOTSUPP) => return Err(Errno::BADF),
            taken => taken?,
        };
        // Else the caller is dead, and the descriptor may be that of whoever got its PID.
        if self.state.targets.listener.is_valid(self.caller.call.id) {
            Ok(fd)
        } else {
            Err(Errno::SRCH)
        }
    }

    /// Refuses to act on behalf of a process that has changed its IDs since it was launched: the
    /// monitor has only its own to act with.
    pub fn same_ids(&self) -> io::Result<()> {
        if !self.state.on_behalf.ids_change {
            return Ok(());
        }
        let identity = self.caller.identity()?;
        let own_groups = rustix::process::getgroups()?.into_iter().map(Gid::as_raw);
        let own_groups: BTreeSet<u32> = own_groups.collect();
        let status = self.caller.tree.proc.status(self.caller.call.tid);
        let groups = self.caller.certain(status)?.groups().ok_or(Errno::SRCH)?;
        let same =
            (identity.fsuid, identity.fsgid) == self.state.on_behalf.ids && own_groups == groups;
        if same { Ok(()) } else { Err(Errno::PERM) }
    }

    /// Whether the caller has a capability in effect that a profile has granted.
    pub fn has_capability(&self, capability: CapabilitySet) -> bool {
        let has = |who: &proc::Identity| who.capabilities & capability.bits() != 0;
        self.state.on_behalf.capabilities & capability.bits() != 0
            && self.caller.identity().is_ok_and(has)
    }

    /// Puts in effect, in this thread, those of the sandbox's capabilities that the caller has in
    /// effect.
    pub fn take_capabilities(&self) -> io::Result<()> {
        if self.state.on_behalf.capabilities == 0 {
            return Ok(());
        }
        let sets = capabilities(None)?;
        let wanted = self.caller.identity()?.capabilities & self.state.on_behalf.capabilities;
        let effective = CapabilitySet::from_bits_retain(wanted) & sets.permitted;
        set_capabilities(None, CapabilitySets { effective, ..sets })
    }
}

/// What is said where the kernel hands out no descriptor of the caller's.
fn out_of_reach(call: Sysno, fd: i32) -> Refusal {
    Refusal {
        errno: Errno::PERM,
        by: "a filter around Dewar",
        tclass: "fd",
        missing: call.name(),
        object: format!("descriptor {fd}"),
        reason: "the call is made on a duplicate of the descriptor, and the filter that Dewar itself runs under (a container's?) \
                 refuses pidfd_getfd(2)",
        instead: "have the container allow it: Docker does with --cap-add SYS_PTRACE",
    }
}
