//! The gate: receives every trapped call, has it decided, and answers it.
//!
//! Who waits for calls says `lead`; who decides one, the table that the filter is compiled from;
//! how, the object managers.

use crate::{
    asking::{ByPolicy, Questions},
    exec,
    lead::Lead,
    process::{self, ProcessAsker, ProcessManager},
    shared::SocketFiles,
    socket::{self, SocketAsker, SocketManager},
};
use audit::{Access, CallTimes, refused};
use confine::{Handler, Settled};
use file_manager::{FileAsker, FileManager};
use mediation::{
    call::{Answer, Asker, CallResult},
    handler::are_known,
    state::MonitorState,
};
use policy_stack::is_compound;
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::panic::AssertUnwindSafe;
use supervisor::{Caller, LinkDirectories, Notification};
use syscalls::Sysno;

/// Receives calls; nobody below knows it.
pub(crate) struct Gate {
    pub(crate) state: MonitorState,
    pub(crate) files: FileManager,
    pub(crate) processes: ProcessManager,
    pub(crate) sockets: SocketManager,
    /// What the kernel was told at the start.
    pub(crate) settled: Settled,
    /// Nothing is decided: the base that measurements compare with.
    pub(crate) off: bool,
    pub(crate) lead: Lead,
    /// Denials that are put to somebody first.
    pub(crate) questions: Option<Questions>,
    pub(crate) times: CallTimes,
    /// What a descriptor is replaced by that policy has taken back.
    pub(crate) refusal: OwnedFd,
}

// A call that the filter's table gives to an object manager that does not know it, or the other way
// round, does not compile. What the filter traps by its arguments is in the table: a test of
// `confine` asserts it.
const _: () = {
    assert!(are_known(Handler::File, file_manager::CALLS));
    assert!(are_known(Handler::Process, process::CALLS));
    assert!(are_known(Handler::Exec, exec::CALLS));
    assert!(are_known(Handler::Socket, socket::CALLS));
};

impl Gate {
    /// Handles a call, by a thread that leads in `term`, or led then, unless it is kept for the
    /// end of a change of policy.
    pub(crate) fn admit(&self, term: u64, call: &Notification) {
        if self.state.targets.quiesce.enter(call) {
            self.times.taken(call, || self.handle(term, call));
        }
    }

    fn handle(&self, term: u64, call: &Notification) {
        // IDs of notifications are never zero for long: they start at random and grow.
        let id = call.id.max(1);
        self.lead.begin(term, id);
        let outcome = std::panic::catch_unwind(AssertUnwindSafe(|| self.decide(call)));
        let outcome = outcome.unwrap_or(Err(Errno::PERM));
        let comes_again = matches!(outcome, Ok(Answer::Again));
        self.answer(call, outcome);
        if !comes_again {
            self.state.targets.quiesce.leave(call.id);
        }
        self.lead.end(term);
    }

    /// Answers a call. Errors mean that the caller is gone, which is no concern of ours.
    pub(crate) fn answer(&self, call: &Notification, outcome: CallResult) {
        let listener = &self.state.targets.listener;
        let _ = match outcome {
            Ok(Answer::Continue) => listener.send_continue(call.id),
            Ok(Answer::Return(value)) => listener.send_result(call.id, Ok(value)),
            // The program's table of descriptors may be full, which it is told.
            Ok(Answer::Open { fd, cloexec }) => listener.hand_over(call, fd, cloexec),
            Ok(Answer::Elsewhere | Answer::Again) => Ok(()),
            Err(error) => listener.send_result(call.id, Err(error)),
        };
    }

    fn decide(&self, call: &Notification) -> CallResult {
        let number = Sysno::new(call.nr as usize).ok_or(Errno::NOSYS)?;
        let refused = refused::of(number, &call.args);
        if self.off {
            // Soundness is not asked for: the whole run was started without decisions.
            return refused.map_or(Ok(Answer::Continue), |refused| Err(refused.errno));
        }
        if !self.state.room.has_more(&self.state.targets.tree.own_fds) {
            self.state.records.remarks.lacks_descriptors();
            return Err(Errno::NFILE);
        }
        if let Some(refused) = refused {
            return self.with_asker(call, |asker| Err(asker.refuse(&refused)));
        }
        match &self.questions {
            // What a run inside denies, nobody outside has to answer for.
            Some(questions) if !self.is_inside(call) => questions.decide(self, call),
            _ => self.decide_by_policy(call),
        }
    }

    fn is_inside(&self, call: &Notification) -> bool {
        self.state.subjects.sid(&self.state.targets, call).is_ok_and(is_compound)
    }

    fn with_caller<T>(&self, call: &Notification, with: impl FnOnce(Caller<'_>) -> T) -> T {
        let (who, cwd) = (std::cell::OnceCell::new(), std::cell::OnceCell::new());
        let several = !self.state.subjects.policy_has_one_domain();
        let links = several.then(LinkDirectories::default);
        let (listener, tree) = (&self.state.targets.listener, &self.state.targets.tree);
        with(Caller { listener, tree, call, who: &who, cwd: &cwd, links: links.as_ref() })
    }

    fn dispatch(&self, asker: Asker<'_>) -> CallResult {
        let (files, processes, sockets) = (&self.files, &self.processes, &self.sockets);
        let claims = &files.claims.of_call(asker.caller.call.id);
        match confine::handler(asker.number, &asker.caller.call.args) {
            Some(Handler::File) => file_manager::decide(FileAsker { asker, files, claims }),
            Some(Handler::Process) => process::decide(ProcessAsker { asker, processes }),
            Some(Handler::Exec) => exec::decide(FileAsker { asker, files, claims }),
            Some(Handler::Socket) => {
                let files = SocketFiles::new(files, claims);
                socket::decide(SocketAsker { asker, sockets, files })
            }
            Some(Handler::Refused) | None => Err(Errno::NOSYS),
        }
    }
}

impl ByPolicy for Gate {
    fn decide_by_policy(&self, call: &Notification) -> CallResult {
        self.with_asker(call, |asker| {
            asker.take_capabilities()?;
            asker.state.on_behalf.lacking.watch(asker.number, || self.dispatch(asker))
        })
    }

    fn with_asker<T>(
        &self,
        call: &Notification,
        with: impl FnOnce(Asker<'_>) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        let number = Sysno::new(call.nr as usize).ok_or(Errno::NOSYS)?;
        let state = &self.state;
        let ssid = state.subjects.sid(&state.targets, call)?;
        self.with_caller(call, |caller| with(Asker { state, caller, ssid, number }))
    }

    fn record(&self, call: &Notification, denied: &[Access]) {
        let Some(number) = Sysno::new(call.nr as usize) else { return };
        let audit = &self.state.records.audit;
        self.with_caller(call, |caller| {
            denied.iter().for_each(|access| audit.record(caller, number, access));
        });
    }
}
