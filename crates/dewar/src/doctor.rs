//! `dewar doctor`: what this machine can enforce.

use crate::{output, surroundings};
use clap::Args;
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
/// Each layer is really tried. `dewar run` refuses to start without one that a profile needs, unless
/// --allow-degraded is given.
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
    let layers = surroundings::layers(Layers::probe(), &args.without)?;
    let text =
        if args.json { serde_json::to_string_pretty(&layers)? + "\n" } else { tell(&layers)? };
    Ok(output::print(text.as_bytes())?)
}

/// The layers, for people: what is there in one line each, what is missing with its price.
fn tell(layers: &Layers) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    for layer in &layers.layers {
        tell_layer(&mut text, layer)?;
    }
    let missing = layers.layers.iter().filter(|layer| !layer.available).count();
    match missing {
        0 => writeln!(text, "every layer is there")?,
        _ => writeln!(text, "{missing} of {} layers are missing", layers.layers.len())?,
    }
    Ok(text)
}

fn tell_layer(text: &mut String, layer: &Layer) -> std::fmt::Result {
    let mark = if layer.available { "yes" } else { "NO" };
    writeln!(text, "{mark:5}{}", layer.name)?;
    if let Some(reason) = &layer.reason {
        writeln!(text, "       because: {reason}")?;
    }
    if !layer.available {
        writeln!(text, "       lost:    {}", layer.without)?;
    }
    Ok(())
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
        let text = tell(&layers).unwrap();
        assert!(text.contains("yes  user\nNO   mount\n"), "{text}");
        assert!(
            text.contains("because: forbidden") && text.contains("lost:    the price"),
            "{text}"
        );
        assert!(text.contains("1 of 2 layers are missing"), "{text}");
    }
}
