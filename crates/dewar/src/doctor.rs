//! `dewar doctor`: what this machine can enforce.

use crate::{machine, output};
use clap::Args;
use cli::look::{self, BAD, FAINT, GOOD, STRONG, WARN, paint};
use confine::layers::{Layer, Layers};
use std::fmt::Write as _;

const EXAMPLES: &str = "\
Examples:
  dewar doctor
  dewar doctor --json | jq -r '.layers[] | select(.available | not) | .name'
  dewar doctor --without user       what would be left on a machine that forbids user namespaces

Exit status: 0; a layer that is not there is no failure of this command.";

/// Tell what this machine can enforce, layer by layer, and what is lost without it.
///
/// Each layer is really tried. `dewar run` refuses to start without one that a profile needs,
/// unless --allow-degraded is given.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DoctorArgs {
    /// Print the layers as JSON
    #[arg(long)]
    json: bool,

    /// Pretend that this machine lacks a layer (may be repeated)
    #[arg(long, value_name = "LAYER")]
    without: Vec<String>,
}

/// Carries out `dewar doctor`.
pub(crate) fn run(args: &DoctorArgs) -> anyhow::Result<()> {
    let layers = machine::layers(Layers::probe(), &args.without)?;
    if args.json {
        return Ok(output::print((serde_json::to_string_pretty(&layers)? + "\n").as_bytes())?);
    }
    let width = look::columns().unwrap_or(usize::MAX);
    Ok(look::show(&tell(&layers, width)?)?)
}

/// The layers, for people: the verdict first, then each with what it is for, and what is missing
/// with its price.
fn tell(layers: &Layers, width: usize) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    let missing = layers.layers.iter().filter(|layer| !layer.available).count();
    let needed: Vec<&str> = crate::run::REQUIRED
        .iter()
        .filter(|name| layers.get(name).is_some_and(|layer| !layer.available))
        .copied()
        .collect();
    let count = layers.layers.len();
    let verdict = match (missing, needed.is_empty()) {
        (0, _) => {
            format!("{GOOD}Dewar holds here in full{GOOD:#}: every layer is there, all {count}")
        }
        (_, true) => format!(
            "{WARN}Dewar holds here{WARN:#}: {missing} of {count} layers are missing, none that it cannot do without"
        ),
        (_, false) => format!(
            "{BAD}Dewar does not start here{BAD:#}: it lacks {}; --allow-degraded runs nevertheless, weaker",
            needed.join(", ")
        ),
    };
    writeln!(text, "{verdict}\n")?;
    for layer in &layers.layers {
        tell_layer(&mut text, layer, width)?;
    }
    Ok(text)
}

fn tell_layer(text: &mut String, layer: &Layer, width: usize) -> std::fmt::Result {
    const INDENT: usize = 24;
    let (style, mark) = if layer.available { (GOOD, "yes") } else { (BAD, "NO") };
    let fill = |words: &str, indent| look::fill(words.split(' '), indent, width);
    let name = paint(STRONG, &format!("{:19}", layer.name));
    let about = fill(about(layer.name), INDENT);
    writeln!(text, "{style}{mark:5}{style:#}{name}{about}")?;
    if let Some(reason) = &layer.reason {
        writeln!(text, "       {FAINT}because:{FAINT:#} {}", fill(reason, 16))?;
    }
    if !layer.available {
        writeln!(text, "       {FAINT}lost:{FAINT:#}    {}", fill(layer.without, 16))?;
    }
    Ok(())
}

/// What a layer is for.
fn about(name: &str) -> &'static str {
    match name {
        "user" => "a user namespace: an ordinary user can lay down the others",
        "mount" => "a view of its own: what is hidden is absent, /tmp is private",
        "pid" => "its own processes only, ended by the kernel with the run",
        "ipc" => "no System V shared memory of others",
        "uts" => "a host name of its own",
        "cgroup" => "the machine's cgroups out of sight",
        "net" => "a network of its own, with nothing but its loopback",
        "landlock" => "the kernel's own upper bound on files, whatever the monitor does",
        "landlock-refer" => "files can be moved between directories within that bound",
        "landlock-truncate" => "the bound covers cutting files",
        "landlock-tcp" => "the bound covers TCP ports",
        "landlock-ioctl" => "the bound covers control of devices",
        "landlock-scopes" => "the bound covers signals and abstract unix sockets",
        "landlock-log" => "the kernel logs what the bound refuses",
        "seccomp-notify" => "system calls wait for the monitor's decision",
        "wait-killable" => "a signal does not interrupt a decided call",
        "sync-wake-up" => "decisions are made on the caller's own processor: fast",
        "addfd-send" => "an opened file is handed over in one step",
        "pidfd-getfd" => "connecting and sending on the program's behalf",
        "process-vm-readv" => "arguments of calls are read in one step",
        "cgroup-memory" => "limits.memory bounds all processes together",
        "cgroup-processes" => "limits.processes bounds all processes together",
        "cgroup-cpus" => "limits.cpu bounds all processes together",
        "yama" => "the monitor may read the memory of what it guards",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_layer_is_told_with_its_reason_and_its_price() {
        let layer = |name, reason: Option<&str>| Layer {
            name,
            available: reason.is_none(),
            reason: reason.map(str::to_owned),
            without: "the price",
        };
        let layers =
            Layers { layers: vec![layer("user", None), layer("mount", Some("forbidden"))] };
        let text = look::plain(&tell(&layers, usize::MAX).unwrap());
        assert!(text.contains("yes  user  ") && text.contains("NO   mount  "), "{text}");
        assert!(
            text.contains("because: forbidden") && text.contains("lost:    the price"),
            "{text}"
        );
        assert!(
            text.contains("1 of 2 layers are missing, none that it cannot do without"),
            "{text}"
        );
    }
}
