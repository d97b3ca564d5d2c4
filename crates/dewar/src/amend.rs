//! What `dewar revoke` and `dewar grant` share: what they are about, and carrying it out.

use crate::{
    control::{Request, Run, RunArg},
    failure::Failed,
    machine, receipt,
};
use anyhow::{Context as _, bail};
use clap::Args;
use monitor::RevokeMode;
use profile::{AmendedObject, Amendment, AmendmentKind};
use realpath::RealPaths;
use std::path::{Path, PathBuf};

/// What is taken or given: exactly one of these.
#[derive(Debug, Args)]
pub(crate) struct ObjectArgs {
    /// Only from, or to, this domain [default: all]
    #[arg(long, value_name = "DOMAIN")]
    domain: Option<String>,

    #[command(flatten)]
    object: OneObject,

    /// Of files, only what changes them
    #[arg(long, conflicts_with_all = ["net", "unix", "exec", "all"])]
    write: bool,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct OneObject {
    /// Files: a pattern as in a profile, with everything below; relative ones start in the working
    /// directory
    #[arg(long, value_name = "GLOB")]
    file: Option<String>,

    /// A host, network, address or `*`; without a port, all ports, without `/tcp` or `/udp`, both
    #[arg(long, value_name = "HOST[:PORT]")]
    net: Option<String>,

    /// Connecting to a unix socket: a pattern, or `@NAME`, `@PREFIX*`, `@*` for abstract ones
    #[arg(long, value_name = "PATH")]
    unix: Option<String>,

    /// Executing files: a pattern
    #[arg(long, value_name = "GLOB")]
    exec: Option<String>,

    /// Everything
    #[arg(long)]
    all: bool,
}

/// A change that was asked for.
pub(crate) struct Amend<'a> {
    pub(crate) run: &'a RunArg,
    pub(crate) kind: AmendmentKind,
    pub(crate) object: &'a ObjectArgs,
    pub(crate) mode: RevokeMode,
    pub(crate) json: bool,
}

impl Amend<'_> {
    /// Has the run change, and prints its receipt.
    pub(crate) fn carry_out(&self) -> anyhow::Result<()> {
        let mut run = Run::find(self.run)?;
        let (domain, object) = (self.object.domain.clone(), self.object.object()?);
        let mut amendment = Amendment::new(self.kind, domain, object);
        resolve(&mut amendment);
        let glob = match (&amendment.kind, &amendment.object) {
            (AmendmentKind::Revoke, AmendedObject::Files(glob) | AmendedObject::Write(glob)) => {
                Some(glob.clone())
            }
            _ => None,
        };
        let led = match (&amendment.kind, &amendment.object) {
            (AmendmentKind::Grant, AmendedObject::Files(glob) | AmendedObject::Write(glob)) => {
                led(glob)
            }
            _ => None,
        };
        let asked = amendment.to_string();
        let change = run.change(Request::Amend(amendment, self.mode))?;
        if let Some(remark) = glob.and_then(|glob| not_met(&glob)) {
            crate::output::tell!("dewar: {remark}");
        }
        receipt::print(&change, self.json)?;
        match &led {
            // What was taken by a link is given back by it, and then said as well.
            Some((path, real)) if change.what == asked => {
                bail!(Failed(format!(
                    "`{path}` leads by symbolic links to `{}`, which is not given: a grant gives what lies at its own path. Name \
                     that one, if you mean it",
                    real.display()
                )))
            }
            _ => Ok(()),
        }
    }
}

impl ObjectArgs {
    fn object(&self) -> anyhow::Result<AmendedObject> {
        let OneObject { file, net, unix, exec, all: _ } = &self.object;
        Ok(match (file, net, unix, exec) {
            (Some(glob), ..) if self.write => AmendedObject::Write(absolute(glob)?),
            (Some(glob), ..) => AmendedObject::Files(absolute(glob)?),
            (_, Some(endpoint), ..) => {
                AmendedObject::Network { endpoint: endpoint.clone(), addresses: Vec::new() }
            }
            (_, _, Some(name), _) if name.starts_with('@') => AmendedObject::Unix(name.clone()),
            (_, _, Some(glob), _) => AmendedObject::Unix(absolute(glob)?),
            (.., Some(glob)) => AmendedObject::Exec(absolute(glob)?),
            _ => AmendedObject::All,
        })
    }
}

