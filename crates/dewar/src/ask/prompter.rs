//! The prompter of a run: a process outside that asks people, and changes the profile or the run as
//! they say. The monitor lives in the view of its sandbox; it has no terminal of a person's, and
//! could write no profile.

use super::{
    propose::Desk,
    queue::QuestionQueue,
    socket::Listener,
    terminal::{self, Holds},
};
use crate::{
    output::tell,
    run::{
        Denial,
        link::{Receiver, Sender, ToPrompter, ToRun},
    },
};
use anyhow::{Context as _, bail};
use confine::launch::ignore_background;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
use std::{
    os::{fd::AsFd as _, unix::net::UnixStream},
    process::{Command, Stdio},
    sync::{
        Arc,
        mpsc::{self, SyncSender},
    },
    thread,
    time::Duration,
};

/// How often it is looked whether somebody's time is over.
const TICK: Duration = Duration::from_millis(100);

/// Calls that wait to be looked at. Looking takes a while, and a program that interrupts itself
/// waits anew each time.
const MOST_WAITING: usize = 64;

/// A call that waits.
type Waiting = (u64, u64, Box<Denial>);

/// Which of the two processes this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Stage {
    /// It starts the other and ends: so the prompter is no descendant of the monitor's.
    Outer,
    /// The prompter.
    Inner,
}

/// Carries out what `dewar run --ask` starts. Standard input is the link.
pub(crate) fn run(stage: Stage) -> anyhow::Result<()> {
    if stage == Stage::Outer {
        let program = std::env::current_exe().context("cannot find the program itself")?;
        let mut inner = Command::new(program);
        inner.args(["ask", "--prompter", "inner"]).stdout(Stdio::null());
        return inner.spawn().map(drop).context("cannot start it");
    }
    let link = std::io::stdin().as_fd().try_clone_to_owned().context("no link")?;
    let link = UnixStream::from(link);
    let mut receiver = Receiver::new(link.try_clone().context("no link")?);
    let Some(ToPrompter::Begin(setup)) = receiver.next() else {
        bail!("`dewar ask --prompter` is started by `dewar run --ask` alone");
    };
    // The keyboard's signals are for the program. This ends with the run.
    for signal in [SIGINT, SIGQUIT, SIGTSTP, SIGHUP, SIGTERM] {
        signal_hook::flag::register(signal, Arc::default()).context("cannot handle signals")?;
    }
    // In the background, too, the terminal is given its modes back, and nobody is stopped by that.
    ignore_background();
    let plain = Sender::new(link.try_clone().context("no link")?);
    let sender = Sender::new(link);
    let begun = QuestionQueue::new(*setup, sender).and_then(|queue| {
        let listener = Listener::bind(&queue.setup.id)?;
        Ok((Arc::new(queue), Arc::new(listener)))
    });
    let (queue, listener) = match begun {
        Ok(begun) => begun,
        Err(error) => {
            let _ = plain.send(&ToRun::Failed(format!("{error:#}")));
            return Ok(());
        }
    };
    let holds = Arc::new(Holds::default());
    let waiting = match begin(&queue, &listener, &holds) {
        Ok(waiting) => waiting,
        Err(error) => {
            queue.say(&ToRun::Failed(format!("{error:#}")));
            listener.remove();
            return Ok(());
        }
    };
    queue.say(&ToRun::Ready);
    while let Some(told) = receiver.next() {
        hear(&queue, &holds, &waiting, told);
    }
    queue.end();
}

fn begin(
    queue: &Arc<QuestionQueue>,
    listener: &Arc<Listener>,
    holds: &Arc<Holds>,
) -> anyhow::Result<SyncSender<Waiting>> {
    let (own, at) = (Arc::clone(queue), Arc::clone(listener));
    start("socket", Box::new(move || at.serve(&own)))?;
    if let Some(propose) = &queue.setup.propose {
        let desk = Arc::new(Desk::open(queue, propose)?);
        start("inside", Box::new(move || desk.serve()))?;
    }
    let own = Arc::clone(queue);
    let (waiting, next) = mpsc::sync_channel::<Waiting>(MOST_WAITING);
    let look = move || next.into_iter().for_each(|(id, call, denial)| own.ask(id, call, &denial));
    start("questions", Box::new(look))?;
    let own = Arc::clone(queue);
    start(
        "clock",
        Box::new(move || {
            loop {
                thread::sleep(TICK);
                own.expire();
            }
        }),
    )?;
    if queue.setup.asks {
        ask_here(queue, holds)?;
    }
    Ok(waiting)
}

/// Asks on the terminal of the run, or says why not.
fn ask_here(queue: &Arc<QuestionQueue>, holds: &Arc<Holds>) -> anyhow::Result<()> {
    let id = &queue.setup.id;
    let Some(terminal) = terminal::open() else {
        tell!(
            "dewar: no terminal to ask on: what is denied is denied at once, unless somebody\n\
             has connected by then: dewar ask {id}"
        );
        return Ok(());
    };
    queue.sits_at_terminal();
    let is_dumb = terminal::is_dumb().then(|| "this terminal cannot say what it has shown".into());
    if let Some(why) = queue.setup.elsewhere.clone().or(is_dumb) {
        tell!("dewar: {why}.\nIt is asked in another terminal: dewar ask {id}");
        return Ok(());
    }
    let (own, holds) = (Arc::clone(queue), Arc::clone(holds));
    start("terminal", Box::new(move || terminal::serve(&own, &holds, &terminal)))
}

fn start(name: &str, work: Box<dyn FnOnce() + Send>) -> anyhow::Result<()> {
    let started = thread::Builder::new().name(name.into()).spawn(work);
    started.map(drop).context("cannot start a thread")
}

fn hear(
    queue: &Arc<QuestionQueue>,
    holds: &Holds,
    waiting: &SyncSender<Waiting>,
    told: ToPrompter,
) {
    match told {
        ToPrompter::Begin(_) => {}
        ToPrompter::Ask { id, call, denial } => {
            // The run may want to say meanwhile that it is gone.
            if waiting.try_send((id, call, denial)).is_err() {
                queue.say(&ToRun::Answer(id, monitor::Verdict::NotNow));
            }
        }
        ToPrompter::Gone(id) => queue.gone(id),
        ToPrompter::Reply(number, reply) => queue.replied(number, *reply),
        ToPrompter::Held(number, stands) => holds.held(number, stands),
        ToPrompter::Loose(number) => holds.loose(number),
    }
}
