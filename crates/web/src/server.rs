//! A running server: how it begins, changes and ends.

use crate::{
    admin,
    config::{Config, ConfigError, Listen},
    counters::Counters,
    error::ServerError,
    files::Files,
    log::LogFile,
    manager::{self, CLIENT_CONTEXT, Manager, ManagerError},
    plugins::Plugins,
    serve::{self, Listeners, Wake, tls::Acceptors},
    shared::{Shared, Site},
};
use arc_swap::ArcSwap;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::{
    fs,
    net::SocketAddr,
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    thread::JoinHandle,
    time::Instant,
};

/// A server that runs.
pub struct Server {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    wakes: Vec<Wake>,
    addresses: Vec<SocketAddr>,
    status: Option<SocketAddr>,
    sockets: Vec<PathBuf>,
}

impl Server {
    /// Starts a server. When this returns, it listens.
    ///
    /// # Errors
    ///
    /// [`ServerError`]; nothing runs then, and no file is left behind.
    pub fn start(config: Config) -> Result<Self, ServerError> {
        let mut files = config.files_made();
        files.retain(|file| file.symlink_metadata().is_err());
        let started = Self::begin(config);
        if started.is_err() {
            for file in files {
                // Most of them were not made yet.
                let _ = fs::remove_file(file);
            }
        }
        started
    }

    fn begin(mut config: Config) -> Result<Self, ServerError> {
        raise_files();
        if config.listen.is_empty() {
            let address = "127.0.0.1:8080".to_owned();
            config.listen.push(Listen { address, ..Listen::default() });
        }
        for (name, plugin) in &config.plugins {
            plugin.check(name)?;
        }
        let workers = config.workers();
        let root = config.path(&config.root);
        let root = root.canonicalize().map_err(|error| {
            ServerError::system(format!("cannot serve `{}`", root.display()), error)
        })?;
        let policy = security_server::Server::from_cil(&policy_files(&config, &root)?);
        let server = Arc::new(policy.map_err(ManagerError::from)?);
        let manager = Arc::new(Manager::new(server)?);
        let plugins = Plugins::new(&manager, 2 * workers)?;
        for (name, plugin) in &config.plugins {
            plugins.put_file(name, plugin, &config.path(&plugin.file))?;
        }
        let images = Arc::new(AtomicUsize::new(0));
        let site = site(config, &manager, &images)?;
        let tls = ArcSwap::from_pointee(Acceptors::new(&site.config, &manager)?);
        let listeners = Listeners::open(&site.config, workers)?;
        let counters = (0..2 * workers).map(|_| Counters::default()).collect();
        let shared = Arc::new(Shared {
            site: ArcSwap::from_pointee(site),
            generation: AtomicU64::new(2),
            manager,
            plugins,
            tls,
            counters,
            images,
            connections: AtomicUsize::new(0),
            ending: AtomicBool::new(false),
            begun: Instant::now(),
            complaints: Mutex::default(),
        });
        Self::run(&shared, listeners, workers)
    }

    fn run(
        shared: &Arc<Shared>,
        listeners: Listeners,
        workers: usize,
    ) -> Result<Self, ServerError> {
        let (addresses, mut sockets) = (listeners.addresses.clone(), listeners.sockets.clone());
        let (mut threads, wakes) = serve::start(shared, listeners, workers)?;
        let admin = match admin::start(shared) {
            Ok(admin) => admin,
            Err(error) => {
                end(shared, threads, &wakes);
                return Err(error);
            }
        };
        threads.extend(admin.threads);
        sockets.extend(admin.socket);
        let (shared, status) = (Arc::clone(shared), admin.status);
        Ok(Self { shared, threads, wakes, addresses, status, sockets })
    }

    /// Where it listens by TCP, in the order of its configuration.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Where its status page is.
    #[must_use]
    pub fn status(&self) -> Option<SocketAddr> {
        self.status
    }

