//! The plugins of a server: by name, with what they are for.

mod bindings;
mod follow;

use crate::{
    complaints::Complaints,
    config::{ConfigError, Kind, PluginConfig},
    counters::PluginCounters,
    manager::{Manager, ManagerError},
};
use arc_swap::ArcSwap;
use flask::{SecurityServer, Sid};
use plugin_host::{Cache, HOST_CONTEXT, LoadError, PLUGIN_CONTEXT, PluginHost, PluginSpec, Source};
use std::{
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

pub(crate) use bindings::{Binding, Bindings};

/// No plugin's file is larger.
const MAX_FILE: u64 = 16 << 20;

/// Why a plugin is not there as it was asked for. What was there before stays.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PluginError {
    /// It is configured in a way that makes no sense.
    #[error("{0}")]
    Config(#[from] ConfigError),
    /// Its label is none.
    #[error("{0}")]
    Label(#[from] ManagerError),
    /// It does not compile, or the policy denies it.
    #[error("{}", told(.0))]
    Load(#[from] LoadError),
    /// Its file cannot be read.
    #[error("cannot read `{}`: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// What its file holds does not compile.
    #[error("`{}`: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        error: Box<PluginError>,
    },
    /// It is neither a text nor a module.
    #[error("`{0}` is neither a text in UTF-8 nor a module in WebAssembly")]
    Text(String),
    /// There is no such plugin, or another that is for the same.
    #[error("{0}")]
    Name(String),
}

/// A plugin in use.
pub(crate) struct Plugin {
    /// Its place in tables; never used again for another.
    pub(crate) id: u32,
    pub(crate) name: String,
    pub(crate) config: PluginConfig,
    pub(crate) sid: Sid,
    /// One for each worker.
    pub(crate) counters: Box<[PluginCounters]>,
    /// How much of what goes wrong in it is told.
    pub(crate) complaints: Complaints,
}

/// All plugins of a server, and the host that runs them.
pub(crate) struct Plugins {
    pub(crate) host: PluginHost,
    manager: Arc<Manager>,
    all: ArcSwap<Vec<Arc<Plugin>>>,
    /// Changes with them, so that workers notice.
    generation: AtomicU64,
    changes: Mutex<Changes>,
    workers: usize,
}

/// Held by whoever changes plugins, and never while one is compiled.
#[derive(Default)]
struct Changes {
    /// The next id.
    next: u32,
    /// How many were asked for.
    asked: u64,
    /// Of each name, which of them is in use.
    turns: HashMap<String, u64>,
}

impl Plugins {
    pub(crate) fn new(manager: &Arc<Manager>, workers: usize) -> Result<Self, PluginError> {
        let server = Arc::clone(&manager.server) as Arc<dyn SecurityServer>;
        let own = manager.sid(HOST_CONTEXT)?;
        let cache =
            Cache::user_path().and_then(|path| Cache::open(&path, Cache::DEFAULT_BYTES).ok());
        let host = PluginHost::with_cache(server, own, cache)?;
        let manager = Arc::clone(manager);
        let (all, generation) = (ArcSwap::default(), AtomicU64::new(1));
        let changes = Mutex::default();
        Ok(Self { host, manager, all, generation, changes, workers: workers + 1 })
    }

    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Relaxed)
    }

    /// All of them.
    pub(crate) fn all(&self) -> Arc<Vec<Arc<Plugin>>> {
        self.all.load_full()
    }

    /// All of them, for one worker.
    pub(crate) fn bindings(&self) -> Arc<Bindings> {
        Arc::new(Bindings::new(&self.all.load()))
    }

    /// Loads a plugin, or replaces the one of this name; remarks about its text. Nobody waits while
    /// it is compiled. Of two that replace one name at once, that which came later stays.
    pub(crate) fn put(
        &self,
        name: &str,
        config: &PluginConfig,
        source: &[u8],
        replace: Option<bool>,
    ) -> Result<String, PluginError> {
        let turn = {
            let mut changes = self.changes();
            self.before(name, config, replace)?;
            changes.asked += 1;
            changes.asked
        };
        let text = Text::of(name, source)?;
        let spec = text.spec(name, config)?;
        let prepared = self.host.compile(&spec)?;
        let mut changes = self.changes();
        // Meanwhile others may have changed what there is.
        let before = self.before(name, config, replace)?;
        if changes.turns.get(name).is_some_and(|last| *last > turn) {
            let why = format!("`{name}` was replaced by one that came later");
            return Err(PluginError::Name(why));
        }
        let sid = self.manager.sid(spec.context)?;
        let loaded = match &before {
            Some(_) => self.host.replace_by(prepared)?,
            None => self.host.load_compiled(prepared)?,
        };
        changes.turns.insert(name.to_owned(), turn);
        if before.is_none_or(|before| before.config != *config) {
            let plugin = self.plugin(&mut changes.next, (name, config), sid);
            let mut all: Vec<_> = self.all().iter().filter(|it| it.name != name).cloned().collect();
            all.push(plugin);
            self.install(all);
        }
        let remarks = loaded.remarks.iter().map(rendered);
        Ok(remarks.chain(loaded.cache_warning).collect::<Vec<_>>().join("\n"))
    }

    /// The plugin of this name, if one may be loaded, or put in its place, for what `config` says.
    fn before(
        &self,
        name: &str,
        config: &PluginConfig,
        replace: Option<bool>,
    ) -> Result<Option<Arc<Plugin>>, PluginError> {
        let all = self.all();
        let before = all.iter().find(|plugin| plugin.name == name);
        match (before, replace) {
            (None, Some(true)) => {
                return Err(PluginError::Name(format!("there is no plugin `{name}` to replace")));
            }
            (Some(_), Some(false)) => {
                let how = format!("`dewar plugin replace {name}` puts another in its place");
                return Err(PluginError::Name(format!(
                    "there is already a plugin `{name}`; {how}"
                )));
            }
            _ => config.check(name)?,
        }
        no_rival(name, config, all.iter().map(|it| (it.name.as_str(), &it.config)))?;
        Ok(before.cloned())
    }

    fn changes(&self) -> MutexGuard<'_, Changes> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn plugin(
        &self,
        next: &mut u32,
        (name, config): (&str, &PluginConfig),
        sid: Sid,
    ) -> Arc<Plugin> {
        let id = *next;
        *next += 1;
        let counters = (0..self.workers).map(|_| PluginCounters::default()).collect();
        let (name, config, complaints) = (name.to_owned(), config.clone(), Complaints::default());
        Arc::new(Plugin { id, name, config, sid, counters, complaints })
    }

    /// Reads a plugin's file and puts it.
    pub(crate) fn put_file(
        &self,
        name: &str,
        config: &PluginConfig,
        path: &Path,
    ) -> Result<String, PluginError> {
        let source = read(path)?;
        self.put(name, config, &source, None).map_err(|error| in_file(path, error))
    }

    /// Unloads a plugin; whether there was one. Requests that it is answering are answered.
    pub(crate) fn remove(&self, name: &str) -> bool {
        let mut changes = self.changes();
        changes.turns.remove(name);
        let all = self.all().iter().filter(|it| it.name != name).cloned().collect();
        // First nobody calls it any more, then it goes.
        self.install(all);
        self.host.unload(name)
    }

    fn install(&self, all: Vec<Arc<Plugin>>) {
        self.all.store(Arc::new(all));
        self.generation.fetch_add(1, Relaxed);
    }
}

