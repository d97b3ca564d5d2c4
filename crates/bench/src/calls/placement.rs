//! On which processors the two ends of a call run, and what else runs there.

use crate::sys;
use rustix::{
    process::{Pid, Signal, WaitOptions, kill_process, set_parent_process_death_signal, waitpid},
    thread::{CpuSet, sched_getaffinity, sched_setaffinity},
};
use serde::{Deserialize, Serialize};
use std::{hint::spin_loop, io};

/// Where the two ends run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Placement {
    /// What tables call it.
    pub name: String,
    /// The processor of the client.
    pub client_cpu: usize,
    /// The processor of the server.
    pub server_cpu: usize,
    /// A busy process runs beside them, on each of these processors.
    pub loaded: bool,
}

impl Placement {
    /// Those that this machine allows: one processor for both, and, if there are two, one for each,
    /// with and without other work.
    ///
    /// # Errors
    ///
    /// Whatever the system says.
    pub fn all() -> io::Result<Vec<Self>> {
        let allowed = sched_getaffinity(None)?;
        let cpus: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect();
        let first = *cpus.first().ok_or_else(|| io::Error::other("no processor is allowed"))?;
        let place = |name: &str, server_cpu, loaded| Self {
            name: name.to_owned(),
            client_cpu: first,
            server_cpu,
            loaded,
        };
        let mut places = vec![place("one CPU", first, false)];
        if let Some(second) = cpus.get(1) {
            places.insert(0, place("two CPUs", *second, false));
            places.push(place("two CPUs, loaded", *second, true));
        }
        Ok(places)
    }

    /// Starts the busy processes, if there are to be any. They end when dropped.
    pub(super) fn load(&self) -> io::Result<Vec<Child>> {
        let cpus = [self.client_cpu, self.server_cpu];
        let busy = |cpu| {
            Child::start(move || {
                pin(cpu)?;
                loop {
                    spin_loop();
                }
            })
        };
        cpus.into_iter().filter(|_| self.loaded).map(busy).collect()
    }
}

/// Lets this thread, and those it starts, run on one processor only.
pub(super) fn pin(cpu: usize) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu);
    Ok(sched_setaffinity(None, &set)?)
}

/// Lets this thread run where it could before.
pub(super) struct Pinned(CpuSet);

impl Pinned {
    pub(super) fn to(cpu: usize) -> io::Result<Self> {
        let before = sched_getaffinity(None)?;
        pin(cpu).map(|()| Self(before))
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // It was allowed before; if it is not any more, the narrower set remains.
        let _ = sched_setaffinity(None, &self.0);
    }
}

/// Another process, which is killed when dropped, and when this one ends.
pub(super) struct Child(Pid);

impl Child {
    pub(super) fn start(run: impl FnOnce() -> io::Result<()>) -> io::Result<Self> {
        let run = || match set_parent_process_death_signal(Some(Signal::KILL))
            .map_err(io::Error::from)
            .and_then(|()| run())
        {
            Ok(()) => 0,
            Err(error) => {
                eprintln!("the other end of the calls: {error}");
                1
            }
        };
        sys::fork(run).map(Self)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // It may have ended already; it has not been waited for, so its number is still its own.
        let _ = kill_process(self.0, Signal::KILL);
        let _ = waitpid(Some(self.0), WaitOptions::empty());
    }
}
