//! `${workspace}` and its like.

use crate::error::Problem;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// What the variables of a profile stand for in one run.
///
/// Paths are absolute and real (without symbolic links, `.` and `..`): policy speaks about objects,
/// and a link is followed before the object is looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variables {
    /// `${workspace}`: the directory that the run is about.
    pub workspace: PathBuf,
    /// `${home}`: the user's home directory.
    pub home: PathBuf,
    /// `${tmp}`: the directory for temporary files, private to the run.
    pub tmp: PathBuf,
    /// `${user}`: the user's name.
    pub user: String,
    /// `${nameserver}`: the hosts that answer name queries (network rules only).
    pub nameservers: Vec<IpAddr>,
    /// A run without a network outside gets a network of its own, with nothing but loopback.
    #[serde(default)]
    pub private_network: bool,
    /// `/dev/shm` and `/var/tmp` are the machine's: what others have there is none of the run's.
    #[serde(default)]
    pub shares_temporary: bool,
    /// What lies in `/etc` and the user may read, as its owner or as root, and not everybody: a
    /// profile grants it by name, and not with all of `/etc`.
    #[serde(default)]
    pub confidential: Vec<PathBuf>,
    /// What Dewar keeps for itself, and denies to every run whatever its profile grants.
    pub kept: Vec<PathBuf>,
    /// What `network.registries` stands for, by the name of the tool. A tool that is not here
    /// reaches nothing.
    #[serde(default)]
    pub registries: BTreeMap<String, Registries>,
    /// What no run may change whatever its profile grants, beside the files that the profile is
    /// read from. `DIRECTORY/..` says that no link may come to be in the directory's place, so that
    /// this stays what is above it.
    pub fixed: Vec<PathBuf>,
    /// What no run may change either, as a link leads there that has a guarded name: the link, and
    /// what it leads by, and to.
    #[serde(default)]
    pub led: Vec<(PathBuf, PathBuf)>,
    /// What no run may read: a project's word that would lead a tool into what later runs of it
    /// trust.
    #[serde(default)]
    pub misleading: Vec<PathBuf>,
    /// Places at which the same files lie as at another, by mounts: the other one, then this. What
    /// is taken at the one is taken at the other.
    #[serde(default)]
    pub mounted: Vec<(PathBuf, PathBuf)>,
}

/// The registries that a tool asks, by its own configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registries {
    /// Hosts and ports, as network rules spell them.
    pub endpoints: Vec<String>,
    /// Those of them that are proxies, and reach what these reach.
    #[serde(default)]
    pub proxies: Vec<String>,
    /// Files that lie in the workspace, and were not read.
    #[serde(default)]
    pub ignored: Vec<PathBuf>,
    /// Files that say so, or would if they were there. A run that may write one is kept from it.
    pub files: Vec<PathBuf>,
    /// Variables that tell the tool the same.
    pub variables: Vec<(String, String)>,
    /// Why nothing is known.
    pub problem: Option<String>,
}

/// Names of all variables.
pub(crate) const NAMES: [&str; 5] = ["workspace", "home", "tmp", "user", "nameserver"];

/// The path that an entry of [`Variables::fixed`] or [`Variables::led`] is about.
#[must_use]
pub fn fixed_path(entry: &Path) -> &Path {
    entry.parent().filter(|_| is_left(entry)).unwrap_or(entry)
}

/// Whether such an entry is about a directory that a way leaves by `..`.
pub(crate) fn is_left(entry: &Path) -> bool {
    entry.ends_with("..")
}

impl Variables {
    /// The directories for temporary files of which a run has its own, where a machine makes
    /// views. What lies in one of them by name is the machine's: nothing that is said of the whole
    /// directory is about it.
    #[must_use]
    pub fn temporary(&self) -> Vec<PathBuf> {
        let all = [self.tmp.clone(), "/var/tmp".into(), "/dev/shm".into()];
        all.into_iter().filter(|directory| *directory != self.workspace).collect()
    }

    /// The text that `name` stands for in a path; `None` if it is unknown there or not Unicode.
    pub(crate) fn in_path(&self, name: &str) -> Option<&str> {
        match name {
            "workspace" => self.workspace.to_str(),
            "home" => self.home.to_str(),
            "tmp" => self.tmp.to_str(),
            "user" => Some(&self.user),
            _ => None,
        }
    }

    /// `text` with its variables replaced.
    pub(crate) fn expand(&self, text: &str) -> Result<String, Problem> {
        let mut out = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            out.push_str(before);
            let (name, behind) = after.split_once('}').unwrap_or((after, ""));
            let unknown = || Problem::UnknownVariable { name: name.to_owned() };
            out.push_str(self.in_path(name).ok_or_else(unknown)?);
            rest = behind;
        }
        Ok(out + rest)
    }
}
