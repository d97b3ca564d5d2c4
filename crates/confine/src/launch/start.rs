//! Entering the view and starting the sandbox.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, Pid, PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open,
    set_child_subreaper, set_dumpable_behavior,
};
use rustix::thread::CapabilitySet;

use super::cgroup::Cgroup;
use super::diag::DiagSockets;
use super::exec::{CommandError, Program};
use super::init::become_init;
use super::init_spec::InitSpec;
use super::limits::{self, ByCgroup, Reached};
use super::mounts::ViewError;
use super::outcome::CommandStatus;
use super::sandbox::Sandbox;
use super::signals::{DEADLY, WATCHED};
use super::stop::Stop;
use super::subreaper::{Kept, Subreaper, keep};
use super::terminal::Terminal;
use super::wire::{Doing, Received, Report, Wire};
use super::{Filter, LaunchSpec, Namespaces, capabilities, descendants};
use crate::sys;

/// The monitor, inside the view.
pub struct Entered {
    proc: OwnedFd,
}

/// Why the view was not entered. Nothing was started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EnterError {
    /// `/proc` is not there.
    #[error("cannot open /proc: {0}")]
    Proc(Errno),
    /// The kernel refused the user or mount namespace.
    #[error("the kernel refused new namespaces ({names}): {source}; `dewar doctor` says why")]
    Namespaces {
        /// Those asked for.
        names: String,
        /// What it said.
        source: Errno,
    },
    /// Something is asked for that needs a mount namespace.
    #[error("{0} needs a mount namespace, which is not asked for")]
    NeedsMount(&'static str),
    /// The file system could not be arranged.
    #[error(transparent)]
    View(#[from] ViewError),
    /// The working directory does not exist in the view.
    #[error("cannot enter the working directory `{}` in the sandbox: {source}; start in a directory that the profile grants", path.display())]
    Cwd {
        /// The directory.
        path: PathBuf,
        /// Why not.
        source: Errno,
    },
}

/// Why the sandbox was not started. What was started of it is gone.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The command cannot even be tried.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// The calling process has more than one thread.
    #[error("a sandbox can be started only while the process has a single thread")]
    Threads,
    /// The kernel refused the namespaces.
    #[error("the kernel refused new namespaces ({names}): {source}; `dewar doctor` says why")]
    Namespaces {
        /// Those asked for.
        names: String,
        /// What it said.
        source: Errno,
    },
    /// A step inside the sandbox failed.
    #[error("cannot {what}: {source}; `dewar doctor` says what this machine can enforce")]
    Step {
        /// What was to be done.
        what: &'static str,
        /// What the kernel said.
        source: Errno,
    },
    /// Init or the command's process ended without a word.
    #[error("the sandbox was killed while it was being set up")]
    Lost,
    /// A call of the monitor itself failed.
    #[error("cannot {what}: {source}")]
    Monitor {
        /// What was to be done.
        what: &'static str,
        /// What the kernel said.
        source: Errno,
    },
}

/// A sandbox whose command waits to be executed.
pub struct Started {
    /// Where the filter's notifications arrive.
    pub listener: OwnedFd,
    /// The command's process, in the monitor's pid namespace.
    pub command: Pid,
    /// The same process, safe against reuse of the number.
    pub command_pidfd: OwnedFd,
    /// Which limits a cgroup enforces.
    pub by_cgroup: ByCgroup,
    /// By which the kernel tells of unix sockets inside, where it does.
    pub diag: Option<DiagSockets>,
    /// The sandbox.
    pub sandbox: Sandbox,
}

impl Entered {
    /// The `/proc` that shows the monitor's pid namespace.
    ///
    /// The monitor must use it for everything: `/proc` in the shared view shows the sandbox's
    /// pids once the sandbox has a pid namespace.
    #[must_use]
    pub fn proc(&self) -> BorrowedFd<'_> {
        self.proc.as_fd()
    }
}

/// Moves the calling process into the namespaces and the view that monitor and sandbox share.
///
/// Open before whatever lies outside of the view. The process must have a single thread. It
/// cannot go back; if this fails, it should end.
///
/// # Errors
///
/// [`EnterError`]; nothing is weakened silently.
pub fn enter_view(spec: &LaunchSpec) -> Result<Entered, EnterError> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let proc = rustix::fs::open("/proc", flags, Mode::empty()).map_err(EnterError::Proc)?;
    let namespaces = spec.namespaces;
    if !namespaces.mount {
        if !spec.view.is_plain() {
            return Err(EnterError::NeedsMount("a view"));
        }
        if namespaces.pid {
            return Err(EnterError::NeedsMount("a pid namespace"));
        }
    }
    namespaces.enter(proc.as_fd()).map_err(|source| EnterError::Namespaces {
        names: namespaces.names().join(", "),
        source,
    })?;
    spec.view.build()?;
    rustix::process::chdir(&spec.cwd)
        .map_err(|source| EnterError::Cwd { path: spec.cwd.clone(), source })?;
    Ok(Entered { proc })
}

