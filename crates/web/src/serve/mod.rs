//! Threads that take connections.

mod begun;
mod body;
mod conn;
mod head;
mod listener;
mod modern;
mod out;
mod pace;
mod share;
pub(crate) mod tls;
mod turns;
mod worker;

pub(crate) use listener::{Listeners, unix_listener, with_form};

use crate::{error::ServerError, shared::Shared};
use rustix::event::{EventfdFlags, eventfd};
use std::{
    io,
    os::fd::OwnedFd,
    sync::Arc,
    thread::{self, JoinHandle},
};

/// Wakes a thread that waits.
pub(crate) struct Wake(Arc<OwnedFd>);

impl Wake {
    pub(crate) fn wake(&self) {
        // Full means that it wakes anyway.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }
}

/// The server's threads, and what wakes them.
type Threads = (Vec<JoinHandle<()>>, Vec<Wake>);

/// Starts the workers, and beside each of them a thread that speaks TLS and HTTP/2.
pub(crate) fn start(
    shared: &Arc<Shared>,
    listeners: Listeners,
    workers: usize,
) -> Result<Threads, ServerError> {
    let (mut threads, mut wakes) = (Vec::new(), Vec::new());
    for (index, own) in listeners.workers.into_iter().enumerate() {
        let (secure, plain): (Vec<_>, Vec<_>) = own.into_iter().partition(|it| it.is_tls);
        let (handle, modern) = modern::start(shared, index + workers, secure).map_err(starting)?;
        threads.push(modern);
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(starting)?;
        let wake = Arc::new(wake);
        wakes.push(Wake(Arc::clone(&wake)));
        let worker = worker::Worker::new(shared, index, plain, (wake, handle)).map_err(starting)?;
        let named = thread::Builder::new().name(format!("web {index}"));
        let run = move || {
            let _ends = EndsTheServer;
            worker.run();
        };
        threads.push(named.spawn(run).map_err(starting)?);
    }
    Ok((threads, wakes))
}

/// Ends the process if the thread that has it panics: a server without its workers would live, and
/// answer nobody; whoever watches over it would not begin it anew.
struct EndsTheServer;

impl Drop for EndsTheServer {
    fn drop(&mut self) {
        if thread::panicking() {
            std::process::abort();
        }
    }
}

fn starting(error: impl Into<io::Error>) -> ServerError {
    ServerError::system("cannot start a worker", error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{os::unix::process::ExitStatusExt as _, process::Command};

    #[test]
    fn a_worker_that_panics_ends_the_server() {
        const INSIDE: &str = "DEWAR_TESTS_A_WORKER_THAT_PANICS";
        if std::env::var_os(INSIDE).is_some() {
            let worker = thread::spawn(|| {
                let _ends = EndsTheServer;
                panic!("as a worker would");
            });
            let _ = worker.join();
            return;
        }
        let own = std::env::current_exe().unwrap();
        let name = "serve::tests::a_worker_that_panics_ends_the_server";
        let ended = Command::new(own).args(["--exact", name]).env(INSIDE, "1").output().unwrap();
        assert_eq!(
            ended.status.signal(),
            Some(rustix::process::Signal::ABORT.as_raw()),
            "{ended:?}"
        );
    }
}
