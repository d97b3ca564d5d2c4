//! Turns of connections on one thread: whatever many streams ask for, others are answered between.

use std::{cell::Cell, time::Duration};
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    task::yield_now,
};

/// How long requests of one connection are answered before others have their turn.
const TURN: Duration = Duration::from_millis(2);

/// The turns of one connection.
pub(super) struct Turns {
    one: Semaphore,
    spent: Cell<Duration>,
}

/// One request has its turn.
pub(super) struct Turn<'t> {
    turns: &'t Turns,
    _only: Option<SemaphorePermit<'t>>,
}

impl Turns {
    pub(super) fn new() -> Self {
        Self { one: Semaphore::new(1), spent: Cell::default() }
    }

    /// Waits until no other request of this connection has its turn.
    pub(super) async fn next(&self) -> Turn<'_> {
        // It is never closed.
        Turn { turns: self, _only: self.one.acquire().await.ok() }
    }
}

impl Turn<'_> {
    /// Ends it, after others' if answering has taken long.
    pub(super) async fn end(self, took: Duration) {
        let spent = self.turns.spent.get() + took;
        let is_over = spent > TURN;
        self.turns.spent.set(if is_over { Duration::ZERO } else { spent });
        if is_over {
            yield_now().await;
        }
    }
}
