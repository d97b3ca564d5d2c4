//! `dewar run --dry-run`: what would be laid down.

use super::{
    RunRequest,
    prepare::{Profile, insist},
    serving,
};
use crate::{machine, output};
use cli::look;
use confine::{launch::Namespaces, layers::Probe};
use monitor::visible;
use profile::{Environment, Fate};
use std::{
    fmt::Write as _,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

/// What this machine would enforce.
struct Laid {
    namespaces: Namespaces,
    landlock_version: u32,
    /// Layers that are not there, and what is lost without each.
    missing: Vec<(&'static str, &'static str)>,
}

/// Says what would be laid down for a run.
pub(super) fn run(request: &RunRequest, profile: &Profile, probe: Probe) -> anyhow::Result<()> {
    // What the command line adds to the policy is checked, too.
    serving::check(request, profile)?;
    let layers = machine::layers(probe.finish(true), &request.without)?;
    insist(request, &layers)?;
    let offline = profile.compiled.domains.iter().all(profile::Domain::is_offline);
    let namespaces = layers.namespaces(Namespaces::all(true));
    let missing = layers.layers.iter().filter(|layer| !layer.available);
    let laid = Laid {
        namespaces: Namespaces { net: offline && namespaces.net, ..namespaces },
        landlock_version: layers.landlock_version(),
        missing: missing.map(|layer| (layer.name, layer.without)).collect(),
    };
    Ok(output::print(tell(request, profile, &laid)?.as_bytes())?)
}

/// All of it, for people.
fn tell(request: &RunRequest, profile: &Profile, laid: &Laid) -> anyhow::Result<String> {
    let mut text = String::from("nothing is run; this is what would be laid down:\n");
    let columns = look::columns().unwrap_or(usize::MAX);
    let mut line = |name: &str, value: &str| {
        writeln!(text, "  {name:13}{}", look::fill(visible(value).split(' '), 15, columns))
    };
    let command = request.command.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>();
    line("command", &command.join(" "))?;
    match program(&command[0]) {
        Some(path) => line("program", &path.display().to_string())?,
        None => line("program", "not found: the run would end with 127")?,
    }
    line("workspace", &profile.variables.workspace.display().to_string())?;
    let compiled = &profile.compiled;
    line("profile", &compiled.name)?;
    let mode = request.mode.map_or_else(
        || format!("{:?}", compiled.mode).to_lowercase(),
        |mode| format!("{mode:?}").to_lowercase(),
    );
    line("mode", &mode)?;
    let domains: Vec<&str> = compiled.domains.iter().map(|domain| domain.name.as_str()).collect();
    line("domains", &domains.join(" "))?;
    line(
        "policy",
        &format!("{} lines of CIL; `dewar policy show` groups them", compiled.cil.lines().count()),
    )?;
    line("namespaces", &laid.namespaces.names().join(" "))?;
    line("Landlock", &format!("version {}", laid.landlock_version))?;
    for (name, lost) in &laid.missing {
        line("missing", &format!("{name}: {lost}"))?;
    }
    let judge = learn::Judge::new(compiled)?;
    for it in learn::powers(compiled, &judge, &profile.variables.home) {
        let who = it.domain.map(|name| format!(" to domain {name}")).unwrap_or_default();
        line("GIVES", &format!("{}{who}, by {}", it.gives, it.address))?;
    }
    line("environment", &environment(&compiled.environment))?;
    let limits = format!("{:?}", compiled.limits);
    let is_bound = limits != format!("{:?}", profile::Limits::default());
    line(
        "limits",
        if is_bound { "as the profile says; `dewar policy show` lists them" } else { "none" },
    )?;
    Ok(text)
}

/// How many variables pass, and which do not.
fn environment(environment: &Environment) -> String {
    let fates = crate::environment::fates(environment);
    let passing = fates.iter().filter(|(_, fate)| fate.is_seen()).count();
    let out = fates.iter().filter(|(_, fate)| !fate.is_seen() && !matches!(fate, Fate::Unnamed));
    let out: Vec<&str> = out.map(|(name, _)| name.as_str()).collect();
    match out.is_empty() {
        true => format!("{passing} variables pass"),
        false => format!("{passing} variables pass; kept out: {}", out.join(" ")),
    }
}

/// The file that a shell would execute.
fn program(name: &str) -> Option<PathBuf> {
    let is_program = |path: &Path| {
        path.metadata().is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
    };
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| is_program(path));
    }
    let searched = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&searched).map(|place| place.join(name)).find(|path| is_program(path))
}
