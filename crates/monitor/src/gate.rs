//! The gate: receives every trapped call, has it decided, and answers it.
//!
//! Who waits for calls says `lead`; who decides one, the table that the filter is compiled from;
//! how, the object managers.

use crate::{
    asking::{Questions, Verdict},
    exec,
    lead::Lead,
    process,
    shared::SocketFiles,
    socket::{self, SocketAsker, SocketManager},
};
use audit::{
    CallTimes,
    attempt::{self, key},
    refused,
};
use confine::{Handler, Settled};
use file_manager::{FileAsker, FileManager};
use mediation::{
    call::{Answer, Asker, CallResult},
    handler::are_known,
    state::MonitorState,
};
use policy_stack::is_compound;
use rustix::io::Errno;
use std::os::fd::{AsFd as _, OwnedFd};
use std::panic::AssertUnwindSafe;
use supervisor::{Caller, LinkDirectories, Notification};
use syscalls::Sysno;

/// How often one call can be denied something else each time.
const MOST_ROUNDS: usize = 16;

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
    /// Denials that are put to somebody first.
    pub(crate) questions: Option<Questions>,
    pub(crate) times: CallTimes,
    /// What a descriptor is replaced by that policy has taken back.
    pub(crate) refusal: OwnedFd,
}

// A call that the filter can trap, and that its object manager does not know, or the other way
// round, does not compile.
const _: () = {
    assert!(are_known(Handler::File, file_manager::CALLS));
    assert!(are_known(Handler::Process, process::CALLS));
    assert!(are_known(Handler::Exec, exec::CALLS));
    assert!(are_known(Handler::Socket, socket::CALLS));
};

impl Gate {
    /// Handles a call, unless it is kept for the end of a change of policy.
    pub(crate) fn admit(&self, call: &Notification) {
        if self.state.targets.quiesce.enter(call) {
            self.times.taken(call.nr, || self.handle(call));
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
            self.state.targets.quiesce.leave(call.id);
        }
        self.lead.end(id);
    }

    /// Answers a call. Errors mean that the caller is gone, which is no concern of ours.
    pub(crate) fn answer(&self, call: &Notification, outcome: CallResult) {
        let listener = &self.state.targets.listener;
        let _ = match outcome {
            Ok(Answer::Continue) => listener.send_continue(call.id),
            Ok(Answer::Return(value)) => listener.send_result(call.id, Ok(value)),
            Ok(Answer::Open { fd, cloexec }) => {
                let sent = listener.hand_over(call, fd.as_fd(), cloexec);
                // The program may have closed it already.
                supervisor::closing::close(fd);
                // The program's table of descriptors is full, or it is gone.
                sent.or_else(|error| listener.send_result(call.id, Err(error)))
            }
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
        if let Some(refused) = refused {
            return self.with_asker(call, |asker| Err(asker.refuse(&refused)));
        }
        match &self.questions {
            // What a run inside denies, nobody outside has to answer for.
            Some(questions) if !self.is_inside(call) => self.decide_with(questions, call),
            _ => self.decide_by_policy(call),
        }
    }

    fn is_inside(&self, call: &Notification) -> bool {
        self.state.subjects.sid(&self.state.targets, call).is_ok_and(is_compound)
    }

    /// Decides a call, with questions where it is denied.
    fn decide_with(&self, questions: &Questions, call: &Notification) -> CallResult {
        let mut once = Vec::new();
        for round in 0..MOST_ROUNDS {
            attempt::begin(std::mem::take(&mut once));
            let outcome = self.decide_by_policy(call);
            let attempt = attempt::end();
            once = attempt.once;
            let denied = attempt.denied;
            // What was denied on the way to success, the program can do without.
            let asked = denied.last().filter(|_| outcome.is_err() && round + 1 < MOST_ROUNDS);
            let verdict = match asked {
                Some(access) => self.with_asker(call, |asker| questions.ask(asker, access)),
                None => Ok((Verdict::NotNow, false)),
            };
            match (verdict, asked) {
                // A policy that is newer than the answer may have taken it: it is decided anew.
                (Ok((Verdict::Once, false)), Some(access)) => once.push(key(access)),
                (Ok((Verdict::Once | Verdict::Anew, _)), _) => {}
                (Ok(_) | Err(Errno::NFILE), _) => {
                    let _ = self.with_asker(call, |asker| {
                        let record = |access| {
                            asker.state.records.audit.record(asker.caller, asker.number, access);
                        };
                        denied.iter().for_each(record);
                        Ok(())
                    });
                    return outcome;
                }
                (Err(interrupted), _) => return Err(interrupted),
            }
        }
        Err(Errno::ACCESS)
    }

    /// Decides a call, and asks nobody but the policy.
    fn decide_by_policy(&self, call: &Notification) -> CallResult {
        self.with_asker(call, |asker| {
            asker.take_capabilities()?;
            asker.state.on_behalf.lacking.watch(asker.number, || self.dispatch(asker))
        })
    }

    /// Does something with a call and its subject, as both are now.
    fn with_asker<T>(
        &self,
        call: &Notification,
        with: impl FnOnce(Asker<'_>) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        let number = Sysno::new(call.nr as usize).ok_or(Errno::NOSYS)?;
        let state = &self.state;
        let (who, cwd) = (std::cell::OnceCell::new(), std::cell::OnceCell::new());
        let several = !state.subjects.policy_has_one_domain();
        let links = several.then(LinkDirectories::default);
        let (tree, links) = (&state.targets.tree, links.as_ref());
        let caller = Caller { tree, call, who: &who, cwd: &cwd, links };
        let ssid = state.subjects.sid(&state.targets, call)?;
        with(Asker { state, caller, ssid, number })
    }

    fn dispatch(&self, asker: Asker<'_>) -> CallResult {
        let (files, sockets) = (&self.files, &self.sockets);
        let claims = &files.claims.of_call(asker.caller.call.id);
        match confine::handler(asker.number) {
            // Of the requests of ioctl(2), one is about process groups.
            _ if process::is_foreground(&asker) => process::set_foreground(asker),
            Some(Handler::File) => file_manager::decide(FileAsker { asker, files, claims }),
            Some(Handler::Process) => process::decide(asker),
            Some(Handler::Exec) => exec::decide(FileAsker { asker, files, claims }),
            Some(Handler::Socket) => {
                let files = SocketFiles::new(files, claims);
                socket::decide(SocketAsker { asker, sockets, files })
            }
            Some(Handler::Refused) | None => Err(Errno::NOSYS),
        }
    }
}
