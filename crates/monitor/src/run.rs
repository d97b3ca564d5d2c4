//! A run, from the policy to the command's end.

use crate::{
    asking::{Asking, Questions},
    control::Control,
    gate::Gate,
    lead::Lead,
    process::ProcessManager,
    socket::{Endpoints, KeptSockets, Peers, SocketManager, UnixDiag},
};
use arc_swap::ArcSwap;
use audit::{
    Activity, Audit, CallTime, CallTimes, Deed, DeedKind, Listening, Planted, Plantings, Record,
    Remarks, Trail, Watch,
};
use avc::Stats;
use confine::{
    ConfineError, Confinement, KernelPolicy, LaunchRequest, PRIVATE, PolicyState, Settled,
    launch::{self, CommandStatus, Namespaces, Started},
};
use file_manager::{FileManager, Outside, PathCache};
use flask::SecurityServer;
use inode_labels::{Labels, Private, RepositoryNames, Status};
use mediation::{
    cache::{Caches, CheckedCache},
    inside::Inside,
    state::{MonitorState, Records},
    subject::Processes,
};
use policy_stack::Stack;
use rustix::{
    fs::{CWD, Mode as Permissions, OFlags},
    io::Errno,
};
use std::{
    io::Write as _,
    os::fd::OwnedFd,
    path::PathBuf,
    sync::{Arc, PoisonError, atomic::AtomicBool},
};
use supervisor::{
    Execs, FsState, Listener, OnBehalf, Quiesce, Room, SeizeTimeout, Targets, Witnesses, closing,
};

/// What is said when a run goes on that was to stop.
const NOT_STOPPED: &str = "dewar: not stopped: the run makes processes too fast, or there are no threads left to hold it, \
    and what goes on would read what is typed; Ctrl-C ends the command, `kill -KILL` of dewar the run";

/// Which object managers decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Enforce {
    /// The file object manager.
    pub files: bool,
    /// The process object manager.
    pub processes: bool,
    /// The socket object manager.
    pub sockets: bool,
}

impl Enforce {
    /// Everything is decided.
    pub const ALL: Self = Self { files: true, processes: true, sockets: true };
    /// Same launch, same interposition, no decision: the base of measurements. Protects nothing but
    /// by the envelope.
    pub const OFF: Self = Self { files: false, processes: false, sockets: false };
}

/// What to run, and under what.
pub struct Job {
    /// The command, and what is laid down around it.
    pub request: LaunchRequest,
    /// Which object managers decide.
    pub enforce: Enforce,
    /// What the command works on.
    pub workspace: PathBuf,
    /// Where decisions are written.
    pub audit: Vec<Trail>,
    /// What of what is made and changed is to be reported.
    pub watch: Option<Watch>,
    /// Whether [`Report::spent`] is wanted.
    pub account: bool,
    /// Called once the command runs, with a hold on the sandbox. It may start threads and must
    /// return soon.
    pub started: Option<Box<dyn FnOnce(Control) + Send>>,
    /// Who is asked before something is denied; nobody by itself.
    pub ask: Option<Asking>,
}

