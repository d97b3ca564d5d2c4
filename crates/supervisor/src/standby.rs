//! The threads that stop the sandbox: there before they are needed, as the program may use up all
//! that there may be.

use rustix::{
    io::{Errno, Result},
    process::{WaitOptions, wait},
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    thread::{Builder, JoinHandle},
};

/// One works, and one is for when the thread of another had to end.
const COUNT: usize = 2;

type Work = Box<dyn FnOnce(&AtomicBool) + Send>;

/// What stops the sandbox: one at a time.
#[derive(Debug, Default)]
pub struct Standby {
    waiting: Vec<Worker>,
    last: Option<Holding>,
}

#[derive(Debug)]
struct Worker {
    work: Sender<(Work, Arc<AtomicBool>)>,
    /// For each piece of work that is done, whether there may be more: whoever is held still is let
    /// go by the end of the thread alone.
    done: Receiver<bool>,
    thread: JoinHandle<()>,
}

/// A thread at work, which may hold threads of the sandbox.
#[derive(Debug)]
struct Holding {
    worker: Worker,
    end: Arc<AtomicBool>,
}

impl Standby {
    /// Makes the threads.
    ///
    /// # Errors
    ///
    /// `AGAIN` if there can be none.
    pub fn prepare(&mut self) -> Result<()> {
        while self.waiting.len() < COUNT {
            self.waiting.push(Worker::new()?);
        }
        Ok(())
    }

    /// Ends the last work: whoever its thread still holds goes on.
    pub fn end_last(&mut self) {
        let Some(Holding { worker, end }) = self.last.take() else { return };
        end.store(true, Ordering::Release);
        if worker.done.recv() == Ok(true) {
            self.waiting.push(worker);
        } else {
            let _ = worker.thread.join();
            // It may be that there is room just now; else there is when the next one is asked for.
            let _ = self.prepare();
        }
    }

    /// Has `work` done, whose argument tells it to end; what was done before has ended then. What
    /// tells it, for others than [`Standby::end_last`].
    ///
    /// # Errors
    ///
    /// `AGAIN` if no thread is left, and there can be none.
    pub fn begin(
        &mut self,
        work: impl FnOnce(&AtomicBool) + Send + 'static,
    ) -> Result<Arc<AtomicBool>> {
        self.end_last();
        let worker = self.waiting.pop().map_or_else(Worker::new, Ok)?;
        let end = Arc::new(AtomicBool::new(false));
        worker.work.send((Box::new(work), Arc::clone(&end))).map_err(|_| Errno::AGAIN)?;
        self.last = Some(Holding { worker, end: Arc::clone(&end) });
        Ok(end)
    }
}

impl Worker {
    fn new() -> Result<Self> {
        let (work, works) = channel::<(Work, Arc<AtomicBool>)>();
        let (tell, done) = channel();
        let serve = move || {
            for (work, end) in works {
                work(&end);
                let is_free = holds_nobody();
                if tell.send(is_free).is_err() || !is_free {
                    break;
                }
            }
        };
        let thread = Builder::new().name("change".into()).spawn(serve).map_err(|_| Errno::AGAIN)?;
        Ok(Self { work, done, thread })
    }
}

/// Whether the calling thread traces nobody, and has no child. What becomes of one is not told
/// again.
fn holds_nobody() -> bool {
    let flags = libc::__WALL | libc::__WNOTHREAD | libc::WNOHANG;
    matches!(wait(WaitOptions::from_bits_retain(flags.cast_unsigned())), Err(Errno::CHILD))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        process::Command,
        thread::{ThreadId, current},
    };

    /// The thread that does something, and then holds a process of its own or nobody.
    fn done_by(standby: &mut Standby, holds: bool) -> ThreadId {
        let (tell, told) = channel();
        let work = move |end: &AtomicBool| {
            let held = holds.then(|| Command::new("sleep").arg("1000").spawn().unwrap());
            let _ = tell.send((current().id(), held));
            while !end.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
        };
        standby.begin(work).unwrap();
        let (thread, held) = told.recv().unwrap();
        standby.end_last();
        if let Some(mut held) = held {
            held.kill().unwrap();
            held.wait().unwrap();
        }
        thread
    }

    #[test]
    fn a_thread_is_used_again_unless_it_holds_somebody_or_has_failed() {
        let mut standby = Standby::default();
        standby.prepare().unwrap();
        let first = done_by(&mut standby, false);
        assert_eq!(done_by(&mut standby, true), first);
        let second = done_by(&mut standby, false);
        assert_ne!(second, first);
        assert_eq!(standby.waiting.len(), COUNT);
        standby.begin(|_| panic!("on purpose")).unwrap();
        standby.end_last();
        assert_eq!(standby.waiting.len(), COUNT);
    }
}
