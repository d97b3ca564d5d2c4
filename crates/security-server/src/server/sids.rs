//! The SID table: numbers for contexts, and back.

use super::LoadError;
use crate::policy::{Context, Policy};
use flask::{InitialSid, Sid};
use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicUsize, Ordering},
};

/// Bytes that a label takes beside its categories and its text.
const LABEL_BYTES: usize = 256;

/// How much memory the labels of servers may take together.
#[derive(Debug)]
pub struct LabelBudget {
    most: usize,
    used: AtomicUsize,
}

impl LabelBudget {
    /// `most` bytes, none of which are taken.
    #[must_use]
    pub const fn new(most: usize) -> Self {
        Self { most, used: AtomicUsize::new(0) }
    }

    fn take(&self, bytes: usize) -> Option<()> {
        let more = |used: usize| used.checked_add(bytes).filter(|used| *used <= self.most);
        self.used.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).ok().map(drop)
    }
}

/// What a SID stands for.
#[derive(Clone, Debug)]
enum Label {
    /// A context of the current policy.
    Valid(Arc<Context>),
    /// A context of an earlier policy that the current one does not know.
    Invalid(Box<str>),
    /// An initial SID that the policy gives no context.
    Unset,
}

/// Contexts by SID and SIDs by context. Readers never wait; whoever adds holds the server's lock.
#[derive(Debug)]
pub(super) struct SidTable {
    labels: boxcar::Vec<Label>,
    by_context: papaya::HashMap<Arc<Context>, Sid, crate::hash::FixedState>,
    /// What its labels are counted in, if they are.
    budget: OnceLock<Arc<LabelBudget>>,
    /// Bytes that it has taken of the budget.
    taken: AtomicUsize,
}

impl SidTable {
    /// Nothing, counted in the same budget as `like`.
    fn empty(like: Option<&Self>) -> Self {
        let budget = like.and_then(|it| it.budget.get()).cloned();
        Self {
            labels: boxcar::Vec::new(),
            by_context: papaya::HashMap::default(),
            budget: budget.map_or_else(OnceLock::new, OnceLock::from),
            taken: AtomicUsize::new(0),
        }
    }

    /// The initial SIDs with the contexts that `policy` gives them.
    pub(super) fn new(policy: &Policy) -> Self {
        let table = Self::empty(None);
        table.push_initial(policy);
        table
    }

    fn push_initial(&self, policy: &Policy) {
        for initial in InitialSid::all() {
            let context = policy.initial_sids.get(initial.name()).cloned().flatten();
            self.push(context.map_or(Label::Unset, |context| Label::Valid(Arc::new(context))));
        }
    }

    /// The same SIDs under another policy: contexts that it does not know become invalid, and valid
    /// again when a later policy knows them.
    ///
    /// # Errors
    ///
    /// [`LoadError::Labels`]: the budget has no room for them.
    pub(super) fn converted(&self, old: &Policy, new: &Policy) -> Result<Self, LoadError> {
        let table = Self::empty(Some(self));
        table.push_initial(new);
        for (_, label) in self.labels.iter().skip(InitialSid::COUNT as usize) {
            table.push_text(new, &text(label, old)).ok_or(LoadError::Labels)?;
        }
        Ok(table)
    }

    /// The initial SIDs of `policy`, and behind them one for each context, in that order.
    pub(super) fn with_contexts(
        policy: &Policy,
        contexts: impl Iterator<Item = impl AsRef<str>>,
    ) -> Self {
        let table = Self::new(policy);
        for text in contexts {
            table.push_text(policy, text.as_ref());
        }
        table
    }

    fn push_text(&self, policy: &Policy, text: &str) -> Option<Sid> {
        let label = match policy.parse_context(text) {
            Ok(context) => Label::Valid(Arc::new(context)),
            Err(_) => Label::Invalid(text.into()),
        };
        self.count(&label, policy)?;
        self.push(label)
    }

    /// The same labels, which are not counted again; those that are added to it are.
    pub(super) fn copied(&self) -> Self {
        let table = Self::empty(Some(self));
        for (_, label) in &self.labels {
            table.push(label.clone());
        }
        table
    }

