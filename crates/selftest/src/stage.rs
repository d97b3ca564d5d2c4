//! Where a case takes place: a scratch home with a workspace and secrets, and what the attack aims
//! at.
//!
//! Everything lies below one directory that is removed in the end. Victims are processes of our
//! own, and end with it.

use std::{
    fs, io,
    net::UdpSocket,
    os::{fd::OwnedFd, unix::fs::PermissionsExt as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU64, Ordering},
};
use tempfile::TempDir;

/// Where the attack program lies in the workspace.
const PROGRAM: &str = "attack";

/// The scene of one run of one case.
pub(crate) struct Stage {
    home: TempDir,
    pub(crate) told: Vec<(String, String)>,
    pub(crate) variables: Vec<(String, String)>,
    /// Lines that are added to a profile of Dewar.
    pub(crate) rules: String,
    /// Instead of the profile that was asked for: all of it.
    pub(crate) own_profile: Option<String>,
    /// Only Dewar can be asked: what it is asked for.
    pub(crate) only_dewar: Option<&'static str>,
    /// Handed in as these descriptors, and up.
    pub(crate) inherited: Vec<OwnedFd>,
    /// The terminal that the run has.
    pub(crate) terminal: Option<OwnedFd>,
    /// The attack is started with names of hosts of its own, so that the machine's name is safe.
    pub(crate) own_uts: bool,
    /// `resolv.conf` of the run.
    pub(crate) nameserver: Option<PathBuf>,
    pub(crate) victims: Vec<Child>,
    /// Undone in the end, last first.
    pub(crate) undo: Vec<Box<dyn FnOnce()>>,
}

/// A word that nobody can guess.
pub(crate) fn word() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let mut bytes = [0; 12];
    if rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()) != Ok(bytes.len())
    {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        bytes[..8].copy_from_slice(&(time.unwrap_or_default().as_nanos() as u64).to_le_bytes());
        bytes[8..].copy_from_slice(&(count as u32).to_le_bytes());
    }
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Stage {
    /// A fresh scene below `place`, with a workspace that is a Git repository, and the attack
    /// program in it.
    pub(crate) fn new(place: &Path, program: &Path) -> io::Result<Self> {
        let mut builder = tempfile::Builder::new();
        let open = fs::Permissions::from_mode(0o755);
        let home = builder.prefix("dewar-selftest-").permissions(open).tempdir_in(place)?;
        let mut stage = Self {
            home,
            told: Vec::new(),
            variables: Vec::new(),
            rules: String::new(),
            own_profile: None,
            only_dewar: None,
            inherited: Vec::new(),
            terminal: None,
            own_uts: false,
            nameserver: None,
            victims: Vec::new(),
            undo: Vec::new(),
        };
        stage.file("work/.git/HEAD", "ref: refs/heads/main\n")?;
        stage.file("work/.git/config", "[core]\n\trepositoryformatversion = 0\n")?;
        for name in ["hooks", "objects", "refs/heads", "worktrees/other"] {
            stage.directory(&format!("work/.git/{name}"))?;
        }
        stage.file("work/.git/worktrees/other/commondir", "../..\n")?;
        stage.file("work/.git/worktrees/other/gitdir", "/nonexistent/.git\n")?;
        stage.file("work/.git/worktrees/other/HEAD", "ref: refs/heads/main\n")?;
        stage.directory("run/user")?;
        fs::copy(program, stage.program())?;
        let home = stage.home().display().to_string();
        stage.tell("home", home);
        Ok(stage)
    }

    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.home().join("work")
    }

    pub(crate) fn program(&self) -> PathBuf {
        self.workspace().join(PROGRAM)
    }

    /// Makes a directory below the home, and those above it.
    pub(crate) fn directory(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.home().join(name);
        fs::create_dir_all(&path)?;
        Ok(path)
    }

    /// Makes a file below the home.
    pub(crate) fn file(&self, name: &str, content: &str) -> io::Result<PathBuf> {
        let path = self.home().join(name);
        fs::create_dir_all(path.parent().unwrap_or(self.home()))?;
        fs::write(&path, content)?;
        Ok(path)
    }

    /// A key of the user's, with the word in it that proves it was read. The attack is told where
    /// it lies.
    pub(crate) fn secret(&mut self) -> io::Result<String> {
        let word = word();
        let path = self.file(".ssh/id_ed25519", &format!("-----BEGIN KEY-----\n{word}\n"))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
        self.tell("secret", path.display());
        Ok(word)
    }

    /// Tells the attack something.
    #[expect(clippy::needless_pass_by_value, reason = "numbers and names are told as they are")]
    pub(crate) fn tell(&mut self, key: &str, value: impl ToString) {
        self.told.push((key.to_owned(), value.to_string()));
    }

    /// A word that the attack is to leave somewhere.
    pub(crate) fn mark(&mut self) -> String {
        let mark = word();
        self.tell("mark", &mark);
        mark
    }

    /// A receiver of datagrams of this machine, whose port the attack is told.
    pub(crate) fn receiver(&mut self, address: &str) -> io::Result<UdpSocket> {
        let receiver = UdpSocket::bind(address)?;
        receiver.set_nonblocking(true)?;
        self.tell("port", receiver.local_addr()?.port());
        Ok(receiver)
    }

    /// A process outside that the attack is told the number of. `told` goes to its arguments.
    pub(crate) fn victim(&mut self, mut command: Command) -> io::Result<i32> {
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let child = child.spawn()?;
        let pid = child.id().cast_signed();
        self.victims.push(child);
        self.tell("pid", pid);
        Ok(pid)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        for mut victim in self.victims.drain(..) {
            let _ = victim.kill();
            let _ = victim.wait();
        }
        while let Some(undo) = self.undo.pop() {
            undo();
        }
    }
}
