//! Which targets a command is about.

use plugin_host::Target;

/// As the command line names targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum TargetArg {
    /// WebAssembly in a memory of its own, within limits
    Isolated,
    /// In the process: it is trusted with everything you may do
    Native,
    /// As native; arrays on the stack are guarded
    #[value(name = "native+stack")]
    NativeStack,
    /// Each of them in turn
    All,
}

impl TargetArg {
    /// The targets, of those that are `possible`.
    pub(super) fn targets(self, possible: &[Target]) -> Vec<Target> {
        match self {
            Self::Isolated => vec![Target::Isolated],
            Self::Native => vec![Target::Native],
            Self::NativeStack => vec![Target::NativeStack],
            Self::All => possible.to_vec(),
        }
    }
}
