//! What a run needs for its programs to propose something (`[propose]`): a socket that they may
//! connect to, and a variable that names it. The prompter listens there.

use super::link::Propose;
use crate::{amend::literal, failure::Usage, machine};
use anyhow::{Context as _, bail};
use profile::{AmendedObject, Amendment, AmendmentKind, Compiled, Documents, Variables};
use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

/// The variable.
pub(super) const VARIABLE: &str = "DEWAR_DENIALS";

/// The longest name of a socket: `sun_path` of `unix(7)`, without the zero behind it.
const LONGEST: usize = 107;

/// What a run has for it.
#[derive(Default)]
pub(super) struct Proposing {
    /// Where its programs may propose something; `None` if nowhere.
    pub(super) socket: Option<Propose>,
    /// What it has beside its profile from the start: that they may connect there.
    pub(super) amendments: Vec<Amendment>,
}

impl Proposing {
    /// What a run under a profile needs, and the profile with that. What the run may not change
    /// is added to `variables`.
    pub(super) fn begin(
        compiled: Compiled,
        documents: &Documents,
        variables: &mut Variables,
    ) -> anyhow::Result<(Compiled, Self)> {
        if !compiled.proposes {
            return Ok((compiled, Self::default()));
        }
        let directory = machine::proposals()?;
        let socket = socket(&directory)?;
        // Its programs have to find the socket there, and may change nothing.
        variables.kept.retain(|kept| *kept != directory);
        variables.fixed.push(directory);
        let name = socket.to_str().context("the state directory has a name that is not Unicode")?;
        let object = AmendedObject::Unix(literal(name));
        let amendments = vec![Amendment::new(AmendmentKind::Grant, None, object)];
        let known = &mut |names: &[&str]| compiled.addresses(names);
        let compiled = documents.compile(variables, known, &amendments)?;
        if let Some(line) = &compiled.granted_in_vain {
            bail!(Usage(format!(
                "[propose] needs a socket at `{name}`, which the profile itself denies or hides ({line}); nothing was started"
            )));
        }
        let within = documents.bound().map(|bound| (bound.name().to_owned(), bound.texts()));
        Ok((compiled, Self { socket: Some(Propose { socket, within }), amendments }))
    }

    /// What programs find in their environment.
    pub(super) fn variable(&self) -> Option<(OsString, OsString)> {
        let socket = self.socket.as_ref()?.socket.clone();
        Some((VARIABLE.into(), socket.into()))
    }
}

/// In a directory that is no secret to programs that may propose something.
fn socket(directory: &Path) -> anyhow::Result<PathBuf> {
    let socket = directory.join(format!("{}.sock", runs::new_id().context("no random numbers")?));
    if socket.as_os_str().len() > LONGEST {
        bail!(Usage(format!(
            "[propose] needs a socket in `{}`, whose name is too long for one: set XDG_STATE_HOME to a shorter one",
            directory.display()
        )));
    }
    Ok(socket)
}
