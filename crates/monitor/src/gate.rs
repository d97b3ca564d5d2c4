//! The gate: receives every trapped call, has it decided, and answers it.
//!
//! Who waits for calls says `lead`; who decides one, the table that the filter is compiled from;
//! how, the object managers.

use crate::{
    audit::Audit,
    caller::Caller,
    exec,
    file::{self, FileManager},
    handler::are_known,
    lacking::Lacking,
    lead::Lead,
    policy::PolicyState,
    process::{self, ProcessManager},
    quiesce::{HoldThread, Quiesce},
    socket::{self, SocketManager},
    sys::notify::{Listener, Notification},
    waits::Waits,
};
use arc_swap::ArcSwap;
use confine::{Handler, Rights, Settled};
use flask::SecurityServer;
use proc::ProcessTree;
use rustix::io::Errno;
use std::{
    os::fd::OwnedFd,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex},
};
use syscalls::Sysno;

pub(crate) use crate::call::{Answer, Asker, Outcome};

/// Everything that deciding a call takes.
pub(crate) struct Gate {
    pub(crate) listener: Listener,
    /// The processes of the sandbox.
    pub(crate) view: ProcessTree,
    pub(crate) server: Arc<dyn SecurityServer>,
    pub(crate) files: FileManager,
    pub(crate) processes: ProcessManager,
    pub(crate) sockets: SocketManager,
    pub(crate) audit: Arc<Audit>,
    /// What the policy in force comes to on this machine.
    pub(crate) policy: ArcSwap<PolicyState>,
    /// What the kernel was told at the start.
    pub(crate) settled: Settled,
    /// The IDs that every on-behalf operation is done with: the program's, unless it changed them.
    pub(crate) ids: (u32, u32),
    /// Some domain has a capability that lets it change its IDs.
    pub(crate) ids_change: bool,
    /// What the kernel refuses root for want of a capability.
    pub(crate) lacking: Lacking,
    /// The capabilities that the sandbox may have: bit n is capability n.
    pub(crate) capabilities: u64,
    /// Nothing is decided: the base that measurements compare with.
    pub(crate) off: bool,
    pub(crate) lead: Lead,
    /// The way in, for calls and for changes of policy.
    pub(crate) quiesce: Quiesce,
    pub(crate) revocation: Revocation,
    /// Calls on the program's behalf that wait for a peer.
    pub(crate) waits: Waits,
}

/// What changes of policy have of the gate.
pub(crate) struct Revocation {
    /// The last change. Held by whoever makes one.
    pub(crate) changing: Mutex<Option<HoldThread>>,
    /// What a descriptor is replaced by that policy has taken back.
    pub(crate) refusal: OwnedFd,
}

// A call that the filter can trap, and that its object manager does not know, or the other way
// round, does not compile.
const _: () = {
    assert!(are_known(Handler::File, file::CALLS));
    assert!(are_known(Handler::Process, process::CALLS));
    assert!(are_known(Handler::Exec, exec::CALLS));
    assert!(are_known(Handler::Socket, socket::CALLS));
};

impl Gate {
    /// Decisions asked for so far, by object manager.
    pub(crate) fn decisions(&self) -> Vec<(&'static str, avc::Stats)> {
        let (file, process, socket) = (&self.files.avc, &self.processes.avc, &self.sockets.avc);
        let all = [("file", file), ("process", process), ("socket", socket)];
        all.map(|(name, avc)| (name, avc.stats())).to_vec()
    }

    /// Rights that the kernel refuses exactly where policy does: the program may make such calls
    /// itself.
    pub(crate) fn exact(&self) -> Rights {
        let policy = self.policy.load();
        let exactness = &policy.exactness;
        if self.processes.subjects.are_alike() { exactness.first } else { exactness.all }
    }

    /// Handles a call, unless it is kept for the end of a change of policy.
    pub(crate) fn admit(&self, call: &Notification) {
        if self.quiesce.enter(call) {
            self.handle(call);
        }
    }

    /// What was answered before `seqno` holds no longer.
    pub(crate) fn reset(&self, seqno: flask::Seqno) {
        for avc in [&self.files.avc, &self.processes.avc, &self.sockets.avc] {
            avc.reset(seqno);
        }
    }

    fn handle(&self, call: &Notification) {
        // IDs of notifications are never zero for long: they start at random and grow.
        let id = call.id.max(1);
        self.lead.begin(id);
        let outcome = std::panic::catch_unwind(AssertUnwindSafe(|| self.decide(call)));
        let outcome = outcome.unwrap_or(Err(Errno::PERM));
        let comes_again = matches!(outcome, Ok(Answer::Again));
        self.answer(call, outcome);
        if !comes_again {
            self.quiesce.leave(call.id);
        }
        self.lead.end(id);
    }

    /// Answers a call. Errors mean that the caller is gone, which is no concern of ours.
    pub(crate) fn answer(&self, call: &Notification, outcome: Outcome) {
        let _ = match outcome {
            Ok(Answer::Continue) => self.listener.send_continue(call.id),
            Ok(Answer::Return(value)) => self.listener.send_result(call.id, Ok(value)),
            Ok(Answer::Open { fd, cloexec }) => {
                use std::os::fd::AsFd;
                let sent = self.listener.send_fd(call.id, fd.as_fd(), cloexec);
                // The program's table of descriptors is full, or it is gone.
                if let Err(error) = sent {
                    self.listener.send_result(call.id, Err(error))
                } else {
                    sent
                }
            }
            Ok(Answer::Elsewhere | Answer::Again) => Ok(()),
            Err(error) => self.listener.send_result(call.id, Err(error)),
        };
    }

    fn decide(&self, call: &Notification) -> Outcome {
        if self.off {
            // Soundness is not asked for: the whole run was started without decisions.
            return Ok(Answer::Continue);
        }
        let (who, cwd) = (std::cell::OnceCell::new(), std::cell::OnceCell::new());
        let caller = Caller { view: &self.view, call, who: &who, cwd: &cwd };
        let number = Sysno::new(call.nr as usize).ok_or(Errno::NOSYS)?;
        let ssid = self.processes.subjects.sid(self, call)?;
        let asker = Asker { gate: self, caller, ssid, number };
        asker.take_capabilities()?;
        self.lacking.watch(number, || Self::dispatch(asker))
    }

    fn dispatch(asker: Asker<'_>) -> Outcome {
        match confine::handler(asker.number) {
            Some(Handler::File) => file::decide(asker),
            Some(Handler::Process) => process::decide(asker),
            Some(Handler::Exec) => exec::decide(asker),
            Some(Handler::Socket) => socket::decide(asker),
            None => Err(Errno::NOSYS),
        }
    }
}
