//! The security server: a policy that can be replaced while it answers.

mod mapping;
mod saved;
mod sids;

use crate::cil::{self, PolicyErrors};
use crate::engine::Engine;
use crate::policy::{Context, Policy, TypeRuleKind};
use crate::{BoolId, ClassId};
use arc_swap::{ArcSwap, ArcSwapOption};
use flask::{
    AccessVector, Class, Classes, Decision, Explanation, FileRule, LabelError, LabelRules,
    NodeRule, PortRule, Question, SecurityServer, Seqno, Sid, Unreachable,
};
use mapping::Mapping;
pub use saved::Saved;
pub use sids::LabelBudget;
use sids::SidTable;
use std::sync::{Arc, Mutex, PoisonError};

/// Why a policy was not loaded. The old policy stays active.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// `(handleunknown reject)`, and the policy lacks a class or permission of the object managers.
    #[error(
        "the policy rejects what it does not know, and lacks `{permission}` of class `{class}`"
    )]
    Unknown {
        /// The class.
        class: String,
        /// The permission.
        permission: String,
    },
    /// The labels that were given out would take more than the [`LabelBudget`] has left.
    #[error("the labels that were given out would take more memory than they may")]
    Labels,
}

/// A boolean that the policy does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the policy has no boolean `{name}`; {instead}")]
pub struct UnknownBoolean {
    /// Its name.
    name: String,
    /// What was meant, or which there are.
    instead: String,
}

impl UnknownBoolean {
    /// So many are named where none resembles it.
    const MOST: usize = 8;

    /// That name, which `policy` does not have.
    #[must_use]
    pub fn of(name: &str, policy: &Policy) -> Self {
        let names = || policy.booleans.keys().map(|known| &**known);
        let instead = match cil::closest(name, names()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None if policy.booleans.is_empty() => "it has none".to_owned(),
            None => {
                let some: Vec<&str> = names().take(Self::MOST).collect();
                let more = if some.len() < policy.booleans.len() { ", …" } else { "" };
                format!("it has {}{more}", some.join(", "))
            }
        };
        Self { name: name.to_owned(), instead }
    }
}

/// Everything that one decision depends on.
#[derive(Debug)]
struct State {
    engine: Engine,
    mapping: Arc<Mapping>,
    sids: Arc<SidTable>,
    seqno: Seqno,
}

/// A security server inside this process.
///
/// Answers come from one consistent state; replacing the policy or changing booleans swaps the
/// state, and no reader ever waits for it. SIDs keep their meaning over every change.
#[derive(Debug)]
pub struct Server {
    state: ArcSwap<State>,
    /// The state before the last change.
    before: ArcSwapOption<State>,
    /// Held by whoever adds a SID or swaps the state.
    changes: Arc<Mutex<()>>,
}

impl Server {
    /// A server with the policy that CIL files spell: (name for messages, text) each.
    ///
    /// # Errors
    ///
    /// [`PolicyErrors`] with every mistake found, each with its place.
    pub fn from_cil<N: AsRef<str>, T: AsRef<str>>(files: &[(N, T)]) -> Result<Self, PolicyErrors> {
        Self::from_cil_with(files, Classes::default())
    }

    /// The same for a program that has classes of its own beside those of `policy/access_vectors`.
    ///
    /// # Errors
    ///
    /// [`PolicyErrors`].
    pub fn from_cil_with<N: AsRef<str>, T: AsRef<str>>(
        files: &[(N, T)],
        classes: Classes,
    ) -> Result<Self, PolicyErrors> {
        let policy = cil::compile(files)?;
        Self::with_classes(policy, classes).map_err(|error| PolicyErrors::of_all(error.to_string()))
    }

    /// A server with that policy.
    ///
    /// # Errors
    ///
    /// [`LoadError`] when the policy rejects what it does not know.
    pub fn new(policy: Policy) -> Result<Self, LoadError> {
        Self::with_classes(policy, Classes::default())
    }

    /// A server with that policy for a program that has classes of its own: they are found in the
    /// policy by name, now and with every later policy.
    ///
    /// # Errors
    ///
    /// [`LoadError`] when the policy rejects what it does not know.
    pub fn with_classes(policy: Policy, classes: Classes) -> Result<Self, LoadError> {
        let mapping = Arc::new(Mapping::new(&policy, Arc::new(classes))?);
        let sids = Arc::new(SidTable::new(&policy));
        Ok(Self::at(State { engine: Engine::new(policy), mapping, sids, seqno: Seqno(1) }))
    }

