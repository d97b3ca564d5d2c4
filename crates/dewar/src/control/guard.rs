//! Who may talk to a run: processes of the same user and root, never one of the sandbox itself.

use avc::Avc;
use flask::{SecurityServer as _, Sid};
use ipc::{Access, Generation, Guard, Label, Peer, PeerLabels};
use monitor::Control;
use std::sync::{Arc, OnceLock};

/// The policy of the control socket: whoever is known to be outside controls it.
const POLICY: &str = "
    (class port (connect specify_client)) (classorder (port))
    (sid kernel) (sidorder (kernel)) (sidcontext kernel (u r outside))
    (user u) (role r) (userrole u r)
    (type outside) (type control) (roletype r outside) (roletype r control)
    (allow outside control (port (connect)))";
/// There is one question to answer.
const ENTRIES: usize = 1;

/// Labels of processes by where they come from. Nobody is known before the sandbox runs.
#[derive(Default)]
pub(super) struct Outsiders {
    control: OnceLock<Control>,
    outside: OnceLock<Sid>,
}

impl Outsiders {
    /// From now on, processes outside of this sandbox are known.
    pub(super) fn begin(&self, control: Control) {
        // It is called once.
        let _ = self.control.set(control);
    }

    /// What the control socket checks.
    pub(super) fn access(self: &Arc<Self>) -> anyhow::Result<Access> {
        let policy = Arc::new(security_server::Server::from_cil(&[("control", POLICY)])?);
        let [outside, port] =
            ["u:r:outside", "u:r:control"].map(|label| policy.context_to_sid(label));
        let _ = self.outside.set(outside?);
        let labels: Arc<dyn PeerLabels> = Arc::clone(self) as _;
        let avc = Avc::with_capacity(policy, ENTRIES);
        Ok(Access::Checked(Guard::new(Arc::new(avc), labels, port?)))
    }
}

impl PeerLabels for Outsiders {
    fn identify(&self, peer: &Peer) -> Option<Label> {
        // That it is the same user, or root, the kernel has checked by the directory's mode; from
        // inside a user namespace the two cannot be told from others any more. Calls that are made
        // on behalf of the sandbox come from this process, which is not outside either.
        let pid = u32::try_from(peer.pid()).ok()?;
        let outside = self.control.get()?.is_outside(pid);
        // Nobody outside comes in.
        let label = |sid| Label::new(sid, Generation::FOREVER);
        self.outside.get().copied().filter(|_| outside).map(label)
    }
}
