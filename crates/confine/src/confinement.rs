//! What is laid down around a command before its first instruction: computed from a policy, in one
//! place.

use crate::{
    arrange::{Arrangement, TERMINALS},
    bpf::TooLong,
    filter::{self, Mode, Traps},
    launch::{
        self, EnterError, Entered, Envelope, Filter, Given, Inherited, LaunchSpec, Limits,
        Namespaces, StartError, Started, View,
    },
    layers::Layers,
    plan::{Plan, READS, Rights, Subtree, WRITES},
    policy::{KernelPolicy, ReadError},
    settled::Settled,
};
use flask::{SecurityServer, Sid, Unreachable};
use landlock::{ABI, Access, AccessFs};
use rustix::io::Errno;
use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

/// What to confine, and by which means.
pub struct LaunchRequest {
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
    /// The monitor can take a program's sockets from it (pidfd_getfd(2)); else it makes them, and
    /// keeps a duplicate.
    pub takes_descriptors: bool,
    /// Each thread of the monitor can have a working directory and a mask of its own (`CLONE_FS` of
    /// unshare(2)).
    pub unshares_fs: bool,
    /// Empty directories of its own at `/tmp`, `/var/tmp` and `/dev/shm`; needs a mount namespace.
    pub private_tmp: bool,
    /// What `/etc/hosts` holds; needs a mount namespace.
    pub hosts: Option<String>,
    /// Capabilities that the run keeps beside those that policy grants every domain, as far as the
    /// caller has them: bit n is capability n. Policy decides on every file as without them.
    pub keep: u64,
    /// Its network is its own, and policy grants everybody all of it: datagrams are not decided
    /// there.
    pub own_loopback: bool,
    /// Where no view can leave it out, what is hidden does not even show that it exists.
    pub strict: bool,
    /// What no list grants stays in the view, as it may be granted while it runs; what is hidden
    /// does not.
    pub grows: bool,
    /// What the view keeps, though policy does not grant it: symbolic links on the ways by which
    /// the caller calls directories of the run, and what must not seem to be gone.
    pub shown: Vec<PathBuf>,
}

impl LaunchRequest {
    /// A command without variables, by all means that this machine has: every call is decided,
    /// nothing is limited, temporary files are shared. Others are put in by struct update.
    #[must_use]
    pub fn new(
        (command, cwd): (Vec<OsString>, PathBuf),
        inherited: Inherited,
        layers: &Layers,
        namespaces: Namespaces,
    ) -> Self {
        Self {
            command,
            environment: Vec::new(),
            cwd,
            inherited,
            mode: Mode::All,
            limits: Limits::default(),
            namespaces: layers.namespaces(namespaces),
            landlock: Some(ABI::from(layers.landlock_version().cast_signed())),
            wait_killable: layers.has("wait-killable"),
            takes_descriptors: layers.has("pidfd-getfd"),
            unshares_fs: layers.has("unshare-fs"),
            private_tmp: false,
            hosts: None,
            keep: 0,
            own_loopback: false,
            strict: false,
            grows: false,
            shown: Vec::new(),
        }
    }
}

/// Where the kernel refuses exactly what policy refuses.
#[derive(Clone, Debug)]
pub struct Exactness {
    /// The rights for which it does so for every domain.
    pub all: Rights,
    /// The same as long as every process is in the first domain.
    pub first: Rights,
    /// Labels of files that the envelope lets nobody read, as it could not tell them from others
    /// that are refused.
    pub withheld: Vec<Sid>,
}

