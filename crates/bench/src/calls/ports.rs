//! Ports to measure: a policy, services that send back what they get, and callers.

use super::{
    measure::{Caller, timed},
    ways::MOST,
};
use avc::Avc;
use flask::{
    AccessVector, Decision, Explanation, LabelError, LabelRules, Question, SecurityServer, Seqno,
    Sid, Unreachable,
};
use ipc::{Access, Guard, PeerTable, Port, Request, Server, Transport};
use std::{
    hint::black_box,
    io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// How long the other process may take to listen.
const START: Duration = Duration::from_secs(5);

const POLICY: &str = "
    (class port (connect specify_client)) (classorder (port))
    (sid kernel) (sid unlabeled) (sidorder (kernel unlabeled))
    (sidcontext kernel (u r server)) (sidcontext unlabeled (u r stranger))
    (user u) (role r) (userrole u r)
    (type client) (type named) (type server) (type stranger)
    (typeattribute domain) (typeattributeset domain (client named server stranger)) (roletype r domain)
    (allow client server (port (connect)))
    (allow named server (port (connect)))
    (allow client named (port (specify_client)))
";

pub(super) const BASE: &str = "base";

/// What a service does beside sending back what it gets.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Service {
    Unchecked,
    Checked,
    /// Looks at who calls.
    Identifying,
    /// Hints are always wrong.
    WithoutHints,
    /// The cache forgets after every call; the answer is always yes.
    AskingTrivial,
    /// The cache forgets after every call; policy answers.
    AskingReal,
}

/// One column of a table: what is measured, and by which service.
#[derive(Clone, Copy)]
pub(super) struct Variant {
    pub(super) name: &'static str,
    pub(super) service: Service,
    /// The calls are made in another's name.
    pub(super) named: bool,
}

const fn variant(name: &'static str, service: Service) -> Variant {
    Variant { name, service, named: false }
}

pub(super) const KINDS_OF_CALL: [Variant; 4] = [
    variant(BASE, Service::Unchecked),
    variant("plain", Service::Checked),
    variant("identification", Service::Identifying),
    Variant { named: true, ..variant("impersonation", Service::Checked) },
];

pub(super) const PLACES_OF_DECISION: [Variant; 5] = [
    variant(BASE, Service::Unchecked),
    variant("hint", Service::Checked),
    variant("cache", Service::WithoutHints),
    variant("trivial server", Service::AskingTrivial),
    variant("real server", Service::AskingReal),
];

/// What both processes know: made before they part.
pub(super) struct World {
    policy: Arc<security_server::Server>,
    client: Sid,
    named: Sid,
    port: Sid,
    client_pid: i32,
}

impl World {
    /// The calling process is the client.
    pub(super) fn new() -> io::Result<Self> {
        let policy = security_server::Server::from_cil(&[("bench.cil", POLICY)]);
        let policy = Arc::new(policy.map_err(io::Error::other)?);
        let sid =
            |domain| policy.context_to_sid(&format!("u:r:{domain}")).map_err(io::Error::other);
        let (client, named, port) = (sid("client")?, sid("named")?, sid("server")?);
        Ok(Self { policy, client, named, port, client_pid: std::process::id() as i32 })
    }

