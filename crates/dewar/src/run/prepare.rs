//! From the command line and the profile to what the monitor runs.

use super::{
    RunRequest, above, cargo, hosts, place,
    proposing::{self, Proposing},
    scratch::Scratch,
    spelling,
};
use crate::{
    failure::Usage,
    led::Links,
    machine,
    output::tell,
    trust::{self, Store},
    writable_programs,
};
use anyhow::{Context as _, bail};
use cli::{exhausted, output_file};
use confine::launch::{Inherited, Limits, Namespaces};
use confine::layers::{Layers, Probe};
use confine::{ABI, LaunchRequest, Mode};
use monitor::{Job, Trail, visible};
use profile::{Compiled, Documents, Source, Variables};
use std::{ffi::OsString, io::Write, path::Path, sync::Arc};

/// The profile of a run that names none, and whose project has none.
pub(super) const DEFAULT: &str = "workspace";

/// Layers without which what a profile denies could be had: Dewar refuses to start without them.
/// Namespaces are not among them: without them things outside show that they exist, but stay out of
/// reach; nor is what is denied where it is missing, nor `landlock-truncate`: without it no right
/// to write is exact, so that the monitor makes each open that writes or cuts itself
/// (`Plan::exact`).
pub(crate) const REQUIRED: [&str; 5] =
    ["landlock", "landlock-refer", "seccomp-notify", "wait-killable", "process-vm-readv"];

/// A profile, made for this run.
pub(crate) struct Profile {
    pub(super) compiled: Arc<Compiled>,
    pub(super) documents: Documents,
    /// As a person would name it.
    pub(super) argument: String,
    pub(super) variables: Variables,
    pub(super) proposing: Proposing,
    /// That the workspace is a part of a project.
    pub(super) above: Option<String>,
    /// The run's temporary directory where the view gives it none; removed with this value.
    tmp: Option<Scratch>,
}

/// `CAP_DAC_OVERRIDE` and `CAP_FOWNER` of capability(7).
const FILES_OF_OTHERS: u64 = 1 << 1 | 1 << 3;

impl Profile {
    /// The capabilities that root's run keeps: those over files of others, where the workspace
    /// belongs to somebody else, as in containers, and in archives that root has unpacked. See
    /// docs/decisions/root.md.
    fn kept_capabilities(&self) -> u64 {
        use std::os::unix::fs::MetadataExt as _;
        let owner = std::fs::metadata(&self.variables.workspace).map(|workspace| workspace.uid());
        let is_anothers = owner.is_ok_and(|owner| owner != 0);
        if is_anothers && rustix::process::geteuid().is_root() { FILES_OF_OTHERS } else { 0 }
    }
}

/// Loads the profile that the command line names. It is enough for `probe` to have begun.
pub(super) fn profile(request: &RunRequest, probe: &Probe) -> anyhow::Result<Profile> {
    let has_view = probe.mounts(&request.without);
    let tmp = if has_view { None } else { Some(Scratch::make()?) };
    let place = tmp.as_ref().map_or("/tmp".into(), |tmp| tmp.path().to_owned());
    let mut variables = machine::variables(request.workspace.as_deref(), place)?;
    place::insist(request, &variables, has_view)?;
    let trail = request.audit.iter().filter(|file| file.as_path() != Path::new("-"));
    variables.fixed.extend(request.cil.iter().chain(trail).flat_map(|file| realpath::way(file)));
    // Where mounts can be made, so can a network. That it was is checked before the start.
    variables.private_network = has_view && !request.without.iter().any(|layer| layer == "net");
    variables.shares_temporary = !has_view;
    place::warn_of_wide_workspace(&variables);
    let (compiled, documents, argument) = load(request, &mut variables)?;
    let compiled =
        cargo::insist(compiled, &documents, &mut variables, !request.quiet && !request.json)?;
    let links = Links::of(&variables.workspace);
    let compiled = links.guard(compiled, &documents, &mut variables)?;
    spelling::insist(request, &compiled, &variables.workspace)?;
    if request.learning.is_none() {
        writable_programs::warn(&compiled);
        writable_programs::warn_unentered(&compiled, &documents);
    }
    // While it is learned, hosts are named that nobody may ask for.
    if !request.quiet && request.learning.is_none() {
        hosts::tell_missing(&compiled, request.verbose);
    }
    let above = above::notice(request, &compiled, &variables);
    if let Some(above) = above.as_ref().filter(|_| !request.quiet && !request.json) {
        tell!("dewar: {above}");
    }
    if !request.dry_run {
        place::make_directories(&compiled, &variables.workspace)?;
    }
    // Another profile may take its place.
    variables.fixed.extend(documents.ways().map(Path::to_owned));
    let (compiled, proposing) = Proposing::begin(compiled, &documents, &mut variables)?;
    Ok(Profile {
        compiled: Arc::new(compiled),
        documents,
        argument,
        variables,
        proposing,
        above,
        tmp,
    })
}