    /// Replaces the policy, at once for everyone. SIDs stay; those whose context the new policy
    /// does not know are treated as `unlabeled` until a later policy knows it.
    ///
    /// # Errors
    ///
    /// [`LoadError`]; the old policy stays active.
    pub fn reload(&self, policy: Policy) -> Result<Seqno, LoadError> {
        let mapping = Arc::new(Mapping::new(&policy, self.classes())?);
        let engine = Engine::new(policy);
        let _changing = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let old = self.state.load_full();
        let sids = Arc::new(old.sids.converted(old.engine.policy(), engine.policy())?);
        let seqno = Seqno(old.seqno.0 + 1);
        self.swap(old, State { engine, mapping, sids, seqno });
        Ok(seqno)
    }

    /// Changes booleans by name, all at once for everyone, or none.
    ///
    /// # Errors
    ///
    /// [`UnknownBoolean`]; then nothing has changed.
    pub fn set_booleans(&self, changes: &[(&str, bool)]) -> Result<Seqno, UnknownBoolean> {
        let _changing = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let old = self.state.load_full();
        let engine = set(&old.engine, changes)?;
        let seqno = Seqno(old.seqno.0 + 1);
        let (mapping, sids) = (Arc::clone(&old.mapping), Arc::clone(&old.sids));
        self.swap(old, State { engine, mapping, sids, seqno });
        Ok(seqno)
    }

    fn swap(&self, old: Arc<State>, new: State) {
        self.state.store(Arc::new(new));
        self.before.store(Some(old));
    }

    /// The engine of the current state, for tools that ask about contexts and classes of the policy
    /// itself.
    #[must_use]
    pub fn engine(&self) -> Engine {
        self.state.load().engine.clone()
    }

    /// The classes that the program has beside those of `policy/access_vectors`. No change of
    /// policy changes them.
    #[must_use]
    pub fn classes(&self) -> Arc<Classes> {
        Arc::clone(self.state.load().mapping.names())
    }

    /// Every permission (with its class) of the program's own classes that the current policy
    /// lacks, so that `handleunknown` decides.
    #[must_use]
    pub fn lacking_own(&self) -> Vec<(String, String)> {
        let state = self.state.load();
        let classes = state.mapping.names();
        let own = |(class, _): &(&str, &str)| {
            classes.class(class).is_some_and(|class| class.as_own().is_some())
        };
        let lacking = state.mapping.lacking().filter(own);
        lacking.map(|(class, permission)| (class.into(), permission.into())).collect()
    }

    /// Whether the SID's context is one of the current policy's.
    #[must_use]
    pub fn is_valid(&self, sid: Sid) -> bool {
        self.state.load().sids.is_valid(sid)
    }

    /// Whether `process` may relabel an object of class `tclass` from `old` to `new`, as far as
    /// `validatetrans` rules say. Unknown SIDs may not.
    #[must_use]
    pub fn validate_transition(&self, old: Sid, new: Sid, process: Sid, tclass: Class) -> bool {
        let state = self.state.load();
        let Some(class) = state.mapping.class(tclass) else { return true };
        let contexts = [old, new, process].map(|sid| state.sids.context(sid));
        let [Some(old), Some(new), Some(process)] = contexts else { return false };
        state.engine.validate_transition(old, new, process, class).is_ok()
    }

    fn compute_label(
        &self,
        kind: TypeRuleKind,
        q: Question,
        name: Option<&str>,
    ) -> Result<Sid, LabelError> {
        self.intern(|state| {
            let find = |sid| state.sids.context(sid).ok_or(LabelError::UnknownSid(sid));
            let (source, target) = (find(q.ssid)?, find(q.tsid)?);
            let class = state.mapping.class(q.tclass).unwrap_or(ClassId(u32::MAX));
            let label = state.engine.compute_label(kind, source, target, class, name);
            label.map_err(LabelError::InvalidContext)
        })
    }

    /// The SID of the context that `make` gives, adding it if it is new.
    fn intern(
        &self,
        make: impl Fn(&State) -> Result<Context, LabelError>,
    ) -> Result<Sid, LabelError> {
        let state = self.state.load();
        let context = make(&state)?;
        if let Some(sid) = state.sids.find(&context) {
            return Ok(sid);
        }
        drop(state);
        // The policy may have changed in between: its numbers may not be those of `context`.
        let _changing = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let state = self.state.load();
        state.sids.add(make(&state)?, state.engine.policy()).ok_or(LabelError::Unreachable)
    }
}

