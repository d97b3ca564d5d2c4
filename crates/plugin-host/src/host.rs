//! The host: plugins by name.

use crate::{
    access_check::AccessCheck,
    cache::Cache,
    call_failure::CallFailure,
    compile::{Compiler, Loaded},
    denial::{Denial, Journal},
    objects::Labels,
    plugin::{Plugin, PluginInfo, Shared},
    session::Session,
    spec::{LoadError, PluginSpec},
    sys::Trusted,
    version::Version,
};
use arc_swap::ArcSwap;
use avc::{Avc, Hint};
use flask::{Class, Question, SecurityServer, Seqno, Sid, perm::plugin as perm};
use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock, atomic::Ordering::Relaxed},
    time::Instant,
};

/// Plugins of one server.
pub struct PluginHost {
    compiler: Compiler,
    server: Arc<dyn SecurityServer>,
    access: Arc<AccessCheck>,
    labels: Arc<Labels>,
    own: Sid,
    plugins: RwLock<HashMap<String, Arc<Entry>>>,
}

struct Entry {
    version: ArcSwap<Version>,
    shared: Arc<Shared>,
}

impl PluginHost {
    /// A host without plugins and without a cache, that acts as `own`.
    ///
    /// # Errors
    ///
    /// [`LoadError::Engine`] when the machine lacks what isolation needs, address space above all.
    pub fn new(server: Arc<dyn SecurityServer>, own: Sid) -> Result<Self, LoadError> {
        Self::with_cache(server, own, None)
    }

    /// A host that keeps machine code in a cache.
    ///
    /// # Errors
    ///
    /// As for [`PluginHost::new`].
    pub fn with_cache(
        server: Arc<dyn SecurityServer>,
        own: Sid,
        cache: Option<Cache>,
    ) -> Result<Self, LoadError> {
        let compiler = Compiler::new(cache)?;
        let access =
            AccessCheck { avc: Avc::new(Arc::clone(&server)), journal: Journal::default() };
        let labels = Arc::new(Labels::new(Arc::clone(&server)));
        let (access, plugins) = (Arc::new(access), RwLock::default());
        Ok(Self { compiler, server, access, labels, own, plugins })
    }

    /// Compiles and links a new plugin.
    ///
    /// # Errors
    ///
    /// [`LoadError`]; nothing is loaded then.
    pub fn load(&self, spec: &PluginSpec<'_>) -> Result<Loaded, LoadError> {
        let shared = Arc::new(Shared::default());
        let (version, loaded) = self.prepare(spec, &shared, 1)?;
        let mut plugins = self.plugins.write().unwrap_or_else(PoisonError::into_inner);
        if plugins.contains_key(spec.name) {
            return Err(LoadError::Name(format!("there is already a plugin `{}`", spec.name)));
        }
        shared.newest.store(version.number, Relaxed);
        let version = ArcSwap::from_pointee(version);
        plugins.insert(spec.name.to_owned(), Arc::new(Entry { version, shared }));
        Ok(loaded)
    }

    /// Puts new code in the place of a plugin's. Calls that run finish on the old code; what the
    /// plugin has kept by `host_set` stays.
    ///
    /// # Errors
    ///
    /// [`LoadError`]; the old code stays then.
    pub fn replace(&self, spec: &PluginSpec<'_>) -> Result<Loaded, LoadError> {
        let entry = self.entry(spec.name).ok_or_else(|| {
            LoadError::Name(format!("there is no plugin `{}` to replace", spec.name))
        })?;
        let before = entry.version.load_full();
        let (version, loaded) = self.prepare(spec, &entry.shared, before.number + 1)?;
        if version.plugin.sid != before.plugin.sid {
            // It would find what another subject has kept.
            let why = format!("`{}` has another label: unload it first", spec.name);
            return Err(LoadError::Name(why));
        }
        let number = version.number;
        entry.version.store(Arc::new(version));
        entry.shared.newest.store(number, Relaxed);
        Ok(loaded)
    }

    /// Forgets a plugin and what it kept. Calls that run finish; sessions end. Whether there was
    /// one.
    pub fn unload(&self, name: &str) -> bool {
        let mut plugins = self.plugins.write().unwrap_or_else(PoisonError::into_inner);
        let removed = plugins.remove(name);
        if let Some(entry) = &removed {
            entry.shared.gone.store(true, Relaxed);
        }
        removed.is_some()
    }

    /// The plugin's reply to `request`.
    ///
    /// # Errors
    ///
    /// [`CallFailure`] says why there is none.
    pub fn call(&self, name: &str, request: &[u8]) -> Result<Vec<u8>, CallFailure> {
        let entry = self.entry(name).ok_or_else(|| CallFailure::Unknown(name.to_owned()))?;
        let version = entry.version.load_full();
        let start = Instant::now();
        let result = self.call_version(&version, request);
        entry.shared.counters.count(1, u64::from(result.is_err()), start.elapsed());
        result
    }

