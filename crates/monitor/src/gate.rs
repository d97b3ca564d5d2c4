//! The gate: receives every trapped call, has it decided, and answers it.
//!
//! Who waits for calls says `lead`; who decides one, the table that the filter is compiled from;
//! how, the object managers.

use crate::{
    between::SocketFiles,
    call::{Answer, Asker, Outcome},
    caller::Caller,
    exec,
    file::{self, FileAsker, FileManager},
    handler::are_known,
    lead::Lead,
    process,
    socket::{self, SocketAsker, SocketManager},
    state::MonitorState,
    sys::notify::Notification,
};
use confine::{Handler, Settled};
use rustix::io::Errno;
use std::{os::fd::OwnedFd, panic::AssertUnwindSafe};
use syscalls::Sysno;

/// Receives calls; nobody below knows it.
pub(crate) struct Gate {
    pub(crate) state: MonitorState,
    pub(crate) files: FileManager,
    pub(crate) sockets: SocketManager,
    /// What the kernel was told at the start.
    pub(crate) settled: Settled,
    /// Nothing is decided: the base that measurements compare with.
    pub(crate) off: bool,
    pub(crate) lead: Lead,
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
    /// Handles a call, unless it is kept for the end of a change of policy.
    pub(crate) fn admit(&self, call: &Notification) {
        if self.state.quiesce.enter(call) {
            self.handle(call);
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
            self.state.quiesce.leave(call.id);
        }
        self.lead.end(id);
    }

    /// Answers a call. Errors mean that the caller is gone, which is no concern of ours.
    pub(crate) fn answer(&self, call: &Notification, outcome: Outcome) {
        let _ = match outcome {
            Ok(Answer::Continue) => self.state.listener.send_continue(call.id),
            Ok(Answer::Return(value)) => self.state.listener.send_result(call.id, Ok(value)),
            Ok(Answer::Open { fd, cloexec }) => {
                use std::os::fd::AsFd;
                let sent = self.state.listener.send_fd(call.id, fd.as_fd(), cloexec);
                // The program's table of descriptors is full, or it is gone.
                if let Err(error) = sent {
                    self.state.listener.send_result(call.id, Err(error))
                } else {
                    sent
                }
            }
            Ok(Answer::Elsewhere | Answer::Again) => Ok(()),
            Err(error) => self.state.listener.send_result(call.id, Err(error)),
        };
    }

    fn decide(&self, call: &Notification) -> Outcome {
        if self.off {
            // Soundness is not asked for: the whole run was started without decisions.
            return Ok(Answer::Continue);
        }
        let state = &self.state;
        let (who, cwd) = (std::cell::OnceCell::new(), std::cell::OnceCell::new());
        let caller = Caller { view: &state.view, call, who: &who, cwd: &cwd };
        let number = Sysno::new(call.nr as usize).ok_or(Errno::NOSYS)?;
        let ssid = state.subjects.sid(state, call)?;
        let asker = Asker { state, caller, ssid, number };
        asker.take_capabilities()?;
        state.privileges.lacking.watch(number, || self.dispatch(asker))
    }

    fn dispatch(&self, asker: Asker<'_>) -> Outcome {
        let (files, sockets) = (&self.files, &self.sockets);
        match confine::handler(asker.number) {
            Some(Handler::File) => file::decide(FileAsker { asker, files }),
            Some(Handler::Process) => process::decide(asker),
            Some(Handler::Exec) => exec::decide(FileAsker { asker, files }),
            Some(Handler::Socket) => {
                socket::decide(SocketAsker { asker, sockets, files: SocketFiles::new(files) })
            }
            None => Err(Errno::NOSYS),
        }
    }
}