/// An engine with other booleans.
fn set(engine: &Engine, changes: &[(&str, bool)]) -> Result<Engine, UnknownBoolean> {
    let policy = engine.policy();
    let find = |(name, state): &(&str, bool)| match policy.booleans.get_index_of(*name) {
        Some(index) => Ok((BoolId::at(index), *state)),
        None => Err(UnknownBoolean::of(name, policy)),
    };
    let changes = changes.iter().map(find).collect::<Result<Vec<_>, _>>()?;
    Ok(engine.with_booleans(&changes))
}

impl State {
    fn question(&self, q: Question) -> Option<(&Context, &Context)> {
        Some((self.sids.context(q.ssid)?, self.sids.context(q.tsid)?))
    }

    fn compute_av(&self, q: Question) -> Decision {
        let Some((source, target)) = self.question(q) else {
            return Decision { seqno: self.seqno, ..Decision::DENY_ALL };
        };
        let Some(class) = self.mapping.class(q.tclass) else {
            return self.mapping.unknown_class(self.engine.is_permissive(source.type_), self.seqno);
        };
        let av = self.engine.compute_av(source, target, class);
        self.mapping.decision(q.tclass, av, self.seqno)
    }
}

impl SecurityServer for Server {
    fn seqno(&self) -> Result<Seqno, Unreachable> {
        Ok(self.state.load().seqno)
    }

    fn compute_av(&self, q: Question) -> Result<Decision, Unreachable> {
        Ok(self.state.load().compute_av(q))
    }

    fn compute_av_before(&self, q: Question) -> Result<Decision, Unreachable> {
        Ok(self.before.load().as_ref().ok_or(Unreachable)?.compute_av(q))
    }

    fn compute_create(&self, q: Question, name: Option<&str>) -> Result<Sid, LabelError> {
        self.compute_label(TypeRuleKind::Transition, q, name)
    }

    fn compute_member(&self, q: Question) -> Result<Sid, LabelError> {
        self.compute_label(TypeRuleKind::Member, q, None)
    }

    fn context_to_sid(&self, context: &str) -> Result<Sid, LabelError> {
        self.intern(|state| {
            let parsed = state.engine.policy().parse_context(context);
            parsed.map_err(|_| LabelError::InvalidContext(context.to_owned()))
        })
    }

    fn sid_to_context(&self, sid: Sid) -> Result<String, LabelError> {
        let state = self.state.load();
        state.sids.text(sid, state.engine.policy()).ok_or(LabelError::UnknownSid(sid))
    }

    fn label_rules(&self) -> Result<LabelRules, Unreachable> {
        // Until the end, the policy whose numbers the contexts have is the current one.
        let _changing = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let state = self.state.load();
        let policy = state.engine.policy();
        // A rule left out would have its objects labelled by another.
        let sid = |context: &Context| state.sids.add(context.clone(), policy).ok_or(Unreachable);
        let files = policy.labels.files.iter().map(|rule| {
            let label = rule.context.as_ref().map(sid).transpose()?;
            Ok(FileRule { path: rule.path.to_string(), kind: rule.kind, sid: label })
        });
        let ports = policy.labels.ports.iter().map(|rule| {
            let (low, high) = rule.ports;
            Ok(PortRule { protocol: rule.protocol, low, high, sid: sid(&rule.context)? })
        });
        let nodes = policy.labels.nodes.iter().map(|rule| {
            Ok(NodeRule { address: rule.address, mask: rule.mask, sid: sid(&rule.context)? })
        });
        Ok(LabelRules {
            files: files.collect::<Result<_, _>>()?,
            ports: ports.collect::<Result<_, _>>()?,
            nodes: nodes.collect::<Result<_, _>>()?,
        })
    }

    fn explain(&self, q: Question, requested: AccessVector) -> Result<Explanation, Unreachable> {
        let state = self.state.load();
        let unknown =
            |reason: &str| Explanation { reason: reason.to_owned(), ..Default::default() };
        let Some((source, target)) = state.question(q) else {
            return Ok(unknown("a SID is unknown to this security server"));
        };
        let Some(class) = state.mapping.class(q.tclass) else {
            return Ok(unknown(&format!(
                "the policy has no class `{}`",
                state.mapping.names().name(q.tclass)
            )));
        };
        let perms = state.mapping.to_policy(q.tclass, requested);
        let explained = state.engine.explain(source, target, class, perms);
        Ok(explained.into_words(state.engine.policy()))
    }
}