/// A pattern that starts at the root.
fn absolute(glob: &str) -> anyhow::Result<String> {
    if glob.starts_with('/') || glob.starts_with("${") {
        return Ok(glob.to_owned());
    }
    let here = std::env::current_dir().context("cannot tell the working directory")?;
    let here = here.to_str().context("the working directory has a name that is not Unicode")?;
    let glob = glob.strip_prefix("./").unwrap_or(glob);
    Ok(format!("{}/{glob}", literal(here)))
}

/// What a pattern for files, now that it has been taken, has not met or does not reach, and may
/// have been meant.
fn not_met(glob: &str) -> Option<String> {
    let is_there = |path: &str| Path::new(path).symlink_metadata().is_ok();
    if glob.starts_with("${") {
        return None;
    }
    match plain(glob) {
        Some(path) if path == "/dev/tty" => Some(
            "`/dev/tty` stands for a terminal. What is open of that, also by this name, can be used \
             on, and opened by its own name: take `/dev/pts`, too"
                .to_owned(),
        ),
        Some(path) if is_there(&path) => None,
        Some(path) => Some(format!(
            "nothing is at `{path}` now; what lay there, and was moved away, is not taken"
        )),
        None if is_there(glob) => Some(format!(
            "`{glob}` is a pattern, and the file of that very name may not be among what it stands \
             for: write `{}`",
            literal(glob)
        )),
        None => None,
    }
}

/// The path that a pattern stands for, and where links lead it.
fn led(glob: &str) -> Option<(String, PathBuf)> {
    let path = plain(glob).filter(|path| path.starts_with('/') && !path.starts_with("/proc/"))?;
    let real = RealPaths::new().existing_part(Path::new(&path));
    (real != Path::new(&path)).then_some((path, real))
}

/// The path that a pattern stands for, if it stands for one.
fn plain(glob: &str) -> Option<String> {
    let mut path = String::with_capacity(glob.len());
    let mut letters = glob.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => path.push(letters.next()?),
            '*' | '?' | '[' | '{' => return None,
            letter => path.push(letter),
        }
    }
    Some(path)
}

/// The pattern for `path` and nothing else.
pub(crate) fn literal(path: &str) -> String {
    let mut pattern = String::with_capacity(path.len());
    for c in path.chars() {
        if r"\*?[{$".contains(c) {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}

/// Fills in what a host name stands for now: out here, because the run may have no network.
fn resolve(amendment: &mut Amendment) {
    let Some(name) = amendment.host() else { return };
    let AmendedObject::Network { addresses, .. } = &mut amendment.object else { return };
    match machine::resolve_one(&name) {
        Ok(found) => *addresses = found,
        Err(error) => crate::output::tell!(
            "dewar: `{name}` has no address now ({error}); those that the run knew by that name are meant"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_pattern_starts_in_the_working_directory() {
        let here = std::env::current_dir().unwrap();
        assert_eq!(absolute("./x*").unwrap(), format!("{}/x*", here.display()));
        for absolute_one in ["/x*", "${home}/x"] {
            assert_eq!(absolute(absolute_one).unwrap(), absolute_one);
        }
        assert_eq!(literal(r"/a*[b]{c}$d\e"), r"/a\*\[b]\{c}\$d\\e");
    }

    #[test]
    fn what_a_pattern_has_not_met_is_said() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| format!("{}/{name}", directory.path().display());
        for name in ["[id].tsx", "there"] {
            std::fs::write(path(name), "").unwrap();
        }
        let said = |name: &str| not_met(&path(name)).unwrap_or_default();
        assert!(said("gone").contains("nothing is at"));
        assert!(said("[id].tsx").contains(r"write `") && said("[id].tsx").contains(r"\[id].tsx`"));
        for met in ["there", r"\[id].tsx", "*.tsx"] {
            assert_eq!(said(met), "", "{met}");
        }
        assert_eq!(not_met("${home}/x"), None);
        assert!(not_met("/dev/tty").unwrap_or_default().contains("take `/dev/pts`"));
    }
}
