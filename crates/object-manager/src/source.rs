//! The policy as it comes: files and texts in CIL, or the kernel's binary form.

use security_server::{PolicyErrors, cil, policy::Policy, policydb};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// A policy before it is read.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    File(PathBuf),
    Text(String, String),
}

/// Why a policy cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyFault {
    /// None was named.
    #[error("no policy was named")]
    Missing,
    /// A file cannot be read.
    #[error("cannot read the policy `{path}`: {source}")]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file is neither text nor a binary policy.
    #[error("`{0}` is neither CIL, which is UTF-8, nor a binary policy")]
    Form(PathBuf),
    /// A binary policy is damaged, or of a version that is not read.
    #[error("`{path}`: {why}")]
    Binary {
        /// Which.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// A binary policy is whole by itself.
    #[error("`{0}` is a binary policy: nothing else can be added to it")]
    Added(PathBuf),
    /// The text is wrong, with its places.
    #[error("{0}")]
    Text(#[from] PolicyErrors),
    /// The policy rejects what it does not know.
    #[error(transparent)]
    Rejected(#[from] security_server::LoadError),
}

/// A policy that was read, as this process and as the daemon take it.
pub(crate) struct Read {
    pub(crate) policy: Policy,
    pub(crate) files: Vec<(String, String)>,
}

pub(crate) fn read(sources: &[Source]) -> Result<Read, PolicyFault> {
    let mut files = Vec::new();
    for source in sources {
        let path = match source {
            Source::Text(name, text) => {
                files.push((name.clone(), text.clone()));
                continue;
            }
            Source::File(path) => path,
        };
        let io = |source| PolicyFault::Io { path: path.clone(), source };
        let bytes = fs::read(path).map_err(io)?;
        if policydb::is_policydb(&bytes) {
            return binary(path, &bytes, sources.len());
        }
        let text = String::from_utf8(bytes).map_err(|_| PolicyFault::Form(path.clone()))?;
        files.push((path.display().to_string(), text));
    }
    if files.is_empty() {
        return Err(PolicyFault::Missing);
    }
    Ok(Read { policy: cil::compile(&files)?, files })
}

fn binary(path: &Path, bytes: &[u8], sources: usize) -> Result<Read, PolicyFault> {
    if sources > 1 {
        return Err(PolicyFault::Added(path.to_owned()));
    }
    let why = |error: policydb::ReadError| PolicyFault::Binary {
        path: path.to_owned(),
        why: error.to_string(),
    };
    let policy = policydb::read(bytes).map_err(why)?;
    let files = vec![(path.display().to_string(), policy.to_cil())];
    Ok(Read { policy, files })
}