/// Why nothing was run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// Nothing could be laid down.
    #[error(transparent)]
    Confine(#[from] ConfineError),
    /// The view was not entered.
    #[error(transparent)]
    View(#[from] launch::EnterError),
    /// The sandbox was not started.
    #[error(transparent)]
    Start(#[from] launch::StartError),
    /// The command was lost.
    #[error(transparent)]
    Wait(#[from] launch::WaitError),
    /// A system call of the monitor failed.
    #[error("cannot {what}: {source}")]
    System {
        /// What was to be done.
        what: &'static str,
        /// What the kernel said.
        source: Errno,
    },
}

/// What came of a run.
#[derive(Debug)]
pub struct Report {
    /// How the command ended.
    pub outcome: CommandStatus,
    /// Decisions asked for, by object manager.
    pub decisions: Vec<(&'static str, Stats)>,
    /// What was denied, each kind once, the most frequent first.
    pub denials: Vec<Record>,
    /// How often each system call was decided and how long that took, the dearest first; empty
    /// unless [`Job::account`].
    pub spent: Vec<CallTime>,
    /// Denials that were not kept, between the first kinds and the last.
    pub dropped: u64,
    /// What the kernel refused root although policy grants it, by the capability that would have
    /// helped: its name, and how often.
    pub lacking: Vec<(&'static str, u64)>,
    /// What was denied to nobody, and may be why the command failed all the same.
    pub remarks: Vec<String>,
    /// As [`Control::bounded`].
    pub bounded: Option<String>,
    /// Layers of this run that refuse without a record, and what.
    pub unrecorded: Vec<&'static str>,
    /// What [`Job::watch`] asks for.
    pub planted: Vec<Planted>,
    /// How much more of it there was.
    pub planted_more: u64,
    /// How many runs began inside of this one.
    pub runs_inside: u32,
    /// What was written, removed, executed and contacted, as far as it was decided here.
    pub deeds: Vec<Deed>,
    /// How much more of each kind there was.
    pub deeds_more: Vec<(DeedKind, u64)>,
    /// Why the trail of every decision lacks some, if it does.
    pub audit_failure: Option<std::io::Error>,
}

/// Runs a command under the policy of `server`, and waits for its end.
///
/// The calling process becomes the monitor and stays in the view; it must have a single thread, and
/// should end afterwards as `Report::outcome` says.
///
/// # Errors
///
/// [`RunError`]; nothing was run then, and nothing is left running.
pub fn run(job: Job, server: Arc<dyn SecurityServer>) -> Result<Report, RunError> {
    let Job { request, enforce, workspace, audit, watch, account, started: on_start, ask } = job;
    let off = enforce == Enforce::OFF;
    let own_loopback = request.own_loopback && request.namespaces.net;
    let machine = own_loopback.then(Listening::here);
    let (namespaces, takes_descriptors) = (request.namespaces, request.takes_descriptors);
    let unshares_fs = request.unshares_fs;
    let (memory, processes) = (request.limits.memory_bytes, request.limits.processes);
    let confinement = Confinement::new(&request, !off, &*server)?;
    let capabilities = confinement.capabilities();
    // From a user namespace on, this process may not open that any more.
    let refusal = refusal().map_err(system("open /proc/self/io"))?;
    let outside = Arc::new(Outside::before(confinement.view()).map_err(system("open /"))?);
    let entered = confinement.enter()?;
    let started = confinement.start(&entered)?;
    let proc =
        entered.proc().try_clone_to_owned().map_err(|_| system("keep /proc")(Errno::MFILE))?;
    closing::see_by(proc.try_clone().map_err(|_| system("keep /proc")(Errno::MFILE))?);
    let stack = Arc::new(Stack::new(server));
    let server: Arc<dyn SecurityServer> = Arc::clone(&stack) as Arc<dyn SecurityServer>;
    let permissions = Arc::clone(&outside);
    let refuses = Box::new(move |path: &_, access| permissions.refuses(path, access));
    let audit = Arc::new(Audit::new(Arc::clone(&server), audit, refuses));
    let Started { listener, command, by_cgroup, diag, mut sandbox, .. } = started;
    let private = private(confinement.view())?;
    let Confinement { policy, exactness, settled, given, .. } = confinement;
    let number = |pid: rustix::process::Pid| pid.as_raw_pid().cast_unsigned();
    let mut remarks = Remarks::new(machine, number(command));
    let memory = memory.filter(|_| !by_cgroup.memory);
    remarks.bounded = Remarks::bounded(memory, processes.filter(|_| !by_cgroup.processes));
    let init = number(sandbox.init_pid());
    let subreaper = sandbox.subreaper().map(|(pid, orphans)| (number(pid), orphans.clone()));
    let tree =
        proc::ProcessTree::new(proc, init, subreaper).map_err(system("look at this process"))?;
    let KernelPolicy { plan, first, labels, rules, .. } = policy;
    let subjects = Processes::new(&plan.domains, command.as_raw_nonzero().get() as u32, &tree)
        .map_err(system("label the command (`ulimit -H -x` must be unlimited)"))
        .inspect_err(|_| sandbox.end_if_interrupted())?;
    let avc = |decides| CheckedCache::new(Arc::clone(&server), decides);
    let (paths, endpoints) =
        (PathCache::new(plan.domains.clone()), Endpoints::new(&labels, UnixDiag::new(diag)));
    let policy = PolicyState { plan, first, exactness, files: labels.files };
    let gate = Arc::new(Gate {
        state: MonitorState {
            targets: Targets {
                listener: Listener::new(listener),
                tree,
                quiesce: Quiesce::default(),
                execs: Execs::default(),
                seizing: SeizeTimeout::default(),
            },
            records: Records { audit, activity: Activity::default(), remarks },
            inside: Arc::new(Inside::new(stack, settled.clone(), private.clone())),
            labels: Labels::new(rules).in_view(private),
            subjects,
            caches: Caches {
                file: avc(enforce.files).bounding_links(),
                process: avc(enforce.processes),
                socket: avc(enforce.sockets).bounding_links(),
            },
            on_behalf: OnBehalf::new(capabilities, namespaces.user, FsState::new(unshares_fs)),
            server,
            policy: ArcSwap::from_pointee(policy),
            workspace,
            given,
            room: Room::of_process(),
            shares_descriptors: AtomicBool::default(),
        },
        files: FileManager {
            claims: RepositoryNames::default(),
            plantings: Plantings::new(watch),
            paths,
            outside,
            witnesses: Witnesses::default(),
        },
        processes: ProcessManager::new(settled.has_envelope()),
        sockets: SocketManager {
            endpoints,
            peers: Peers::default(),
            kept: (!takes_descriptors).then(KeptSockets::default),
        },
        settled,
        off,
        lead: Lead::default(),
        questions: ask.map(Questions::new),
        refusal,
        times: CallTimes::new(account),
    });
    begin(&gate)?;
    if let Some(on_start) = on_start {
        on_start(Control::new(Arc::clone(&gate)));
    }
    let _ = sandbox.let_go_of_streams();
    let control = Control::new(Arc::clone(&gate));
    sandbox.hold_while_stopped(move || {
        let held = control.freeze();
        if held.is_none() {
            // Nobody may hear it.
            let _ = writeln!(std::io::stderr(), "{NOT_STOPPED}");
        }
        held
    });
    let outcome = sandbox.wait()?;
    gate.state.targets.seizing.end();
    let unrecorded = unrecorded(&gate.settled, &gate.files.outside, capabilities, namespaces);
    let mut report = report(&gate, outcome, unrecorded);
    let reached = sandbox.reached();
    report.remarks.extend(Remarks::reached(reached.memory, reached.processes));
    Ok(report)
}

/// Begins to decide calls, and to watch over those who do. All threads that a change of policy
/// needs begin here: later the program may have used up those that there may be.
fn begin(gate: &Arc<Gate>) -> Result<(), RunError> {
    let failed = || system("start a thread")(Errno::AGAIN);
    let (watched, seizing) = (Arc::clone(gate), Arc::clone(gate));
    if !Gate::begin(gate) {
        return Err(failed());
    }
    let named = |name: &str| std::thread::Builder::new().name(name.into());
    let watchdog = named("watchdog").stack_size(256 << 10).spawn(move || watched.watch());
    watchdog.map_err(|_| failed())?;
    let targets = move || supervisor::help_to_seize(&seizing.state.targets);
    named("seizing").stack_size(128 << 10).spawn(targets).map_err(|_| failed())?;
    let standby = &gate.state.targets.quiesce.changing;
    standby.lock().unwrap_or_else(PoisonError::into_inner).prepare().map_err(|_| failed())
}

/// What came of a run that has ended.
fn report(gate: &Gate, outcome: CommandStatus, unrecorded: Vec<&'static str>) -> Report {
    let records = &gate.state.records;
    let (denials, dropped) = records.audit.denials();
    let audit_failure = records.audit.failure();
    let (planted, planted_more) = gate.files.plantings.report();
    let (deeds, deeds_more) = records.activity.all();
    Report {
        outcome,
        decisions: gate.state.caches.stats(),
        denials,
        spent: gate.times.all(),
        dropped,
        lacking: gate.state.on_behalf.lacking.all(),
        remarks: records.remarks.all(),
        bounded: records.remarks.bounded.clone(),
        unrecorded,
        planted,
        planted_more,
        runs_inside: gate.state.inside.begun(),
        deeds,
        deeds_more,
        audit_failure,
    }
}

/// Layers that refuse without a record, and what.
fn unrecorded(
    settled: &Settled,
    outside: &Outside,
    capabilities: u64,
    namespaces: Namespaces,
) -> Vec<&'static str> {
    let layers = [
        (
            true,
            "the system-call filter: calls, options and commands that it does not know, and clone3, for which programs take another",
        ),
        (
            capabilities == 0,
            "missing capabilities: what the kernel lets only the machine's root do",
        ),
        (
            namespaces.pid || namespaces.net || namespaces.ipc,
            "namespaces: processes, ports and objects of the machine do not exist inside",
        ),
        (
            namespaces.net,
            "a network of its own: 127.0.0.1 is the run's own; `loopback`, added to the profile (`-p NAME+loopback`), makes it the machine's",
        ),
        (true, "limits: what would be more than `limits` of the profile, or `ulimit`, leave"),
        (
            settled.reads_pass(),
            "the envelope: reading, which mode `fast` leaves to the kernel; `--mode all` records it",
        ),
        (
            !settled.looks_are_decided() && outside.closes(),
            "the view: looking at what lies in a denied directory, without opening it",
        ),
    ];
    layers.into_iter().filter_map(|(is, layer)| is.then_some(layer)).collect()
}

/// A file that nobody in the sandbox can read: the kernel asks, at each read of `/proc/PID/io`,
/// whether the reader might trace the process, and says `EACCES`.
fn refusal() -> rustix::io::Result<OwnedFd> {
    rustix::fs::open("/proc/self/io", OFlags::RDONLY | OFlags::CLOEXEC, Permissions::empty())
}

fn system(what: &'static str) -> impl Fn(Errno) -> RunError {
    move |source| RunError::System { what, source }
}

/// The directories that a view gives the sandbox, now that it has been entered.
fn private(view: &launch::View) -> Result<Private, RunError> {
    let mut private = Private { directories: Vec::new(), keep: view.keep.clone() };
    for directory in PRIVATE.into_iter().filter(|_| view.private_tmp) {
        match Status::at(CWD, directory) {
            Ok(status) => private.directories.push((directory.into(), status.device)),
            // Not there, or covered for everybody.
            Err(Errno::NOENT | Errno::ACCESS) => {}
            Err(source) => return Err(system("look at a private directory")(source)),
        }
    }
    Ok(private)
}
