//! A call of `dewar`: bounded in time and in what is kept of its output, and over when the server,
//! or whoever asked, is.
//!
//! The server calls itself as `dewar-mcp --call WORD…`: that process starts `dewar`, and with it,
//! or once the server is gone, ends all that descends from it, whatever group or session that is
//! in. It sees the end of the server by its input, which the server alone holds open.

use crate::kept::{self, Kept};
use rustix::process::{
    Pid, Signal, WaitOptions, getpgrp, getpid, kill_process, kill_process_group,
    set_child_subreaper, waitpid,
};
use std::{
    env,
    ffi::OsString,
    fmt::Display,
    fs,
    future::Future,
    io,
    os::unix::process::ExitStatusExt as _,
    path::{Path, PathBuf},
    process::{ExitCode, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncReadExt as _, stdin},
    process::{Child, ChildStdin, Command},
    select,
    signal::unix::{SignalKind, signal},
    time::{sleep, timeout},
};

/// The word by which the server calls itself.
pub(crate) const CALL: &str = "--call";
/// How long `dewar` may take to end after it was asked to.
pub(crate) const GRACE: Duration = Duration::from_secs(2);
/// Between two looks at whether something is left.
const LOOK: Duration = Duration::from_millis(1);

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
    // Asked to end, all of them are.
    command.process_group(0);
    let mut child = command.spawn().map_err(|error| failed(&error))?;
    // While this is open, the server is there, and waits.
    let here = child.stdin.take();
    let stdout = kept::keep(child.stdout.take());
    let stderr = kept::keep(child.stderr.take());
    let ending = select! {
        status = child.wait() => Ending::Exited(status.map_err(|error| failed(&error))?),
        () = sleep(limit) => Ending::Limit(limit, end(&mut child, here).await),
        () = cancelled => {
            end(&mut child, here).await;
            Ending::Cancelled
        }
    };
    let (stdout, stderr) = tokio::join!(Kept::text(stdout, GRACE), Kept::text(stderr, GRACE));
    Ok(Called { ending, stdout, stderr })
}

/// Ends a call; by which signal.
async fn end(child: &mut Child, here: Option<ChildStdin>) -> Signal {
    // Its number is its own: it was not waited for yet.
    let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    let send = |signal| {
        // One that has ended is as good.
        let _ = group.map(|group| kill_process_group(group, signal));
    };
    send(Signal::TERM);
    if timeout(GRACE, child.wait()).await.is_ok() {
        return Signal::TERM;
    }
    // The keeper kills what it has started.
    drop(here);
    if timeout(2 * GRACE, child.wait()).await.is_err() {
        send(Signal::KILL);
        let _ = timeout(GRACE, child.wait()).await;
    }
    Signal::KILL
}

/// Has `dewar` do what the words behind [`CALL`] say, and ends as it does, with all that it has
/// started; also once the server is gone.
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
    // What loses its parent becomes a child of this process, and of nobody outside.
    set_child_subreaper(Some(getpid()))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let attended = runtime.block_on(async {
        // Asked to end with the rest of the group, it waits for what `dewar` has still to say.
        let _ends = signal(SignalKind::terminate())?;
        let mut child = Command::new(dewar).args(words).stdin(Stdio::null()).spawn()?;
        let mut input = stdin();
        select! {
            status = child.wait() => status,
            // Nothing is written there: it has ended.
            _ = input.read_u8() => Ok(ExitStatus::from_raw(Signal::KILL.as_raw())),
        }
    });
    end_all();
    // A thread of its own reads the input, and is not waited for.
    runtime.shutdown_background();
    attended
}

/// Kills all that descends from this process, as far as it may.
fn end_all() {
    let until = Instant::now() + GRACE;
    // Children alone: nobody else gets the number of one that this process has not waited for. What
    // these leave behind are children at the next look.
    loop {
        let children = children();
        if children.is_empty() || Instant::now() > until {
            return;
        }
        for child in children {
            let _ = kill_process(child, Signal::KILL);
            let _ = waitpid(Some(child), WaitOptions::NOHANG);
        }
        thread::sleep(LOOK);
    }
}

/// The children of this process, by their parents in `/proc`.
fn children() -> Vec<Pid> {
    let own = getpid().as_raw_pid().to_string();
    let is_child = |pid: &str| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // Behind the name: the state, and the parent.
        stat.rsplit(')').next().and_then(|rest| rest.split(' ').nth(2)) == Some(&own)
    };
    let names = fs::read_dir("/proc").into_iter().flatten().flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    let pids = names.filter_map(|name| Some((Pid::from_raw(name.parse().ok()?)?, name)));
    pids.filter(|(_, name)| is_child(name)).map(|(pid, _)| pid).collect()
}
