//! A call of `dewar`: bounded in time and in what is kept of its output, and over when the server,
//! or whoever asked, is.
//!
//! The server calls itself as `dewar-mcp --call WORD…`: that process starts `dewar` in a process
//! group of its own, and ends the whole group once the server is gone. It sees that by its input,
//! which the server alone holds open.

use crate::kept::{self, Kept};
use rustix::process::{Pid, Signal, getpgrp, getpid, kill_process_group};
use std::{
    env,
    ffi::OsString,
    fmt::Display,
    future::Future,
    io,
    os::unix::process::ExitStatusExt as _,
    path::{Path, PathBuf},
    process::{ExitCode, ExitStatus, Stdio},
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt as _, stdin},
    process::{Child, Command},
    select,
    signal::unix::{SignalKind, signal},
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
    command.arg(CALL).args(words).env("NO_COLOR", "1");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // What `dewar` starts ends with it.
    command.process_group(0);
    let mut child = command.spawn().map_err(|error| failed(&error))?;
    // While this is open, the server is there, and waits.
    let _here = child.stdin.take();
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

/// Has `dewar` do what the words behind [`CALL`] say, and ends as it does; and with all that it has
/// started, once the server is gone.
pub(crate) fn keeper(dewar: PathBuf) -> ExitCode {
    let words: Vec<_> = env::args_os().skip(2).collect();
    if words.is_empty() || getpgrp() != getpid() {
        eprintln!("dewar-mcp: {CALL} is for the server alone");
        return ExitCode::from(2);
    }
    match attend(&dewar, words) {
        Ok(status) => {
            let code = status.code().or(status.signal().map(|signal| 128 + signal));
            ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
        }
        Err(error) => {
            eprintln!("dewar-mcp: cannot start `{}`: {error}", dewar.display());
            ExitCode::FAILURE
        }
    }
}

fn attend(dewar: &Path, words: Vec<OsString>) -> io::Result<ExitStatus> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let attended = runtime.block_on(async {
        // Asked to end with the rest of the group, it waits for what `dewar` has still to say.
        let _ends = signal(SignalKind::terminate())?;
        let mut child = Command::new(dewar).args(words).stdin(Stdio::null()).spawn()?;
        let mut input = stdin();
        select! {
            status = child.wait() => status,
            // Nothing is written there: it has ended.
            _ = input.read_u8() => {
                // This process is of the group, too.
                kill_process_group(getpgrp(), Signal::KILL)?;
                child.wait().await
            }
        }
    });
    // A thread of its own reads the input, and is not waited for.
    runtime.shutdown_background();
    attended
}
