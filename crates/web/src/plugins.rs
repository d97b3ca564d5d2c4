//! The plugins of a server: by name, with what they are for.

mod follow;

use crate::{
    complaints::Complaints,
    config::{ConfigError, Kind, PluginConfig},
    counters::PluginCounters,
    manager::{Manager, ManagerError},
};
use arc_swap::ArcSwap;
use avc::Hint;
use flask::{SecurityServer, Sid};
use foldhash::HashMap;
use plugin_host::{Cache, HOST_CONTEXT, LoadError, PLUGIN_CONTEXT, PluginHost, PluginSpec, Source};
use std::{
    fs, io,
    ops::Deref,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

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

/// One worker's hold on a plugin. Every request counts references to it: if workers shared that
/// count, each request would take its cache line from the others.
pub(crate) struct Binding {
    plugin: Arc<Plugin>,
    /// Where the manager's answers about it and requests, and it and files, lie.
    pub(crate) request_hint: Hint,
    pub(crate) file_hint: Hint,
}

impl Deref for Binding {
    type Target = Plugin;

    fn deref(&self) -> &Plugin {
        &self.plugin
    }
}

/// What plugins are for, made for looking up by one worker.
#[derive(Default)]
pub(crate) struct Bindings {
    routes: HashMap<Box<str>, Arc<Binding>>,
    media: HashMap<Box<str>, Vec<Arc<Binding>>>,
    /// For the heads of whatever lies beneath, by route; with an empty one for everything.
    heads: Vec<Arc<Binding>>,
    longest: usize,
}

impl Bindings {
    fn new(all: &[Arc<Plugin>]) -> Self {
        let mut made = Self::default();
        for plugin in all {
            let (request_hint, file_hint) = (Hint::default(), Hint::default());
            let binding = Arc::new(Binding { plugin: Arc::clone(plugin), request_hint, file_hint });
            let config = &plugin.config;
            if config.kind == Kind::Headers {
                made.heads.push(binding);
            } else if let Some(route) = &config.route {
                made.longest = made.longest.max(route.len());
                made.routes.insert(route.as_str().into(), binding);
            } else if let Some(media) = &config.media {
                made.media.entry(media.as_str().into()).or_default().push(binding);
            }
        }
        made
    }

    /// The plugin with the longest route that `path` begins with.
    pub(crate) fn by_path(&self, path: &[u8]) -> Option<&Arc<Binding>> {
        if self.routes.is_empty() {
            return None;
        }
        let ends = path.iter().enumerate().take(self.longest).filter(|(_, byte)| **byte == b'/');
        // What lies beneath a route may have a name that is no text.
        let begins = ends.filter_map(|(at, _)| std::str::from_utf8(&path[..=at]).ok());
        begins.filter_map(|begin| self.routes.get(begin)).next_back()
    }

    /// The plugins for content of a type.
    pub(crate) fn by_media(&self, media: &str) -> &[Arc<Binding>] {
        self.media.get(media).map_or(&[], Vec::as_slice)
    }

    /// Whether there are plugins for the heads of answers.
    pub(crate) fn has_heads(&self) -> bool {
        !self.heads.is_empty()
    }

    /// The plugins for the heads of answers of type `media` to `path`, decoded and between slashes.
    pub(crate) fn by_head<'b>(
        &'b self,
        path: &'b [u8],
        media: &'b str,
    ) -> impl Iterator<Item = &'b Arc<Binding>> {
        self.heads.iter().filter(move |binding| {
            let config = &binding.config;
            config.route.as_ref().is_none_or(|route| path.starts_with(route.as_bytes()))
                && config.media.as_ref().is_none_or(|wanted| wanted.eq_ignore_ascii_case(media))
        })
    }
}

/// All plugins of a server, and the host that runs them.
pub(crate) struct Plugins {
    pub(crate) host: PluginHost,
    manager: Arc<Manager>,
    all: ArcSwap<Vec<Arc<Plugin>>>,
    /// Changes with them, so that workers notice.
    generation: AtomicU64,
    /// Held by whoever changes; the next id.
    changes: Mutex<u32>,
    workers: usize,
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
        let changes = Mutex::new(0);
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

    /// Loads a plugin, or replaces the one of this name; remarks about its text.
    pub(crate) fn put(
        &self,
        name: &str,
        config: &PluginConfig,
        source: &[u8],
        replace: Option<bool>,
    ) -> Result<String, PluginError> {
        let mut next = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
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
        let text = Text::of(name, source)?;
        let spec = text.spec(name, config)?;
        let sid = self.manager.sid(spec.context)?;
        let loaded =
            if before.is_some() { self.host.replace(&spec)? } else { self.host.load(&spec)? };
        if before.is_none_or(|before| before.config != *config) {
            let plugin = self.plugin(&mut next, (name, config), sid);
            let mut all: Vec<_> = all.iter().filter(|it| it.name != name).cloned().collect();
            all.push(plugin);
            self.install(all);
        }
        let remarks = loaded.remarks.iter().map(rendered);
        Ok(remarks.chain(loaded.cache_warning).collect::<Vec<_>>().join("\n"))
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
        let _changing = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
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
mod tests {
    use super::*;

    #[test]
    fn requests_of_one_worker_change_no_count_that_another_reads() {
        let plugin = Plugin {
            id: 0,
            name: "gray".to_owned(),
            config: PluginConfig { route: Some("/gray/".to_owned()), ..PluginConfig::default() },
            sid: Sid::new(1).unwrap(),
            counters: Box::default(),
            complaints: Complaints::default(),
        };
        let all = [Arc::new(plugin)];
        let [own, other] = [(); 2].map(|()| Bindings::new(&all));
        let held: Vec<_> = (0..100).filter_map(|_| own.by_path(b"/gray/a.ppm/").cloned()).collect();
        assert_eq!(held.len(), 100);
        assert_eq!(Arc::strong_count(&all[0]), 3, "the list, and one for each worker");
        assert_eq!(other.by_path(b"/gray/a.ppm/").map(Arc::strong_count), Some(1));
    }
}
