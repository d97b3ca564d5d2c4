//! Compound SIDs, and the security server that answers for several.

use crate::{Layer, explained};
use flask::{
    AccessVector, Class, ContextParts, Decision, Explanation, InitialSid, LabelError, LabelRules,
    Question, SecurityServer, Seqno, Sid, Unreachable, perm,
};
use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

/// Compound SIDs have numbers from here on, which no security server comes to.
const FIRST: u32 = 1 << 31;

/// Compound SIDs that are remembered: far more than one policy has labels, for each of the most
/// layers.
const MOST: usize = 100_000;

/// The labels of one subject or object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Compound {
    /// In the policy of the run.
    pub outer: Sid,
    /// Other labels that an object has in the policy of the run: nothing is granted on it that is
    /// not granted on each.
    pub also: Vec<Sid>,
    /// By the number of the layer, the outermost first.
    pub inner: Vec<(u32, Sid)>,
}

impl Compound {
    /// The label of who is under no policy but that of the run.
    pub fn plain(outer: Sid) -> Self {
        Self { outer, also: Vec::new(), inner: Vec::new() }
    }

    /// The label in layer `number`.
    pub fn part(&self, number: u32) -> Option<Sid> {
        self.inner.iter().find(|(layer, _)| *layer == number).map(|(_, sid)| *sid)
    }
}

/// Whether a SID is one of a run inside, or of an object with several labels.
pub fn is_compound(sid: Sid) -> bool {
    sid.get() >= FIRST
}

/// Answers for all of the policies.
pub struct Stack {
    outer: Arc<dyn SecurityServer>,
    table: RwLock<Table>,
}

#[derive(Default)]
struct Table {
    layers: BTreeMap<u32, Arc<Layer>>,
    compounds: HashMap<u32, Compound>,
    numbers: HashMap<Compound, Sid>,
    /// Numbers that were given out; none is given out again.
    given: u32,
}

impl Stack {
    /// The policy of a run, inside of which no other runs.
    pub fn new(outer: Arc<dyn SecurityServer>) -> Self {
        Self { outer, table: RwLock::default() }
    }

    /// The labels behind a SID; `None` for one of a layer that is gone.
    pub fn parts(&self, sid: Sid) -> Option<Compound> {
        self.read().parts(sid)
    }

    /// The label in the policy of the run.
    pub fn outer(&self, sid: Sid) -> Option<Sid> {
        self.parts(sid).map(|parts| parts.outer)
    }

    /// The layers that a subject is under; `None` if one is gone.
    pub fn layers(&self, ssid: Sid) -> Option<Vec<Arc<Layer>>> {
        let table = self.read();
        let parts = table.parts(ssid)?;
        parts.inner.iter().map(|(number, _)| table.layers.get(number).cloned()).collect()
    }

    /// The SID that stands for these labels; `None` if there are too many.
    pub fn compose(&self, compound: Compound) -> Option<Sid> {
        if compound.inner.is_empty() && compound.also.is_empty() {
            return Some(compound.outer);
        }
        if let Some(known) = self.read().numbers.get(&compound) {
            return Some(*known);
        }
        let mut table = self.write();
        if let Some(known) = table.numbers.get(&compound) {
            return Some(*known);
        }
        let is_known = |(number, _): &(u32, Sid)| table.layers.contains_key(number);
        if table.compounds.len() >= MOST || !compound.inner.iter().all(is_known) {
            return None;
        }
        let number = FIRST.checked_add(table.given)?;
        let sid = Sid::new(number)?;
        table.given += 1;
        table.compounds.insert(number, compound.clone());
        table.numbers.insert(compound, sid);
        Some(sid)
    }

    /// What a subject sees at an object that somebody inside has made, labelled `owner`, and that
    /// rules label `by_rule`: for a policy that `owner` is not under, it is outside.
    pub fn owned(&self, owner: Sid, by_rule: Sid) -> Option<Sid> {
        let (owner, rule) = (self.parts(owner)?, self.parts(by_rule)?);
        let part = |(number, sid): &(u32, Sid)| (*number, owner.part(*number).unwrap_or(*sid));
        let inner = rule.inner.iter().map(part).collect();
        self.compose(Compound { inner, ..Compound::plain(owner.outer) })
    }

