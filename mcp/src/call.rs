//! A call of `dewar`: bounded in time and in what is kept of its output, and over when the server,
//! or whoever asked, is.
//!
//! The server calls itself as `dewar-mcp --call SERVER WORD…`: that process has the kernel end it
//! with the server, and becomes `dewar`.

use crate::kept::{self, Kept};
use rustix::process::{Pid, Signal, getppid, kill_process_group, set_parent_process_death_signal};
use std::{
    env,
    fmt::Display,
    future::Future,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{ExitCode, ExitStatus, Stdio},
    time::Duration,
};
use tokio::{
    process::{Child, Command},
    select,
    time::{sleep, timeout},
};

/// The word by which the server calls itself.
pub(crate) const CALL: &str = "--call";
/// How long `dewar` may take to end after it was asked to.
pub(crate) const GRACE: Duration = Duration::from_secs(2);

/// Why a call is over.
#[derive(Debug)]
pub(crate) enum Ending {
    Exited(ExitStatus),
    /// At its limit of time, by a signal.
    Limit(Duration, Signal),
    /// Whoever asked waits no more.
    Cancelled,
}

/// What a call came to.
#[derive(Debug)]
pub(crate) struct Called {
    pub(crate) ending: Ending,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// What `dewar` says to `words`, unless it takes longer than `limit`, or `cancelled` comes before.
pub(crate) async fn call(
    dewar: &Path,
    words: &[String],
    limit: Duration,
    cancelled: impl Future<Output = ()>,
) -> Result<Called, String> {
    let failed = |error: &dyn Display| format!("cannot start `{}`: {error}", dewar.display());
    let mut command = Command::new(env::current_exe().map_err(|error| failed(&error))?);
    command.arg(CALL).arg(std::process::id().to_string()).args(words);
    command.env("NO_COLOR", "1").stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    // What `dewar` starts ends with it.
    command.process_group(0).kill_on_drop(true);
    // The kernel's signal comes when the thread ends that started it: this is the server's only
    // one that starts anything, and its first.
    let mut child = command.spawn().map_err(|error| failed(&error))?;
    let stdout = kept::keep(child.stdout.take());
    let stderr = kept::keep(child.stderr.take());
    let ending = select! {
        status = child.wait() => Ending::Exited(status.map_err(|error| failed(&error))?),
        () = sleep(limit) => Ending::Limit(limit, end(&mut child).await),
        () = cancelled => {
            end(&mut child).await;
            Ending::Cancelled
        }
    };
    let (stdout, stderr) = tokio::join!(Kept::text(stdout, GRACE), Kept::text(stderr, GRACE));
    Ok(Called { ending, stdout, stderr })
}

/// Ends a call; by which signal.
async fn end(child: &mut Child) -> Signal {
    // Its number is its own: it was not waited for yet.
    let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    for signal in [Signal::TERM, Signal::KILL] {
        let _ = group.map(|group| kill_process_group(group, signal));
        if timeout(GRACE, child.wait()).await.is_ok() {
            return signal;
        }
    }
    Signal::KILL
}

/// Becomes `dewar` with the words behind [`CALL`] and the number of the server.
pub(crate) fn become_dewar(dewar: PathBuf) -> ExitCode {
    let mut words = env::args_os().skip(2);
    let server = words.next().and_then(|word| word.to_str()?.parse().ok());
    let bound = set_parent_process_death_signal(Some(Signal::KILL));
    // The server can have ended before.
    if bound.is_err() || server.is_none() || getppid().map(Pid::as_raw_pid) != server {
        eprintln!("dewar-mcp: {CALL} is for the server alone, which is not there (any more)");
        return ExitCode::from(2);
    }
    let error = std::process::Command::new(&dewar).args(words).exec();
    eprintln!("dewar-mcp: cannot start `{}`: {error}", dewar.display());
    ExitCode::FAILURE
}
