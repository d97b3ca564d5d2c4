//! Which file and which plugin a request is for.

use super::{Answer, Ask, Body, Failure, Responder};
use crate::{
    clock::{now_ms, passed},
    config::Kind,
    files::{Served, ServedPath, within},
    http::path::{self, RequestTarget},
    listing,
    plugins::Binding,
};
use flask::Sid;
use rustix::{fd::OwnedFd, io::Errno};
use std::sync::{Arc, atomic::Ordering::Relaxed};

/// Paths that one worker remembers.
const MOST: usize = 2048;

/// What a path was found to mean.
#[derive(Clone)]
pub(super) struct Known {
    /// The plugin by its route.
    pub(super) binding: Option<Arc<Binding>>,
    pub(super) file: Arc<Served>,
    /// Where it lies beneath ROOT.
    pub(super) path: Arc<[u8]>,
    /// Until when this holds.
    until: u32,
}

/// Where a request leads.
enum Resolved {
    File(Known),
    Answer(Answer),
    Handler(Arc<Binding>),
}

/// A path between slashes, as routes are compared with it.
pub(super) fn slashed(path: &[u8]) -> Vec<u8> {
    [b"/", path, b"/"].concat()
}

impl Responder {
    pub(super) fn answer(&mut self, ask: &Ask<'_>) -> Result<Answer, Failure> {
        let path = ask.path();
        let now = now_ms();
        let known = self.known.get(path.as_bytes());
        let place = match known.filter(|known| !passed(known.until, now)) {
            Some(known) => Resolved::File(known.clone()),
            None => self.resolve(path, now, ask.label)?,
        };
        match place {
            Resolved::Handler(binding) => self.handled(ask, &binding),
            _ if ask.method == "OPTIONS" => {
                self.fields.extend_from_slice(b"Allow: GET, HEAD, OPTIONS\r\n");
                Ok(Answer::new(204, Body::Empty))
            }
            _ if !matches!(ask.method, "GET" | "HEAD") => Err(Failure(405)),
            Resolved::File(known) => {
                let lies = self.bindings.has_heads().then(|| Arc::clone(&known.path));
                Ok(Answer { lies, ..self.content(ask, &known)? })
            }
            Resolved::Answer(answer) => Ok(answer),
        }
    }

    /// Whether a request's body is wanted: a handler's is.
    pub(crate) fn wants_body(&self, target: &str) -> bool {
        let path = target.split('?').next().unwrap_or_default();
        let decoded = path::decode(path.as_bytes());
        decoded.is_ok_and(|target| {
            let binding = self.bindings.by_path(&slashed(&target.path));
            binding.is_some_and(|binding| binding.config.kind == Kind::Handler)
        })
    }

    fn resolve(&mut self, raw: &str, now: u32, label: Sid) -> Result<Resolved, Failure> {
        if raw == "*" {
            return Ok(Resolved::Answer(Answer::new(404, Body::Empty)));
        }
        let target = path::decode(raw.as_bytes()).map_err(|refusal| Failure(refusal.status))?;
        let binding = self.bindings.by_path(&slashed(&target.path)).cloned();
        let mut at = target.path.as_slice();
        if let Some(binding) = &binding {
            if binding.config.kind == Kind::Handler {
                return Ok(Resolved::Handler(Arc::clone(binding)));
            }
            let route = binding.config.route.as_deref().unwrap_or_default();
            at = at.get(route.len() - 1..).unwrap_or_default();
        }
        // One file is kept once, in however many ways clients write its path.
        let raw = target.canonical();
        let raw = raw.as_str();
        let known = self.known.get(raw.as_bytes()).map(|known| Arc::clone(&known.file));
        let files = &self.site.files;
        match files.find(at, known.as_ref()) {
            Ok(ServedPath::File(_)) if target.is_dir => Err(Failure(404)),
            Ok(ServedPath::File(file)) => {
                Ok(Resolved::File(self.learn(raw, now, (binding, file, at))))
            }
            Ok(ServedPath::Directory(fd)) if target.is_dir => {
                self.directory(raw, (now, label), (binding, fd, at))
            }
            Ok(ServedPath::Directory(_)) => Ok(Resolved::Answer(self.moved(&target))),
            Err(error) => {
                self.known.remove(raw.as_bytes());
                Err(status(error))
            }
        }
    }

    fn directory(
        &mut self,
        raw: &str,
        (now, label): (u32, Sid),
        (binding, fd, at): (Option<Arc<Binding>>, OwnedFd, &[u8]),
    ) -> Result<Resolved, Failure> {
        let site = Arc::clone(&self.site);
        for name in &site.config.index {
            let path = within(at, name.as_bytes());
            match site.files.find(&path, None) {
                Ok(ServedPath::File(file)) => {
                    return Ok(Resolved::File(self.learn(raw, now, (binding, file, &path))));
                }
                Ok(ServedPath::Directory(_)) | Err(Errno::NOENT | Errno::NOTDIR) => {}
                Err(error) => return Err(status(error)),
            }
        }
        if !site.config.list {
            return Err(Failure(404));
        }
        if !self.has_room {
            return Err(Failure(503));
        }
        let lists = site.files.lists(label, (&fd, at)).map_err(status)?;
        let page = listing::page(&fd, at, lists).map_err(status)?;
        self.fields.extend_from_slice(b"Content-Type: text/html; charset=utf-8\r\n");
        let lies = self.bindings.has_heads().then(|| at.into());
        Ok(Resolved::Answer(Answer { lies, ..Answer::new(200, Body::Own(page.into())) }))
    }

    /// A directory's name without the slash: relative links in its page would lead elsewhere.
    fn moved(&mut self, target: &RequestTarget) -> Answer {
        let location = format!("Location: /{}/\r\n", path::encode(&target.path));
        self.fields.extend_from_slice(location.as_bytes());
        Answer::new(301, Body::Empty)
    }

    fn learn(
        &mut self,
        raw: &str,
        now: u32,
        (binding, file, path): (Option<Arc<Binding>>, Arc<Served>, &[u8]),
    ) -> Known {
        if self.known.len() >= MOST {
            // Any of them: which are asked for again, nobody knows.
            let some: Vec<_> = self.known.keys().take(MOST / 8).cloned().collect();
            some.iter().for_each(|key| drop(self.known.remove(key)));
        }
        let until = now.wrapping_add(self.site.config.revalidate_ms.min(3_600_000));
        let known = Known { binding, file, path: path.into(), until };
        self.known.insert(raw.as_bytes().into(), known.clone());
        known
    }

    /// Forgets files if more of their content is kept than may be.
    pub(super) fn keep_within_bounds(&mut self) {
        if self.shared.images.load(Relaxed) > self.site.config.limits.image_bytes {
            self.forget();
        }
    }

    #[cold]
    fn forget(&mut self) {
        self.known.clear();
        self.pool.clear();
    }
}

pub(super) fn status(error: Errno) -> Failure {
    Failure(match error {
        Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG | Errno::INVAL | Errno::NXIO => 404,
        // Outside of ROOT, too many links, or not ours to read.
        Errno::ACCESS | Errno::PERM | Errno::XDEV | Errno::LOOP => 403,
        Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::AGAIN => 503,
        _ => 500,
    })
}
