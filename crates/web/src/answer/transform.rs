//! Content that a plugin makes of a file.

use super::{Answer, Ask, Body, Failure, Responder, resolve::Known, resolve::status};
use crate::{
    clock::now_ms,
    http::{accept::quality, head::field},
    plugins::Binding,
    pool::Lease,
};
use plugin_host::CallFailure;
use rustix::io::Errno;
use std::{io, sync::Arc, time::Instant};

impl Responder {
    /// The plugin that transforms what this path leads to: that of the route, or one for this type
    /// of content. One that does not negotiate may be there to keep something back: no client
    /// passes it by another path or by what it accepts.
    pub(super) fn transformer(
        &mut self,
        ask: &Ask<'_>,
        known: &Known,
    ) -> Result<Option<Arc<Binding>>, Failure> {
        let (media, bindings) = (known.file.essence(), Arc::clone(&self.bindings));
        let candidates = bindings.by_media(media);
        let filter = candidates.iter().find(|binding| !binding.config.negotiate);
        match (known.binding.as_ref(), filter) {
            (Some(binding), Some(filter)) => {
                binding.counters[self.index].denied.add(1);
                let why = format!("`{}` is for everything of type {media}", filter.name);
                self.complain(ask, binding, &why);
                return Err(Failure(403));
            }
            (binding @ Some(_), None) | (None, binding @ Some(_)) => return Ok(binding.cloned()),
            (None, None) => {}
        }
        if !candidates.is_empty() {
            self.fields.extend_from_slice(b"Vary: Accept\r\n");
        }
        let accept = field(ask.fields, "accept");
        let suits = |binding: &&Arc<Binding>| {
            let gives = binding.config.gives.as_deref();
            accept
                .zip(gives)
                .is_some_and(|(accept, gives)| quality(accept, gives) > quality(accept, media))
        };
        Ok(candidates.iter().find(suits).cloned())
    }

    pub(super) fn transformed(
        &mut self,
        ask: &Ask<'_>,
        known: &Known,
        binding: &Arc<Binding>,
    ) -> Result<Answer, Failure> {
        let (file, manager) = (&known.file, &self.shared.manager);
        let may = self.may_answer(ask, binding)
            && manager.may_read(binding.sid, file.sid, &binding.file_hint, &known.path);
        if !may {
            binding.counters[self.index].denied.add(1);
            return Err(Failure(403));
        }
        let most = self.site.config.limits.image_bytes;
        if file.len > most as u64 {
            let why =
                format!("the file is longer than what is kept for plugins (image_bytes = {most})");
            self.complain(ask, binding, &why);
            return Err(Failure(503));
        }
        if !self.has_room {
            return Err(Failure(503));
        }
        let mut lease = self.lease(ask, binding)?;
        let image = file.image().map_err(|error| not_read(&error))?;
        let begun = Instant::now();
        let ran = lease.session.view(image).and_then(|()| lease.session.run_on(&file.version));
        // Whatever came of it, the image is there.
        self.keep_within_bounds();
        let len = self.ran(ask, binding, begun, ran)?;
        let counters = &binding.counters[self.index];
        counters.bytes_in.add(file.len);
        counters.bytes_out.add(len as u64);
        if len == 0 {
            // Nothing is no content. What there was before is not sent instead: the plugin may be
            // there to keep it.
            self.complain(ask, binding, "it replied nothing");
            self.pool.give_back(lease);
            return Err(Failure(502));
        }
        let media = binding.config.gives.as_deref().unwrap_or(&file.media);
        self.fields.extend_from_slice(b"Content-Type: ");
        self.fields.extend_from_slice(media.as_bytes());
        self.fields.extend_from_slice(b"\r\n");
        let plugin = Some(Arc::clone(binding));
        Ok(Answer { plugin, ..Answer::new(200, Body::Reply(lease, len)) })
    }

    /// Whether a plugin may see this request and answer it.
    pub(super) fn may_answer(&self, ask: &Ask<'_>, binding: &Binding) -> bool {
        let hint = &binding.request_hint;
        self.shared.manager.may_answer(binding.sid, ask.label, hint, ask.target.as_bytes())
    }

    /// An instance of a plugin.
    pub(super) fn lease(
        &mut self,
        ask: &Ask<'_>,
        binding: &Arc<Binding>,
    ) -> Result<Lease, Failure> {
        let lease = self.pool.take(&self.shared.plugins, binding);
        lease.map_err(|failure| self.failed(ask, binding, &failure))
    }

    /// Counts a call; how long its reply is.
    pub(super) fn ran(
        &mut self,
        ask: &Ask<'_>,
        binding: &Arc<Binding>,
        begun: Instant,
        ran: Result<usize, CallFailure>,
    ) -> Result<usize, Failure> {
        let counters = &binding.counters[self.index];
        counters.calls.add(1);
        counters.nanos.add(begun.elapsed().as_nanos() as u64);
        ran.map_err(|failure| {
            counters.faults.add(1);
            self.failed(ask, binding, &failure)
        })
    }

    #[cold]
    fn failed(&self, ask: &Ask<'_>, binding: &Binding, failure: &CallFailure) -> Failure {
        let limits = binding.config.limits();
        let limit = match failure {
            CallFailure::Timeout(_) => format!(" (time_ms = {})", limits.call_time.as_millis()),
            CallFailure::BadReply(_) => format!(" (reply_bytes = {})", limits.output_bytes),
            CallFailure::NoRoom(_) => format!(" (memory_bytes = {})", limits.memory_bytes),
            CallFailure::Quarantined => {
                format!(" on this (faults = {}): it is called again after a minute", limits.faults)
            }
            _ => String::new(),
        };
        // One that was unloaded meanwhile did nothing wrong.
        if !matches!(failure, CallFailure::Unknown(_)) || !self.is_outdated() {
            self.complain(ask, binding, &format!("{failure}{limit}"));
        }
        Failure(match failure {
            CallFailure::Denied => 403,
            CallFailure::Unknown(_) | CallFailure::Quarantined | CallFailure::NoRoom(_) => 503,
            CallFailure::Timeout(_) => 504,
            _ => 502,
        })
    }

    #[cold]
    pub(super) fn complain(&self, ask: &Ask<'_>, binding: &Binding, what: &str) {
        let Some(untold) = binding.complaints.take(now_ms()) else { return };
        let logged = self.shared.plugins.host.log(&binding.name);
        let last = logged.last().map_or(String::new(), |line| format!("; its last words: {line}"));
        let untold = match untold {
            0 => String::new(),
            count => format!("; {count} more since the last line about it"),
        };
        let text = format!(
            "plugin {} on {} {}: {what}{last}{untold}",
            binding.name, ask.method, ask.target
        );
        self.shared.report(&text);
    }
}

#[cold]
fn not_read(error: &io::Error) -> Failure {
    error.raw_os_error().map_or(Failure(500), |code| status(Errno::from_raw_os_error(code)))
}
