//! A sandbox that stands still for as long as somebody outside wants.

use crate::{gate::Gate, quiesce::HoldThread, stop::Stopped};
use std::{
    collections::BTreeSet,
    sync::{
        Arc, TryLockError,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::{Duration, Instant},
};

/// Calls that are made on the program's behalf are waited for so long, and then the threads.
const PATIENCE: Duration = Duration::from_millis(300);
/// Between two looks at whether it is to go on.
const LOOK: Duration = Duration::from_millis(5);

/// A sandbox that stands still. Dropped, it goes on.
#[derive(Debug)]
pub struct Hold(Arc<AtomicBool>);

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Stops all threads, except that those whose calls wait do so when the wait is over. A change of
/// policy ends it.
pub(crate) fn hold(gate: &Arc<Gate>, ended: Box<dyn FnOnce() + Send>) -> Option<Hold> {
    let mut last = match gate.state.quiesce.changing.try_lock() {
        Ok(last) => last,
        Err(TryLockError::Poisoned(last)) => last.into_inner(),
        Err(TryLockError::WouldBlock) => return None,
    };
    if let Some(last) = last.take() {
        last.end();
    }
    let end = Arc::new(AtomicBool::new(false));
    let (tell, told) = mpsc::channel();
    let (held, stop) = (Arc::clone(gate), Arc::clone(&end));
    let stand = move || {
        stand_still(&held, &stop, &tell);
        ended();
    };
    let thread = std::thread::Builder::new().name("hold".into()).spawn(stand).ok()?;
    *last = Some(HoldThread { thread, end: Arc::clone(&end) });
    let stands = told.recv().unwrap_or(false);
    stands.then_some(Hold(end))
}

fn stand_still(gate: &Arc<Gate>, end: &AtomicBool, tell: &mpsc::Sender<bool>) {
    // Those inside are left; calls that come meanwhile are made anew.
    gate.state.quiesce.close(PATIENCE);
    let mut stopped = Stopped::beside_waits(&gate.state);
    let until = Instant::now() + PATIENCE;
    // Not complete while a call waits: that thread is seized, and does nothing before it stops.
    let seized = stopped.stop(until).is_ok() && stopped.take_refused().is_empty();
    Gate::reopen(gate);
    let _ = tell.send(seized);
    while seized && !end.load(Ordering::Acquire) {
        std::thread::sleep(LOOK);
        stopped.scan();
    }
    // Those that have not stopped are let go by the end of this thread.
    let all: BTreeSet<u32> = stopped.processes().into_keys().collect();
    stopped.release(&all);
}
