//! A call in a thread that Landlock confines: what was decided is the most that it can do.

use landlock::{
    AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError,
};
use rustix::io::{Errno, Result};
use std::os::fd::OwnedFd;

/// Makes a call in a thread that has, of these rights, only those that are granted below a
/// directory.
///
/// # Errors
///
/// `ACCESS` if it could not be confined; else as of `make`.
pub fn confined(
    rights: BitFlags<AccessFs>,
    (directory, granted): (&OwnedFd, BitFlags<AccessFs>),
    make: impl FnOnce() -> Result<()> + Send,
) -> Result<()> {
    let confine = || -> std::result::Result<(), RulesetError> {
        Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(rights)?
            .create()?
            .add_rule(PathBeneath::new(directory, granted))?
            .restrict_self()?;
        Ok(())
    };
    let make = || confine().map_err(|_| Errno::ACCESS).and_then(|()| make());
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(128 << 10);
        let thread = thread.spawn_scoped(scope, make).map_err(|_| Errno::NOMEM)?;
        thread.join().unwrap_or(Err(Errno::ACCESS))
    })
}
