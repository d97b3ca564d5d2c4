//! The classic suite in guests with other kernels and other configurations of them, counted in
//! instructions.
//!
//! QEMU emulates; with `-icount` each instruction is a nanosecond of the guest's clock. So what the
//! suite calls time is the number of instructions, in the program and in the kernel, the same on
//! every machine. What that leaves out: caches, branch prediction, the cost of changing page
//! tables, and whatever a mitigation makes a real processor do within one instruction.

mod initramfs;
mod machine;
mod report;

use crate::{classic, statistics::median_of};
use initramfs::{Archive, FILE, PROGRAM};
use machine::Said;
use serde::{Deserialize, Serialize};
use std::{
    fs, io,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

const INIT: &str = include_str!("init.c");
const FETCH: &str = include_str!("fetch.sh");
/// Where Debian has its policy for SELinux, compiled.
const POLICIES: &str = "/etc/selinux/default/policy";
/// How long a guest may take.
const PATIENCE: Duration = Duration::from_secs(600);

/// What of the suite is run, and how often in one request. What needs a shell or a compiler is left
/// out.
const TESTS: [(&str, u32); 12] = [
    ("dhrystone", 5000),
    ("hanoi", 500),
    ("syscall", 1000),
    ("pipe", 1000),
    ("context", 300),
    ("spawn", 20),
    ("execl", 10),
    ("copy256", 1000),
    ("copy1024", 1000),
    ("copy4096", 1000),
    ("files", 200),
    ("arithmetic", 5000),
];

/// A configuration of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Setup {
    /// What tables call it.
    pub name: &'static str,
    /// What the kernel is told.
    pub words: &'static str,
    /// Whether Debian's policy for SELinux is loaded.
    pub policy: bool,
    /// What it is.
    pub description: &'static str,
}

/// As Debian starts it, then what can be changed without another kernel.
pub const SETUPS: [Setup; 6] = [
    setup("as it is", "", false, "as Debian configures it; AppArmor without profiles"),
    setup("mitigations off", "mitigations=off", false, "no mitigations of processors' faults"),
    setup("no module", "apparmor=0", false, "no security module that decides"),
    setup("no init on alloc", "init_on_alloc=0", false, "memory is not cleared when it is given"),
    setup(
        "SELinux, permissive",
        "security=selinux selinux=1 enforcing=0",
        true,
        "SELinux with Debian's policy, which decides and refuses nothing",
    ),
    setup(
        "SELinux",
        "security=selinux selinux=1 enforcing=1",
        true,
        "SELinux with Debian's policy, enforcing",
    ),
];

const fn setup(
    name: &'static str,
    words: &'static str,
    policy: bool,
    description: &'static str,
) -> Setup {
    Setup { name, words, policy, description }
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GuestError {
    /// A program could not be started.
    #[error("cannot start `{program}`: {source}; on Debian: apt-get install qemu-system-x86 gcc")]
    Start {
        /// Which.
        program: &'static str,
        /// What the system says.
        source: io::Error,
    },
    /// What a guest starts with could not be made.
    #[error("cannot make the guest's file system: {0}")]
    Files(#[from] io::Error),
    /// The suite failed in a guest.
    #[error("in the guest: {0}")]
    Suite(String),
    /// A guest did not come to its end.
    #[error("the guest did not come to its end; it said last: {0}")]
    Ended(String),
    /// Kernels could not be had.
    #[error("cannot fetch kernels: {0}")]
    Fetch(String),
}

/// One kernel in one configuration.
#[derive(Clone, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Guest {
    /// What tables call it.
    pub name: String,
    /// What it is, by what it said itself.
    pub description: String,
    /// Instructions of one operation of each test: least, median, greatest.
    pub instructions: Vec<[f64; 3]>,
    /// Why there is nothing.
    pub failure: Option<String>,
}

/// What all guests took.
#[derive(Clone, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct GuestReport {
    /// The first is what all others are compared with.
    pub guests: Vec<Guest>,
}

/// Kernels of this machine and those that were fetched to `fetched`, by the order of their
/// releases.
#[must_use]
pub fn kernels(fetched: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = [Path::new("/boot"), fetched]
        .iter()
        .filter_map(|place| fs::read_dir(place).ok())
        .flat_map(|entries| entries.flatten().map(|entry| entry.path()))
        .filter(|path| release(path).is_some_and(|it| !it.is_empty()))
        .collect();
    found.sort_by_key(|path| release(path).map(parts));
    found.dedup_by_key(|path| release(path).map(str::to_owned));
    found
}

fn release(kernel: &Path) -> Option<&str> {
    kernel.file_name()?.to_str()?.strip_prefix("vmlinuz-")
}

/// A release by its numbers, so that 6.12 comes after 6.1; of equal numbers the shortest name
/// first.
fn parts(release: &str) -> (Vec<u64>, usize) {
    let numbers = release.split(|c: char| !c.is_ascii_digit()).filter_map(|it| it.parse().ok());
    (numbers.take(4).collect(), release.len())
}

