//! What plugins are for, made for looking up.

use super::Plugin;
use crate::config::Kind;
use avc::Hint;
use foldhash::HashMap;
use std::{ops::Deref, sync::Arc};

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
    pub(super) fn new(all: &[Arc<Plugin>]) -> Self {
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

    /// The plugins for the heads of answers of type `media` to one of these `paths`, each decoded
    /// and between slashes.
    pub(crate) fn by_head<'b>(
        &'b self,
        paths: &'b [Vec<u8>],
        media: &'b str,
    ) -> impl Iterator<Item = &'b Arc<Binding>> {
        self.heads.iter().filter(move |binding| {
            let config = &binding.config;
            let leads = |route: &String| paths.iter().any(|it| it.starts_with(route.as_bytes()));
            config.route.as_ref().is_none_or(leads)
                && config.media.as_ref().is_none_or(|wanted| wanted.eq_ignore_ascii_case(media))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{complaints::Complaints, config::PluginConfig};
    use flask::Sid;

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
