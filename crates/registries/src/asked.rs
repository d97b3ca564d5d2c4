//! What came of asking one tool's configuration.

use crate::address::{Endpoint, without_password};
use crate::roots::ConfigRoots;
use std::path::{Path, PathBuf};

/// A file of configuration that is no such thing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot read `{}`: {reason}", path.display())]
pub struct Unreadable {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub reason: String,
}

/// The registries that a tool asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolRegistries {
    /// Hosts and ports, each once, sorted.
    pub endpoints: Vec<Endpoint>,
    /// Those of `endpoints` that are proxies: whoever reaches one reaches what it reaches.
    pub proxies: Vec<Endpoint>,
    /// Every file that was looked at, also where there was none: who writes one decides what is
    /// reached.
    pub files: Vec<PathBuf>,
    /// Files that were not looked at, as they lie in the workspace.
    pub ignored: Vec<PathBuf>,
    /// Variables that tell the tool the same, for where it cannot read the user's files. None holds
    /// a password.
    pub variables: Vec<(String, String)>,
    /// What could not be read. Then nothing is known, and no endpoint is named.
    pub unreadable: Option<Unreadable>,
}

impl ToolRegistries {
    /// Adds the host of a URL, if it names one.
    pub(crate) fn add(&mut self, url: &str) {
        self.endpoints.extend(Endpoint::of_url(url));
    }

    /// Adds a proxy: a URL, or a host and a port.
    pub(crate) fn add_proxy(&mut self, text: &str) {
        let text = text.trim();
        let proxy = match text.contains("://") {
            true => Endpoint::of_url(text),
            false => Endpoint::of_authority(text.trim_end_matches('/'), 80),
        };
        self.proxies.extend(proxy);
    }

    /// What all tools take from the environment.
    pub(crate) fn add_proxies(&mut self, roots: &ConfigRoots<'_>) {
        for name in
            ["https_proxy", "http_proxy", "all_proxy", "HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"]
        {
            if let Some(proxy) = roots.variable(name) {
                self.add_proxy(proxy);
            }
        }
    }

    /// Has the tool told by a variable what it may have no file for.
    pub(crate) fn tell(&mut self, name: &str, url: &str) {
        if without_password(url).is_some() {
            self.variables.push((name.to_owned(), url.to_owned()));
        }
    }

    /// The text of a file of the user or the machine; `None` if it is not there.
    pub(crate) fn read(&mut self, roots: &ConfigRoots<'_>, path: &Path) -> Option<String> {
        match roots.read(path) {
            Ok(found) => {
                self.files.push(found.path);
                found.text
            }
            Err(crate::roots::Refused::InWorkspace(path)) => {
                self.ignored.push(path);
                None
            }
            Err(crate::roots::Refused::Unreadable(why)) => {
                self.files.push(why.path.clone());
                self.unreadable.get_or_insert(why);
                None
            }
        }
    }

    /// As [`ToolRegistries::read`], for TOML.
    pub(crate) fn toml(&mut self, roots: &ConfigRoots<'_>, path: &Path) -> Option<toml::Table> {
        let text = self.read(roots, path)?;
        match text.parse() {
            Ok(table) => Some(table),
            Err(error) => {
                let error: toml::de::Error = error;
                self.fail(path, error.message());
                None
            }
        }
    }

    pub(crate) fn fail(&mut self, path: &Path, reason: &str) {
        let reason = reason.to_owned();
        self.unreadable.get_or_insert(Unreadable { path: path.to_owned(), reason });
    }

    pub(crate) fn finish(mut self) -> Self {
        self.endpoints.extend(self.proxies.iter().cloned());
        if self.unreadable.is_some() {
            self.endpoints.clear();
            self.proxies.clear();
            self.variables.clear();
        }
        for list in [&mut self.endpoints, &mut self.proxies] {
            list.sort();
            list.dedup();
        }
        for list in [&mut self.files, &mut self.ignored] {
            list.sort();
            list.dedup();
        }
        self
    }
}
