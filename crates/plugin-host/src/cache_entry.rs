//! The cache's entry for the machine code of one plugin, if there is a cache.

use crate::{
    cache::{Cache, Key, Lookup},
    origin::Origin,
    sys,
};
use wasmtime::{Engine, Module};

/// The entry for one plugin's code.
pub(crate) struct CacheEntry<'c> {
    at: Option<(&'c Cache, Key)>,
    engine: &'c Engine,
    name: &'c str,
}

/// Code that lay there.
pub(crate) struct CachedModule {
    pub(crate) module: Module,
    /// There are remarks about the text that it was made of.
    pub(crate) remarked: bool,
}

impl<'c> CacheEntry<'c> {
    /// The entry for what `engine` makes of `origin` for the plugin `name`.
    pub(crate) fn of(
        cache: Option<&'c Cache>,
        engine: &'c Engine,
        origin: &Origin<'_>,
        name: &'c str,
    ) -> Self {
        Self { at: cache.map(|cache| (cache, origin.key(engine))), engine, name }
    }

    /// The code; without it, what is wrong with what lies there, if something does.
    pub(crate) fn find(&self) -> Result<CachedModule, Option<String>> {
        let Some((cache, key)) = &self.at else { return Err(None) };
        let wrong = match cache.find(key) {
            Lookup::Found(code) => match sys::deserialize(self.engine, &code) {
                Some(module) => return Ok(CachedModule { module, remarked: code.remarked() }),
                None => "does not fit this engine",
            },
            Lookup::Altered => "was altered",
            Lookup::Missing => return Err(None),
        };
        let path = cache.path().display();
        Err(Some(format!("the code of `{}` in {path} {wrong}; it is compiled anew", self.name)))
    }

    /// Puts `module` there; why that was not possible.
    pub(crate) fn keep(&self, module: &Module, remarked: bool) -> Option<String> {
        let (cache, key) = self.at.as_ref()?;
        let kept = module.serialize().map_err(|error| format!("{error:#}")).and_then(|code| {
            cache.keep(key, self.name, remarked, &code).map_err(|error| error.to_string())
        });
        let path = cache.path().display();
        kept.err().map(|error| format!("{path} cannot be written: {error}"))
    }
}
