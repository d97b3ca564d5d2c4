//! Who may talk to the daemon: a port like any other, with a policy of its own.

use avc::Avc;
use flask::{SecurityServer as _, Sid};
use ipc::{Access, Generation, Guard, Label, Peer, PeerLabels};
use rustix::process::geteuid;
use security_server::Server;
use std::sync::Arc;

const POLICY: &str = "
    (class port (connect specify_client)) (classorder (port))
    (user dewar_u) (role dewar_r) (userrole dewar_u dewar_r)
    (type user_t) (type daemon_t) (roletype dewar_r user_t) (roletype dewar_r daemon_t)
    (sid kernel) (sidorder (kernel)) (sidcontext kernel (dewar_u dewar_r daemon_t))
    (allow user_t daemon_t (port (connect)))
";

/// Labels of processes by their user.
struct ByUser {
    /// Everybody is a user, not only the daemon's own and root.
    everybody: bool,
    user: Sid,
}

impl PeerLabels for ByUser {
    fn identify(&self, peer: &Peer) -> Option<Label> {
        let known = self.everybody || peer.uid() == 0 || peer.uid() == geteuid().as_raw();
        known.then(|| Label::new(self.user, Generation::FOREVER))
    }
}

/// Lets the daemon's user and root connect; everybody, if it is for all.
///
/// A process inside a sandbox is not let in by being this user's: its connection is made by its
/// monitor, which the kernel names, and what it then says comes from another process than that,
/// which ends the session.
///
/// # Errors
///
/// If the policy above does not compile, or has no such domains; then nobody is let in.
pub(crate) fn guard(everybody: bool) -> Result<Access, Box<dyn std::error::Error + Send + Sync>> {
    let server = Server::from_cil(&[("daemon.cil", POLICY)])?;
    let user = server.context_to_sid("dewar_u:dewar_r:user_t")?;
    let port = server.context_to_sid("dewar_u:dewar_r:daemon_t")?;
    let labels = Arc::new(ByUser { everybody, user });
    let avc = Avc::with_capacity(Arc::new(server), 64);
    Ok(Access::Checked(Guard::new(Arc::new(avc), labels, port)))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_policy_of_the_port_is_sound() {
        assert!(super::guard(false).is_ok() && super::guard(true).is_ok());
    }
}
