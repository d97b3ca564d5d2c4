//! `dewar daemon`: the security server and the journal of many runs, in one process.

use ::daemon::{Administration, Admits, Daemon, DaemonDirs, Refusal, RunStatus, Settings};
use anyhow::{Context as _, bail};
use cli::{
    args::DaemonArgs,
    failure::Usage,
    output::{self, tell as say},
};
use flask::visible;
use rustix::process::{PidfdFlags, PidfdGetfdFlags, geteuid, getpid, pidfd_getfd, pidfd_open};
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    iterator::Signals,
};
use std::{fmt::Write as _, os::fd::OwnedFd, process::exit, thread, time::Duration};

/// So long is a conversation waited for at the end: what a client has sent can keep whoever closes
/// it (`SO_LINGER` of socket(7)). Records are taken for five seconds of it.
const ENDING: Duration = Duration::from_secs(10);

/// Carries out `dewar daemon`.
pub(crate) fn run(args: &DaemonArgs) -> anyhow::Result<()> {
    let place = place(args.system)?;
    if args.runs {
        let runs = Administration::connect(&place)?.runs()?;
        let text = if args.json { output::json(&runs)? } else { tell(&runs)? };
        return Ok(output::print(text.as_bytes())?);
    }
    if args.system && !geteuid().is_root() {
        bail!(Usage("only root can serve every user; without --system, it serves you".into()));
    }
    let daemon = Daemon::start(&place, settings(args)?, activated()?)?;
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP])?;
    let handle = signals.handle();
    say!("dewar daemon: process {} serves at {}", std::process::id(), place.socket().display());
    thread::scope(|scope| {
        scope.spawn(|| {
            for signal in signals.forever() {
                match signal {
                    SIGHUP => say!(
                        "dewar daemon: nothing to reload: policies come with the runs, and are changed by `dewar policy set`"
                    ),
                    _ => {
                        thread::spawn(end_in_time);
                        daemon.stop();
                    }
                }
            }
        });
        let served = daemon.serve();
        handle.close();
        served.context("the daemon cannot serve any more")
    })
}

/// Ends this process, if it has not ended by then.
fn end_in_time() {
    thread::sleep(ENDING);
    say!("dewar daemon: a conversation does not end; the daemon ends without");
    exit(0);
}

/// The place of this user's daemon, or of that for all.
pub(crate) fn place(system: bool) -> anyhow::Result<DaemonDirs> {
    DaemonDirs::of(system).context("neither XDG_STATE_HOME nor HOME is set")
}

fn settings(args: &DaemonArgs) -> anyhow::Result<Settings> {
    let seconds = |value: f64| {
        let message = || Usage(format!("`{value}` is no number of seconds"));
        Duration::try_from_secs_f64(value).map_err(|_| message())
    };
    let patience = server_port::Patience {
        report: seconds(args.report_after)?,
        freeze: seconds(args.freeze_after)?,
        kill: seconds(args.kill_after)?,
    };
    if patience.report > patience.freeze || patience.freeze > patience.kill {
        bail!(Usage(
            "a run is reported first, then frozen, then killed: order the times so".into()
        ));
    }
    let admits: Admits = |settled, proposed, kills| {
        confine::admits(settled, proposed, kills).map_err(|why| Refusal(why.to_string()))
    };
    Ok(Settings { patience, journal_bytes: args.journal_size << 20, admits })
}

/// The socket that a service manager has bound for this process (sd_listen_fds(3)).
fn activated() -> anyhow::Result<Option<OwnedFd>> {
    let number = |name| std::env::var(name).ok()?.parse::<u32>().ok();
    if number("LISTEN_PID") != Some(std::process::id()) {
        return Ok(None);
    }
    if number("LISTEN_FDS") != Some(1) {
        bail!("the service manager must pass exactly one socket");
    }
    // A copy of descriptor 3, which nobody else here owns: taking it over itself would need unsafe
    // code.
    let this = pidfd_open(getpid(), PidfdFlags::empty())?;
    let socket = pidfd_getfd(&this, 3, PidfdGetfdFlags::empty());
    Ok(Some(socket.context("cannot take the socket that the service manager has bound")?))
}

fn tell(runs: &[RunStatus]) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    for run in runs {
        let RunStatus { id, pid, seqno, .. } = run;
        let (profile, command) = (visible(&run.profile), visible(&run.command));
        write!(text, "{id}  process {pid}  {profile}  policy state {seqno}")?;
        for (name, on) in &run.booleans {
            write!(text, "  {name}={}", if *on { "on" } else { "off" })?;
        }
        if run.more_booleans > 0 {
            write!(text, "  and {} more booleans", run.more_booleans)?;
        }
        writeln!(text, "  {command}")?;
    }
    Ok(text)
}
