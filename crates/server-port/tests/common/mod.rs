//! A policy, and a server for it behind a port.
#![allow(dead_code)]

use ipc::{Access, Port, Transport};
use security_server::Server;
use server_port::{Members, RemoteServer, serve};
use std::{io, path::PathBuf, sync::Arc, thread::JoinHandle, time::Duration};

pub(crate) const POLICY: &str = r#"
    (class file (read write append)) (class dir (search)) (classorder (file dir))
    (sid kernel) (sidorder (kernel)) (sidcontext kernel (u r app_t))
    (user u) (role r) (role object_r) (userrole u r)
    (type app_t) (type loose_t) (type note_t) (type secret_t) (type log_t) (type gate_t)
    (type dir_t) (type made_t) (type dump_t) (type own_t)
    (roletype r app_t) (roletype r loose_t) (roletype r note_t) (roletype r secret_t) (roletype r log_t)
    (roletype r gate_t) (roletype r dir_t)
    (allow app_t note_t (file (read write))) (allow app_t log_t (file (append)))
    (auditallow app_t log_t (file (append))) (dontaudit app_t log_t (file (read)))
    (typepermissive loose_t)
    (typetransition app_t dir_t file made_t) (typetransition app_t dir_t file "core" dump_t)
    (typemember app_t dir_t file own_t)
    (boolean open false) (booleanif open (true (allow app_t gate_t (file (read)))))
    (filecon "/etc/note" file (u r note_t))
"#;

pub(crate) fn policy(cil: &str) -> Server {
    Server::from_cil(&[("policy.cil", cil)]).unwrap_or_else(|errors| panic!("{errors}"))
}

/// A server behind a port, served by threads of this process.
pub(crate) struct Behind {
    pub(crate) policy: Arc<Server>,
    pub(crate) members: Arc<Members>,
    path: PathBuf,
    transport: Transport,
    serving: Option<(Arc<ipc::Server>, JoinHandle<()>)>,
    _directory: tempfile::TempDir,
}

impl Behind {
    pub(crate) fn start(policy: Server, transport: Transport) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut behind = Self {
            policy: Arc::new(policy),
            members: Members::new(flask::Seqno(1)),
            path: directory.path().join("server"),
            transport,
            serving: None,
            _directory: directory,
        };
        behind.serve();
        behind
    }

    fn serve(&mut self) {
        let port = ipc::Server::bind(&self.path, Access::Unchecked).unwrap().with_max_sessions(500);
        let port = Arc::new(port);
        let (serving, policy, members) =
            (Arc::clone(&port), Arc::clone(&self.policy), Arc::clone(&self.members));
        let run =
            move || serving.serve_sessions(|session| serve(session, &*policy, &members)).unwrap();
        self.serving = Some((port, std::thread::spawn(run)));
    }

    fn stop(&mut self) {
        if let Some((port, thread)) = self.serving.take() {
            port.stop();
            thread.join().expect("no panic");
        }
    }

    pub(crate) fn restart(&mut self) {
        self.restart_after(|_| {});
    }

    /// Stops, does something, and serves again.
    pub(crate) fn restart_after(&mut self, meanwhile: impl FnOnce(&Self)) {
        self.stop();
        meanwhile(self);
        self.serve();
    }

    pub(crate) fn client(&self) -> RemoteServer {
        let (path, transport) = (self.path.clone(), self.transport);
        let connect = move || Port::connect(&path, transport).map_err(io::Error::other);
        RemoteServer::new(connect, Duration::from_secs(5))
    }

    pub(crate) fn path(&self) -> &std::path::Path {
        &self.path
    }
}

impl Drop for Behind {
    fn drop(&mut self) {
        self.stop();
    }
}
