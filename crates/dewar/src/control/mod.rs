//! The control socket of a run: how it is asked, and told to change, while it runs.
//!
//! ```text
//!  dewar revoke ── Run::find ──▶ socket of the run ──▶ guard: outside the sandbox? ──▶ its owner
//!               ◀── Reply ────────────────────────────────────────────────────────────────────
//! ```

mod begun;
mod client;
mod ended;
mod guard;
mod service;
mod unheard;
mod wire;

pub(crate) use begun::{Begun, journal_directory, records, unwritable};
pub(crate) use client::{Run, RunArg, odd};
pub(crate) use service::{Endpoint, Service};
pub(crate) use unheard::Unheard;
pub(crate) use wire::{
    ChangeResult, Counters, Decisions, Denial, NewProfile, PolicyChange, Reply, Request, Status,
};