/// Starts the sandbox up to the exec of the command, which waits for [`Sandbox::release`].
///
/// Call it on the main thread, in the view, before there is a second thread: the sandbox dies
/// with the thread that started it. Threads that are created afterwards have the signals blocked
/// that [`Sandbox::wait`] receives. The calling process gives up all capabilities but those of
/// the sandbox, and can no longer be traced by others.
///
/// # Errors
///
/// [`StartError`]; nothing is left running, and nothing is weakened silently. If the start failed
/// because of a deadly signal, the calling process ends by it.
pub fn start(
    spec: &LaunchSpec,
    entered: &Entered,
    filter: &Filter<'_>,
) -> Result<Started, StartError> {
    let program = Program::new(&spec.command, &spec.environment)?;
    let signals = prepare_monitor(spec)?;
    let files = limits::raise_files();
    let terminal = Terminal::open(entered.proc());
    let cgroup = Cgroup::make(&spec.limits);
    let by_cgroup = cgroup.as_ref().map(Cgroup::by).unwrap_or_default();
    // Dewar's group has no number among PIDs of their own, and who controls jobs needs one.
    let leads = spec.namespaces.pid && terminal.is_for_one();
    let order = InitSpec {
        spec,
        filter,
        program: &program,
        proc: entered.proc(),
        by_cgroup,
        files,
        cgroup: cgroup.as_ref().map_or(&[], Cgroup::entries),
        leads,
    };
    let newborn = give_birth(&order)?;
    let awaited = newborn.await_command().and_then(|(listener, command, pidfd)| {
        let own = (duplicate(entered.proc())?, duplicate(pidfd.as_fd())?);
        Ok((listener, command, pidfd, own))
    });
    let (listener, command, command_pidfd, (proc, own_pidfd)) = match awaited {
        Ok(awaited) => awaited,
        Err(error) => {
            newborn.bury();
            drop(cgroup);
            end_if_interrupted(&signals);
            return Err(error);
        }
    };
    let diag = match spec.namespaces.net {
        true => DiagSockets::of(command_pidfd.as_fd()),
        false => DiagSockets::here(),
    };
    let mut sandbox = Sandbox {
        proc,
        command: own_pidfd,
        last: newborn.last,
        subreaper: newborn.subreaper,
        init_pid: newborn.init_pid,
        command_pid: command,
        reports: newborn.reports,
        hand_over: Some(newborn.hand_over),
        released: false,
        signals,
        terminal,
        inherited: spec.inherited.clone(),
        limits: spec.limits.clone(),
        cgroup,
        stop: Stop::default(),
        hold: None,
        reached: Reached::default(),
        ended: false,
    };
    if leads {
        sandbox.terminal.hand_to(command);
    }
    sandbox.pass_on_early_signals();
    let keep = CapabilitySet::from_bits_retain(spec.capabilities);
    let reserve = sandbox.reserve();
    capabilities::reduce_monitor(keep, reserve).map_err(monitor("drop capabilities"))?;
    Ok(Started { listener, command, command_pidfd, by_cgroup, diag, sandbox })
}

/// Ends this process by a signal that has ended the command's before it was ready: who presses a
/// key wants no message.
fn end_if_interrupted(signals: &sys::SignalFd) {
    while let Some(signalled) = signals.next() {
        if DEADLY.contains(&signalled.signal) {
            CommandStatus::Killed(signalled.signal).leave();
        }
    }
}

/// Makes this process the one that receives signals and orphans, and that nobody can trace.
fn prepare_monitor(spec: &LaunchSpec) -> Result<sys::SignalFd, StartError> {
    // Whoever ignores the end of its children does not learn how they ended.
    sys::set_disposition(libc::SIGCHLD, false);
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(monitor("guard this process"))?;
    if !spec.namespaces.pid {
        // If init is killed, what it leaves comes to us, not to the init of the machine.
        set_child_subreaper(Some(getpid())).map_err(monitor("adopt orphans"))?;
    }
    let watched = sys::SignalSet::of(&WATCHED);
    watched.block();
    sys::SignalFd::new(&watched).map_err(monitor("watch signals"))
}

fn duplicate(fd: BorrowedFd<'_>) -> Result<OwnedFd, StartError> {
    rustix::io::fcntl_dupfd_cloexec(fd, 3).map_err(monitor("duplicate a descriptor"))
}

