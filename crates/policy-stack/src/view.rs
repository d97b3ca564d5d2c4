//! The labels of files as a subject sees them: those of the run, and of the runs inside that it
//! belongs to.

use crate::{
    Layer,
    stack::{Compound, Stack},
};
use flask::{FileKind, InitialSid, Sid};
use inode_labels::{FileRef, Label, Labels, Making, Status, known_as};
use rustix::io::{Errno, Result};
use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    sync::Arc,
};

/// The labels of files, for one subject.
pub struct LabelView<'a> {
    outer: &'a Labels,
    stack: &'a Stack,
    /// `None` if the subject is of a run inside that is gone: it gets no label.
    layers: Option<Vec<Arc<Layer>>>,
}

impl<'a> LabelView<'a> {
    /// As `ssid` sees them, whose label in the policy of the run is one of `outer`.
    pub fn new(outer: &'a Labels, stack: &'a Stack, ssid: Sid) -> Self {
        Self { outer, stack, layers: stack.layers(ssid) }
    }

    /// As [`Labels::of_file`]; what is just being made gets its label first.
    pub fn of_file(
        &self,
        status: &Status,
        file: FileRef<'_>,
        path: impl FnOnce() -> Result<PathBuf>,
    ) -> Result<Arc<Label>> {
        let layers = self.layers.as_ref().ok_or(Errno::ACCESS)?;
        let path = || path().inspect(|path| self.outer.await_made(path));
        if layers.is_empty() {
            let label = self.outer.of_file(status, file, path)?;
            return match label.also() {
                [] => Ok(label),
                also => self.composed(&label, also, Vec::new()),
            };
        }
        // It is found out once, by whoever needs it first.
        let mut found: Option<Result<PathBuf>> = None;
        let mut path = Some(path);
        let mut once = || {
            let made = found.get_or_insert_with(|| path.take().map_or(Err(Errno::IO), |it| it()));
            made.clone()
        };
        let outer = self.outer.of_file(status, file, &mut once)?;
        let mut inner = Vec::with_capacity(layers.len());
        for layer in layers {
            let label = layer.labels.of_file(status, file, &mut once)?;
            inner.push((layer.number, label.sid));
        }
        self.composed(&outer, outer.also(), inner)
    }

    fn composed(&self, of: &Label, also: &[Sid], inner: Vec<(u32, Sid)>) -> Result<Arc<Label>> {
        let compound = Compound { outer: of.sid, also: also.to_vec(), inner };
        let sid = self.stack.compose(compound).ok_or(Errno::ACCESS)?;
        Ok(Arc::new(of.relabelled(sid)))
    }

    /// As [`Labels::of_path`]; of a run inside that is gone, what nobody may use.
    pub fn of_path(&self, path: &Path, kind: FileKind) -> Sid {
        self.compose(self.outer.of_path(path, kind), |layer| layer.labels.of_path(path, kind))
    }

    /// The same for a file that may be in a repository already.
    pub fn of_place(&self, path: &Path, kind: FileKind) -> Sid {
        let named = known_as(path);
        let named = named.as_deref().unwrap_or(path);
        let of = |labels: &Labels| labels.of_path_by_names(path, named, kind);
        self.compose(of(self.outer), |layer| of(&layer.labels))
    }

    /// The labels `outer` and, in each layer, what `inner` says.
    pub fn compose(&self, outer: Sid, inner: impl Fn(&Layer) -> Sid) -> Sid {
        let layers = self.layers.as_ref();
        let inner = layers.map(|layers| layers.iter().map(|it| (it.number, inner(it))).collect());
        let composed = inner
            .and_then(|inner| self.stack.compose(Compound { inner, ..Compound::plain(outer) }));
        composed.unwrap_or_else(|| InitialSid::Unlabeled.into())
    }

    /// As [`Self::compose`], where a layer may have no label.
    pub fn try_compose(&self, outer: Sid, inner: impl Fn(&Layer) -> Result<Sid>) -> Result<Sid> {
        let layers = self.layers.as_ref().ok_or(Errno::ACCESS)?;
        let inner = layers.iter().map(|layer| Ok((layer.number, inner(layer)?)));
        let inner = inner.collect::<Result<_>>()?;
        self.stack.compose(Compound { inner, ..Compound::plain(outer) }).ok_or(Errno::ACCESS)
    }

    /// As [`Labels::agree`]: by the rules of all.
    pub fn agree(&self, from: &Path, to: &Path) -> bool {
        let inner = |layers: &Vec<Arc<Layer>>| layers.iter().all(|it| it.labels.agree(from, to));
        self.outer.agree(from, to) && self.layers.as_ref().is_some_and(inner)
    }

    /// As [`Labels::is_even_below`]: by the rules of all.
    pub fn is_even_below(&self, dir: &Path) -> bool {
        let inner = |layers: &Vec<Arc<Layer>>| layers.iter().all(|it| it.labels.is_even_below(dir));
        self.outer.is_even_below(dir) && self.layers.as_ref().is_some_and(inner)
    }

    /// As [`Labels::making`].
    pub fn making(&self, name: &OsStr) -> Making<'a> {
        self.outer.making(name)
    }

    /// As [`Labels::created`]. That of the run comes last: who finds it finds all.
    pub fn created(&self, status: &Status, file: FileRef<'_>, sid: Sid) {
        let (Some(layers), Some(parts)) = (&self.layers, self.stack.parts(sid)) else { return };
        for layer in layers {
            if let Some(part) = parts.part(layer.number) {
                layer.labels.created(status, file, part);
            }
        }
        self.outer.created(status, file, parts.outer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flask::FileRule;
    use labelling::PathRules;
    use security_server::Server;
    use std::{fs::File, os::fd::AsFd as _, sync::mpsc, time::Duration};

    #[test]
    fn what_is_met_while_it_is_made_has_the_label_that_it_is_made_with() {
        let server = "(class file (open)) (classorder (file)) (user u) (role r) (userrole u r)
            (type t) (roletype r t) (sid kernel) (sid init) (sidorder (kernel init))
            (sidcontext kernel (u r t)) (sidcontext init (u r t))";
        let stack = Stack::new(Arc::new(Server::from_cil(&[("test", server)]).unwrap()));
        let by_rule = Sid::new(101).unwrap();
        let rule = FileRule { path: "/.*".into(), kind: FileKind::Any, sid: Some(by_rule) };
        let labels = Labels::new(PathRules::new(&[rule]).unwrap());
        let view = LabelView::new(&labels, &stack, by_rule);
        let (file, own_fds) = (File::open("/proc/self/exe"), File::open("/proc/self/fd"));
        let (file, own_fds) = (file.unwrap(), own_fds.unwrap());
        let status = Status::of(file.as_fd()).unwrap();
        let at = FileRef::Open(file.as_fd(), own_fds.as_fd());
        let (met, is_met) = mpsc::channel();
        std::thread::scope(|scope| {
            let making = view.making(OsStr::new("new"));
            let _other = view.making(OsStr::new("other"));
            scope.spawn(|| {
                let view = LabelView::new(&labels, &stack, by_rule);
                let label = view.of_file(&status, at, || Ok("/a/new".into())).unwrap();
                met.send(label.sid).unwrap();
            });
            assert!(is_met.recv_timeout(Duration::from_millis(200)).is_err(), "it has a label");
            let own = Sid::new(109).unwrap();
            view.created(&status, at, own);
            drop(making);
            assert_eq!(is_met.recv_timeout(Duration::from_secs(60)), Ok(own));
        });
    }
}