    /// Counts all of its labels in `budget`, and those that are added later.
    pub(super) fn count_in(&self, budget: &Arc<LabelBudget>, policy: &Policy) -> Option<()> {
        let budget = self.budget.get_or_init(|| Arc::clone(budget));
        let bytes: usize = self.labels.iter().map(|(_, label)| bytes(label, policy)).sum();
        let more = bytes.saturating_sub(self.taken());
        budget.take(more)?;
        self.taken.fetch_add(more, Ordering::AcqRel);
        Some(())
    }

    /// Bytes that are counted for it.
    pub(super) fn taken(&self) -> usize {
        self.taken.load(Ordering::Acquire)
    }

    /// Counts a label that is about to be added; `None` when the budget has no room for it.
    fn count(&self, label: &Label, policy: &Policy) -> Option<()> {
        let Some(budget) = self.budget.get() else { return Some(()) };
        let bytes = bytes(label, policy);
        budget.take(bytes)?;
        self.taken.fetch_add(bytes, Ordering::AcqRel);
        Some(())
    }

    /// The contexts of all SIDs with a greater number than `after`, in order.
    pub(super) fn contexts(&self, policy: &Policy, after: u32) -> Vec<String> {
        let labels = self.labels.iter().skip(after as usize);
        labels.map(|(_, label)| text(label, policy)).collect()
    }

    /// Numbers one more label. A context that has a SID already keeps the first one.
    fn push(&self, label: Label) -> Option<Sid> {
        let context = match &label {
            Label::Valid(context) => Some(Arc::clone(context)),
            _ => None,
        };
        let index = self.labels.push(label);
        let sid = Sid::new(u32::try_from(index + 1).ok()?)?;
        if let Some(context) = context {
            let _ = self.by_context.pin().try_insert(context, sid);
        }
        Some(sid)
    }

    /// Numbers a new context of `policy`; `None` when there are no numbers left, or no room in the
    /// budget.
    pub(super) fn add(&self, context: Context, policy: &Policy) -> Option<Sid> {
        if let Some(sid) = self.find(&context) {
            return Some(sid);
        }
        let label = Label::Valid(Arc::new(context));
        self.count(&label, policy)?;
        self.push(label)
    }

    /// The SID of a context, if it has one.
    pub(super) fn find(&self, context: &Context) -> Option<Sid> {
        self.by_context.pin().get(context).copied()
    }

    /// The context that decisions use for a SID: that of `unlabeled` when its own is not valid.
    #[inline]
    pub(super) fn context(&self, sid: Sid) -> Option<&Context> {
        match self.labels.get(sid.get() as usize - 1)? {
            Label::Valid(context) => Some(context),
            _ => self.unlabeled(),
        }
    }

    #[cold]
    fn unlabeled(&self) -> Option<&Context> {
        match self.labels.get(InitialSid::Unlabeled as usize - 1)? {
            Label::Valid(context) => Some(context),
            _ => None,
        }
    }

    /// The text of the context that a SID was given for, valid or not.
    pub(super) fn text(&self, sid: Sid, policy: &Policy) -> Option<String> {
        match self.labels.get(sid.get() as usize - 1)? {
            Label::Valid(context) => Some(policy.format_context(context)),
            Label::Invalid(text) => Some(text.to_string()),
            Label::Unset => self.unlabeled().map(|context| policy.format_context(context)),
        }
    }

    /// Whether the SID stands for a context of the current policy.
    pub(super) fn is_valid(&self, sid: Sid) -> bool {
        matches!(self.labels.get(sid.get() as usize - 1), Some(Label::Valid(_)))
    }
}

impl Drop for SidTable {
    fn drop(&mut self) {
        if let Some(budget) = self.budget.get() {
            budget.used.fetch_sub(*self.taken.get_mut(), Ordering::AcqRel);
        }
    }
}

/// The text of a label's context.
fn text(label: &Label, policy: &Policy) -> String {
    match label {
        Label::Valid(context) => policy.format_context(context),
        Label::Invalid(text) => text.to_string(),
        Label::Unset => String::new(),
    }
}

/// Bytes that a label takes, with those of its text: whoever saves it keeps that.
fn bytes(label: &Label, policy: &Policy) -> usize {
    let range = match label {
        Label::Valid(context) => context.range.as_deref(),
        _ => None,
    };
    let words = range.map_or(0, |range| range.low.cats.words() + range.high.cats.words());
    LABEL_BYTES + 8 * words + text(label, policy).len()
}
