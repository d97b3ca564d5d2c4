//! What the threads of a server share.

use crate::{
    config::Config, counters::Counters, files::Files, lines::write_standard, log::LogFile,
    manager::Manager, plugins::Plugins, serve::tls::Acceptors,
};
use arc_swap::ArcSwap;
use flask::Sid;
use std::{
    io,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{
            AtomicBool, AtomicU64, AtomicUsize,
            Ordering::{AcqRel, Acquire, Relaxed},
        },
    },
    thread,
    time::Instant,
};

/// What is served, as it was configured last.
pub(crate) struct Site {
    pub(crate) config: Config,
    pub(crate) files: Files,
    pub(crate) log: Option<LogFile>,
    /// The label of requests by their listener.
    pub(crate) labels: Vec<Sid>,
}

/// What all threads of a server share.
pub(crate) struct Shared {
    pub(crate) site: ArcSwap<Site>,
    /// Odd while site, plugins and policy change.
    pub(crate) generation: AtomicU64,
    pub(crate) manager: Arc<Manager>,
    pub(crate) plugins: Plugins,
    pub(crate) tls: ArcSwap<Acceptors>,
    /// One for each worker, and for each thread that speaks TLS and HTTP/2.
    pub(crate) counters: Box<[Counters]>,
    /// Bytes of files that are kept for plugins.
    pub(crate) images: Arc<AtomicUsize>,
    /// Connections at a time.
    pub(crate) connections: AtomicUsize,
    pub(crate) ending: AtomicBool,
    pub(crate) begun: Instant,
    /// What went wrong last.
    pub(crate) complaints: Mutex<Vec<String>>,
}

/// Site, plugins and policy change until this is dropped.
pub(crate) struct Changing<'s>(&'s AtomicU64);

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, AcqRel);
    }
}

impl Shared {
    /// Which site, plugins and policy hold. Whoever asks while they change waits, so that one
    /// answer is made by all of the old ones or all of the new.
    pub(crate) fn generation(&self) -> u64 {
        loop {
            let generation = self.generation.load(Acquire);
            if generation.is_multiple_of(2) {
                return generation;
            }
            thread::yield_now();
        }
    }

    /// One at a time.
    pub(crate) fn change(&self) -> Changing<'_> {
        self.generation.fetch_add(1, AcqRel);
        Changing(&self.generation)
    }

    /// Whether there is room for one more connection, which is then counted.
    pub(crate) fn has_room(&self) -> bool {
        let most = self.site.load().config.limits.connections;
        let taken = self.connections.fetch_add(1, Relaxed) < most;
        if !taken {
            self.connections.fetch_sub(1, Relaxed);
        }
        taken
    }

    pub(crate) fn ends(&self) -> bool {
        self.ending.load(Relaxed)
    }

    /// Says on standard error what went wrong, in one line, and keeps the last for the status page.
    pub(crate) fn report(&self, text: &str) {
        let visible: String =
            text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).take(2000).collect();
        // What is lost there is still kept here.
        write_standard(io::stderr(), format!("dewar serve: {visible}\n").as_bytes());
        let mut kept = self.complaints.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == 32 {
            kept.remove(0);
        }
        kept.push(visible);
    }

    pub(crate) fn complaints(&self) -> Vec<String> {
        self.complaints.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
