//! A subject under each of its policies.

use crate::{cache::CheckedCache, call::Asker};
use avc::Hint;
use flask::{AccessVector, Class, Question, SecurityServer, Sid};
use inode_labels::Labels;
use policy_stack::{Compound, Layer, Stack};
use rustix::io::{Errno, Result};
use std::sync::Arc;

/// A subject under one of its policies.
pub struct LayerSubject<'a> {
    /// How the layer labels files.
    pub labels: &'a Labels,
    /// Whom the layer asks.
    pub server: &'a dyn SecurityServer,
    /// The label that the subject has in the layer.
    pub ssid: Sid,
    /// The layer; `None` for the policy of the run, whose answers are kept.
    number: Option<u32>,
    kept: &'a CheckedCache,
}

impl LayerSubject<'_> {
    /// The label of an object in this policy.
    pub fn part(&self, stack: &Stack, sid: Sid) -> Option<Sid> {
        let parts = stack.parts(sid)?;
        self.number.map_or(Some(parts.outer), |number| parts.part(number))
    }

    /// Whether this policy grants it, without a record.
    pub fn grants(&self, tsid: Sid, tclass: Class, requested: AccessVector) -> bool {
        let question = Question { ssid: self.ssid, tsid, tclass };
        if self.number.is_none() {
            return self.kept.grants(question, requested, &Hint::default());
        }
        let answer = self.server.compute_av(question);
        answer.is_ok_and(|it| it.permissive || it.allowed.contains(requested))
    }
}

/// The policies that a subject is under.
pub struct LayerSubjects<'a> {
    layers: Vec<Arc<Layer>>,
    parts: Compound,
    asker: Asker<'a>,
}

impl<'a> LayerSubjects<'a> {
    /// # Errors
    ///
    /// `ACCESS` if the subject is of a run inside that is gone.
    pub fn of(asker: Asker<'a>) -> Result<Self> {
        let stack = &asker.state.inside.stack;
        let layers = stack.layers(asker.ssid).ok_or(Errno::ACCESS)?;
        let parts = stack.parts(asker.ssid).ok_or(Errno::ACCESS)?;
        Ok(Self { layers, parts, asker })
    }

    /// That of the run first.
    pub fn iter(&self) -> impl Iterator<Item = LayerSubject<'_>> {
        let state = self.asker.state;
        let kept = &state.caches.file;
        let outer = LayerSubject {
            labels: &state.labels,
            server: &*state.server,
            ssid: self.parts.outer,
            number: None,
            kept,
        };
        let layers = self.layers.iter().zip(&self.parts.inner);
        let inner = layers.map(move |(layer, (number, ssid))| LayerSubject {
            labels: &layer.labels,
            server: &*layer.server,
            ssid: *ssid,
            number: Some(*number),
            kept,
        });
        std::iter::once(outer).chain(inner)
    }

    /// The SID of what each policy has given a label, in their order.
    pub fn compose(&self, labels: &[Sid]) -> Result<Sid> {
        let (outer, inner) = labels.split_first().ok_or(Errno::ACCESS)?;
        let numbers = self.parts.inner.iter().map(|(number, _)| *number);
        let inner = numbers.zip(inner.iter().copied()).collect();
        let compound = Compound { inner, ..Compound::plain(*outer) };
        self.asker.state.inside.stack.compose(compound).ok_or(Errno::ACCESS)
    }
}
