//! The plugins of a new configuration. All are compiled before anything changes; then they come
//! into force in one step, so that no answer goes without one that both configurations have.

use super::{Changes, Plugin, PluginError, Plugins, Text, in_file, no_rival, read};
use crate::config::{Config, PluginConfig};
use flask::{InitialSid, SecurityServer, Sid};
use plugin_host::{PLUGIN_CONTEXT, Prepared};
use std::sync::{Arc, MutexGuard};

/// Plugins that a configuration names, compiled, in its order.
pub(crate) struct Compiled(Vec<(String, PluginConfig, Prepared)>);

/// Plugins that are to come into force. Nobody else changes plugins meanwhile.
pub(crate) struct Following<'p> {
    plugins: &'p Plugins,
    changes: MutexGuard<'p, Changes>,
    compiled: Compiled,
    /// Those that were loaded by hand stay.
    stay: Vec<Arc<Plugin>>,
    /// What the configuration before named, and this one does not.
    gone: Vec<Arc<Plugin>>,
}

impl Plugins {
    /// Compiles the plugins that `config` names, as `policy` lets them.
    pub(crate) fn compiled(
        &self,
        config: &Config,
        policy: &Arc<dyn SecurityServer>,
    ) -> Result<Compiled, PluginError> {
        let mut compiled = Vec::new();
        for (name, plugin) in &config.plugins {
            let named = config.plugins.iter().map(|(name, config)| (name.as_str(), config));
            no_rival(name, plugin, named)?;
            let path = config.path(&plugin.file);
            let source = read(&path)?;
            let prepared = Text::of(name, &source)
                .and_then(|text| Ok(self.host.prepare(&text.spec(name, plugin)?, policy)?));
            let prepared = prepared.map_err(|error| in_file(&path, error))?;
            compiled.push((name.clone(), plugin.clone(), prepared));
        }
        Ok(Compiled(compiled))
    }

    /// What was compiled is to take the place of the plugins that `before` names.
    pub(crate) fn following(
        &self,
        compiled: Compiled,
        before: &Config,
    ) -> Result<Following<'_>, PluginError> {
        let (changes, all) = (self.changes(), self.all());
        let others = all.iter().filter(|it| compiled.0.iter().all(|(name, ..)| *name != it.name));
        let (gone, stay): (Vec<_>, Vec<_>) =
            others.cloned().partition(|it| before.plugins.contains_key(&it.name));
        for (name, plugin, _) in &compiled.0 {
            no_rival(name, plugin, stay.iter().map(|it| (it.name.as_str(), &it.config)))?;
        }
        Ok(Following { plugins: self, changes, compiled, stay, gone })
    }
}

impl Following<'_> {
    /// Brings them into force. The policy that they were compiled for holds.
    pub(crate) fn install(mut self) {
        let (plugins, before) = (self.plugins, self.plugins.all());
        let changes = &mut *self.changes;
        let mut all = Vec::new();
        for (name, config, prepared) in self.compiled.0 {
            let context = config.label.as_deref().unwrap_or(PLUGIN_CONTEXT);
            // Its label was found to be one. If it has none all the same, nothing is granted to it.
            let none = |_| Sid::from(InitialSid::Unlabeled);
            let sid = plugins.manager.sid(context).unwrap_or_else(none);
            plugins.host.put(prepared, sid);
            changes.asked += 1;
            changes.turns.insert(name.clone(), changes.asked);
            let same = before.iter().find(|it| it.name == name && it.config == config).cloned();
            all.push(
                same.unwrap_or_else(|| plugins.plugin(&mut changes.next, (&name, &config), sid)),
            );
        }
        all.append(&mut self.stay);
        // First nobody calls them any more, then they go.
        plugins.install(all);
        for plugin in self.gone {
            changes.turns.remove(&plugin.name);
            plugins.host.unload(&plugin.name);
        }
    }
}