/// The profile that was named; else that of the project, if it is trusted; else the default.
fn load(
    request: &RunRequest,
    variables: &mut Variables,
) -> anyhow::Result<(Compiled, Documents, String)> {
    let resolver = &mut machine::resolve;
    let store = Store::open()?;
    let project = match &request.profile {
        Some(_) => None,
        None => trust::find(&variables.workspace, Some(&store))?,
    };
    let Some(project) = project else {
        let argument = request.profile.clone().unwrap_or_else(|| DEFAULT.into());
        let source = Source::from_argument(&argument);
        let (mut compiled, documents) = profile::load_with_documents(&source, variables, resolver)?;
        if request.learning.is_some() {
            // Its file is gone when somebody reads about the run.
            compiled.name = "dewar learn".to_owned();
        }
        return Ok((compiled, documents, argument));
    };
    let Some(when) = store.trusts(&project.path, &project.hash)? else {
        let changed = store.knows(&project.path)?;
        bail!(Usage(format!(
            "{} {}; nothing was started.\n  dewar trust                     shows what it grants, and asks\n  \
             dewar run -p {DEFAULT} -- …     runs without it",
            project.shown(),
            match changed {
                true => "was changed since you trusted it",
                false => "is the word of this project, and you have not trusted it",
            }
        )));
    };
    if request.verbose {
        let when = humantime::format_rfc3339_seconds(when).to_string();
        tell!("dewar: profile {}, trusted on {}", project.shown(), &when[..10]);
    }
    // What was hashed is what is used: nothing is read again.
    let shades = project.shades(&variables.workspace);
    variables.fixed.extend(shades);
    let compiled = project.documents.compile(variables, resolver, &[])?;
    Ok((compiled, project.documents, project.path.display().to_string()))
}

/// What this machine will enforce of the profile.
pub(super) struct Protection {
    namespaces: Namespaces,
    landlock: Option<ABI>,
    wait_killable: bool,
    takes_descriptors: bool,
    unshares_fs: bool,
}

/// Waits for the layers to have been tried, and refuses to start without those that the profile
/// needs.
pub(super) fn protection(
    request: &RunRequest,
    profile: &Profile,
    probe: Probe,
) -> anyhow::Result<Protection> {
    let layers = machine::layers(probe.finish(request.verbose), &request.without)?;
    insist(request, &layers)?;
    let namespaces = layers.namespaces(Namespaces::all(true));
    if namespaces.mount == profile.tmp.is_some() {
        bail!("the kernel changed its mind about mount namespaces; nothing was started");
    }
    let offline = profile.compiled.domains.iter().all(profile::Domain::is_offline);
    match profile.compiled.private_loopback {
        Some(true) if !(offline && namespaces.net) => bail!(
            "the profile asks for a loopback of its own, and this machine makes no network namespaces; nothing was started. \
             `--without net` starts without"
        ),
        Some(false) if request.verbose => tell!(
            "dewar: no loopback: the profile asks for one of its own, and there is no network namespace"
        ),
        _ => {}
    }
    let version = Some(layers.landlock_version()).filter(|version| *version > 0);
    let protection = Protection {
        namespaces: Namespaces { net: offline && namespaces.net, ..namespaces },
        landlock: version.map(|version| ABI::from(version.cast_signed())),
        wait_killable: layers.has("wait-killable"),
        takes_descriptors: layers.has("pidfd-getfd"),
        // Whoever has a view has called unshare(2), and shares nothing: the view's `/proc` does not
        // show the monitor's descriptors.
        unshares_fs: namespaces.mount || layers.has("unshare-fs"),
    };
    if !namespaces.mount && !is_strict(&profile.compiled) && hides(&profile.compiled) {
        tell!(
            "dewar: without `mount` what is hidden shows that it exists, and its attributes, never its content; \
             hiding = \"strict\" in a profile keeps back that, too, and has every look at a file decided"
        );
    }
    if request.verbose {
        if profile.kept_capabilities() != 0 {
            tell!(
                "dewar: the workspace belongs to another user, so root keeps the capabilities dac_override and fowner: policy decides on every file as before"
            );
        }
        tell(&profile.compiled, &protection, &layers);
        tell_registries(&profile.compiled, &profile.variables);
    }
    Ok(protection)
}

fn is_strict(compiled: &Compiled) -> bool {
    compiled.hiding == profile::Hiding::Strict
}

/// Whether some domain must not know of something.
fn hides(compiled: &Compiled) -> bool {
    compiled.paths.iter().any(|path| path.rights.iter().any(|rights| rights.hidden))
}

/// Refuses to run weaker than asked; or says aloud what is lost, if that was asked for.
pub(super) fn insist(request: &RunRequest, layers: &Layers) -> anyhow::Result<()> {
    let missing =
        REQUIRED.iter().filter_map(|name| layers.get(name)).filter(|layer| !layer.available);
    for layer in missing {
        let reason = layer.reason.as_deref().unwrap_or_default();
        if let Some(hint) = exhausted::of_reason(reason) {
            bail!("nothing was started: {hint}");
        }
        if !Path::new("/proc/self").exists() {
            bail!(
                "/proc is not mounted here (`mount -t proc proc /proc`), and without it no layer can be laid down; nothing was started"
            );
        }
        if !request.allow_degraded {
            bail!(
                "this machine lacks `{}`, without which {}; nothing was started. `dewar doctor` tells more; \
                 --allow-degraded runs nevertheless",
                layer.name,
                layer.without,
            );
        }
        if layer.name == "seccomp-notify" && request.without.iter().any(|it| it == layer.name) {
            tell!("dewar: no run is without `seccomp-notify`, so it is used all the same");
            continue;
        }
        tell!("dewar: DEGRADED: without `{}` {}", layer.name, layer.without);
    }
    Ok(())
}

