//! As whom, how and where suites run.

use crate::{keeper, suite::Suite};
use anyhow::{Context as _, bail};
use std::{
    fs::Permissions,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};
use tempfile::TempDir;

/// Lines of what a suite says on its standard error that are shown.
const LAST_LINES: usize = 20;

/// As whom a suite runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// Root; natively without capabilities, as under Dewar.
    Root,
    /// Someone without any privilege.
    User,
}

impl Who {
    pub(crate) fn name(self) -> &'static str {
        if self == Self::Root { "root" } else { "user" }
    }
}

/// How a suite runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Native,
    /// Under `open`, everything decided.
    OpenAll,
    /// Under `open`, reading left to the kernel.
    OpenFast,
    /// Under the default profile.
    Workspace,
}

impl Way {
    pub(crate) const DEWAR: [Self; 3] = [Self::OpenAll, Self::OpenFast, Self::Workspace];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Native => "nobody",
            Self::OpenAll => "`open`",
            Self::OpenFast => "`open` in mode `fast`",
            Self::Workspace => "`workspace`",
        }
    }

    fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Native => &[],
            Self::OpenAll => &["run", "-p", "open", "--quiet", "--"],
            Self::OpenFast => &["run", "-p", "open", "--mode", "fast", "--quiet", "--"],
            Self::Workspace => &["run", "--quiet", "--"],
        }
    }
}

/// What all trials share.
pub(crate) struct Stage {
    directory: TempDir,
    ids: (u32, u32),
}

/// What a suite says.
pub(crate) struct Said {
    pub(crate) output: String,
    /// The last lines of its standard error.
    pub(crate) errors: String,
}

impl Stage {
    pub(crate) fn new() -> anyhow::Result<Self> {
        if !rustix::process::geteuid().is_root() {
            bail!("only root can run them as root and as an ordinary user");
        }
        let mut builder = tempfile::Builder::new();
        builder.prefix("dewar-suites-").permissions(Permissions::from_mode(0o755));
        let directory =
            builder.tempdir_in("/home").context("cannot create a directory in /home")?;
        test_support::install(directory.path(), &["dewar"]);
        Ok(Self { directory, ids: test_support::ordinary_user() })
    }

    /// Runs a suite.
    pub(crate) fn run(
        &self,
        suite: &Suite,
        who: Who,
        way: Way,
        is_whole: bool,
    ) -> anyhow::Result<Said> {
        let home = self.directory.path().join(format!("{}-{}", suite.name, who.name()));
        let work = home.join("work");
        if !home.exists() {
            self.furnish(&home, who)?;
        }
        // What was made beforehand stays.
        let keep = if suite.before.is_empty() { "" } else { "! -name '*.test'" };
        let clear = format!("find . -mindepth 1 {keep} -delete; ");
        self.script(&home, who, Way::Native, &clear, "")?;
        if way == Way::Native {
            self.script(&home, who, Way::Native, suite.before, "")?;
        }
        if let Some(package) = suite.source {
            self.copy_source(package, &work, who)?;
        }
        let part = if is_whole { "all" } else { "quick" };
        let said = self.script(&home, who, way, suite.script, part)?;
        if said.output.lines().all(|line| !line.contains('\t')) {
            bail!(
                "{} said nothing in {}; is {} installed?\n{}",
                suite.name,
                work.display(),
                suite.packages,
                said.errors
            );
        }
        Ok(said)
    }

    /// Fills `work` with what was built of a package's source, with its times, as `who`'s.
    fn copy_source(&self, package: &str, work: &Path, who: Who) -> anyhow::Result<()> {
        let places = std::env::var_os("DEWAR_SUITE_SOURCES").map(PathBuf::from);
        let cache = || {
            let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
            let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or(home);
            cache.map(|cache| cache.join("dewar/suites"))
        };
        let source = places.or_else(cache).context("no home")?.join(package);
        let run = |words: &mut Command| -> anyhow::Result<()> {
            let done = words.status().with_context(|| format!("cannot start {words:?}"))?;
            if done.success() {
                Ok(())
            } else {
                bail!("{words:?} failed; `scripts/suite-sources` builds it")
            }
        };
        run(Command::new("cp").arg("-a").arg(source.join(".")).arg(work))?;
        // Archives name owners of their own, whose files root cannot change without capabilities.
        let (user, group) = if who == Who::User { self.ids } else { (0, 0) };
        run(Command::new("chown").args(["-hR", &format!("{user}:{group}")]).arg(work))?;
        Ok(())
    }

    fn furnish(&self, home: &Path, who: Who) -> anyhow::Result<()> {
        for directory in [home.to_owned(), home.join("work"), home.join("state")] {
            std::fs::create_dir(&directory)?;
            if who == Who::User {
                std::os::unix::fs::chown(&directory, Some(self.ids.0), Some(self.ids.1))?;
            }
        }
        Ok(())
    }

    fn script(
        &self,
        home: &Path,
        who: Who,
        way: Way,
        script: &str,
        argument: &str,
    ) -> anyhow::Result<Said> {
        let ids = if who == Who::User { self.ids } else { (0, 0) };
        let mut command = keeper::command(ids)?;
        // Under Dewar, a run has none by itself.
        if who == Who::Root && way == Way::Native {
            command.args(["setpriv", "--bounding-set=-all", "--inh-caps=-all"]);
        }
        if way != Way::Native {
            command.arg(self.directory.path().join("dewar"));
        }
        command.args(way.arguments()).args(["bash", "-c", script, "suite", argument]);
        command.current_dir(home.join("work"));
        command.env("PATH", "/usr/local/go/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin");
        command.env("HOME", home).env("XDG_STATE_HOME", home.join("state")).env("LANG", "C.UTF-8");
        command.env("XDG_RUNTIME_DIR", home.join("no-runtime-directory"));
        command.stdin(Stdio::null());
        let output = command.output().context("cannot start a suite")?;
        let errors = String::from_utf8_lossy(&output.stderr);
        let lines: Vec<&str> = errors.lines().collect();
        Ok(Said {
            output: String::from_utf8_lossy(&output.stdout).into_owned(),
            errors: lines[lines.len().saturating_sub(LAST_LINES)..].join("\n"),
        })
    }
}
