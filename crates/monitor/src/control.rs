//! What others may ask of a running sandbox, and have done to it.

use crate::{
    asking::Verdict,
    gate::Gate,
    process::{self, ProcessStatus},
    revoke::{self, ApplyError, ByName, Hold, Receipt, RevokeMode},
};
use confine::Conflict;
use flask::SecurityServer;
use mediation::{
    inside::{self, CompileInner},
    subject::{
        self,
        connection::{self, Connector},
    },
};
use rustix::io::Errno;
use std::sync::Arc;

/// A hold on a running sandbox.
#[derive(Clone)]
pub struct Control(Arc<Gate>);

impl Control {
    pub(crate) fn new(gate: Arc<Gate>) -> Self {
        Self(gate)
    }

    /// Makes the policy that the security server has now hold here, for everything that is held
    /// already, too. Returns when the change is complete, or when it is known that it will not be.
    ///
    /// Changes come one after another: whoever changes the policy calls this before the next
    /// change.
    ///
    /// # Errors
    ///
    /// [`ApplyError`]; then the caller goes back to the policy before, and applies that, or ends
    /// the run.
    pub fn apply(&self, mode: RevokeMode) -> Result<Receipt, ApplyError> {
        self.apply_naming(mode, ByName::Nothing)
    }

    /// The same where whoever makes the change names files.
    ///
    /// # Errors
    ///
    /// As of [`Control::apply`].
    pub fn apply_naming(&self, mode: RevokeMode, named: ByName<'_>) -> Result<Receipt, ApplyError> {
        revoke::apply(&self.0, mode, named)
    }

    /// Whether opens for reading never come to the monitor (mode `fast`), so that policy cannot
    /// change about them.
    #[must_use]
    pub fn leaves_reads(&self) -> bool {
        self.0.settled.reads_pass()
    }

    /// Whether a process, named in this PID namespace, certainly belongs neither to the sandbox nor
    /// is this one. Says no when in doubt. The caller holds the process, so that its number is its
    /// own.
    #[must_use]
    pub fn is_outside(&self, pid: u32) -> bool {
        self.0.state.targets.tree.is_outside(pid)
    }

    /// The processes of the sandbox.
    ///
    /// # Errors
    ///
    /// What the kernel says when they cannot be listed.
    pub fn processes(&self) -> Result<Vec<ProcessStatus>, Errno> {
        process::all(&self.0.state)
    }

    /// The process of this sandbox that made the connection whose name, without the leading 0, is
    /// `name`; `None` unless it still runs, in the domain in which it connected. The caller knows
    /// from the kernel that this process, the monitor, connected that socket.
    #[must_use]
    pub fn connector(&self, name: &str) -> Option<Connector> {
        if self.0.off { None } else { connection::connector(&self.0.state, name).ok() }
    }

    /// Calls `tell` before the label of any process changes. Only the first caller is told.
    pub fn on_new_label(&self, tell: impl Fn() + Send + Sync + 'static) {
        subject::on_new_label(&self.0.state, Box::new(tell));
    }

    /// From now on processes inside may ask for a policy that bounds them further. `compile` makes
    /// one of what a process has sent, whom nobody trusts. Only the first caller is heard.
    pub fn serve_inside(&self, compile: Box<CompileInner>) {
        if self.0.off {
            return;
        }
        let gate = Arc::downgrade(&self.0);
        let end = move |number| {
            if let Some(gate) = gate.upgrade() {
                inside::end_layer(&gate.state, number, || revoke::freeze(&gate));
            }
        };
        self.0.state.inside.serve(compile, Box::new(end));
    }

    /// Decisions asked for so far, by object manager.
    #[must_use]
    pub fn decisions(&self) -> Vec<(&'static str, avc::Stats)> {
        self.0.state.caches.stats()
    }

    /// What was denied so far, each kind once, in the order in which each was denied first, which
    /// is theirs to the end; and how many more there were than are kept.
    #[must_use]
    pub fn denials(&self) -> (Vec<crate::Record>, u64) {
        self.0.state.records.audit.denials()
    }

    /// What was denied to nobody so far, and may be why a program fails: sentences.
    #[must_use]
    pub fn remarks(&self) -> Vec<String> {
        self.0.state.records.remarks.all()
    }

    /// Which limits hold for less than the whole run, as no cgroup is there for them: a sentence.
    #[must_use]
    pub fn bounded(&self) -> Option<&str> {
        self.0.state.records.remarks.bounded.as_deref()
    }

    /// Answers a question of this run: everybody who waits for it goes on.
    pub fn answer(&self, id: u64, verdict: Verdict) {
        if let Some(questions) = &self.0.questions {
            questions.answer(id, verdict);
        }
    }

    /// Nobody answers questions any more: they are denied, also those that are open.
    pub fn nobody_answers(&self) {
        if let Some(questions) = &self.0.questions {
            questions.close();
        }
    }

    /// Keeps the sandbox standing still, so that it writes over nothing that a person reads; calls
    /// `ended` when it does so no longer: as the value is dropped, or a change of policy needs the
    /// sandbox. `None` if it cannot be stopped.
    #[must_use]
    pub fn hold(&self, ended: impl FnOnce() + Send + 'static) -> Option<Hold> {
        revoke::hold(&self.0, Box::new(ended))
    }

    /// Keeps the sandbox standing still while Dewar itself is stopped: also what is traced inside,
    /// which is killed if it does not stop.
    #[must_use]
    pub fn freeze(&self) -> Option<Hold> {
        revoke::freeze(&self.0)
    }

    /// What holds in the kernel until the end of the run, for [`confine::admits`].
    #[must_use]
    pub fn settled(&self) -> Vec<u8> {
        // Into memory, of strings and numbers: that cannot fail.
        serde_json::to_vec(&self.0.settled).unwrap_or_default()
    }

    /// Whether the policy of `server`, which is not yet that of the run, can hold here.
    ///
    /// # Errors
    ///
    /// [`Conflict`]: why not.
    pub fn admits(&self, server: &dyn SecurityServer, mode: RevokeMode) -> Result<(), Conflict> {
        if self.0.off { Ok(()) } else { self.0.settled.admits(server, mode.kills()) }
    }
}
