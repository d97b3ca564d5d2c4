//! `dewar bench library`.

use crate::show;
use anyhow::Context as _;
use bench::{
    interleaved::Interleaved,
    library::{self, Libraries},
    progress,
};
use cli::{args::library::LibraryArgs, failure::Usage, output::tell, program};
use std::{env, path::PathBuf, time::Duration};

/// How long one batch lasts.
const BATCH: Duration = Duration::from_millis(4);

/// Measures, and prints what was asked for.
pub(crate) fn run(args: &LibraryArgs) -> anyhow::Result<()> {
    if let Some(named) = &args.library {
        std::fs::metadata(named).map_err(|error| {
            let named = named.display();
            Usage(format!("cannot find `{named}`: {error}; --library names libdewar.so"))
        })?;
    }
    let python = args.python.clone().or_else(|| env::var_os("DEWAR_PYTHON").map(PathBuf::from));
    let libraries = Libraries {
        c: args.library.clone().or_else(installed),
        python: python.unwrap_or_else(|| "python3".into()),
    };
    let turns = Interleaved { rounds: args.rounds as usize, batch: BATCH, seed: 1 };
    progress::note("checks of the library");
    let report = library::measure(turns, &libraries).context("cannot measure the library")?;
    progress::clear();
    if cfg!(debug_assertions) {
        tell!("dewar: this build is not optimised: checks take longer than they should");
    }
    anyhow::ensure!(!report.is_empty(), "nothing could be measured");
    show::keep(&report.section(), &args.show)?;
    show::sheets(&[report.sheet()], &report, &args.show)
}

/// The shared library, where it is built or installed with this program.
fn installed() -> Option<PathBuf> {
    let beside = program::beside("libdewar.so").ok();
    let own = env::current_exe().ok()?;
    let prefix = own.parent()?.parent()?;
    beside.or_else(|| Some(prefix.join("lib/libdewar.so")).filter(|path| path.is_file()))
}
