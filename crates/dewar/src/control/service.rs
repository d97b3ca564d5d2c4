//! The end of the control socket that the run holds.

use super::{
    guard::Outsiders,
    wire::{Reply, Request, pack, unpack},
};
use anyhow::Context as _;
use ipc::SharedCounter;
use monitor::Control;
use runs::{Connector, ControlEntry, RunDirectory};
use std::{
    os::fd::AsFd as _,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// How long the end of a run waits for answers that are under way.
const PATIENCE: Duration = Duration::from_secs(5);

/// Threads that answer where the program has used up all that there may be.
const STANDING_IN: usize = 2;

/// Who answers the questions put to a run.
pub(crate) trait Service: Send + Sync + 'static {
    /// The answer.
    fn answer(&self, request: Request) -> Reply;

    /// The process that made the connection called `name`, if the run vouches for it.
    fn connector(&self, name: &str) -> Option<monitor::Connector>;

    /// The id of the run, and its name.
    fn names(&self) -> (String, Option<String>);
}

/// A control socket.
pub(crate) struct Endpoint {
    entry: ControlEntry,
    place: RunDirectory,
    outsiders: Arc<Outsiders>,
    server: Arc<ipc::Server>,
    /// Questions that are not answered yet.
    open: Arc<AtomicUsize>,
    /// Grows before the label of any process changes.
    labels: Arc<SharedCounter>,
}

impl Endpoint {
    /// Listens for a new run. No thread is started yet; who connects waits.
    pub(crate) fn bind() -> anyhow::Result<Self> {
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        let (entry, place) = (ControlEntry { id: runs::new_id()?, pid }, RunDirectory::own()?);
        let outsiders = Arc::new(Outsiders::default());
        let access = outsiders.access()?;
        let server = ipc::Server::bind(&place.socket(&entry), access).context("cannot listen")?;
        let labels = Arc::new(SharedCounter::new().context("no memory")?);
        let (server, open) = (Arc::new(server), Arc::default());
        Ok(Self { entry, place, outsiders, server, open, labels })
    }

    /// The id of the run.
    pub(crate) fn id(&self) -> &str {
        &self.entry.id
    }

    /// What begins to serve once the sandbox runs.
    pub(crate) fn starter<S: Service>(
        &self,
        service: Arc<S>,
    ) -> impl FnOnce(Control) + Send + use<S> {
        let (server, outsiders) = (Arc::clone(&self.server), Arc::clone(&self.outsiders));
        let (open, labels) = (Arc::clone(&self.open), Arc::clone(&self.labels));
        move |control| {
            let counter = Arc::clone(&labels);
            control.on_new_label(move || counter.advance());
            outsiders.begin(control);
            let answer = Arc::new(move |request: ipc::Request<'_>| {
                open.fetch_add(1, Ordering::AcqRel);
                answer(&*service, &labels, request);
                open.fetch_sub(1, Ordering::AcqRel);
            });
            let (by_one, own) = (Arc::clone(&server), Arc::clone(&answer));
            let serve = move || drop(by_one.serve(|request| own(request)));
            let mut begun = begin(serve);
            for _ in 0..STANDING_IN {
                let (server, answer) = (Arc::clone(&server), Arc::clone(&answer));
                begun = begun.and_then(|()| begin(move || server.stand_in(|it| answer(it))));
            }
            // Without them the run goes on; it only cannot be asked.
            if begun.is_err() {
                crate::output::tell!("dewar: cannot start a thread, so this run cannot be changed");
            }
        }
    }
}

fn begin(serve: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    thread::Builder::new().name("control".into()).spawn(serve).map(drop)
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        // Whoever has ended the run by a change still wants the receipt.
        let until = Instant::now() + PATIENCE;
        while self.open.load(Ordering::Acquire) > 0 && Instant::now() < until {
            thread::sleep(Duration::from_millis(1));
        }
        self.server.stop();
        // By the directory's descriptor: in the sandbox's view it may have no path.
        self.place.remove(&self.entry);
    }
}

fn answer(service: &impl Service, labels: &SharedCounter, mut request: ipc::Request<'_>) {
    let files = request.take_descriptors();
    let reply = match unpack(request.body(), files) {
        Ok(Request::Connector(name)) => return answer_who(service, labels, &name, request),
        Ok(asked) => service.answer(asked),
        Err(error) => Reply::Refused(format!("{error:#}")),
    };
    let Ok(packed) = pack(reply) else { return };
    let files: Vec<_> = packed.file.iter().map(|file| file.as_fd()).collect();
    // Whoever asked may have gone; what was done is in the history.
    let _ = request.reply_with(&packed.body, &files);
}

/// Which process made the connection called `name`.
fn answer_who(
    service: &impl Service,
    labels: &SharedCounter,
    name: &str,
    request: ipc::Request<'_>,
) {
    // In this order: a change between the two is noticed by whoever has the answer.
    let generation = labels.now();
    let (reply, process) = match service.connector(name) {
        Some(monitor::Connector { pid, pidfd, context }) => {
            let (run, name) = service.names();
            (Reply::Connector(Connector { pid, context, generation, run, name }), Some(pidfd))
        }
        None => {
            let why = "the process has ended or entered another domain since it connected";
            (Reply::Refused(why.into()), None)
        }
    };
    let Ok(packed) = pack(reply) else { return };
    let files = process.as_ref().map(|process| [labels.as_fd(), process.as_fd()]);
    let _ = request.reply_with(&packed.body, files.as_ref().map_or(&[], |files| &files[..]));
}
