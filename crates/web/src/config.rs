//! What a server is told: a file in TOML, or the command line.

use plugin_host::{Limits, Target};
use serde::Deserialize;
use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

/// All that a server is told.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The directory that is served.
    pub root: PathBuf,
    /// Where it listens.
    #[serde(default)]
    pub listen: Vec<Listen>,
    /// Threads; 0 for one per processor.
    #[serde(default)]
    pub workers: usize,
    /// Directories without an index are listed.
    #[serde(default)]
    pub list: bool,
    /// Names of the file that stands for its directory.
    #[serde(default = "index")]
    pub index: Vec<String>,
    /// Content types by the ends of names, before the usual ones.
    #[serde(default)]
    pub types: BTreeMap<String, String>,
    /// How long an open file is used before it is looked up again, in milliseconds.
    #[serde(default = "revalidate")]
    pub revalidate_ms: u32,
    /// Limits on clients.
    #[serde(default)]
    pub limits: Bounds,
    /// A line per request goes to this file, or with `-` to standard output.
    #[serde(default)]
    pub access_log: Option<PathBuf>,
    /// The socket for administration.
    #[serde(default)]
    pub admin: Option<PathBuf>,
    /// Address of the status page and of metrics, which change nothing.
    #[serde(default)]
    pub status: Option<String>,
    /// Rules in CIL beside the server's own.
    #[serde(default)]
    pub policy: Vec<PathBuf>,
    /// Plugins by name.
    #[serde(default)]
    pub plugins: BTreeMap<String, PluginConfig>,
    /// What relative paths are relative to.
    #[serde(skip)]
    pub base: PathBuf,
}

/// Where a server listens, and who comes that way.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Listen {
    /// `ADDRESS:PORT`, or `unix:PATH`.
    pub address: String,
    /// The label of requests that come this way; of clients, if nothing better is known.
    #[serde(default)]
    pub label: Option<String>,
    /// Labels of processes behind a unix socket, by their user's number.
    #[serde(default)]
    pub users: BTreeMap<String, String>,
    /// Certificate and key, in PEM, for TLS with HTTP/2 and HTTP/1.1.
    #[serde(default)]
    pub tls: Option<Tls>,
}

/// How a listener speaks TLS.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// The certificate and those that lead to it.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// Clients may show certificates that these have signed.
    #[serde(default)]
    pub clients: Option<PathBuf>,
    /// Labels of clients, by the SHA-256 of their certificates in hexadecimal digits.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
}

/// What clients may use.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct Bounds {
    /// Connections at a time.
    pub connections: usize,
    /// Time for a request's head, and for its body.
    pub request_ms: u32,
    /// Time without a request before a connection is closed.
    pub idle_ms: u32,
    /// Time in which a client that is sent something takes at least 16 KiB of it, or all.
    pub send_ms: u32,
    /// Bytes of a request's body.
    pub body_bytes: usize,
    /// Bytes of requests that are not all there yet, of one thread.
    pub waiting_bytes: usize,
    /// Time for requests under way when the server ends.
    pub grace_ms: u32,
    /// Bytes of files that are kept for plugins to see, and compressed.
    pub image_bytes: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            connections: 16_384,
            request_ms: 10_000,
            idle_ms: 60_000,
            send_ms: 10_000,
            body_bytes: 1 << 20,
            waiting_bytes: 128 << 20,
            grace_ms: 10_000,
            image_bytes: 256 << 20,
        }
    }
}

/// What a plugin does.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Makes other content out of a file's.
    #[default]
    Transform,
    /// Answers requests: is given the request, and replies with header fields, an empty line, and
    /// content.
    Handler,
    /// Is given a request's head and its answer's fields, and replies with the fields as they are
    /// to be.
    Headers,
}

/// A plugin, and when it is used.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct PluginConfig {
    /// Its text in E-code, or a WebAssembly module.
    #[serde(default)]
    pub file: PathBuf,
    /// What it does.
    #[serde(default)]
    pub kind: Kind,
    /// For paths that begin so. For a transformer the rest of the path names the file.
    #[serde(default)]
    pub route: Option<String>,
    /// For content of this type.
    #[serde(default, rename = "type")]
    pub media: Option<String>,
    /// The type of what it makes.
    #[serde(default)]
    pub gives: Option<String>,
    /// With `type`: only for clients that accept what it makes better than what there is.
    #[serde(default)]
    pub negotiate: bool,
    /// Where it runs: isolated, native, native+stack, kernel.
    #[serde(default)]
    pub target: Option<String>,
    /// Its label.
    #[serde(default)]
    pub label: Option<String>,
    /// Time for a call.
    #[serde(default)]
    pub time_ms: Option<u64>,
    /// Memory of an instance.
    #[serde(default)]
    pub memory_bytes: Option<u32>,
    /// Length of a reply.
    #[serde(default)]
    pub reply_bytes: Option<usize>,
    /// Faults in a row on a file or a request, after which it is not called on that for a minute.
    #[serde(default)]
    pub faults: Option<u32>,
}

