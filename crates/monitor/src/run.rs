//! A run, from the policy to the command's end.

use crate::{
    Mode,
    arrange::{Arrangement, PRIVATE},
    audit::{Audit, Record, Trail},
    file::{Beyond, Claims, KnownPaths, Planted, Plantings, Watch},
    filter::{self, Traps},
    gate::{Bearing, Gate},
    label::{Labels, Private, Status},
    lacking::Lacking,
    launch::{self, Envelope, Filter, Inherited, LaunchSpec, Limits, Namespaces, Outcome, Started},
    manager::Manager,
    passage::Passage,
    plan::{Place, Plan, READS, Rights, WRITES},
    process::Processes,
    revoke::Control,
    settled::{KernelPolicy, ReadError, Settled},
    socket::Endpoints,
};
use arc_swap::ArcSwap;
use avc::Stats;
use flask::{SecurityServer, Sid, Unreachable};
use labelling::BadRule;
use landlock::{ABI, Access, AccessFs};
use rustix::{
    fs::{CWD, Mode as Permissions, OFlags},
    io::Errno,
};
use std::{
    ffi::OsString,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::Arc,
};

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
    /// Same launch, same interposition, no decision: the base of measurements. Protects nothing but by the envelope.
    pub const OFF: Self = Self { files: false, processes: false, sockets: false };
}

/// What to run, and under what.
pub struct Job {
    /// The command: a name to be looked for along `PATH`, or a path, and its arguments.
    pub command: Vec<OsString>,
    /// Its whole environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Its working directory.
    pub cwd: PathBuf,
    /// What passes through from Dewar's caller.
    pub inherited: Inherited,
    /// How much is put before the object managers.
    pub mode: Mode,
    /// How much it may use.
    pub limits: Limits,
    /// The namespaces to create.
    pub namespaces: Namespaces,
    /// The Landlock ABI to rely on; `None` for no envelope.
    pub landlock: Option<ABI>,
    /// No signal but a deadly one interrupts a decided call; the kernel knows how since Linux 5.19.
    pub wait_killable: bool,
    /// Empty directories of its own at `/tmp`, `/var/tmp` and `/dev/shm`; needs a mount namespace.
    pub private_tmp: bool,
    /// What `/etc/hosts` holds; needs a mount namespace.
    pub hosts: Option<String>,
    /// Capabilities that the run keeps beside those that policy grants every domain, as far as the caller has them: bit n is
    /// capability n. Policy decides on every file as without them.
    pub keep: u64,
    /// Its network is its own, and policy grants everybody all of it: nothing is decided there.
    pub own_loopback: bool,
    /// Which object managers decide.
    pub enforce: Enforce,
    /// Where no view can leave it out, what is hidden does not even show that it exists.
    pub strict: bool,
    /// Where decisions are written.
    pub audit: Vec<Trail>,
    /// What of what is made and changed is to be reported.
    pub watch: Option<Watch>,
    /// Called once the command runs, with a hold on the sandbox. It may start threads and must return soon.
    pub started: Option<Box<dyn FnOnce(Control) + Send>>,
}

