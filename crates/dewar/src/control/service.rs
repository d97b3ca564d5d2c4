//! The end of the control socket that the run holds.

use super::{
    guard::Outsiders,
    place::{Place, new_id},
    wire::{Reply, Request, pack, unpack},
};
use anyhow::Context as _;
use monitor::Control;
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

/// Who answers the questions put to a run.
pub(crate) trait Service: Send + Sync + 'static {
    /// The answer.
    fn answer(&self, request: Request) -> Reply;
}

/// A control socket.
pub(crate) struct Endpoint {
    id: String,
    place: Place,
    outsiders: Arc<Outsiders>,
    server: Arc<ipc::Server>,
    /// Questions that are not answered yet.
    open: Arc<AtomicUsize>,
}

impl Endpoint {
    /// Listens for a new run. No thread is started yet; who connects waits.
    pub(crate) fn bind() -> anyhow::Result<Self> {
        let (id, place) = (new_id()?, Place::own()?);
        let outsiders = Arc::new(Outsiders::default());
        let access = outsiders.access()?;
        let server = ipc::Server::bind(&place.socket(&id), access).context("cannot listen")?;
        Ok(Self { id, place, outsiders, server: Arc::new(server), open: Arc::default() })
    }

    /// The id of the run.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// What begins to serve once the sandbox runs.
    pub(crate) fn starter<S: Service>(
        &self,
        service: Arc<S>,
    ) -> impl FnOnce(Control) + Send + use<S> {
        let (server, outsiders) = (Arc::clone(&self.server), Arc::clone(&self.outsiders));
        let open = Arc::clone(&self.open);
        move |control| {
            outsiders.begin(control);
            let serve = move || {
                server.serve(|request| {
                    open.fetch_add(1, Ordering::AcqRel);
                    answer(&*service, request);
                    open.fetch_sub(1, Ordering::AcqRel);
                })
            };
            // Without it the run goes on; it only cannot be asked.
            if thread::Builder::new().name("control".into()).spawn(serve).is_err() {
                crate::output::tell!("dewar: cannot start a thread, so this run cannot be changed");
            }
        }
    }
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
        self.place.remove(&self.id);
    }
}

fn answer(service: &impl Service, mut request: ipc::Request<'_>) {
    let files = request.take_descriptors();
    let reply = match unpack(request.body(), files) {
        Ok(asked) => service.answer(asked),
        Err(error) => Reply::Refused(format!("{error:#}")),
    };
    let Ok(packed) = pack(reply) else { return };
    let files: Vec<_> = packed.file.iter().map(|file| file.as_fd()).collect();
    // Whoever asked may have gone; what was done is in the history.
    let _ = request.reply_with(&packed.body, &files);
}