/// Fails if another of `others` has the route of a plugin.
fn no_rival<'o>(
    name: &str,
    config: &PluginConfig,
    mut others: impl Iterator<Item = (&'o str, &'o PluginConfig)>,
) -> Result<(), PluginError> {
    let rival = others.find(|(other, its)| {
        *other != name
            && config.kind != Kind::Headers
            && its.kind != Kind::Headers
            && config.route.is_some()
            && its.route == config.route
    });
    rival.map_or(Ok(()), |(rival, _)| Err(PluginError::Name(format!("`{rival}` has this route"))))
}

/// What a plugin's file holds; a module that is written as text, as bytes.
fn read(path: &Path) -> Result<Vec<u8>, PluginError> {
    let read = |error| PluginError::Read { path: path.to_owned(), error };
    let size = fs::metadata(path).map_err(read)?.len();
    if size > MAX_FILE {
        return Err(read(io::ErrorKind::FileTooLarge.into()));
    }
    let source = fs::read(path).map_err(read)?;
    if path.extension().is_none_or(|end| end != "wat") {
        return Ok(source);
    }
    let module = wat::parse_bytes(&source).map(|module| module.into_owned());
    module.map_err(|error| PluginError::Text(plugin_host::visible_lines(&error.to_string())))
}

/// What is wrong with a plugin, told by its file.
fn in_file(path: &Path, error: PluginError) -> PluginError {
    match error {
        error @ (PluginError::Load(_) | PluginError::Text(_)) => {
            PluginError::File { path: path.to_owned(), error: Box::new(error) }
        }
        error => error,
    }
}

/// What a plugin is made of.
enum Text<'s> {
    Wasm(&'s [u8]),
    ECode(&'s str),
}

impl<'s> Text<'s> {
    fn of(name: &str, source: &'s [u8]) -> Result<Self, PluginError> {
        if source.starts_with(b"\0asm") {
            return Ok(Self::Wasm(source));
        }
        let text = std::str::from_utf8(source);
        text.map(Self::ECode).map_err(|_| PluginError::Text(name.to_owned()))
    }

    fn spec(&self, name: &'s str, config: &'s PluginConfig) -> Result<PluginSpec<'s>, ConfigError> {
        let (target, limits) = (config.target()?, config.limits());
        let source = match *self {
            Self::Wasm(module) => Source::Wasm(module),
            Self::ECode(text) => Source::Text(text),
        };
        let context = config.label.as_deref().unwrap_or(PLUGIN_CONTEXT);
        Ok(PluginSpec { source, target, limits, ..PluginSpec::new(name, context, "") })
    }
}

/// An error as the compiler prints it.
fn told(error: &LoadError) -> String {
    match error {
        LoadError::Text(errors) => {
            errors.messages.iter().map(rendered).collect::<Vec<_>>().join("\n")
        }
        error => error.to_string(),
    }
}

/// A message with the lines that it is about.
fn rendered(message: &(impl miette::Diagnostic + 'static)) -> String {
    let plain = miette::GraphicalReportHandler::new_themed(miette::GraphicalTheme::none());
    let mut text = String::new();
    match plain.render_report(&mut text, message) {
        Ok(()) => text,
        Err(_) => message.to_string(),
    }
}

#[cfg(test)]
mod tests;
