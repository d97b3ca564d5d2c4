//! The host: plugins by name.

use crate::{
    access_check::AccessCheck,
    cache::Cache,
    call_failure::CallFailure,
    compile::{Code, Compiler, Loaded},
    denial::{Denial, Journal},
    limits::Limits,
    objects::Labels,
    plugin::{Plugin, PluginInfo, Shared},
    session::Session,
    spec::{LoadError, PluginSpec},
    sys::Trusted,
    target::Target,
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
    plugins: RwLock<Entries>,
}

type Entries = HashMap<String, Arc<Entry>>;

/// A plugin that is compiled and linked, and not loaded yet.
pub struct Prepared {
    name: String,
    sid: Sid,
    target: Target,
    limits: Limits,
    code: Code,
    loaded: Loaded,
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
        self.load_compiled(self.compile(spec)?)
    }

    /// Puts new code in the place of a plugin's. Calls that run finish on the old code; what the
    /// plugin has kept by `host_set` stays.
    ///
    /// # Errors
    ///
    /// [`LoadError`]; the old code stays then.
    pub fn replace(&self, spec: &PluginSpec<'_>) -> Result<Loaded, LoadError> {
        self.entry(spec.name).ok_or_else(|| missing(spec.name))?;
        self.replace_by(self.compile(spec)?)
    }

    /// Compiles and links a plugin for [`PluginHost::load_compiled`] and
    /// [`PluginHost::replace_by`]. Nobody calls it yet.
    ///
    /// # Errors
    ///
    /// [`LoadError`].
    pub fn compile(&self, spec: &PluginSpec<'_>) -> Result<Prepared, LoadError> {
        self.prepared(spec, &self.server, &self.access)
    }

    /// Loads what was compiled, as [`PluginHost::load`] does, if the policy lets it by now.
    ///
    /// # Errors
    ///
    /// [`LoadError`]; nothing is loaded then.
    pub fn load_compiled(&self, prepared: Prepared) -> Result<Loaded, LoadError> {
        let name = &prepared.name;
        self.may_load((name, prepared.target), prepared.sid, &self.access)?;
        let mut plugins = self.plugins.write().unwrap_or_else(PoisonError::into_inner);
        if plugins.contains_key(name) {
            return Err(LoadError::Name(format!("there is already a plugin `{name}`")));
        }
        Ok(self.put_among(&mut plugins, prepared))
    }

    /// Puts what was compiled in the place of a plugin's code, as [`PluginHost::replace`] does, if
    /// the policy lets it by now.
    ///
    /// # Errors
    ///
    /// [`LoadError`]; the old code stays then.
    pub fn replace_by(&self, prepared: Prepared) -> Result<Loaded, LoadError> {
        let name = &prepared.name;
        self.may_load((name, prepared.target), prepared.sid, &self.access)?;
        let mut plugins = self.plugins.write().unwrap_or_else(PoisonError::into_inner);
        let before = plugins.get(name).ok_or_else(|| missing(name))?;
        if before.version.load().plugin.sid != prepared.sid {
            // It would find what another subject has kept.
            let why = format!("`{name}` has another label: unload it first");
            return Err(LoadError::Name(why));
        }
        Ok(self.put_among(&mut plugins, prepared))
    }

    /// Compiles and links a plugin for [`PluginHost::put`], when `policy` holds: that knows its
    /// label, and lets the host load it. Nobody calls it yet.
    ///
    /// # Errors
    ///
    /// [`LoadError`].
    pub fn prepare(
        &self,
        spec: &PluginSpec<'_>,
        policy: &Arc<dyn SecurityServer>,
    ) -> Result<Prepared, LoadError> {
        let avc = Avc::new(Arc::clone(policy));
        self.prepared(spec, policy, &AccessCheck { avc, journal: Journal::default() })
    }

    /// Loads what was prepared, with its label as the policy that holds now has it. Code of the
    /// same name and label is replaced, a plugin of another label unloaded first.
    pub fn put(&self, prepared: Prepared, sid: Sid) {
        let mut plugins = self.plugins.write().unwrap_or_else(PoisonError::into_inner);
        self.put_among(&mut plugins, Prepared { sid, ..prepared });
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

    fn prepared(
        &self,
        spec: &PluginSpec<'_>,
        policy: &Arc<dyn SecurityServer>,
        access: &AccessCheck,
    ) -> Result<Prepared, LoadError> {
        let sid = policy
            .context_to_sid(spec.context)
            .map_err(|error| LoadError::Label { context: spec.context.to_owned(), error })?;
        let trusted = self.may_load((spec.name, spec.target), sid, access)?;
        let (code, loaded) = self.compiler.compile(spec, trusted)?;
        let name = spec.name.to_owned();
        let prepared =
            Prepared { name, sid, target: spec.target, limits: spec.limits, code, loaded };
        // One instance shows that the interface is there.
        let trial = self.plugin(&prepared, &Arc::default());
        prepared.code.instantiate(&trial).map_err(|error| LoadError::Interface {
            name: spec.name.to_owned(),
            what: error.to_string(),
        })?;
        Ok(prepared)
    }

    fn plugin(&self, prepared: &Prepared, shared: &Arc<Shared>) -> Arc<Plugin> {
        Arc::new(Plugin {
            name: prepared.name.clone(),
            sid: prepared.sid,
            limits: prepared.limits,
            access: Arc::clone(&self.access),
            labels: Arc::clone(&self.labels),
            shared: Arc::clone(shared),
        })
    }

    fn put_among(&self, plugins: &mut Entries, prepared: Prepared) -> Loaded {
        let is_same = |entry: &&Arc<Entry>| entry.version.load().plugin.sid == prepared.sid;
        let same = plugins.get(&prepared.name).filter(is_same).cloned();
        let shared = same.as_ref().map_or_else(Arc::default, |entry| Arc::clone(&entry.shared));
        let number = same.as_ref().map_or(1, |entry| entry.version.load().number + 1);
        let plugin = self.plugin(&prepared, &shared);
        let Prepared { name, target, code, loaded, .. } = prepared;
        let idle_quota = self.compiler.idle_quota(target);
        let version = Arc::new(Version::new(plugin, code, (target, number), idle_quota));
        if let Some(entry) = same {
            entry.version.store(version);
        } else {
            let entry = Entry { version: ArcSwap::new(version), shared: Arc::clone(&shared) };
            if let Some(other) = plugins.insert(name, Arc::new(entry)) {
                other.shared.gone.store(true, Relaxed);
            }
        }
        shared.newest.store(number, Relaxed);
        loaded
    }

    fn may_load(
        &self,
        (name, target): (&str, Target),
        tsid: Sid,
        access: &AccessCheck,
    ) -> Result<Trusted, LoadError> {
        let question = Question { ssid: self.own, tsid, tclass: Class::Plugin };
        let (requested, permission) = target.permission();
        let granted = access.allows(name, question, requested, &Hint::default(), || None);
        let denied = || LoadError::Denied { plugin: name.to_owned(), permission };
        granted.then(Trusted::by_policy).ok_or_else(denied)
    }
}

fn missing(name: &str) -> LoadError {
    LoadError::Name(format!("there is no plugin `{name}` to replace"))
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
