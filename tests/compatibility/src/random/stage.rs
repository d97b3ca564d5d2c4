//! As whom programs run, and where.

use crate::performer::Performer;
use anyhow::{Context as _, bail};
use std::{
    fs::Permissions,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};
use tempfile::TempDir;
use test_support::{Variant, dewar, ordinary_user};

/// Set once this process has devices of its own.
const OWN_DEVICES: &str = "DEWAR_RANDOM_OWN_DEVICES";

/// Who looks the same in every user namespace.
const NOBODY: u32 = 65534;

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
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/random/performer");
        let performer = directory.path().join("performer");
        let mut cc = Command::new("cc");
        cc.args(["-O1", "-Wall", "-Wextra", "-Werror", "-pthread", "-o"]).arg(&performer);
        for source in std::fs::read_dir(sources)? {
            let source = source?.path();
            if source.extension().is_some_and(|it| it == "c") {
                cc.arg(source);
            }
        }
        if !cc.status().context("cannot start `cc`")?.success() {
            bail!("the performer does not compile");
        }
        // Programs find themselves in `/proc/self/exe`.
        std::os::unix::fs::chown(&performer, Some(NOBODY), Some(NOBODY))?;
        let stage = Self { directory, ids: ordinary_user() };
        test_support::copy_program(dewar(), &stage.dewar());
        // Programs come as far up: nobody's, not even root's without capabilities, to change.
        std::os::unix::fs::chown(stage.directory.path(), Some(NOBODY), Some(NOBODY))?;
        Ok(stage)
    }

    fn dewar(&self) -> PathBuf {
        self.directory.path().join("dewar")
    }

    /// Performs as `who`, in a directory of that user, of that name.
    pub(crate) fn performer(&self, who: Variant, name: &str) -> Performer {
        Performer {
            program: self.directory.path().join("performer"),
            dewar: self.dewar(),
            work: self.directory.path().join(format!("work-{}-{name}", who.name())),
            who,
            ids: (who != Variant::Root).then_some(self.ids),
        }
    }
}
