//! As whom, and with what from the kernel, tests run.

use std::{fs, process::Command, sync::OnceLock};

/// One of the ways in which a test runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// Root, with namespaces.
    Root,
    /// Someone without any privilege.
    User,
    /// Someone without any privilege where namespaces are forbidden.
    Bare,
}

impl Variant {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Root, Self::User, Self::Bare];

    /// What it is called in the names of tests.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::User => "user",
            Self::Bare => "bare",
        }
    }

    /// Whether the test runs as root.
    #[must_use]
    pub fn is_root(self) -> bool {
        self == Self::Root
    }

    /// Whether the sandbox has namespaces of its own.
    #[must_use]
    pub fn has_namespaces(self) -> bool {
        self != Self::Bare
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