    /// Serves these variants for ever, each at a path of its own below `directory`.
    pub(super) fn serve(&self, directory: &Path, variants: &[Variant]) -> io::Result<()> {
        for variant in variants {
            let restless = Arc::new(Restless {
                policy: self.policy.clone(),
                trivial: variant.service == Service::AskingTrivial,
                seqno: AtomicU32::new(1),
            });
            let asking = matches!(variant.service, Service::AskingTrivial | Service::AskingReal);
            let avc = Arc::new(match asking {
                true => Avc::new(restless.clone()),
                false => Avc::new(self.policy.clone()),
            });
            let server = Server::bind(&path(directory, variant), self.access(variant, &avc)?)?;
            let client = self.client;
            let identifying = variant.service == Service::Identifying;
            thread::spawn(move || {
                server.serve(move |request: Request<'_>| {
                    if identifying && black_box(request.client()) != client {
                        return;
                    }
                    if asking {
                        avc.reset(restless.next());
                    }
                    // A client that has ended needs no reply.
                    drop(request.echo());
                })
            });
        }
        Ok(())
    }

    fn access(&self, variant: &Variant, avc: &Arc<Avc>) -> io::Result<Access> {
        let labels = PeerTable::default();
        labels.set(self.client_pid, Some(self.client))?;
        let guard = Guard::new(avc.clone(), Arc::new(labels), self.port);
        Ok(match variant.service {
            Service::Unchecked => Access::Unchecked,
            Service::WithoutHints => Access::Checked(guard.without_hints()),
            _ => Access::Checked(guard),
        })
    }

    /// A caller of each variant.
    pub(super) fn callers(
        &self,
        directory: &Path,
        transport: Transport,
        variants: &[Variant],
    ) -> io::Result<Vec<Caller>> {
        let caller = |variant: &Variant| {
            let mut port = connect(&path(directory, variant), transport)?;
            let body = vec![1; MOST];
            let named = variant.named.then_some(self.named);
            let call = move |bytes: usize| {
                let reply = match named {
                    Some(named) => port.call_as(named, &body[..bytes]),
                    None => port.call(&body[..bytes]),
                };
                let length = reply.map_err(io::Error::other)?.len();
                if length == bytes { Ok(()) } else { Err(io::Error::other("a reply was cut")) }
            };
            let way = match transport {
                Transport::Memory => "port, memory",
                Transport::Socket => "port, socket",
            };
            Ok(Caller { way: way.to_owned(), variant: variant.name, batch: timed(call) })
        };
        variants.iter().map(caller).collect()
    }
}

fn path(directory: &Path, variant: &Variant) -> PathBuf {
    directory.join(variant.name)
}

fn connect(path: &Path, transport: Transport) -> io::Result<Port> {
    let begin = Instant::now();
    loop {
        match Port::connect(path, transport) {
            Ok(port) => return Ok(port),
            Err(_) if begin.elapsed() < START => thread::sleep(Duration::from_millis(5)),
            Err(error) => return Err(io::Error::other(error)),
        }
    }
}

/// A security server whose policy is always newer than what anybody has in a cache.
struct Restless {
    policy: Arc<security_server::Server>,
    trivial: bool,
    seqno: AtomicU32,
}

impl Restless {
    fn next(&self) -> Seqno {
        Seqno(self.seqno.fetch_add(1, Ordering::AcqRel) + 1)
    }
}

impl SecurityServer for Restless {
    fn seqno(&self) -> Result<Seqno, Unreachable> {
        Ok(Seqno(self.seqno.load(Ordering::Acquire)))
    }

    fn compute_av(&self, q: Question) -> Result<Decision, Unreachable> {
        let decision = match self.trivial {
            true => Decision { allowed: AccessVector::ALL, ..Decision::DENY_ALL },
            false => self.policy.compute_av(q)?,
        };
        Ok(Decision { seqno: self.seqno()?, ..decision })
    }

    fn compute_create(&self, q: Question, name: Option<&str>) -> Result<Sid, LabelError> {
        self.policy.compute_create(q, name)
    }

    fn compute_member(&self, q: Question) -> Result<Sid, LabelError> {
        self.policy.compute_member(q)
    }

    fn context_to_sid(&self, context: &str) -> Result<Sid, LabelError> {
        self.policy.context_to_sid(context)
    }

    fn sid_to_context(&self, sid: Sid) -> Result<String, LabelError> {
        self.policy.sid_to_context(sid)
    }

    fn label_rules(&self) -> Result<LabelRules, Unreachable> {
        self.policy.label_rules()
    }

    fn explain(&self, q: Question, requested: AccessVector) -> Result<Explanation, Unreachable> {
        self.policy.explain(q, requested)
    }
}