/// What `--verbose` says before the start.
fn tell(compiled: &Compiled, protection: &Protection, layers: &Layers) {
    tell!(
        "dewar: {}: {}",
        compiled.name,
        compiled.description.as_deref().unwrap_or("no description")
    );
    tell!("dewar: namespaces: {}", protection.namespaces.names().join(" "));
    tell!("dewar: Landlock version: {}", layers.landlock_version());
    for layer in layers.layers.iter().filter(|layer| !layer.available) {
        tell!("dewar: without `{}` {}", layer.name, layer.without);
    }
}

/// What `--verbose` says of `network.registries`.
fn tell_registries(compiled: &Compiled, variables: &Variables) {
    for tool in &compiled.registries {
        let Some(asked) = variables.registries.get(tool) else { continue };
        tell!("dewar: registries of {tool}: {}", visible(&asked.endpoints.join(" ")));
        for proxy in &asked.proxies {
            tell!("dewar: {} is a proxy: what it reaches, the run reaches", visible(proxy));
        }
        for file in &asked.ignored {
            tell!(
                "dewar: {} is the project's word, and names no registry",
                visible(&file.to_string_lossy())
            );
        }
    }
}

/// What the monitor is to run.
pub(super) fn job(
    request: &RunRequest,
    profile: &Profile,
    protection: &Protection,
    inherited: Inherited,
) -> anyhow::Result<Job> {
    let compiled = &profile.compiled;
    let mode = request.mode.unwrap_or(match compiled.mode {
        profile::Mode::All => Mode::All,
        profile::Mode::Fast => Mode::Fast,
    });
    let (inside, secret) = compiled.environment.apply(std::env::vars_os());
    let mut environment: Vec<(OsString, OsString)> = inside.into_iter().collect();
    // Those of a run around this one.
    environment.retain(|(name, _)| name != "DEWAR_RUN" && name != proposing::VARIABLE);
    environment.extend(profile.proposing.variable());
    tell_environment(request, &compiled.environment, &secret);
    let confined = LaunchRequest {
        command: request.command.clone(),
        environment,
        cwd: std::env::current_dir().context("cannot tell the working directory")?,
        inherited,
        mode,
        limits: limits(compiled),
        namespaces: protection.namespaces,
        landlock: protection.landlock,
        wait_killable: protection.wait_killable,
        takes_descriptors: protection.takes_descriptors,
        unshares_fs: protection.unshares_fs,
        private_tmp: protection.namespaces.mount,
        hosts: hosts::text(compiled, protection.namespaces),
        keep: profile.kept_capabilities(),
        // Rules of the caller's own can tell endpoints apart.
        own_loopback: compiled.private_loopback == Some(true) && request.cil.is_empty(),
        strict: is_strict(compiled),
        grows: request.ask.is_some() || profile.proposing.socket.is_some(),
        shown: place::shown(request, &profile.variables),
    };
    let audit = request.audit.as_deref().map(|it| audit(it, &profile.variables.workspace));
    let audit = audit.transpose()?;
    Ok(Job {
        request: confined,
        enforce: request.enforce,
        workspace: profile.variables.workspace.clone(),
        audit: audit.into_iter().collect(),
        watch: compiled
            .guarded
            .then(|| super::planted::watch(&profile.variables, protection.namespaces.mount)),
        ask: None,
        account: request.stats || request.json,
        started: None,
    })
}

/// Says what becomes of variables, if that was asked for; and that `secret` ones are kept out for
/// what they hold, as their names do not tell.
fn tell_environment(request: &RunRequest, environment: &profile::Environment, secret: &[OsString]) {
    if request.show_env {
        for line in crate::environment::tell(environment).lines() {
            tell!("dewar: {line}");
        }
        return;
    }
    let names: Vec<String> = secret.iter().map(|name| visible(&name.to_string_lossy())).collect();
    if !names.is_empty() && !request.quiet {
        tell!(
            "dewar: kept out for what they hold: {}; `dewar policy env` tells why, and `env.pass` lets them in by name",
            names.join(", ")
        );
    }
}

pub(super) fn limits(compiled: &Compiled) -> Limits {
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

fn audit(path: &Path, workspace: &Path) -> anyhow::Result<Trail> {
    let sink: Box<dyn Write + Send> = if path == Path::new("-") {
        Box::new(std::io::stderr())
    } else {
        Box::new(output_file::append(path, Some(workspace)).map_err(|error| {
            Usage(format!("cannot write the audit trail to `{}`: {error}", path.display()))
        })?)
    };
    Ok(Trail { sink, everything: true })
}
