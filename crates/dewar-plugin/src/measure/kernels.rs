//! Kernels as plugins.

use super::trial::{Trial, limits};
use bench::{
    interleaved::Stopwatch,
    kernels::{Callable, Implementation, Kernel},
};
use plugin_host::{PLUGIN_CONTEXT, PluginSpec, Session, Target};
use std::{rc::Rc, time::Duration};

/// Our own compiler, for one target.
pub(super) struct Own {
    trial: Rc<Trial>,
    target: Target,
}

impl Own {
    pub(super) fn new(trial: Rc<Trial>, target: Target) -> Self {
        Self { trial, target }
    }
}

impl Implementation for Own {
    fn name(&self) -> String {
        self.target.name().to_owned()
    }

    fn prepare(&self, kernel: &Kernel) -> Result<Box<dyn Callable>, String> {
        let (plugins, target) = (&self.trial.plugins, self.target);
        let name = format!("{} {target}", kernel.name);
        let spec = PluginSpec::new(&name, PLUGIN_CONTEXT, kernel.text);
        let loaded = plugins.load(&PluginSpec { target, limits: limits(), ..spec });
        let code_bytes = loaded.map_err(|error| error.to_string())?.code_bytes;
        let session = plugins.session(&name).map_err(|failure| failure.to_string())?;
        Ok(Box::new(Plugin { trial: Rc::clone(&self.trial), name, session, code_bytes, length: 0 }))
    }
}

struct Plugin {
    trial: Rc<Trial>,
    name: String,
    session: Session,
    code_bytes: usize,
    length: usize,
}

impl Callable for Plugin {
    fn fill(&mut self, request: &[u8]) -> Result<(), String> {
        self.session.fill(request).map_err(|failure| failure.to_string())
    }

    fn run(&mut self, times: u32) -> Result<Duration, String> {
        let start = Stopwatch::start();
        for _ in 0..times {
            self.length = self.session.run().map_err(|failure| failure.to_string())?;
        }
        Ok(start.elapsed())
    }

    fn reply(&mut self) -> Result<Vec<u8>, String> {
        Ok(self.session.reply(self.length).to_vec())
    }

    fn code_bytes(&self) -> Option<usize> {
        Some(self.code_bytes)
    }
}

impl Drop for Plugin {
    fn drop(&mut self) {
        self.trial.plugins.unload(&self.name);
    }
}
