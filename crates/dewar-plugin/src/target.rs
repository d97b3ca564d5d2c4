//! Which targets a command is about.

use cli::args::plugin::TargetArg;
use plugin_host::Target;

/// The targets that were asked for, of those that are `possible`.
pub(crate) fn chosen(asked: TargetArg, possible: &[Target]) -> Vec<Target> {
    match asked {
        TargetArg::Isolated => vec![Target::Isolated],
        TargetArg::Native => vec![Target::Native],
        TargetArg::NativeStack => vec![Target::NativeStack],
        TargetArg::Kernel => vec![Target::Kernel],
        TargetArg::All => possible.to_vec(),
    }
}
