//! Where a policy comes from.

use super::profiles;
use crate::failure::Usage;
use anyhow::Context as _;
use clap::Args;
use security_server::policy::Policy;
use security_server::{BoolId, Engine, UnknownBoolean, cil, policydb};
use std::{
    fs,
    io::{self, Read as _},
    os::unix::fs::FileTypeExt as _,
    path::Path,
};

/// The policy that a question is put to.
#[derive(Debug, Args)]
pub(super) struct PolicySource {
    /// Policy: a profile, a CIL file (repeat for several) or a binary policy
    #[arg(short = 'f', long = "policy", value_name = "POLICY", required = true)]
    policies: Vec<String>,

    /// Set a boolean first
    #[arg(short, long = "boolean", value_name = "NAME=on|off", value_parser = boolean)]
    booleans: Vec<(String, bool)>,
}

pub(super) fn boolean(text: &str) -> Result<(String, bool), String> {
    match text.split_once('=') {
        Some((name, "on" | "true" | "1")) => Ok((name.to_owned(), true)),
        Some((name, "off" | "false" | "0")) => Ok((name.to_owned(), false)),
        _ => Err("write NAME=on or NAME=off".to_owned()),
    }
}

impl PolicySource {
    /// The policy, ready to decide.
    pub(super) fn engine(&self) -> anyhow::Result<Engine> {
        let engine = Engine::new(load(&self.policies)?);
        let booleans = &engine.policy().booleans;
        let find = |(name, state): &(String, bool)| match booleans.get_index_of(name.as_str()) {
            Some(index) => Ok((BoolId::at(index), *state)),
            None => Err(Usage(UnknownBoolean::of(name, engine.policy()).to_string())),
        };
        let changes = self.booleans.iter().map(find).collect::<Result<Vec<_>, _>>()?;
        Ok(engine.with_booleans(&changes))
    }
}

/// The policy that the arguments name: one profile, one binary policy, or CIL files that belong
/// together.
pub(super) fn load(arguments: &[String]) -> anyhow::Result<Policy> {
    if let [argument] = arguments {
        if is_profile(argument) {
            let compiled = profiles::compile(argument, None, false)?;
            return Ok(cil::compile(&[(format!("{argument} (as CIL)"), compiled.cil)])?);
        }
        let bytes = read(argument)?;
        if policydb::is_policydb(&bytes) {
            return policydb::read(&bytes)
                .map_err(|error| Usage(format!("{argument}: {error}")).into());
        }
    }
    if let Some(profile) = arguments.iter().find(|it| arguments.len() > 1 && is_profile(it)) {
        return Err(Usage(format!(
            "`{profile}` is a profile, and is named alone; several files are CIL that belongs together"
        ))
        .into());
    }
    let text = |argument: &String| {
        let bytes = read(argument)?;
        let text = String::from_utf8(bytes);
        let text = text.map_err(|_| Usage(format!("{argument}: this is not a text in UTF-8")))?;
        Ok((argument.clone(), text))
    };
    let files = arguments.iter().map(text).collect::<anyhow::Result<Vec<_>>>()?;
    Ok(cil::compile(&files)?)
}

/// Whether the argument names a profile: a shipped one, or a TOML file.
pub(super) fn is_profile(argument: &str) -> bool {
    let is_shipped = |name: &str| profile::shipped().iter().any(|(known, _)| *known == name);
    let first = argument.split('+').next().unwrap_or(argument);
    argument.ends_with(".toml") || is_shipped(first)
}

/// The length that a policy has at most; those of distributions have less than 10 MiB.
const MOST_BYTES: u64 = 32 << 20;

fn read(path: &str) -> anyhow::Result<Vec<u8>> {
    let hint = |error: &io::Error| {
        let names: Vec<&str> = profile::shipped().iter().map(|(name, _)| *name).collect();
        let is_name = error.kind() == io::ErrorKind::NotFound && !path.contains(['/', '.']);
        if is_name { format!("; shipped profiles are {}", names.join(", ")) } else { String::new() }
    };
    let unreadable = |error: io::Error| Usage(format!("{path}: {error}{}", hint(&error)));
    bounded(Path::new(path)).map_err(unreadable).context("the policy cannot be read")
}

/// Reads a file, or what a shell hands over (`<(…)`); not from a device without end, nor from a
/// FIFO that nobody may ever write to.
fn bounded(path: &Path) -> io::Result<Vec<u8>> {
    let own = ["/dev/fd", "/dev/stdin", "/proc/self/fd"];
    let is_handed_over = own.iter().any(|own| path.starts_with(own));
    let kind = fs::metadata(path)?.file_type();
    // What others are handed, and what terminals are told, is theirs.
    if !(kind.is_file() || is_handed_over && kind.is_fifo()) {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut bytes = Vec::new();
    let read = fs::File::open(path)?.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    if read as u64 > MOST_BYTES {
        return Err(io::Error::other("it is longer than 32 MiB"));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::bounded;
    use std::path::Path;

    #[test]
    fn nothing_without_an_end_is_read() {
        let told = |path: &Path| bounded(path).unwrap_err().to_string();
        for device in ["/dev/zero", "/dev/ptmx", "/proc/1/fd/0"] {
            assert!(bounded(Path::new(device)).is_err(), "{device}");
        }
        assert_eq!(told(Path::new("/dev/zero")), "it is no regular file");
        let directory = tempfile::tempdir().unwrap();
        let fifo = directory.path().join("fifo");
        let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR);
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, kind, mode, 0).unwrap();
        assert_eq!(told(&fifo), "it is no regular file");
    }
}
