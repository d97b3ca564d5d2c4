//! The sandbox's cgroup, where the calling user may make one: in the unified hierarchy below a
//! delegated cgroup, or in the old one per controller.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use proc::{Cgroups, Proc};
use rustix::fs::{Access, AtFlags, CWD, Mode, OFlags, access, mkdirat, openat, unlinkat};
use rustix::io::Errno;

use super::limits::{ByCgroup, Limits, Reached};

/// Where cgroup file systems are mounted by convention.
const ROOT: &str = "/sys/fs/cgroup";

/// The length of the period in which processor time is metered, in microseconds.
const PERIOD_US: u64 = 100_000;

/// So many names are tried.
const SAME: u32 = 64;

/// A cgroup (or one per controller, in the old hierarchy) made for one sandbox.
pub(super) struct Cgroup {
    made: Vec<Made>,
    entries: Vec<OwnedFd>,
    by: ByCgroup,
}

/// A directory that has to be removed in the end.
struct Made {
    // Opened before anything is remounted read-only.
    parent: OwnedFd,
    name: String,
}

/// Which files limit what.
struct Setting {
    controller: &'static str,
    /// Names in the unified hierarchy, and in the old one, each with what to write.
    unified: Vec<(&'static str, String)>,
    old: Vec<(&'static str, String)>,
    mark: fn(&mut ByCgroup),
}

impl Cgroup {
    /// Makes a cgroup with `limits`; `None` if there is nothing to limit or no way to.
    pub(super) fn make(limits: &Limits) -> Option<Self> {
        let settings = settings(limits);
        if settings.is_empty() {
            return None;
        }
        let membership = Proc::open().and_then(|proc| proc.cgroups("self")).ok()?;
        let mut cgroup = Self { made: Vec::new(), entries: Vec::new(), by: ByCgroup::default() };
        let unified = unified_parents(&membership);
        let suitable = unified.into_iter().find(|parent| offers(parent, &settings));
        if let Some(parent) = suitable {
            cgroup.add(&parent, &settings, |setting| &setting.unified);
        } else {
            for setting in &settings {
                if let Some(parent) = old_parent(&membership, setting.controller) {
                    cgroup.add(&parent, std::slice::from_ref(setting), |setting| &setting.old);
                }
            }
        }
        (!cgroup.entries.is_empty()).then_some(cgroup)
    }

    /// Where to write "0" to become a member.
    pub(super) fn entries(&self) -> &[OwnedFd] {
        &self.entries
    }

    /// Which limits it enforces.
    pub(super) fn by(&self) -> ByCgroup {
        self.by
    }

    /// How often its limits were reached.
    pub(super) fn reached(&self) -> Reached {
        let count = |file: &str, key: &str| {
            let texts = self.made.iter().filter_map(|made| made.read(file));
            let mut lines =
                texts.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>());
            lines.find_map(|line| line.strip_prefix(key)?.trim().parse().ok()).unwrap_or(0)
        };
        let killed = ["memory.events", "memory.oom_control"].map(|file| count(file, "oom_kill "));
        Reached { memory: killed.into_iter().sum(), processes: count("pids.events", "max ") }
    }

    /// Makes a cgroup below `parent` with `settings`, or nothing.
    fn add(
        &mut self,
        parent: &Path,
        settings: &[Setting],
        files: impl Fn(&Setting) -> &Vec<(&'static str, String)>,
    ) {
        sweep(parent);
        let Ok(made) = Made::new(parent) else { return };
        let set =
            |setting: &Setting| files(setting).iter().all(|(name, value)| made.write(name, value));
        let entry = made.open("cgroup.procs", OFlags::WRONLY);
        if let (true, Ok(entry)) = (settings.iter().all(set), entry) {
            self.entries.push(entry);
            self.made.push(made);
            settings.iter().for_each(|setting| (setting.mark)(&mut self.by));
        } else {
            made.remove();
        }
    }
}

impl Drop for Cgroup {
    /// Removes it; it has no member any more.
    fn drop(&mut self) {
        for made in &self.made {
            made.remove();
        }
    }
}

impl Made {
    fn new(parent: &Path) -> Result<Self, Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let parent = openat(CWD, parent, flags, Mode::empty())?;
        // Who has the same number in another PID namespace may have made one here, too.
        for n in 0..SAME {
            let name = format!("dewar-{}.{n}", std::process::id());
            match mkdirat(&parent, &name, Mode::from_raw_mode(0o755)) {
                Ok(()) => return Ok(Self { parent, name }),
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno),
            }
        }
        Err(Errno::EXIST)
    }

    fn open(&self, file: &str, access: OFlags) -> Result<OwnedFd, Errno> {
        let path = format!("{}/{file}", self.name);
        openat(&self.parent, path, access | OFlags::CLOEXEC, Mode::empty())
    }

    /// What `file` says; `None` if there is none.
    fn read(&self, file: &str) -> Option<String> {
        std::io::read_to_string(File::from(self.open(file, OFlags::RDONLY).ok()?)).ok()
    }

