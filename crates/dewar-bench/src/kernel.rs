//! `dewar bench kernel`: the classic suite on other kernels, in guests.

use crate::show;
use anyhow::Context as _;
use bench::{guest, progress};
use cli::{args::bench::KernelArgs, failure::Usage};
use std::{
    env,
    path::{Path, PathBuf},
};

/// Measures, and prints what was asked for.
pub(crate) fn run(args: &KernelArgs) -> anyhow::Result<()> {
    let fetched = cache()?.join("kernels");
    if args.fetch {
        progress::note("fetching kernels from Debian");
        guest::fetch(&fetched)?;
        progress::clear();
    }
    let kernels = match args.kernel.as_slice() {
        [] => guest::kernels(&fetched),
        named => named.to_vec(),
    };
    for named in &args.kernel {
        std::fs::metadata(named).map_err(|error| {
            Usage(format!("cannot find the kernel `{}`: {error}", named.display()))
        })?;
    }
    anyhow::ensure!(
        !kernels.is_empty(),
        "there is no kernel in /boot or `{}`; --fetch gets some from Debian, --kernel names one",
        fetched.display()
    );
    // Configurations are those of the newest kernel that Debian installs unasked.
    let is_plain = |path: &PathBuf| {
        let name = path.to_string_lossy();
        !name.contains("cloud") && !name.contains("-rt-")
    };
    let configured = match args.as_is {
        true => kernels.len(),
        false => kernels.iter().rposition(is_plain).unwrap_or(0),
    };
    let report = guest::measure(&kernels, configured, args.rounds as usize, &mut progress::note)?;
    progress::clear();
    let section = report.section();
    show::sheets(&section.sheets, &report, &args.show)?;
    anyhow::ensure!(!report.is_empty(), "no guest came to its end");
    show::keep(&section, &args.show)
}

/// Where what is fetched is kept.
pub(crate) fn cache() -> anyhow::Result<PathBuf> {
    let cache = env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|it| it.is_absolute());
    let home = || env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
    let cache = cache.or_else(home).context("neither XDG_CACHE_HOME nor HOME is set")?;
    Ok(cache.join("dewar"))
}