    /// Follows a new configuration: everything but where it listens, how many threads it has, and
    /// the sockets for administration. All of it comes into force in one step. What could not be
    /// followed, in words.
    ///
    /// # Errors
    ///
    /// [`ServerError`]; the old configuration stays.
    pub fn reload(&self, mut config: Config) -> Result<Vec<String>, ServerError> {
        let shared = &self.shared;
        let before = shared.site.load_full();
        let mut left = Vec::new();
        if config.listen != before.config.listen && !config.listen.is_empty() {
            left.push("what `listen` says has changed: that needs a new start".to_owned());
        }
        config.listen.clone_from(&before.config.listen);
        for (name, plugin) in &config.plugins {
            plugin.check(name)?;
        }
        let root = config.path(&config.root);
        let root = root.canonicalize().map_err(|error| {
            ServerError::system(format!("cannot serve `{}`", root.display()), error)
        })?;
        // Everything that may fail comes before the first change.
        let labels = config.listen.iter().flat_map(Listen::contexts);
        let (policy, trial) = shared.manager.prepared(&policy_files(&config, &root)?, labels)?;
        let compiled = shared.plugins.compiled(&config, &trial)?;
        let site = site(config, &shared.manager, &shared.images)?;
        let acceptors = Acceptors::new(&site.config, &shared.manager)?;
        let plugins = shared.plugins.following(compiled, &before.config)?;
        let changing = shared.change();
        let seqno = shared.manager.reload(policy)?;
        shared.plugins.host.reset(seqno);
        shared.tls.store(Arc::new(acceptors));
        shared.site.store(Arc::new(site));
        plugins.install();
        drop(changing);
        self.wakes.iter().for_each(Wake::wake);
        Ok(left)
    }

    /// Ends the server: nothing new is taken, what is under way is answered within its time.
    pub fn end(self) {
        end(&self.shared, self.threads, &self.wakes);
        for socket in &self.sockets {
            let _ = fs::remove_file(socket);
        }
    }
}

/// Has the threads of a server end, and waits for them.
fn end(shared: &Shared, threads: Vec<JoinHandle<()>>, wakes: &[Wake]) {
    shared.ending.store(true, Relaxed);
    wakes.iter().for_each(Wake::wake);
    for thread in threads {
        let _ = thread.join();
    }
}

fn site(
    config: Config,
    manager: &Arc<Manager>,
    images: &Arc<AtomicUsize>,
) -> Result<Site, ServerError> {
    let files = Files::new(&config, manager, images).map_err(|error| {
        ServerError::system(format!("cannot serve `{}`", config.root.display()), error)
    })?;
    let log = config.access_log.as_ref().map(|path| {
        let path = if path.as_os_str() == "-" { path.clone() } else { config.path(path) };
        LogFile::open(&path).map_err(|error| {
            ServerError::system(format!("cannot log to `{}`", path.display()), error)
        })
    });
    let log = log.transpose()?;
    let label = |listen: &Listen| manager.sid(listen.label.as_deref().unwrap_or(CLIENT_CONTEXT));
    let labels = config.listen.iter().map(label).collect::<Result<_, _>>()?;
    for context in config.listen.iter().flat_map(|it| it.users.values()) {
        manager.sid(context)?;
    }
    Ok(Site { files, log, labels, config })
}

fn policy_files(
    config: &Config,
    root: &std::path::Path,
) -> Result<Vec<(String, String)>, ServerError> {
    let targets = config.plugins.values().map(crate::config::PluginConfig::target);
    let mut targets = targets.collect::<Result<Vec<_>, _>>()?;
    targets.sort_by_key(|target| target.name());
    targets.dedup();
    let mut files = vec![("web.cil".to_owned(), manager::policy(root, &targets))];
    for path in config.policy.iter().map(|path| config.path(path)) {
        let text = fs::read_to_string(&path);
        let text = text.map_err(|error| ConfigError::Read { path: path.clone(), error })?;
        files.push((path.display().to_string(), text));
    }
    Ok(files)
}

/// As many descriptors as this process may have.
fn raise_files() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    // Without it there are fewer connections, and those beyond are refused.
    let _ = setrlimit(Resource::Nofile, raised);
}
