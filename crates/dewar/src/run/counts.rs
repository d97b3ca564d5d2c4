//! What a run counted: decisions by object manager, and time by system call.

use crate::control::Decisions;
use monitor::Stats;
use serde::{Deserialize, Serialize};

/// How often a system call was decided, and how long that took.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Spent {
    pub(crate) manager: String,
    pub(crate) call: String,
    pub(crate) times: u64,
    pub(crate) seconds: f64,
}

impl Spent {
    pub(super) fn of(spent: &monitor::CallTime) -> Self {
        Self {
            manager: spent.manager.to_owned(),
            call: spent.call.to_owned(),
            times: spent.times,
            seconds: spent.time.as_secs_f64(),
        }
    }
}

/// How an object manager's decisions are told.
pub(super) fn decisions(name: &str, stats: Stats) -> Decisions {
    Decisions {
        manager: name.to_owned(),
        queries: stats.queries(),
        hint: stats.hint,
        cache: stats.cache,
        server: stats.server,
    }
}
