//! The labels of files as a subject sees them: those of the run, and of the runs inside that it
//! belongs to.

use super::{
    Layer,
    stack::{Compound, Stack},
};
use crate::{
    call::Asker,
    label::{Label, Labels, Status},
    manager::Manager,
    repository::known_as,
};
use avc::Hint;
use flask::{AccessVector, Class, FileKind, InitialSid, Question, SecurityServer, Sid};
use rustix::io::{Errno, Result};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

/// The labels of files, for one subject.
pub(crate) struct LabelView<'a> {
    outer: &'a Labels,
    stack: &'a Stack,
    /// `None` if the subject is of a run inside that is gone: it gets no label.
    layers: Option<Vec<Arc<Layer>>>,
}

impl<'a> LabelView<'a> {
    pub(crate) fn new(outer: &'a Labels, stack: &'a Stack, ssid: Sid) -> Self {
        Self { outer, stack, layers: stack.layers(ssid) }
    }

    /// As [`Labels::of_file`].
    pub(crate) fn of_file(
        &self,
        status: &Status,
        path: impl FnOnce() -> Result<PathBuf>,
    ) -> Result<Arc<Label>> {
        let layers = self.layers.as_ref().ok_or(Errno::ACCESS)?;
        if layers.is_empty() {
            return self.outer.of_file(status, path);
        }
        // It is found out once, by whoever needs it first.
        let mut found: Option<Result<PathBuf>> = None;
        let mut path = Some(path);
        let mut once = || {
            let made = found.get_or_insert_with(|| path.take().map_or(Err(Errno::IO), |it| it()));
            made.clone()
        };
        let outer = self.outer.of_file(status, &mut once)?;
        let mut inner = Vec::with_capacity(layers.len());
        for layer in layers {
            inner.push((layer.number, layer.labels.of_file(status, &mut once)?.sid));
        }
        let compound = Compound { outer: outer.sid, inner };
        let sid = self.stack.compose(compound).ok_or(Errno::ACCESS)?;
        Ok(Arc::new(outer.relabelled(sid)))
    }

    /// As [`Labels::of_path`]; of a run inside that is gone, what nobody may use.
    pub(crate) fn of_path(&self, path: &Path, kind: FileKind) -> Sid {
        self.compose(self.outer.of_path(path, kind), |layer| layer.labels.of_path(path, kind))
    }

    /// The same for a file that may be in a repository already.
    pub(crate) fn of_place(&self, path: &Path, kind: FileKind) -> Sid {
        let named = known_as(path);
        let named = named.as_deref().unwrap_or(path);
        let of = |labels: &Labels| labels.of_path_by_names(path, named, kind);
        self.compose(of(self.outer), |layer| of(&layer.labels))
    }

    /// The labels `outer` and, in each layer, what `inner` says.
    pub(crate) fn compose(&self, outer: Sid, inner: impl Fn(&Layer) -> Sid) -> Sid {
        let layers = self.layers.as_ref();
        let inner = layers.map(|layers| layers.iter().map(|it| (it.number, inner(it))).collect());
        let composed = inner.and_then(|inner| self.stack.compose(Compound { outer, inner }));
        composed.unwrap_or_else(|| InitialSid::Unlabeled.into())
    }

    /// As [`Self::compose`], where a layer may have no label.
    pub(crate) fn try_compose(
        &self,
        outer: Sid,
        inner: impl Fn(&Layer) -> Result<Sid>,
    ) -> Result<Sid> {
        let layers = self.layers.as_ref().ok_or(Errno::ACCESS)?;
        let inner = layers.iter().map(|layer| Ok((layer.number, inner(layer)?)));
        let compound = Compound { outer, inner: inner.collect::<Result<_>>()? };
        self.stack.compose(compound).ok_or(Errno::ACCESS)
    }