/// Why a server was not told what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A file cannot be read.
    #[error("cannot read `{}`: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A file is no configuration.
    #[error("`{}`: {error}", path.display())]
    Toml {
        /// The file.
        path: PathBuf,
        /// With its place.
        error: Box<toml::de::Error>,
    },
    /// A value that means nothing.
    #[error("{what}: {why}")]
    Value {
        /// Which.
        what: String,
        /// Why not.
        why: String,
    },
}

impl ConfigError {
    pub(crate) fn value(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Value { what: what.into(), why: why.into() }
    }
}

fn index() -> Vec<String> {
    vec!["index.html".to_owned()]
}

fn revalidate() -> u32 {
    1000
}

impl Config {
    /// Files that a server makes when it starts: its log, and its sockets.
    pub(crate) fn files_made(&self) -> Vec<PathBuf> {
        let log = self.access_log.iter().filter(|path| path.as_os_str() != "-");
        let sockets = self.listen.iter().filter_map(|it| it.address.strip_prefix("unix:"));
        let files = log.chain(&self.admin).map(PathBuf::as_path);
        files.chain(sockets.map(Path::new)).map(|path| self.path(path)).collect()
    }

    /// What serves `root` and nothing else, as if told nothing more.
    #[must_use]
    pub fn new(root: PathBuf) -> Self {
        Self {
            root,
            listen: Vec::new(),
            workers: 0,
            list: false,
            index: index(),
            types: BTreeMap::new(),
            revalidate_ms: revalidate(),
            limits: Bounds::default(),
            access_log: None,
            admin: None,
            status: None,
            policy: Vec::new(),
            plugins: BTreeMap::new(),
            base: PathBuf::new(),
        }
    }

    /// Reads a file.
    ///
    /// # Errors
    ///
    /// [`ConfigError`].
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let read = |error| ConfigError::Read { path: path.to_owned(), error };
        let text = fs::read_to_string(path).map_err(read)?;
        let mut config: Self = toml::from_str(&text)
            .map_err(|error| ConfigError::Toml { path: path.to_owned(), error: Box::new(error) })?;
        config.base = path.parent().unwrap_or(Path::new("")).to_owned();
        Ok(config)
    }

    /// Where a path that the configuration names is.
    pub(crate) fn path(&self, path: &Path) -> PathBuf {
        self.base.join(path)
    }

    pub(crate) fn workers(&self) -> usize {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        if self.workers == 0 { cores } else { self.workers.min(256) }
    }
}

impl Listen {
    /// The labels that it gives.
    pub(crate) fn contexts(&self) -> impl Iterator<Item = &str> {
        let clients = self.tls.iter().flat_map(|tls| tls.labels.values());
        self.label.iter().chain(self.users.values()).chain(clients).map(String::as_str)
    }
}

impl PluginConfig {
    pub(crate) fn target(&self) -> Result<Target, ConfigError> {
        let wanted = self.target.as_deref().unwrap_or("isolated");
        Target::ALL.into_iter().find(|target| target.name() == wanted).ok_or_else(|| {
            let names = Target::ALL.map(Target::name).join(", ");
            ConfigError::value(format!("target `{wanted}`"), format!("there are {names}"))
        })
    }

    pub(crate) fn limits(&self) -> Limits {
        let most = Limits::default();
        Limits {
            call_time: self.time_ms.map_or(most.call_time, Duration::from_millis),
            memory_bytes: self.memory_bytes.unwrap_or(most.memory_bytes),
            output_bytes: self.reply_bytes.unwrap_or(most.output_bytes),
            faults: self.faults.unwrap_or(most.faults),
            ..most
        }
    }

    /// Where and for what it is used makes sense together.
    pub(crate) fn check(&self, name: &str) -> Result<(), ConfigError> {
        let wrong = |why: &str| Err(ConfigError::value(format!("plugin `{name}`"), why));
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        if name.is_empty() || name.len() > 64 || !name.bytes().all(plain) {
            return wrong("a name has letters, digits, `-`, `_` and `.`, and at most 64 of them");
        }
        if let Some(route) = &self.route
            && !(route.starts_with('/') && route.ends_with('/'))
        {
            return wrong("a route begins and ends with `/`");
        }
        for text in [&self.media, &self.gives].into_iter().flatten() {
            let plain = |byte: u8| byte.is_ascii_graphic() || byte == b' ';
            if text.split('/').count() != 2 || !text.bytes().all(plain) {
                return wrong("a media type looks like `text/plain`");
            }
        }
        match (self.kind, &self.route, &self.media) {
            (_, None, None) => wrong("say for which `route` or `type` it is"),
            (Kind::Handler, None, _) => wrong("a handler needs a `route`"),
            (Kind::Transform, Some(_), Some(_)) => wrong("say `route` or `type`, not both"),
            _ if self.negotiate && (self.media.is_none() || self.gives.is_none()) => {
                wrong("to negotiate it needs `type` and `gives`")
            }
            _ => Ok(()),
        }
    }
}
