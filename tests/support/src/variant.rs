//! As whom, and with what from the kernel, tests run.

use std::{ffi::OsString, fs, path::Path, process::Command, sync::OnceLock};

/// One of the ways in which a test runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// Root, with namespaces.
    Root,
    /// Someone without any privilege.
    User,
    /// Someone without any privilege who does without namespaces.
    Bare,
    /// Someone whom the kernel refuses user namespaces.
    Barred,
    /// Root in a container, under what Docker refuses by default.
    DockerRoot,
    /// Someone without any privilege there.
    DockerUser,
    /// The same where the container may trace (`--cap-add SYS_PTRACE`).
    DockerTraced,
    /// Root in a sandbox of bubblewrap's.
    NestedRoot,
    /// Someone without any privilege there.
    NestedUser,
}

/// The capabilities of a container of Docker's.
const OF_DOCKER: &str = "-all,+chown,+dac_override,+fsetid,+fowner,+mknod,+net_raw,+setgid,\
                         +setuid,+setfcap,+setpcap,+net_bind_service,+sys_chroot,+kill,+audit_write";

impl Variant {
    /// Those in which every test runs.
    pub const ALL: [Self; 3] = [Self::Root, Self::User, Self::Bare];
    /// Those around Dewar itself, in which essential programs run.
    pub const SURROUNDED: [Self; 6] = [
        Self::Barred,
        Self::DockerRoot,
        Self::DockerUser,
        Self::DockerTraced,
        Self::NestedRoot,
        Self::NestedUser,
    ];

    /// What it is called in the names of tests.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::User => "user",
            Self::Bare => "bare",
            Self::Barred => "barred",
            Self::DockerRoot => "docker-root",
            Self::DockerUser => "docker-user",
            Self::DockerTraced => "docker-traced",
            Self::NestedRoot => "nested-root",
            Self::NestedUser => "nested-user",
        }
    }

    /// Whether the test runs as root.
    #[must_use]
    pub fn is_root(self) -> bool {
        matches!(self, Self::Root | Self::DockerRoot | Self::NestedRoot)
    }

    /// Whether the sandbox has namespaces of its own.
    #[must_use]
    pub fn has_namespaces(self) -> bool {
        matches!(self, Self::Root | Self::User | Self::NestedRoot | Self::NestedUser)
    }

    /// Whether the kernel hands out descriptors of other processes (pidfd_getfd(2)).
    #[must_use]
    pub fn has_descriptors(self) -> bool {
        !matches!(self, Self::DockerRoot | Self::DockerUser)
    }

    /// Whether Dewar is told to do without them.
    #[must_use]
    pub fn is_told_so(self) -> bool {
        self == Self::Bare
    }

    /// The words that put a command into these surroundings; `launcher` is `surrounded.c`.
    #[must_use]
    pub fn around(self, launcher: &Path) -> Vec<OsString> {
        const NESTED: &str =
            "bwrap --dev-bind / / --proc /proc --unshare-pid --unshare-ipc --die-with-parent --";
        let filter = |name: &str| [launcher.into(), name.into()];
        match self {
            Self::Root | Self::User | Self::Bare => Vec::new(),
            Self::Barred => filter("barred").into(),
            Self::DockerUser => filter("docker").into(),
            Self::DockerTraced => filter("docker-traced").into(),
            Self::DockerRoot => {
                let words = ["setpriv", "--bounding-set", OF_DOCKER, "--inh-caps", "-all", "--"];
                words.into_iter().map(OsString::from).chain(filter("docker")).collect()
            }
            Self::NestedRoot | Self::NestedUser => NESTED.split(' ').map(OsString::from).collect(),
        }
    }
}

/// The user that tests run as when root runs them.
const USER: &str = "dewar-test";

/// User and group of the ordinary user that root runs tests as; made if there is none.
///
/// # Panics
///
/// There is none, and `useradd` makes none.
#[must_use]
pub fn ordinary_user() -> (u32, u32) {
    static IDS: OnceLock<(u32, u32)> = OnceLock::new();
    *IDS.get_or_init(|| {
        known_user().unwrap_or_else(|| {
            let mut useradd = Command::new("useradd");
            let made = useradd.args(["--no-create-home", "--shell", "/bin/bash", USER]).status();
            let made = made.unwrap_or_else(|error| panic!("cannot start `useradd`: {error}"));
            assert!(made.success(), "`useradd {USER}` failed");
            known_user().unwrap_or_else(|| panic!("`useradd` made no user `{USER}`"))
        })
    })
}

fn known_user() -> Option<(u32, u32)> {
    let text = fs::read_to_string("/etc/passwd")
        .unwrap_or_else(|error| panic!("cannot read `/etc/passwd`: {error}"));
    let line = text.lines().find(|line| line.split(':').next() == Some(USER))?;
    let mut ids = line.split(':').skip(2).map_while(|id| id.parse().ok());
    Some((ids.next()?, ids.next()?))
}