    /// As [`Labels::agree`]: by the rules of all.
    pub(crate) fn agree(&self, from: &Path, to: &Path) -> bool {
        let inner = |layers: &Vec<Arc<Layer>>| layers.iter().all(|it| it.labels.agree(from, to));
        self.outer.agree(from, to) && self.layers.as_ref().is_some_and(inner)
    }

    /// As [`Labels::is_even_below`]: by the rules of all.
    pub(crate) fn is_even_below(&self, dir: &Path) -> bool {
        let inner = |layers: &Vec<Arc<Layer>>| layers.iter().all(|it| it.labels.is_even_below(dir));
        self.outer.is_even_below(dir) && self.layers.as_ref().is_some_and(inner)
    }

    /// As [`Labels::created`].
    pub(crate) fn created(&self, status: &Status, sid: Sid) {
        let (Some(layers), Some(parts)) = (&self.layers, self.stack.parts(sid)) else { return };
        self.outer.created(status, parts.outer);
        for layer in layers {
            if let Some(part) = parts.part(layer.number) {
                layer.labels.created(status, part);
            }
        }
    }
}

/// A subject under one of its policies.
pub(crate) struct Facet<'a> {
    pub(crate) labels: &'a Labels,
    pub(crate) server: &'a dyn SecurityServer,
    pub(crate) ssid: Sid,
    /// The layer; `None` for the policy of the run, whose answers are kept.
    number: Option<u32>,
    kept: &'a Manager,
}

impl Facet<'_> {
    /// The label of an object in this policy.
    pub(crate) fn part(&self, stack: &Stack, sid: Sid) -> Option<Sid> {
        let parts = stack.parts(sid)?;
        self.number.map_or(Some(parts.outer), |number| parts.part(number))
    }

    /// Whether this policy grants it, without a record.
    pub(crate) fn grants(&self, tsid: Sid, tclass: Class, requested: AccessVector) -> bool {
        let question = Question { ssid: self.ssid, tsid, tclass };
        if self.number.is_none() {
            return self.kept.grants(question, requested, &Hint::default());
        }
        let answer = self.server.compute_av(question);
        answer.is_ok_and(|it| it.permissive || it.allowed.contains(requested))
    }
}

/// The policies that a subject is under.
pub(crate) struct Facets<'a> {
    layers: Vec<Arc<Layer>>,
    parts: Compound,
    asker: Asker<'a>,
}

impl<'a> Facets<'a> {
    /// # Errors
    ///
    /// `ACCESS` if the subject is of a run inside that is gone.
    pub(crate) fn of(asker: Asker<'a>) -> Result<Self> {
        let stack = &asker.state.inside.stack;
        let layers = stack.layers(asker.ssid).ok_or(Errno::ACCESS)?;
        let parts = stack.parts(asker.ssid).ok_or(Errno::ACCESS)?;
        Ok(Self { layers, parts, asker })
    }

    /// That of the run first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Facet<'_>> {
        let state = self.asker.state;
        let kept = &state.caches.file;
        let outer = Facet {
            labels: &state.labels,
            server: &*state.server,
            ssid: self.parts.outer,
            number: None,
            kept,
        };
        let layers = self.layers.iter().zip(&self.parts.inner);
        let inner = layers.map(move |(layer, (number, ssid))| Facet {
            labels: &layer.labels,
            server: &*layer.server,
            ssid: *ssid,
            number: Some(*number),
            kept,
        });
        std::iter::once(outer).chain(inner)
    }

    /// The SID of what each policy has given a label, in their order.
    pub(crate) fn compose(&self, labels: &[Sid]) -> Result<Sid> {
        let (outer, inner) = labels.split_first().ok_or(Errno::ACCESS)?;
        let numbers = self.parts.inner.iter().map(|(number, _)| *number);
        let compound =
            Compound { outer: *outer, inner: numbers.zip(inner.iter().copied()).collect() };
        self.asker.state.inside.stack.compose(compound).ok_or(Errno::ACCESS)
    }
}