    fn call_version(&self, version: &Version, request: &[u8]) -> Result<Vec<u8>, CallFailure> {
        may_call(&self.access, self.own, version)?;
        let mut instance = version.lease()?;
        match instance.fill(request).and_then(|()| instance.run()) {
            Ok(len) => {
                version.note_reply();
                let reply = instance.reply(len).to_vec();
                version.give_back(instance);
                Ok(reply)
            }
            Err(failure) => {
                version.note_failure(&failure);
                Err(failure)
            }
        }
    }

    /// An instance of the plugin's present version for one caller, for calls in a row without
    /// looking it up again.
    ///
    /// # Errors
    ///
    /// [`CallFailure`] when there is no such plugin, no room, or the policy denies calling it.
    pub fn session(&self, name: &str) -> Result<Session, CallFailure> {
        let entry = self.entry(name).ok_or_else(|| CallFailure::Unknown(name.to_owned()))?;
        let version = entry.version.load_full();
        may_call(&self.access, self.own, &version)?;
        let instance = version.lease()?;
        Ok(Session::new(self.own, version, instance))
    }

    /// Makes an instance and throws it away: for measuring.
    ///
    /// # Errors
    ///
    /// [`CallFailure`] when there is no such plugin, or no room.
    pub fn instantiate(&self, name: &str) -> Result<(), CallFailure> {
        let entry = self.entry(name).ok_or_else(|| CallFailure::Unknown(name.to_owned()))?;
        entry.version.load().instantiate()
    }

    /// The loaded plugins, by name.
    #[must_use]
    pub fn list(&self) -> Vec<PluginInfo> {
        let plugins = self.plugins.read().unwrap_or_else(PoisonError::into_inner);
        let mut infos: Vec<PluginInfo> = (plugins.iter())
            .map(|(name, entry)| {
                let version = entry.version.load();
                PluginInfo {
                    name: name.clone(),
                    sid: version.plugin.sid,
                    target: version.target,
                    version: version.number,
                    quarantined: version.is_quarantined()
                        || version.suspects.have(version.plugin.limits.faults),
                    stats: entry.shared.counters.read(),
                }
            })
            .collect();
        infos.sort_by(|a, b| a.name.cmp(&b.name));
        infos
    }

    /// The last lines that the plugin has logged.
    #[must_use]
    pub fn log(&self, name: &str) -> Vec<String> {
        self.entry(name).map_or_else(Vec::new, |entry| entry.shared.log())
    }

    /// The last denials, each once, oldest first.
    #[must_use]
    pub fn denials(&self) -> Vec<Denial> {
        self.access.journal.all()
    }

    /// How many decisions were asked for, and where they were found. Those that an instance has
    /// kept count as found at the hint, when its call by name or its session ends.
    #[must_use]
    pub fn avc_stats(&self) -> avc::Stats {
        self.access.avc.stats()
    }

    /// The cache of machine code, if there is one.
    #[must_use]
    pub fn cache(&self) -> Option<&Cache> {
        self.compiler.cache()
    }

    /// Takes note of a new policy state: answers older than it are not used any more.
    pub fn reset(&self, seqno: Seqno) {
        self.access.avc.reset(seqno);
    }

    fn entry(&self, name: &str) -> Option<Arc<Entry>> {
        let plugins = self.plugins.read().unwrap_or_else(PoisonError::into_inner);
        plugins.get(name).cloned()
    }

    fn prepare(
        &self,
        spec: &PluginSpec<'_>,
        shared: &Arc<Shared>,
        number: u64,
    ) -> Result<(Version, Loaded), LoadError> {
        let sid = self
            .server
            .context_to_sid(spec.context)
            .map_err(|error| LoadError::Label { context: spec.context.to_owned(), error })?;
        let trusted = self.may_load(spec, sid)?;
        let (code, loaded) = self.compiler.compile(spec, trusted)?;
        let plugin = Arc::new(Plugin {
            name: spec.name.to_owned(),
            sid,
            limits: spec.limits,
            access: Arc::clone(&self.access),
            labels: Arc::clone(&self.labels),
            shared: Arc::clone(shared),
        });
        let idle_quota = self.compiler.idle_quota(spec.target);
        let version =
            Version::new(plugin, code, (spec.target, number), idle_quota).map_err(|error| {
                LoadError::Interface { name: spec.name.to_owned(), what: error.to_string() }
            })?;
        Ok((version, loaded))
    }

    fn may_load(&self, spec: &PluginSpec<'_>, tsid: Sid) -> Result<Trusted, LoadError> {
        let question = Question { ssid: self.own, tsid, tclass: Class::Plugin };
        let (requested, permission) = spec.target.permission();
        let granted = self.access.allows(spec.name, question, requested, &Hint::default(), || None);
        let denied = || LoadError::Denied { plugin: spec.name.to_owned(), permission };
        granted.then(Trusted::by_policy).ok_or_else(denied)
    }
}

/// Whether the host may call a version, and the version be called.
fn may_call(access: &AccessCheck, own: Sid, version: &Version) -> Result<(), CallFailure> {
    let question = Question { ssid: own, tsid: version.plugin.sid, tclass: Class::Plugin };
    if !access.allows(&version.plugin.name, question, perm::CALL, &version.host_hint, || None) {
        return Err(CallFailure::Denied);
    }
    if version.is_quarantined() {
        return Err(CallFailure::Quarantined);
    }
    Ok(())
}
