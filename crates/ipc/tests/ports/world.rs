//! A policy, and services on it.

use avc::Avc;
use flask::{SecurityServer as _, Sid};
use ipc::{Access, Guard, PeerTable, Port, Request, Server, Transport};
use std::{path::PathBuf, process, sync::Arc, thread};
use tempfile::TempDir;

pub(crate) const TRANSPORTS: [Transport; 2] = [Transport::Socket, Transport::Memory];

const POLICY: &str = "
    (class port (connect specify_client)) (classorder (port))
    (sid kernel) (sid unlabeled) (sidorder (kernel unlabeled))
    (sidcontext kernel (u r build)) (sidcontext unlabeled (u r stranger))
    (user u) (role r) (userrole u r)
    (type build) (type test) (type deputy) (type service) (type stranger)
    (typeattribute domain) (typeattributeset domain (build test deputy service stranger))
    (roletype r domain)
    (boolean tested false)
    (allow build service (port (connect)))
    (allow deputy service (port (connect)))
    (allow deputy domain (port (specify_client)))
    (allow domain deputy (port (connect)))
    (booleanif tested (true (allow test service (port (connect)))))
";

/// A policy in force, the record of labels, and a place for sockets.
pub(crate) struct World {
    pub(crate) policy: Arc<security_server::Server>,
    pub(crate) avc: Arc<Avc>,
    pub(crate) labels: Arc<PeerTable>,
    directory: TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        let policy = security_server::Server::from_cil(&[("policy.cil", POLICY)]);
        let policy = Arc::new(policy.expect("the policy is valid"));
        Self {
            avc: Arc::new(Avc::new(policy.clone())),
            policy,
            labels: Arc::default(),
            directory: tempfile::tempdir().expect("a directory"),
        }
    }

    pub(crate) fn sid(&self, domain: &str) -> Sid {
        self.policy.context_to_sid(&format!("u:r:{domain}")).expect("the policy knows it")
    }

    /// Lets this process, or another, be of that domain.
    pub(crate) fn label(&self, pid: u32, domain: &str) {
        self.labels.set(pid as i32, Some(self.sid(domain))).expect("a process");
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join("port")
    }

    pub(crate) fn guard(&self) -> Guard {
        Guard::new(self.avc.clone(), self.labels.clone(), self.sid("service"))
    }

    /// Runs `clients` beside a service, with this process in the domain `build`.
    pub(crate) fn with(&self, service: impl Fn(Request<'_>) + Sync, clients: impl FnOnce()) {
        self.label(process::id(), "build");
        let server = Server::bind(&self.path(), Access::Checked(self.guard())).expect("a server");
        beside(&server, service, clients);
    }

    pub(crate) fn connect(&self, transport: Transport) -> Port {
        Port::connect(&self.path(), transport).expect("a connection")
    }
}

/// Runs `clients` while `server` serves, and stops it whatever becomes of them.
pub(crate) fn beside(
    server: &Server,
    service: impl Fn(Request<'_>) + Sync,
    clients: impl FnOnce(),
) {
    struct Stop<'a>(&'a Server);
    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.stop();
        }
    }
    thread::scope(|scope| {
        let serving = scope.spawn(|| server.serve(&service));
        let stop = Stop(server);
        clients();
        drop(stop);
        serving.join().expect("the service does not panic").expect("the service ends well");
    });
}

pub(crate) fn echo(request: Request<'_>) {
    request.echo().expect("the client is there");
}