fn monitor(what: &'static str) -> impl Fn(Errno) -> StartError {
    move |source| StartError::Monitor { what, source }
}

/// Init, just created.
struct Newborn {
    /// What ends last: init, or the subreaper above it.
    last: OwnedFd,
    subreaper: Option<Subreaper>,
    init_pid: Pid,
    reports: Wire,
    hand_over: Wire,
}

/// Creates init in the namespaces that are asked for.
fn give_birth(order: &InitSpec<'_>) -> Result<Newborn, StartError> {
    let (reports, their_reports) = Wire::pair().map_err(monitor("create a socket pair"))?;
    let (hand_over, their_hand_over) = Wire::pair().map_err(monitor("create a socket pair"))?;
    let namespaces = order.spec.namespaces;
    if !namespaces.pid {
        let kept = keep(order, [reports, hand_over], [their_reports, their_hand_over]);
        let Kept { subreaper, pidfd, init_pid, wires: [reports, hand_over] } =
            kept.map_err(|failure| not_born(namespaces, failure))?;
        return Ok(Newborn {
            last: pidfd,
            subreaper: Some(subreaper),
            init_pid,
            reports,
            hand_over,
        });
    }
    match sys::clone_process(order.proc, namespaces.clone_flags()) {
        Ok(sys::Side::Child) => {
            drop((reports, hand_over));
            become_init(order, &their_reports, their_hand_over)
        }
        Ok(sys::Side::Parent { pid, pidfd }) => {
            Ok(Newborn { last: pidfd, subreaper: None, init_pid: pid, reports, hand_over })
        }
        Err(source) => Err(not_born(namespaces, (Doing::Namespaces, source))),
    }
}

fn not_born(namespaces: Namespaces, (doing, source): (Doing, Errno)) -> StartError {
    match (doing, source) {
        (_, Errno::BUSY) => StartError::Threads,
        (Doing::Namespaces, source) => {
            StartError::Namespaces { names: namespaces.names().join(", "), source }
        }
        (doing, source) => StartError::Step { what: doing.what(), source },
    }
}

impl Newborn {
    /// Waits until the command's process has its filter; its listener, and the process.
    fn await_command(&self) -> Result<(OwnedFd, Pid, OwnedFd), StartError> {
        let received = self.first_report()?;
        match (received.report, received.sender) {
            (Report::Ready(listener), Some(command)) => {
                // The process waits for us, so the number still is its own.
                let pidfd = pidfd_open(command, PidfdFlags::empty())
                    .map_err(monitor("take hold of the command's process"))?;
                let taken = match pidfd_getfd(&pidfd, listener, PidfdGetfdFlags::empty()) {
                    Err(Errno::PERM | Errno::NOSYS) => self.handed_over()?,
                    taken => taken.map_err(monitor("take the filter's listener"))?,
                };
                Ok((taken, command, pidfd))
            }
            (Report::Failed(doing, source), _) => {
                Err(StartError::Step { what: Doing::what(doing), source })
            }
            _ => Err(StartError::Lost),
        }
    }

    /// The listener, handed over by a process beside the command's: where a container's filter
    /// refuses pidfd_getfd(2).
    fn handed_over(&self) -> Result<OwnedFd, StartError> {
        let received = self.hand_over.receive().map_err(monitor("hear from the command"))?;
        match received.ok_or(StartError::Lost)? {
            Received { report: Report::Ready(_), descriptor: Some(listener), .. } => Ok(listener),
            Received { report: Report::Failed(doing, source), .. } => {
                Err(StartError::Step { what: Doing::what(doing), source })
            }
            _ => Err(StartError::Lost),
        }
    }

    /// Ends what was started, after a failure.
    fn bury(self) {
        self.reports.shut();
        // Without a pid namespace init and the subreaper kill what is left, and then end.
        descendants::await_end(self.last.as_fd());
    }

    /// The first message of either process.
    fn first_report(&self) -> Result<Received, StartError> {
        loop {
            let mut events = [
                PollFd::from_borrowed_fd(self.hand_over.as_fd(), PollFlags::IN),
                PollFd::from_borrowed_fd(self.reports.as_fd(), PollFlags::IN),
            ];
            match poll(&mut events, None) {
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(monitor("wait for init")(errno)),
            }
            let [from_command, from_init] = events.map(|event| !event.revents().is_empty());
            for (wire, ready) in [(&self.hand_over, from_command), (&self.reports, from_init)] {
                let received = if ready { wire.receive() } else { continue };
                if let Some(received) = received.map_err(monitor("hear from init"))? {
                    return Ok(received);
                }
            }
            if from_init {
                return Err(StartError::Lost);
            }
        }
    }
}
