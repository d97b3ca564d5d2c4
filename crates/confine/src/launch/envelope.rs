//! The envelope: what Landlock lets the sandbox do at most, whatever the monitor decides.

use std::{
    os::fd::{BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
};

use landlock::{
    ABI, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, NetPort, PathBeneath, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, Scope,
};
use rustix::{
    fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat2},
    io::Errno,
};

/// The upper bound of everything that the sandbox could ever be allowed.
///
/// It is applied exactly: if the kernel does not know one of the rights, the launch fails. Which
/// rights the kernel knows, [`Layers`](crate::layers::Layers) says beforehand.
#[derive(Debug, Clone, Default)]
pub struct Envelope {
    /// The file rights that need a grant; all others stay as they are.
    pub handled_fs: BitFlags<AccessFs>,
    /// What is granted below each path, as the path reads inside the view. A path that does not
    /// exist grants nothing; on a file, rights that only directories have are left out.
    pub rules: Vec<(PathBuf, BitFlags<AccessFs>)>,
    /// The TCP ports that may be bound; `None` leaves binding alone.
    pub tcp_bind: Option<Vec<u16>>,
    /// The TCP ports that may be connected to; `None` leaves connecting alone.
    pub tcp_connect: Option<Vec<u16>>,
    /// Keeps the sandbox from abstract Unix sockets outside of it.
    pub scope_abstract_unix: bool,
    /// Keeps the sandbox from signalling processes outside of it.
    pub scope_signal: bool,
}

/// Why the envelope was not put on. The command does not start.
#[derive(Debug, thiserror::Error)]
pub(super) enum EnvelopeError {
    /// Landlock refused.
    #[error(transparent)]
    Ruleset(#[from] landlock::RulesetError),
    /// A granted path exists but cannot be opened.
    #[error("cannot open `{}`: {source}", path.display())]
    Path {
        /// The path.
        path: PathBuf,
        /// Why not.
        source: Errno,
    },
}

impl Envelope {
    /// Confines the calling thread and all that it creates. It must have `no_new_privs`.
    /// `queues` is where the run's own message queues lie.
    pub(super) fn apply(&self, queues: Option<BorrowedFd<'_>>) -> Result<(), EnvelopeError> {
        let Some(created) = self.create()? else { return Ok(()) };
        let mut created = self.grant_files(created)?;
        let rights = (AccessFs::ReadFile | AccessFs::WriteFile) & self.handled_fs;
        if let Some(queues) = queues.filter(|_| !rights.is_empty()) {
            created = created.add_rule(PathBeneath::new(queues, rights))?;
        }
        self.grant_ports(created)?.restrict_self()?;
        Ok(())
    }

    /// An empty ruleset that handles what is asked; `None` if nothing is.
    fn create(&self) -> Result<Option<RulesetCreated>, EnvelopeError> {
        let (net, scopes) = (self.handled_net(), self.scopes());
        if self.handled_fs.is_empty() && net.is_empty() && scopes.is_empty() {
            return Ok(None);
        }
        let mut ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
        if !self.handled_fs.is_empty() {
            ruleset = ruleset.handle_access(self.handled_fs)?;
        }
        if !net.is_empty() {
            ruleset = ruleset.handle_access(net)?;
        }
        if !scopes.is_empty() {
            ruleset = ruleset.scope(scopes)?;
        }
        Ok(Some(ruleset.create()?))
    }

    fn grant_files(&self, mut created: RulesetCreated) -> Result<RulesetCreated, EnvelopeError> {
        for (path, rights) in &self.rules {
            let fd = match open_directly(path) {
                Ok(fd) => fd,
                Err(errno) if is_absent(errno) => continue,
                Err(source) => return Err(EnvelopeError::Path { path: path.clone(), source }),
            };
            let rights = *rights & self.handled_fs;
            let rights =
                if is_directory(&fd) { rights } else { rights & AccessFs::from_file(ABI::V9) };
            if !rights.is_empty() {
                created = created.add_rule(PathBeneath::new(fd, rights))?;
            }
        }
        Ok(created)
    }

    fn grant_ports(&self, mut created: RulesetCreated) -> Result<RulesetCreated, EnvelopeError> {
        for &port in self.tcp_bind.iter().flatten() {
            created = created.add_rule(NetPort::new(port, AccessNet::BindTcp))?;
        }
        for &port in self.tcp_connect.iter().flatten() {
            created = created.add_rule(NetPort::new(port, AccessNet::ConnectTcp))?;
        }
        Ok(created)
    }

    fn handled_net(&self) -> BitFlags<AccessNet> {
        let mut handled = BitFlags::empty();
        handled.set(AccessNet::BindTcp, self.tcp_bind.is_some());
        handled.set(AccessNet::ConnectTcp, self.tcp_connect.is_some());
        handled
    }

    fn scopes(&self) -> BitFlags<Scope> {
        let mut scopes = BitFlags::empty();
        scopes.set(Scope::AbstractUnixSocket, self.scope_abstract_unix);
        scopes.set(Scope::Signal, self.scope_signal);
        scopes
    }
}

/// The file at `path` itself. Labels go by the path that the kernel names a file by, in which no
/// link is left; so a grant to a link is none to what it points to.
fn open_directly(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)
}

/// Whether the path grants nothing: it does not exist or cannot, the sandbox cannot reach it
/// either, or it is a link.
fn is_absent(errno: Errno) -> bool {
    matches!(errno, Errno::NOENT | Errno::NOTDIR | Errno::ACCESS | Errno::LOOP | Errno::NAMETOOLONG)
}

fn is_directory(fd: &OwnedFd) -> bool {
    fstat(fd).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
}
