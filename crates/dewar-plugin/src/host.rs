//! The host that the commands load plugins into, and its policy.

use cli::{
    args::plugin::HostArgs,
    failure::{Usage, shown},
    output::tell,
};
use flask::{SecurityServer, visible};
use plugin_host::{
    Cache, HOST_CONTEXT, Limits, LoadError, Loaded, PluginHost, PluginSpec, Target, base_policy,
};
use security_server::Server;
use std::{fs, sync::Arc, time::Duration};

/// The limits that the arguments set.
pub(crate) fn limits(args: &HostArgs) -> Limits {
    Limits {
        call_time: Duration::from_millis(args.time_ms),
        memory_bytes: args.memory_bytes,
        output_bytes: args.output_bytes,
        ..Limits::default()
    }
}

/// A host under the policy that the arguments make.
pub(crate) fn host(args: &HostArgs, targets: &[Target]) -> anyhow::Result<Host> {
    let mut files = vec![("plugins.cil".to_owned(), base_policy())];
    for path in &args.policies {
        let name = path.display().to_string();
        let text = fs::read_to_string(path);
        files.push((name.clone(), text.map_err(|error| Usage(format!("{name}: {error}")))?));
    }
    // Asking for a target on the command line is giving leave.
    for (_, permission) in targets.iter().map(|target| target.permission()) {
        let rule = format!("(allow host_t plugin_t (plugin ({permission})))");
        files.push(("--target".to_owned(), rule));
    }
    Host::new(&files, if args.no_cache { None } else { open_cache() })
}

/// The user's cache; without it, with a warning, if it cannot be used.
fn open_cache() -> Option<Cache> {
    match Cache::open(&Cache::user_path()?, Cache::DEFAULT_BYTES) {
        Ok(cache) => Some(cache),
        Err(error) => {
            tell!("dewar: {error}");
            None
        }
    }
}

/// A host with its security server.
pub(crate) struct Host {
    pub(crate) plugins: PluginHost,
    server: Arc<Server>,
}

impl Host {
    fn new(files: &[(String, String)], cache: Option<Cache>) -> anyhow::Result<Self> {
        let server = Arc::new(Server::from_cil(files)?);
        let own = server.context_to_sid(HOST_CONTEXT).map_err(|e| Usage(e.to_string()))?;
        let shared = Arc::clone(&server) as Arc<dyn SecurityServer>;
        Ok(Self { plugins: PluginHost::with_cache(shared, own, cache)?, server })
    }

    /// Loads a plugin; remarks about its text and the cache go to standard error.
    pub(crate) fn load(&self, spec: &PluginSpec<'_>) -> anyhow::Result<Loaded> {
        let loaded = match self.plugins.load(spec) {
            Ok(loaded) => loaded,
            Err(LoadError::Text(errors)) => return Err(errors.into()),
            Err(error @ LoadError::Engine(_)) => return Err(error.into()),
            Err(error) => {
                self.show_denials();
                return Err(Usage(visible(&error.to_string())).into());
            }
        };
        for remark in &loaded.remarks {
            tell!("{}", shown(remark.clone()));
        }
        if let Some(warning) = &loaded.cache_warning {
            tell!("dewar: {warning}");
        }
        Ok(loaded)
    }

    /// Says on standard error what was denied, and what would allow it.
    pub(crate) fn show_denials(&self) {
        for denial in self.plugins.denials() {
            let permissions = denial.permissions().collect::<Vec<_>>().join(" ");
            let context = |sid| self.server.sid_to_context(sid).unwrap_or_default();
            let object = denial.object.as_deref();
            let object = object.map_or_else(String::new, |name| format!(" on {}", visible(name)));
            let verb = if denial.permissive { "lacks, but was let" } else { "may not" };
            tell!("dewar: {} {verb} {permissions}{object}", denial.plugin);
            tell!("  subject      {}", context(denial.question.ssid));
            let class = denial.question.tclass;
            tell!("  object       {} ({class})", context(denial.question.tsid));
            let Ok(why) = denial.explain(&*self.server) else { continue };
            tell!("  why          {}", why.reason);
            if let Some(rule) = why.would_allow {
                tell!("  would allow  {rule}");
            }
        }
    }

    /// Says on standard error what the plugin logged, without a character that could steer a
    /// terminal.
    pub(crate) fn show_log(&self, name: &str) {
        for line in self.plugins.log(name) {
            tell!("{}", visible(&line));
        }
    }
}