    /// A new layer.
    pub fn add(&self, layer: Arc<Layer>) {
        self.write().layers.insert(layer.number, layer);
    }

    /// Forgets the layers that are not among `kept`: who is still under one may do nothing.
    pub fn keep(&self, kept: &dyn Fn(u32) -> bool) {
        let mut table = self.write();
        table.layers.retain(|number, _| kept(*number));
        let Table { layers, compounds, numbers, .. } = &mut *table;
        let lives = |compound: &Compound| {
            compound.inner.iter().all(|(number, _)| layers.contains_key(number))
        };
        compounds.retain(|_, compound| lives(compound));
        numbers.retain(|compound, _| lives(compound));
    }

    /// How many layers there are.
    pub fn count(&self) -> usize {
        self.read().layers.len()
    }

    /// Bytes that the layers take, about.
    pub fn bytes(&self) -> usize {
        self.read().layers.values().map(|layer| layer.bytes).sum()
    }

    /// As [`inode_labels::Labels::let_go`], in all layers.
    pub fn let_go_of_files(&self) {
        // To free a file may take long.
        let layers: Vec<_> = self.read().layers.values().cloned().collect();
        layers.iter().for_each(|layer| layer.labels.let_go());
    }

    fn read(&self) -> RwLockReadGuard<'_, Table> {
        self.table.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Table> {
        self.table.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// A question to each policy: that of the run first.
    fn split(&self, q: Question) -> Option<Split> {
        let table = self.read();
        let (subject, object) = (table.parts(q.ssid)?, table.parts(q.tsid)?);
        let outer = Question { ssid: subject.outer, tsid: object.outer, ..q };
        let inner = subject.inner.iter().map(|(number, ssid)| {
            let tsid = object.part(*number).unwrap_or_else(|| outside(q.tclass));
            Some((Arc::clone(table.layers.get(number)?), Question { ssid: *ssid, tsid, ..q }))
        });
        let also = object.also.iter().map(|tsid| Question { tsid: *tsid, ..outer }).collect();
        Some(Split { outer, also, inner: inner.collect::<Option<_>>()? })
    }

    /// The decision of all policies, as `outer` decides for the run.
    fn decide(&self, q: Question, outer: Ask) -> Result<Decision, Unreachable> {
        if !is_compound(q.ssid) && !is_compound(q.tsid) {
            return outer(&*self.outer, q);
        }
        let Some(split) = self.split(q) else {
            return Ok(Decision { seqno: self.outer.seqno()?, ..Decision::DENY_ALL });
        };
        let mut all = outer(&*self.outer, split.outer)?;
        for question in &split.also {
            let one = outer(&*self.outer, *question)?;
            all.allowed = all.allowed & one.allowed;
            all.auditallow |= one.auditallow;
            all.auditdeny |= one.auditdeny;
        }
        if split.inner.is_empty() {
            return Ok(all);
        }
        if all.permissive {
            (all.allowed, all.permissive) = (AccessVector::ALL, false);
        }
        all.allowed = all.allowed | stays(split.outer, all.allowed);
        for (layer, question) in &split.inner {
            let one = layer.server.compute_av(*question)?;
            let allowed = if one.permissive { AccessVector::ALL } else { one.allowed };
            all.allowed = all.allowed & (allowed | stays(*question, allowed));
            all.auditallow |= one.auditallow;
            all.auditdeny |= one.auditdeny;
        }
        Ok(all)
    }
}

/// How a security server is asked.
type Ask = fn(&dyn SecurityServer, Question) -> Result<Decision, Unreachable>;

/// One question to each policy.
struct Split {
    outer: Question,
    /// The same about the other labels of the object.
    also: Vec<Question>,
    inner: Vec<(Arc<Layer>, Question)>,
}

impl Table {
    fn parts(&self, sid: Sid) -> Option<Compound> {
        match is_compound(sid) {
            true => self.compounds.get(&sid.get()).cloned(),
            false => Some(Compound::plain(sid)),
        }
    }
}

/// What an object is to a policy that has given it no label.
fn outside(tclass: Class) -> Sid {
    match tclass {
        Class::Process => InitialSid::Kernel.into(),
        _ => InitialSid::Unlabeled.into(),
    }
}

/// What a policy has no say in, where another one changes the domain of a process and it does not:
/// who stays in a domain enters none. A program that may be run in a domain may begin in it.
fn stays(q: Question, allowed: AccessVector) -> AccessVector {
    match q.tclass {
        Class::Process if q.ssid == q.tsid => perm::process::TRANSITION,
        Class::File if allowed.contains(perm::file::EXECUTE_NO_TRANS) => perm::file::ENTRYPOINT,
        _ => AccessVector::NONE,
    }
}

impl SecurityServer for Stack {
    fn seqno(&self) -> Result<Seqno, Unreachable> {
        self.outer.seqno()
    }

