//! As whom programs run, and where.

use crate::performer::{Performer, Way};
use anyhow::{Context as _, bail};
use std::{
    fs::Permissions,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};
use tempfile::TempDir;

/// Set once this process has devices of its own.
const OWN_DEVICES: &str = "DEWAR_RANDOM_OWN_DEVICES";

/// Gives the shell a `/dev` of its own, and becomes the command that follows. Its files belong to
/// nobody, so that not even root's programs, which have no capabilities, can change them; that
/// owner looks the same in every user namespace.
const FURNISH_DEVICES: &str = r#"set -e
new=$(mktemp -d)
mount -t tmpfs -o mode=755 devices "$new"
while read -r name major minor; do
    mknod -m 666 "$new/$name" c "$major" "$minor"
done <<END
null 1 3
zero 1 5
full 1 7
random 1 8
urandom 1 9
tty 5 0
ptmx 5 2
END
ln -s /proc/self/fd "$new/fd"
mkdir "$new/pts" "$new/shm"
chown -h 65534:65534 "$new" "$new"/*
mount --bind /dev/pts "$new/pts"
mount -t tmpfs -o mode=1777 memory "$new/shm"
mount --move "$new" /dev
rmdir "$new"
exec "$@"
"#;

/// Runs this program anew where `/dev` is its own: random programs of root would change the
/// machine's. Returns once that is done.
pub(crate) fn enter_own_devices() -> anyhow::Result<()> {
    use std::os::unix::process::CommandExt as _;
    if std::env::var_os(OWN_DEVICES).is_some() {
        return Ok(());
    }
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "--", "sh", "-c", FURNISH_DEVICES, "sh"]);
    command.arg(std::env::current_exe()?).args(std::env::args_os().skip(1)).env(OWN_DEVICES, "1");
    Err(command.exec()).context("cannot start `unshare`")
}

/// The ordinary user that root runs tests as.
const USER: &str = "dewar-test";

/// As whom, and with what from the kernel, programs run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// Root; natively without capabilities, as under Dewar.
    Root,
    /// Someone without any privilege.
    User,
    /// Someone without any privilege where namespaces are forbidden.
    Bare,
}

impl Who {
    pub(crate) const ALL: [Self; 3] = [Self::Root, Self::User, Self::Bare];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::User => "user",
            Self::Bare => "bare",
        }
    }
}

/// What all trials share.
pub(crate) struct Stage {
    directory: TempDir,
    ids: (u32, u32),
}

impl Stage {
    pub(crate) fn new() -> anyhow::Result<Self> {
        if !rustix::process::geteuid().is_root() {
            bail!("only root can run them as root and as an ordinary user");
        }
        let mut builder = tempfile::Builder::new();
        builder.prefix("dewar-random-").permissions(Permissions::from_mode(0o755));
        let directory =
            builder.tempdir_in("/home").context("cannot create a directory in /home")?;
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/random/performer.c");
        let mut cc = Command::new("cc");
        cc.args(["-O1", "-Wall", "-Wextra", "-Werror", "-pthread", "-o"]);
        let built = cc.arg(directory.path().join("performer")).arg(source).status();
        if !built.context("cannot start `cc`")?.success() {
            bail!("`performer.c` does not compile");
        }
        let stage = Self { directory, ids: ordinary_user()? };
        std::fs::copy(dewar()?, stage.dewar()).context("cannot copy `dewar`")?;
        Ok(stage)
    }

    fn dewar(&self) -> PathBuf {
        self.directory.path().join("dewar")
    }

    /// Performs as `who`, in a directory of that user.
    pub(crate) fn performer(&self, who: Who, way: Way) -> Performer {
        let work = self.directory.path().join(format!("work-{}-{}", who.name(), way.name()));
        std::fs::create_dir_all(&work).expect("create a directory");
        let ids = (who != Who::Root).then_some(self.ids);
        if let Some((uid, gid)) = ids {
            std::os::unix::fs::chown(&work, Some(uid), Some(gid)).expect("give a directory away");
        }
        Performer {
            program: self.directory.path().join("performer"),
            dewar: self.dewar(),
            work,
            who,
            ids,
        }
    }
}

/// `DEWAR_BIN`, or the workspace's own.
fn dewar() -> anyhow::Result<PathBuf> {
    if let Some(path) = std::env::var_os("DEWAR_BIN") {
        return Ok(path.into());
    }
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().context("no target directory")?;
    let built = target.join(if cfg!(debug_assertions) { "debug/dewar" } else { "release/dewar" });
    if !built.exists() {
        bail!("there is no `{}`: build it, or name one in DEWAR_BIN", built.display());
    }
    Ok(built)
}

/// The IDs of the ordinary user, who is made if there is none.
fn ordinary_user() -> anyhow::Result<(u32, u32)> {
    let find = || -> anyhow::Result<Option<(u32, u32)>> {
        let text = std::fs::read_to_string("/etc/passwd").context("cannot read `/etc/passwd`")?;
        let mut lines = text.lines().map(|line| line.split(':').collect::<Vec<_>>());
        let Some(fields) = lines.find(|fields| fields[0] == USER) else { return Ok(None) };
        let number = |n: usize| fields.get(n).and_then(|field| field.parse().ok());
        Ok(number(2).zip(number(3)))
    };
    if let Some(ids) = find()? {
        return Ok(ids);
    }
    let made =
        Command::new("useradd").args(["--no-create-home", "--shell", "/bin/bash", USER]).status();
    if !made.context("cannot start `useradd`")?.success() {
        bail!("`useradd {USER}` failed");
    }
    find()?.with_context(|| format!("`useradd` made no user `{USER}`"))
}