/// Why nothing can be laid down.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfineError {
    /// The policy was not read.
    #[error(transparent)]
    Policy(#[from] ReadError),
    /// The security server does not answer.
    #[error(transparent)]
    Server(#[from] Unreachable),
    /// What the caller has left open cannot be looked at.
    #[error("cannot tell what the open descriptors are of: {0}")]
    Given(Errno),
    /// The policy asks for more than a filter can hold.
    #[error(transparent)]
    Filter(#[from] TooLong),
}

/// All that the kernel is told before the command runs: view, namespaces, limits, envelope, filter.
pub struct Confinement {
    /// The policy that it follows from.
    pub policy: KernelPolicy,
    /// Where the kernel refuses exactly what policy refuses.
    pub exactness: Exactness,
    /// What holds until the end of the run. Every change of policy is compared with it.
    pub settled: Settled,
    /// What the caller has left open for the command.
    pub given: Given,
    spec: LaunchSpec,
    program: Vec<libc::sock_filter>,
    wait_killable: bool,
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

/// CAP_SYS_RESOURCE: with it a process can have cores again.
const RAISES_LIMITS: u64 = 1 << 24;

impl Confinement {
    /// Computes it from the policy of `server`. Unless something `decides` what comes to the
    /// monitor, the envelope is all that there is, for everybody.
    ///
    /// # Errors
    ///
    /// [`ConfineError`]: why not.
    pub fn new(
        request: &LaunchRequest,
        decides: bool,
        server: &dyn SecurityServer,
    ) -> Result<Self, ConfineError> {
        let policy = KernelPolicy::new(server)?;
        let (plan, first) = (&policy.plan, &policy.first);
        let arrangement = if request.namespaces.mount {
            Arrangement::with_mounts(
                plan,
                &policy.rules,
                &request.shown,
                (request.private_tmp, request.strict, request.grows),
            )
        } else {
            Arrangement::without_mounts(plan, request.strict)
        };
        let capabilities = policy.capabilities | request.keep;
        let leaves_cores = capabilities & RAISES_LIMITS != 0;
        let lineage = plan.domains.len() > 1;
        let shielded = |place: &Subtree| arrangement.shielded(place);
        let mut inside = first.clone();
        let withheld = inside.withhold_reads(&policy.labels.files, &shielded);
        let all = if lineage { plan } else { &inside };
        let given = request.inherited.given().map_err(ConfineError::Given)?;
        let exactness = exactness(request, &given, (all, &inside), &arrangement, leaves_cores);
        let mut exactness = Exactness { withheld, ..exactness };
        let traps = traps(request, &policy, &arrangement, &exactness);
        // Mode `fast` stays fast: reading what the run has made under a label of its own is refused
        // there where the directory's label is.
        exactness.withheld.extend(inside.labels_of_its_own(&policy.labels.files));
        exactness.withheld.extend(inside.labels_of_missing(&policy.labels.files));
        let inside = if decides { &inside } else { plan };
        let used = done_by_program(decides, exactness.first);
        let spec = LaunchSpec {
            command: request.command.clone(),
            environment: request.environment.clone(),
            cwd: request.cwd.clone(),
            inherited: request.inherited.clone(),
            namespaces: request.namespaces,
            view: View {
                private_bytes: request.limits.memory_bytes.filter(|_| arrangement.view.private_tmp),
                hosts: request.hosts.clone(),
                ..arrangement.view
            },
            envelope: request.landlock.map(|abi| envelope(abi, inside, used, decides)),
            capabilities,
            // The kernel writes a core with the rights of all domains, for its owner to read.
            limits: Limits { core_bytes: lineage.then_some(0), ..request.limits.clone() },
        };
        let settled = Settled::new(&policy, server, traps, &spec)?;
        let program = filter::compile(traps)?;
        let wait_killable = request.wait_killable;
        Ok(Self { policy, exactness, settled, given, spec, program, wait_killable })
    }

    /// What exists in the file system.
    #[must_use]
    pub fn view(&self) -> &View {
        &self.spec.view
    }

    /// The capabilities that the command keeps: bit n is capability n.
    #[must_use]
    pub fn capabilities(&self) -> u64 {
        self.spec.capabilities
    }

    /// Enters the view, with the calling process, which has a single thread and becomes the
    /// monitor.
    ///
    /// # Errors
    ///
    /// [`EnterError`]: why not.
    pub fn enter(&self) -> Result<Entered, EnterError> {
        launch::enter_view(&self.spec)
    }

    /// Starts the sandbox, with the command ready to be executed.
    ///
    /// # Errors
    ///
    /// [`StartError`]: why not. Nothing is left running then.
    pub fn start(&self, entered: &Entered) -> Result<Started, StartError> {
        let killable = libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
        let flags = if self.wait_killable { killable } else { 0 };
        launch::start(&self.spec, entered, &Filter { program: &self.program, flags })
    }
}

/// What the filter must know.
fn traps(
    request: &LaunchRequest,
    policy: &KernelPolicy,
    arrangement: &Arrangement,
    exactness: &Exactness,
) -> Traps {
    let lineage = policy.plan.domains.len() > 1;
    let reads = exactness.all.contains(AccessFs::ReadFile | AccessFs::ReadDir);
    let own_network = request.own_loopback && request.namespaces.net;
    let (datagrams, listens) = policy.sockets.decided(own_network);
    // On a loopback of the run's own, to tell of servers that nobody outside reaches.
    let listens = listens || own_network;
    Traps {
        mode: request.mode,
        reads_exact: reads && exactness.withheld.is_empty(),
        lists: !policy.first.listed.is_empty(),
        looks: arrangement.looks,
        forks: policy.forks,
        lineage,
        datagrams,
        listens,
        own_ports: policy.sockets.have_own_ports(),
        keeps_sockets: !request.takes_descriptors,
        one_id: request.namespaces.user,
        // Nobody labels what is in it, so domains would meet there.
        private_ipc: request.namespaces.ipc && !lineage,
    }
}

/// The rights for which the kernel refuses exactly what policy refuses: for every domain, and for
/// the first one as long as every process is in that.
///
/// What is covered when the run starts is not any more once somebody outside has replaced it (an
/// editor that saves it), and what a pattern names may be made at any time. So opening is exact
/// only where that cannot be; mode `fast` says that it reads such files.
fn exactness(
    request: &LaunchRequest,
    given: &Given,
    (plan, first): (&Plan, &Plan),
    arrangement: &Arrangement,
    leaves_cores: bool,
) -> Exactness {
    let handled = request.landlock.map_or(Rights::empty(), AccessFs::from_all);
    // With a right to write in the envelope, a process that can raise its limits and dies of a
    // signal would leave its memory, a core file: after a change where nothing may be written any
    // more, or, of another domain, where the first one can read it.
    // The envelope knows no pipes and no memory: nobody is to have the other end of what was given.
    let handled = if leaves_cores || given.lacks_write() { handled & !WRITES } else { handled };
    // Nor does it tell the terminals of the run from others.
    let meets_terminals = plan.grants_in(Path::new(TERMINALS));
    let handled = if meets_terminals { handled & !WRITES } else { handled };
    let handled = match request.mode {
        Mode::All if given.lacks_read() || meets_terminals => handled & !READS,
        // Reading is left to the kernel: see `SECURITY.md`.
        _ => handled,
    };
    let until_changed = match request.mode {
        Mode::All => !(READS | WRITES),
        Mode::Fast => !WRITES,
    };
    let of = |plan: &Plan| {
        let now = plan.exact(&|place| arrangement.shielded(place)) & until_changed;
        (now | plan.exact(&|place| arrangement.shielded_for_good(place))) & handled
    };
    if plan.domains.len() == 1 {
        let exact = of(plan);
        return Exactness { all: exact, first: exact, withheld: Vec::new() };
    }
    // The kernel lets everybody in the envelope follow the links of `/proc/PID`, also to pipes and
    // memory, which lie in no directory that a grant could speak of; policy lets only those who may
    // trace the process.
    let for_all = of(plan) & !(READS | WRITES | AccessFs::Execute);
    let mut for_first = of(first);
    let around_proc =
        first.innermost(Path::new("/proc")).map_or(Rights::empty(), |place| place.any);
    for rights in [READS, WRITES] {
        if around_proc.intersects(rights) {
            for_first &= !rights;
        }
    }
    Exactness { all: for_all, first: for_first, withheld: Vec::new() }
}

/// The rights that the program exercises itself.
fn done_by_program(decides: bool, exact: Rights) -> Rights {
    if !decides {
        // Nothing is done on its behalf.
        return AccessFs::from_all(ABI::V5);
    }
    let continued: Rights = CONTINUED.into_iter().collect();
    (exact & continued) | AccessFs::Execute | AccessFs::IoctlDev
}

fn envelope(abi: ABI, plan: &Plan, used: Rights, decides: bool) -> Envelope {
    let handled_fs = AccessFs::from_all(abi);
    let used = used & handled_fs;
    // Every connect and bind is made on the program's behalf, if anything is: then the program
    // itself needs no port.
    let no_ports = || (decides && abi >= ABI::V4).then(Vec::new);
    Envelope {
        handled_fs,
        rules: plan.envelope(used),
        tcp_bind: no_ports(),
        tcp_connect: no_ports(),
        scope_abstract_unix: abi >= ABI::V6,
        scope_signal: abi >= ABI::V6,
    }
}
