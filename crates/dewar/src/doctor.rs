//! `dewar doctor`: what this machine can enforce.

use crate::{
    machine, output,
    run::{REQUIRED, is_inside},
};
use clap::Args;
use cli::look::{self, BAD, FAINT, GOOD, STRONG, WARN, paint};
use confine::layers::{Layer, Layers};
use serde::Serialize;
use std::fmt::Write as _;

const EXAMPLES: &str = "\
Examples:
  dewar doctor
  dewar doctor --json | jq -r '.layers[] | select(.available | not) | .name'
  dewar doctor --without user       what would be left on a machine that forbids user namespaces

Exit status: 0, also where layers are not there; 2 for wrong use.";

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
    let is_inside = is_inside();
    let layers = machine::layers(Layers::probe(), &args.without)?;
    if args.json {
        let document = DoctorDocument::of(&layers, is_inside);
        return Ok(output::print(output::json(&document)?.as_bytes())?);
    }
    let width = look::columns().unwrap_or(usize::MAX);
    Ok(look::show(&tell(&layers, is_inside, width)?)?)
}

/// The version of [`DoctorDocument`].
const SCHEMA: &str = "dewar/doctor/1";

/// What this machine can enforce: what `dewar doctor --json` prints.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct DoctorDocument {
    /// Which document this is, and in which version.
    schema: &'static str,
    /// `full`, `enough` (what is missing can be done without), `inside` (of a run: its layers hold
    /// for those in it), or `none`: then `dewar run` needs `--allow-degraded`.
    verdict: &'static str,
    /// In the order in which they are put on.
    layers: Vec<LayerDocument>,
}

/// One layer of protection.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct LayerDocument {
    name: &'static str,
    available: bool,
    /// `dewar run` does not start without it.
    required: bool,
    /// What it is for.
    about: &'static str,
    /// Why it is missing, or what is remarkable about it.
    reason: Option<String>,
    /// What is lost without it.
    without: &'static str,
}

impl DoctorDocument {
    fn of(layers: &Layers, is_inside: bool) -> Self {
        let layer = |of: &Layer| LayerDocument {
            name: of.name,
            available: of.available,
            required: REQUIRED.contains(&of.name),
            about: about(of.name),
            reason: of.reason.clone(),
            without: of.without,
        };
        let layers: Vec<LayerDocument> = layers.layers.iter().map(layer).collect();
        let verdict = if layers.iter().all(|layer| layer.available) {
            "full"
        } else if layers.iter().all(|layer| layer.available || !layer.required) {
            "enough"
        } else if is_inside {
            "inside"
        } else {
            "none"
        };
        Self { schema: SCHEMA, verdict, layers }
    }
}

/// The layers, for people: the verdict first, then each with what it is for, and what is missing
/// with its price.
pub(crate) fn tell(
    layers: &Layers,
    is_inside: bool,
    width: usize,
) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    let missing = layers.layers.iter().filter(|layer| !layer.available).count();
    let needed: Vec<&str> = REQUIRED
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
            "{WARN}Dewar holds here{WARN:#}: {missing} of {count} layers {} missing, none that it cannot do without",
            if missing == 1 { "is" } else { "are" }
        ),
        (_, false) if is_inside => format!(
            "{WARN}This is inside of a run{WARN:#}: `dewar run` works here, within what the run around it grants, and that \
             one's layers hold; below is what could be laid down anew, which lacks {}",
            needed.join(", ")
        ),
        (_, false) => format!(
            "{BAD}Dewar does not start here{BAD:#}: it lacks {}; --allow-degraded runs nevertheless, weaker",
            needed.join(", ")
        ),
    };
    writeln!(text, "{}\n", look::fill(verdict.split(' '), 0, width))?;
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
        "pidfd-getfd" => "connecting and watching by the program's own descriptors",
        "unshare-fs" => "files are made for several processes at once",
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
        let text = look::plain(&tell(&layers, false, usize::MAX).unwrap());
        assert!(text.contains("yes  user  ") && text.contains("NO   mount  "), "{text}");
        assert!(
            text.contains("because: forbidden") && text.contains("lost:    the price"),
            "{text}"
        );
        assert!(
            text.contains("1 of 2 layers is missing, none that it cannot do without"),
            "{text}"
        );
    }

    #[test]
    fn the_screen_is_as_it_was_reviewed() {
        let layer = |name, reason: Option<&str>, without| Layer {
            name,
            available: reason.is_none(),
            reason: reason.map(str::to_owned),
            without,
        };
        let there = ["mount", "pid", "net", "wait-killable", "process-vm-readv"];
        let mut layers: Vec<Layer> =
            there.into_iter().map(|name| layer(name, None, "nobody asks")).collect();
        let all = Layers { layers: layers.clone() };
        layers.push(layer(
            "landlock-tcp",
            Some("Landlock of this kernel is version 3, and version 4 (Linux 6.7) has it"),
            "TCP ports are refused by the monitor alone",
        ));
        let some = Layers { layers: layers.clone() };
        layers.push(layer(
            crate::run::REQUIRED[0],
            Some("the kernel says EPERM: user.max_user_namespaces is 0, or AppArmor forbids it"),
            "what is lost is told here, at such a length that it takes more than a line of any terminal, and then a bit",
        ));
        let none = Layers { layers };
        crate::screens::screen("doctor", |width| {
            let cases = [(&all, false), (&some, false), (&none, false), (&none, true)];
            cases.map(|(layers, is_inside)| tell(layers, is_inside, width).unwrap()).join("\n")
        });
    }
}