    fn compute_av(&self, q: Question) -> Result<Decision, Unreachable> {
        self.decide(q, |server, q| server.compute_av(q))
    }

    fn compute_av_before(&self, q: Question) -> Result<Decision, Unreachable> {
        self.decide(q, |server, q| server.compute_av_before(q))
    }

    fn compute_create(&self, q: Question, name: Option<&str>) -> Result<Sid, LabelError> {
        if !is_compound(q.ssid) && !is_compound(q.tsid) {
            return self.outer.compute_create(q, name);
        }
        let split = self.split(q).ok_or(LabelError::UnknownSid(q.ssid))?;
        let outer = self.outer.compute_create(split.outer, name)?;
        let inner = split.inner.iter().map(|(layer, question)| {
            Ok((layer.number, layer.server.compute_create(*question, name)?))
        });
        let inner = inner.collect::<Result<_, LabelError>>()?;
        self.compose(Compound { inner, ..Compound::plain(outer) })
            .ok_or(LabelError::UnknownSid(q.ssid))
    }

    fn compute_member(&self, q: Question) -> Result<Sid, LabelError> {
        let split = self.split(q).ok_or(LabelError::UnknownSid(q.ssid))?;
        self.outer.compute_member(split.outer)
    }

    fn context_to_sid(&self, context: &str) -> Result<Sid, LabelError> {
        self.outer.context_to_sid(context)
    }

    /// Of a compound SID, a context that no policy has: its type is that of the run, with the names
    /// of the runs inside behind it.
    fn sid_to_context(&self, sid: Sid) -> Result<String, LabelError> {
        if !is_compound(sid) {
            return self.outer.sid_to_context(sid);
        }
        let parts = self.parts(sid).ok_or(LabelError::UnknownSid(sid))?;
        let context = self.outer.sid_to_context(parts.outer)?;
        let Some(ContextParts { user, role, type_, .. }) = ContextParts::of(&context) else {
            return Ok(context);
        };
        let table = self.read();
        let mut name = type_.strip_suffix("_t").unwrap_or(type_).to_owned();
        for (number, _) in &parts.inner {
            let layer = table.layers.get(number).map_or("", |layer| &layer.name);
            name += &format!("/{layer}.{number}");
        }
        Ok(format!("{user}:{role}:{name}"))
    }

    fn label_rules(&self) -> Result<LabelRules, Unreachable> {
        self.outer.label_rules()
    }

    fn explain(&self, q: Question, requested: AccessVector) -> Result<Explanation, Unreachable> {
        let Some(split) = self.split(q) else {
            return Ok(Explanation {
                reason: "the run inside that it belongs to has ended".to_owned(),
                ..Explanation::default()
            });
        };
        for question in &split.also {
            if !self.outer.compute_av(*question)?.allowed.contains(requested) {
                return self.outer.explain(*question, requested);
            }
        }
        let outer = self.outer.compute_av(split.outer)?;
        if outer.allowed.contains(requested) {
            for (layer, question) in &split.inner {
                if !layer.server.compute_av(*question)?.allowed.contains(requested) {
                    let explained = layer.server.explain(*question, requested)?;
                    let explained = explained::shortened(explained);
                    let Layer { name, number, .. } = &**layer;
                    let reason =
                        format!("{}, in the run inside ({name}.{number})", explained.reason);
                    return Ok(Explanation { reason, ..explained });
                }
            }
        }
        self.outer.explain(split.outer, requested)
    }
}
