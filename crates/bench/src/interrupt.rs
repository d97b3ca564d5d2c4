//! Ctrl-C while a benchmark runs: noticed, not fatal, so that what was measured is still printed.

use signal_hook::{
    SigId,
    consts::{SIGINT, SIGTERM},
    flag, low_level,
};
use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// Notices SIGINT and SIGTERM as long as it lives.
pub struct Interrupt {
    happened: Arc<AtomicBool>,
    handlers: Vec<SigId>,
}

impl Interrupt {
    /// Notices from now on.
    ///
    /// # Errors
    ///
    /// When the system takes no handler.
    pub fn notice() -> io::Result<Self> {
        let happened = Arc::new(AtomicBool::new(false));
        let handlers = [SIGINT, SIGTERM]
            .into_iter()
            .map(|signal| flag::register(signal, happened.clone()))
            .collect::<io::Result<_>>()?;
        Ok(Self { happened, handlers })
    }

    /// What becomes true when one of the signals comes.
    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.happened)
    }

    /// Whether one of the signals has come.
    #[must_use]
    pub fn happened(&self) -> bool {
        self.happened.load(Ordering::Relaxed)
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        for handler in self.handlers.drain(..) {
            low_level::unregister(handler);
        }
    }
}