/// Fetches kernels of several releases from Debian.
///
/// # Errors
///
/// [`GuestError::Fetch`], also if this is not Debian.
pub fn fetch(into: &Path) -> Result<(), GuestError> {
    let run = Command::new("bash").arg("-c").arg(FETCH).arg("fetch").arg(into).output();
    let output = run.map_err(|error| GuestError::Fetch(error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    Err(GuestError::Fetch(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
}

/// Runs every kernel as it is, and `configured` in every configuration.
///
/// # Errors
///
/// [`GuestError`], if nothing can be run. A guest that fails is a column that says why.
pub fn measure(
    kernels: &[PathBuf],
    configured: usize,
    repeats: usize,
    progress: &mut dyn FnMut(&str),
) -> Result<GuestReport, GuestError> {
    let place = tempfile::tempdir()?;
    let plain = image(place.path(), repeats, None)?;
    let policy = newest_policy();
    let mut report = GuestReport::default();
    for (number, kernel) in kernels.iter().enumerate() {
        let setups = if number == configured { &SETUPS[..] } else { &SETUPS[..1] };
        for setup in setups {
            let release = release(kernel).unwrap_or_default();
            let name = if setup.words.is_empty() {
                release.trim_end_matches("-amd64").to_owned()
            } else {
                setup.name.to_owned()
            };
            progress(&format!("{release}, {}", setup.name));
            let said = match (setup.policy, &policy) {
                (false, _) => machine::boot(kernel, &plain, setup.words, PATIENCE),
                (true, Some(policy)) => {
                    let initrd = image(place.path(), repeats, Some(policy))?;
                    machine::boot(kernel, &initrd, setup.words, PATIENCE)
                }
                (true, None) => Err(GuestError::Ended(format!("no policy in {POLICIES}"))),
            };
            match said {
                Err(error @ GuestError::Start { .. }) => return Err(error),
                said => report.guests.push(Guest::new(name, release, setup, said)),
            }
        }
    }
    Ok(report)
}

/// The newest compiled policy.
fn newest_policy() -> Option<PathBuf> {
    let found = fs::read_dir(POLICIES).ok()?.flatten().map(|entry| entry.path());
    let mut found: Vec<PathBuf> = found.collect();
    found.sort();
    found.pop()
}

/// What a guest starts with: its first process, the suite, what it is asked, and a policy.
fn image(place: &Path, repeats: usize, policy: Option<&Path>) -> io::Result<PathBuf> {
    let words = ["cc", "-O2", "-static"];
    let init = classic::compile_text(&words, INIT, &place.join("init"), &[])?;
    let suite = classic::compile(&words, place)?;
    let round: String = TESTS.iter().map(|(name, times)| format!("{name} {times}\n")).collect();
    let mut archive = Archive::default();
    archive.add("init", PROGRAM, &fs::read(init)?);
    archive.add("suite", PROGRAM, &fs::read(suite)?);
    archive.add("requests", FILE, round.repeat(repeats).as_bytes());
    if let Some(policy) = policy {
        archive.add("policy", FILE, &fs::read(policy)?);
    }
    let path = place.join(if policy.is_some() { "initrd-policy" } else { "initrd" });
    fs::write(&path, archive.finish())?;
    Ok(path)
}

impl Guest {
    fn new(name: String, release: &str, setup: &Setup, said: Result<Said, GuestError>) -> Self {
        let mut description = format!("Linux {release}, {}", setup.description);
        match said {
            Ok(said) => {
                for fact in ["meltdown", "spectre_v2", "modules", "enforcing", "context"] {
                    if let Some(value) = said.facts.get(fact) {
                        description += &format!("; {fact}: {value}");
                    }
                }
                Self { name, description, instructions: counts(&said.answers), failure: None }
            }
            Err(error) => {
                let failure = Some(error.to_string());
                Self { name, description, instructions: Vec::new(), failure }
            }
        }
    }
}

/// Instructions of one operation of each test, over all rounds but the first, in which files are
/// made and code is mapped.
fn counts(answers: &[u64]) -> Vec<[f64; 3]> {
    let answers = answers.get(TESTS.len()..).filter(|rest| !rest.is_empty()).unwrap_or(answers);
    let of = |(place, (_, times)): (usize, &(&str, u32))| {
        let own = answers.iter().skip(place).step_by(TESTS.len());
        let own: Vec<f64> = own.map(|count| *count as f64 / f64::from(*times)).collect();
        let median = median_of(&own).unwrap_or_default();
        let least = own.iter().copied().fold(f64::INFINITY, f64::min);
        [least, median, own.iter().copied().fold(0.0, f64::max)]
    };
    TESTS.iter().enumerate().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_come_in_the_order_of_their_releases() {
        let place = tempfile::tempdir().expect("a directory");
        for name in ["6.12.9-amd64", "6.1.0-9-cloud-amd64", "6.1.0-56-amd64", "6.1.0-9-amd64"] {
            fs::write(place.path().join(format!("vmlinuz-{name}")), "").expect("a file");
        }
        fs::write(place.path().join("System.map-6.1.0-9-amd64"), "").expect("a file");
        let found = kernels(place.path());
        let own: Vec<&str> = found
            .iter()
            .filter(|path| path.starts_with(place.path()))
            .filter_map(|path| release(path))
            .collect();
        assert_eq!(own, ["6.1.0-9-amd64", "6.1.0-9-cloud-amd64", "6.1.0-56-amd64", "6.12.9-amd64"]);
    }

    #[test]
    fn counts_are_of_one_operation_over_all_rounds_but_the_first() {
        let round = |factor: u64| TESTS.iter().map(move |(_, times)| factor * u64::from(*times));
        let answers: Vec<u64> =
            round(99).chain(round(10)).chain(round(30)).chain(round(20)).collect();
        assert_eq!(counts(&answers), vec![[10.0, 20.0, 30.0]; TESTS.len()]);
    }
}