/// Why nothing was run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// No policy, no run.
    #[error(transparent)]
    Server(#[from] Unreachable),
    /// The policy's labelling rules are unusable.
    #[error(transparent)]
    Label(#[from] BadRule),
    /// The policy asks for more than a filter can hold.
    #[error(transparent)]
    Filter(#[from] crate::bpf::TooLong),
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
    pub outcome: Outcome,
    /// Decisions asked for, by object manager.
    pub decisions: Vec<(&'static str, Stats)>,
    /// What was denied, each kind once, the most frequent first.
    pub denials: Vec<Record>,
    /// Denials that were not kept, between the first kinds and the last.
    pub dropped: u64,
    /// What the kernel refused root although policy grants it, by the capability that would have helped: its name, and how
    /// often.
    pub lacking: Vec<(&'static str, u64)>,
    /// Layers of this run that refuse without a record, and what.
    pub unrecorded: Vec<&'static str>,
    /// What [`Job::watch`] asks for.
    pub planted: Vec<Planted>,
    /// How much more of it there was.
    pub planted_more: u64,
    /// Why the trail of every decision lacks some, if it does.
    pub audit_failure: Option<std::io::Error>,
}

/// Rights that the program exercises itself where they are exact; all else is done on its behalf.
const CONTINUED: [AccessFs; 6] = [
    AccessFs::ReadFile,
    AccessFs::ReadDir,
    AccessFs::WriteFile,
    AccessFs::Truncate,
    AccessFs::MakeReg,
    AccessFs::IoctlDev,
];

/// CAP_SETUID and CAP_SETGID: with them a process can stop being who it was launched as.
const CHANGES_IDS: u64 = 1 << 7 | 1 << 6;

/// CAP_SYS_RESOURCE: with it a process can have cores again.
const RAISES_LIMITS: u64 = 1 << 24;

/// What the policy comes to on this machine.
struct Prepared {
    policy: KernelPolicy,
    exact: Rights,
    exact_for_first: Rights,
    withheld: Vec<Sid>,
    spec: LaunchSpec,
    traps: Traps,
    settled: Settled,
}

/// Runs a command under the policy of `server`, and waits for its end.
///
/// The calling process becomes the monitor and stays in the view; it must have a single thread, and should end
/// afterwards as `Report::outcome` says.
///
/// # Errors
///
/// [`RunError`]; nothing was run then, and nothing is left running.
pub fn run(job: Job, server: Arc<dyn SecurityServer>) -> Result<Report, RunError> {
    let Job { enforce, audit, watch, started: on_start, .. } = job;
    let job = Job { audit: Vec::new(), watch: None, started: None, ..job };
    let prepared = prepare(&job, &*server)?;
    // From a user namespace on, this process may not open that any more.
    let refusal = refusal().map_err(system("open /proc/self/io"))?;
    let beyond = Beyond::before(&prepared.spec.view).map_err(system("open /"))?;
    let entered = launch::enter_view(&prepared.spec)?;
    let program = filter::compile(prepared.traps)?;
    let flags = if job.wait_killable { libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV } else { 0 };
    let filter = Filter { program: &program, flags };
    let started = launch::start(&prepared.spec, &entered, &filter)?;
    let proc =
        entered.proc().try_clone_to_owned().map_err(|_| system("keep /proc")(Errno::MFILE))?;
    let audit = Arc::new(Audit::new(Arc::clone(&server), audit));
    let Started { listener, command, mut sandbox, .. } = started;
    let init = sandbox.init_pid().as_raw_nonzero().get() as u32;
    let view = proc::ProcessTree::new(proc, init).map_err(system("look at this process"))?;
    let KernelPolicy { plan, first, labels, rules, .. } = prepared.policy;
    let subjects = Processes::new(&plan.domains, command.as_raw_nonzero().get() as u32, &view)
        .map_err(system("label the command (`ulimit -H -x` must be unlimited)"))?;
    let gate = Arc::new(Gate {
        listener: crate::sys::notify::Listener::new(listener),
        view,
        files: Manager::new(Arc::clone(&server), enforce.files),
        processes: Manager::new(Arc::clone(&server), enforce.processes),
        sockets: Manager::new(Arc::clone(&server), enforce.sockets),
        labels: Labels::new(rules).in_view(private(&prepared.spec.view)?),
        claims: Claims::default(),
        plantings: Plantings::new(watch),
        paths: KnownPaths::new(plan.domains.clone()),
        endpoints: Endpoints::new(&labels),
        peers: crate::socket::Peers::default(),
        bearing: ArcSwap::from_pointee(Bearing {
            plan,
            first,
            exact: prepared.exact,
            exact_for_first: prepared.exact_for_first,
            withheld: prepared.withheld,
            files: labels.files,
        }),
        settled: prepared.settled,
        passage: Passage::default(),
        changing: std::sync::Mutex::default(),
        refusal,
        subjects,
        audit: Arc::clone(&audit),
        beyond,
        ids: (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw()),
        capabilities: prepared.spec.capabilities,
        lacking: Lacking::new(prepared.spec.capabilities),
        ids_change: prepared.spec.capabilities & CHANGES_IDS != 0,
        off: enforce == Enforce::OFF,
        lead: crate::gate::Lead::default(),
        waits: crate::waits::Waits::default(),
        server,
    });
    let serving = Arc::clone(&gate);
    let thread = std::thread::Builder::new().name("watchdog".into()).stack_size(128 << 10);
    thread.spawn(move || serving.serve()).map_err(|_| system("start a thread")(Errno::AGAIN))?;
    if let Some(on_start) = on_start {
        on_start(Control::new(Arc::clone(&gate)));
    }
    let _ = sandbox.let_go_of_streams();
    let outcome = sandbox.wait()?;
    let (denials, dropped) = audit.denials();
    let audit_failure = audit.failure();
    let unrecorded = unrecorded(prepared.traps, &gate.beyond, prepared.spec.capabilities);
    let decisions = gate.decisions();
    let lacking = gate.lacking.all();
    let (planted, planted_more) = gate.plantings.report();
    Ok(Report {
        outcome,
        decisions,
        denials,
        dropped,
        lacking,
        unrecorded,
        planted,
        planted_more,
        audit_failure,
    })
}

/// Layers that refuse without a record, and what.
fn unrecorded(traps: Traps, beyond: &Beyond, capabilities: u64) -> Vec<&'static str> {
    let layers = [
        (
            true,
            "the system-call filter: what no profile grants (mount, unshare, setns, chroot, bpf, io_uring, keyctl, …)",
        ),
        (
            capabilities == 0,
            "missing capabilities: what the kernel lets only the machine's root do",
        ),
        (
            traps.reads_pass(),
            "the envelope: reading, which mode `fast` leaves to the kernel; `--mode all` records it",
        ),
        (
            !traps.looks && beyond.closes(),
            "the view: looking at what lies in a denied directory, without opening it",
        ),
    ];
    layers.into_iter().filter_map(|(is, layer)| is.then_some(layer)).collect()
}

/// A file that nobody in the sandbox can read: the kernel asks, at each read of `/proc/PID/io`, whether the reader might
/// trace the process, and says `EACCES`.
fn refusal() -> rustix::io::Result<OwnedFd> {
    rustix::fs::open("/proc/self/io", OFlags::RDONLY | OFlags::CLOEXEC, Permissions::empty())
}

fn system(what: &'static str) -> impl Fn(Errno) -> RunError {
    move |source| RunError::System { what, source }
}

fn prepare(job: &Job, server: &dyn SecurityServer) -> Result<Prepared, RunError> {
    let policy = KernelPolicy::new(server).map_err(|error| match error {
        ReadError::Server(error) => RunError::Server(error),
        ReadError::Label(error) => RunError::Label(error),
    })?;
    let (plan, first) = (&policy.plan, &policy.first);
    let arrangement = if job.namespaces.mount {
        Arrangement::with_mounts(plan, &policy.rules, (job.private_tmp, job.strict))
    } else {
        Arrangement::without_mounts(plan, job.strict)
    };
    let capabilities = policy.capabilities | job.keep;
    let leaves_cores = capabilities & RAISES_LIMITS != 0;
    let lineage = plan.domains.len() > 1;
    let shielded = |place: &Place| arrangement.shielded(place);
    let mut inside = first.clone();
    let withheld = inside.withhold_reads(&policy.labels.files, &shielded);
    let all = if lineage { plan } else { &inside };
    let (exact, exact_for_first) = exact(job, (all, &inside), &shielded, leaves_cores);
    // Without decisions, the envelope is all that there is, for everybody.
    let inside = if job.enforce == Enforce::OFF { plan } else { &inside };
    let (datagrams, listens) = policy.sockets.decided(job.own_loopback && job.namespaces.net);
    let traps = Traps {
        mode: job.mode,
        reads_exact: exact.contains(AccessFs::ReadFile | AccessFs::ReadDir) && withheld.is_empty(),
        lists: !first.listed.is_empty(),
        looks: arrangement.looks,
        forks: policy.forks,
        lineage,
        datagrams,
        listens,
        // Nobody labels what is in it, so domains would meet there.
        private_ipc: job.namespaces.ipc && !lineage,
    };
    let spec = LaunchSpec {
        command: job.command.clone(),
        environment: job.environment.clone(),
        cwd: job.cwd.clone(),
        inherited: job.inherited.clone(),
        namespaces: job.namespaces,
        view: launch::View {
            private_bytes: job.limits.memory_bytes.filter(|_| arrangement.view.private_tmp),
            hosts: job.hosts.clone(),
            ..arrangement.view
        },
        envelope: job
            .landlock
            .map(|abi| envelope(abi, inside, done_by_program(job, exact_for_first))),
        capabilities,
        // The kernel writes a core with the rights of all domains, for its owner to read.
        limits: Limits { core_bytes: lineage.then_some(0), ..job.limits.clone() },
    };
    let settled = Settled::new(&policy, server, traps, &spec)?;
    Ok(Prepared { policy, exact, exact_for_first, withheld, spec, traps, settled })
}

/// The directories that a view gives the sandbox, now that it has been entered.
fn private(view: &launch::View) -> Result<Private, RunError> {
    let mut private = Private { directories: Vec::new(), keep: view.keep.clone() };
    for directory in PRIVATE.into_iter().filter(|_| view.private_tmp) {
        match Status::at(CWD, directory) {
            Ok(status) => private.directories.push((directory.into(), status.device)),
            Err(Errno::NOENT) => {}
            Err(source) => return Err(system("look at a private directory")(source)),
        }
    }
    Ok(private)
}

/// What the kernel refuses just as policy does: for all domains; for the first while all are in it.
fn exact(
    job: &Job,
    (plan, first): (&Plan, &Plan),
    shielded: &dyn Fn(&Place) -> Rights,
    leaves_cores: bool,
) -> (Rights, Rights) {
    let handled = job.landlock.map_or(Rights::empty(), AccessFs::from_all);
    let of = |plan: &Plan| plan.exact(shielded) & handled;
    if plan.domains.len() == 1 {
        let exact = of(plan);
        return (exact, exact);
    }
    // The kernel lets everybody in the envelope follow the links of `/proc/PID`, also to pipes and memory, which lie in no
    // directory that a grant could speak of; policy lets only those who may trace the process.
    let for_all = of(plan) & !(READS | WRITES | AccessFs::Execute);
    let mut for_first = of(first);
    let around_proc =
        first.innermost(Path::new("/proc")).map_or(Rights::empty(), |place| place.any);
    for rights in [READS, WRITES] {
        if around_proc.intersects(rights) {
            for_first &= !rights;
        }
    }
    if leaves_cores {
        // The envelope lies around all domains. With a right to write in it, a process of another one that dies of a
        // signal would leave its memory, a core file, where the first domain can read it.
        for_first &= !WRITES;
    }
    (for_all, for_first)
}

/// The rights that the program exercises itself.
fn done_by_program(job: &Job, exact: Rights) -> Rights {
    if job.enforce == Enforce::OFF {
        // Nothing is done on its behalf.
        return AccessFs::from_all(ABI::V5);
    }
    let continued: Rights = CONTINUED.into_iter().collect();
    (exact & continued) | AccessFs::Execute | AccessFs::IoctlDev
}

fn envelope(abi: ABI, plan: &Plan, used: Rights) -> Envelope {
    let handled_fs = AccessFs::from_all(abi);
    let used = used & handled_fs;
    Envelope {
        handled_fs,
        rules: plan.envelope(used),
        // Every connect and bind is made on the program's behalf, so the program itself needs no port.
        tcp_bind: (abi >= ABI::V4).then(Vec::new),
        tcp_connect: (abi >= ABI::V4).then(Vec::new),
        scope_abstract_unix: abi >= ABI::V6,
        scope_signal: abi >= ABI::V6,
    }
}