    /// Whether `value` was written to `file`, or `file` is one that may be missing.
    fn write(&self, file: &str, value: &str) -> bool {
        match self.open(file, OFlags::WRONLY) {
            Ok(open) => rustix::io::write(open, value.as_bytes()).is_ok(),
            // A kernel without accounting of swap.
            Err(Errno::NOENT) => file.contains("sw"),
            Err(_) => false,
        }
    }

    /// Removes the directory; its last member may take a moment to be forgotten.
    fn remove(&self) {
        for _ in 0..50 {
            match unlinkat(&self.parent, &self.name, AtFlags::REMOVEDIR) {
                Err(Errno::BUSY) => std::thread::sleep(std::time::Duration::from_millis(2)),
                _ => return,
            }
        }
    }
}

fn settings(limits: &Limits) -> Vec<Setting> {
    let memory = limits.memory_bytes.map(|bytes| Setting {
        controller: "memory",
        unified: vec![("memory.max", bytes.to_string()), ("memory.swap.max", "0".into())],
        old: vec![
            ("memory.limit_in_bytes", bytes.to_string()),
            ("memory.memsw.limit_in_bytes", bytes.to_string()),
        ],
        mark: |by| by.memory = true,
    });
    let processes = limits.processes.map(|count| {
        // Init is one more.
        let file = vec![("pids.max", (count + 1).to_string())];
        Setting {
            controller: "pids",
            unified: file.clone(),
            old: file,
            mark: |by| by.processes = true,
        }
    });
    let cpus = limits.cpus.map(|cpus| {
        let quota = quota_us(cpus);
        Setting {
            controller: "cpu",
            unified: vec![("cpu.max", format!("{quota} {PERIOD_US}"))],
            old: vec![
                ("cpu.cfs_period_us", PERIOD_US.to_string()),
                ("cpu.cfs_quota_us", quota.to_string()),
            ],
            mark: |by| by.cpus = true,
        }
    });
    [memory, processes, cpus].into_iter().flatten().collect()
}

/// Processor time per period; the kernel takes no less than a millisecond.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
fn quota_us(cpus: f64) -> u64 {
    ((cpus * PERIOD_US as f64) as u64).max(1000)
}

/// The cgroups of the unified hierarchy below which one could be made: this process's own, and
/// the one above it, whose other children it would join.
fn unified_parents(membership: &Cgroups) -> Vec<PathBuf> {
    let Some(own) = membership.unified() else { return Vec::new() };
    let roots = [Path::new(ROOT).to_owned(), Path::new(ROOT).join("unified")];
    let root = roots.into_iter().find(|root| root.join("cgroup.controllers").exists());
    let Some(root) = root else { return Vec::new() };
    let own = root.join(own);
    let above = own.parent().filter(|above| above.starts_with(&root)).map(Path::to_owned);
    std::iter::once(own).chain(above).collect()
}

/// Whether children of `parent` have the controllers of `settings`, and may be made and joined.
fn offers(parent: &Path, settings: &[Setting]) -> bool {
    let enabled = std::fs::read_to_string(parent.join("cgroup.subtree_control"));
    let enabled = enabled.unwrap_or_default();
    settings.iter().all(|setting| enabled.split_whitespace().any(|name| name == setting.controller))
        && access(parent, Access::WRITE_OK).is_ok()
        && access(parent.join("cgroup.procs"), Access::WRITE_OK).is_ok()
}

/// This process's own cgroup for `controller` in the old hierarchy, if one can be made below it.
fn old_parent(membership: &Cgroups, controller: &str) -> Option<PathBuf> {
    let (names, own) = membership.of_controller(controller)?;
    let parent = Path::new(ROOT).join(names).join(own);
    access(&parent, Access::WRITE_OK).ok().map(|()| parent)
}

/// Removes what sandboxes left that were killed together with their monitor.
fn sweep(parent: &Path) {
    let Ok(entries) = std::fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let numbers = name.to_str().and_then(|name| name.strip_prefix("dewar-")?.split_once('.'));
        if numbers.is_some_and(|(pid, _)| !Path::new("/proc").join(pid).exists()) {
            // One with members is not removed.
            let _ = std::fs::remove_dir(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_cgroup_is_found_in_either_hierarchy() {
        let text = "12:cpu,cpuacct:/a/b\n4:memory:/m\n1:name=systemd:/s\n0::/user/x\n";
        let membership = Cgroups::new(text.into());
        // Only where such a hierarchy is mounted does anything exist.
        assert!(old_parent(&membership, "pids").is_none());
        for parent in unified_parents(&membership) {
            assert!(parent.ends_with("user/x") || parent.ends_with("user"), "{parent:?}");
        }
        assert!(unified_parents(&Cgroups::new("4:memory:/m\n".into())).is_empty());
    }

    #[test]
    fn whoever_has_the_same_number_elsewhere_shares_no_cgroup() {
        let parent = tempfile::tempdir().unwrap();
        let [one, other] = [(); 2].map(|()| Made::new(parent.path()).unwrap());
        assert_ne!(one.name, other.name);
        one.remove();
        assert!(
            !parent.path().join(&one.name).exists() && parent.path().join(&other.name).exists()
        );
    }

    #[test]
    fn part_of_a_processor_is_a_part_of_the_period() {
        assert_eq!(quota_us(1.5), 150_000);
        assert_eq!(quota_us(0.0), 1000);
    }
}
