//! From the command line and the profile to what the monitor runs.

use super::RunRequest;
use anyhow::{Context as _, bail};
use monitor::launch::{Inherited, Limits, Namespaces};
use monitor::{ABI, Job, Mode};
use profile::{Compiled, Source, Variables};
use std::{
    ffi::OsString,
    fs::File,
    io::Write,
    net::{IpAddr, ToSocketAddrs},
    path::{Path, PathBuf},
};

/// The name of the compiled policy in the security server's messages.
pub(super) const POLICY_NAME: &str = "policy";

/// A profile, made for this run.
pub(crate) struct Profile {
    pub(super) compiled: Compiled,
    pub(super) namespaces: Namespaces,
    pub(super) landlock: Option<ABI>,
    /// The run's temporary directory where the view gives it none; removed with this value.
    _tmp: Option<tempfile::TempDir>,
}

/// Loads the profile that the command line names.
pub(super) fn profile(request: &RunRequest) -> anyhow::Result<Profile> {
    let namespaces = Namespaces::all(true);
    let private = namespaces.mount;
    let tmp = if private { None } else { Some(tempfile::Builder::new().prefix("dewar-").tempdir()?) };
    let variables = Variables {
        workspace: canonical(&request.workspace, "workspace")?,
        home: canonical(&home()?, "home directory")?,
        tmp: tmp.as_ref().map_or("/tmp".into(), |tmp| tmp.path().to_owned()),
        user: std::env::var("USER").unwrap_or_default(),
        nameservers: nameservers(),
    };
    let compiled = profile::load(&Source::from_argument(&request.profile), &variables, &mut resolve)?;
    let offline = compiled.domains.iter().all(profile::Domain::is_offline);
    let namespaces = Namespaces { net: offline && namespaces.net, ..namespaces };
    Ok(Profile { compiled, namespaces, landlock: Some(ABI::V6), _tmp: tmp })
}

fn canonical(path: &Path, what: &str) -> anyhow::Result<PathBuf> {
    path.canonicalize().with_context(|| format!("cannot use `{}` as the {what}", path.display()))
}

fn home() -> anyhow::Result<PathBuf> {
    match std::env::home_dir() {
        Some(home) if home.is_absolute() => Ok(home),
        _ => bail!("HOME is not set to a directory; secrets in it could not be told from other files"),
    }
}

/// The servers that host names are asked of.
fn nameservers() -> Vec<IpAddr> {
    let text = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    let servers = text.lines().filter_map(|line| line.strip_prefix("nameserver"));
    servers.filter_map(|server| server.trim().parse().ok()).collect()
}

fn resolve(name: &str) -> std::io::Result<Vec<IpAddr>> {
    Ok((name, 0).to_socket_addrs()?.map(|address| address.ip()).collect())
}

/// What the monitor is to run.
pub(super) fn job(
    request: &RunRequest,
    profile: &Profile,
    inherited: Inherited,
) -> anyhow::Result<Job> {
    let compiled = &profile.compiled;
    let mode = request.mode.unwrap_or(match compiled.mode {
        profile::Mode::All => Mode::All,
        profile::Mode::Fast => Mode::Fast,
    });
    let environment: Vec<(OsString, OsString)> =
        compiled.environment.apply(std::env::vars_os()).into_iter().collect();
    Ok(Job {
        command: request.command.clone(),
        environment,
        cwd: std::env::current_dir().context("cannot tell the working directory")?,
        inherited,
        mode,
        limits: limits(compiled),
        namespaces: profile.namespaces,
        landlock: profile.landlock,
        private_tmp: profile.namespaces.mount,
        hosts: hosts(compiled, profile.namespaces),
        enforce: request.enforce,
        audit: request.audit.as_deref().map(audit).transpose()?,
    })
}

fn limits(compiled: &Compiled) -> Limits {
    let limits = &compiled.limits;
    Limits {
        memory_bytes: limits.memory_bytes,
        processes: limits.processes,
        cpus: limits.cpu_percent.map(|percent| percent as f64 / 100.0),
        time: limits.time,
        open_files: limits.files,
        file_bytes: limits.file_size_bytes,
        ..Limits::default()
    }
}

/// `/etc/hosts` with the hosts of the profile, so that they are found without asking a name server.
fn hosts(compiled: &Compiled, namespaces: Namespaces) -> Option<String> {
    let named = compiled.hosts.iter().filter_map(|host| match &host.host {
        profile::Host::Name(name) => Some((name, &host.networks)),
        _ => None,
    });
    let lines: String = named
        .flat_map(|(name, networks)| networks.iter().map(move |(ip, _)| format!("{ip} {name}\n")))
        .collect();
    if lines.is_empty() || !namespaces.mount {
        return None;
    }
    Some(std::fs::read_to_string("/etc/hosts").unwrap_or_default() + "\n" + &lines)
}

fn audit(path: &Path) -> anyhow::Result<Box<dyn Write + Send>> {
    if path == Path::new("-") {
        return Ok(Box::new(std::io::stderr()));
    }
    let file = File::options().create(true).append(true).open(path);
    Ok(Box::new(file.with_context(|| format!("cannot write the audit trail to `{}`", path.display()))?))
}
