//! The plugins of a new configuration. All are compiled before anything changes; then they come
//! into force in one step, so that no answer goes without one that both configurations have.

use super::{Plugin, PluginError, Plugins, Text, in_file, no_rival, read};
use crate::config::{Config, PluginConfig};
use flask::{InitialSid, SecurityServer, Sid};
use plugin_host::{PLUGIN_CONTEXT, Prepared};
use std::sync::{Arc, MutexGuard, PoisonError};

/// Plugins that are to come into force. Nobody else changes plugins meanwhile.
pub(crate) struct Following<'p> {
    plugins: &'p Plugins,
    next: MutexGuard<'p, u32>,
    /// In the order of the configuration.
    prepared: Vec<(String, PluginConfig, Prepared)>,
    /// Those that were loaded by hand stay.
    stay: Vec<Arc<Plugin>>,
    /// What the configuration before named, and this one does not.
    gone: Vec<Arc<Plugin>>,
}

impl Plugins {
    /// Compiles the plugins that `config` names, in the place of those of `before`, as `policy`
    /// lets them.
    pub(crate) fn following(
        &self,
        config: &Config,
        before: &Config,
        policy: &Arc<dyn SecurityServer>,
    ) -> Result<Following<'_>, PluginError> {
        let next = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let all = self.all();
        let others = all.iter().filter(|it| !config.plugins.contains_key(&it.name)).cloned();
        let (gone, stay): (Vec<_>, Vec<_>) =
            others.partition(|it| before.plugins.contains_key(&it.name));
        let mut prepared = Vec::new();
        for (name, plugin) in &config.plugins {
            let named = config.plugins.iter().map(|(name, config)| (name.as_str(), config));
            let stay = stay.iter().map(|it: &Arc<Plugin>| (it.name.as_str(), &it.config));
            no_rival(name, plugin, named.chain(stay))?;
            let path = config.path(&plugin.file);
            let source = read(&path)?;
            let compiled = Text::of(name, &source)
                .and_then(|text| Ok(self.host.prepare(&text.spec(name, plugin)?, policy)?));
            let compiled = compiled.map_err(|error| in_file(&path, error))?;
            prepared.push((name.clone(), plugin.clone(), compiled));
        }
        Ok(Following { plugins: self, next, prepared, stay, gone })
    }
}

impl Following<'_> {
    /// Brings them into force. The policy that they were compiled for holds.
    pub(crate) fn install(mut self) {
        let (plugins, before) = (self.plugins, self.plugins.all());
        let mut all = Vec::new();
        for (name, config, prepared) in self.prepared {
            let context = config.label.as_deref().unwrap_or(PLUGIN_CONTEXT);
            // Its label was found to be one. If it has none all the same, nothing is granted to it.
            let none = |_| Sid::from(InitialSid::Unlabeled);
            let sid = plugins.manager.sid(context).unwrap_or_else(none);
            plugins.host.put(prepared, sid);
            let same = before.iter().find(|it| it.name == name && it.config == config).cloned();
            all.push(same.unwrap_or_else(|| plugins.plugin(&mut self.next, (&name, &config), sid)));
        }
        all.append(&mut self.stay);
        // First nobody calls them any more, then they go.
        plugins.install(all);
        for plugin in self.gone {
            plugins.host.unload(&plugin.name);
        }
    }
}
