//! The SID table: numbers for contexts, and back.

use crate::policy::{Context, Policy};
use flask::{InitialSid, Sid};

/// What a SID stands for.
#[derive(Clone, Debug)]
enum Label {
    /// A context of the current policy.
    Valid(Context),
    /// A context of an earlier policy that the current one does not know.
    Invalid(Box<str>),
    /// An initial SID that the policy gives no context.
    Unset,
}

/// Contexts by SID and SIDs by context. Readers never wait; whoever adds holds the server's lock.
#[derive(Debug)]
pub(super) struct SidTable {
    labels: boxcar::Vec<Label>,
    by_context: papaya::HashMap<Context, Sid, crate::hash::FixedState>,
}

impl SidTable {
    fn empty() -> Self {
        Self { labels: boxcar::Vec::new(), by_context: papaya::HashMap::default() }
    }

    /// The initial SIDs with the contexts that `policy` gives them.
    pub(super) fn new(policy: &Policy) -> Self {
        let table = Self::empty();
        for initial in InitialSid::all() {
            let context = policy.initial_sids.get(initial.name()).cloned().flatten();
            table.push(context.map_or(Label::Unset, Label::Valid));
        }
        table
    }

    /// The same SIDs under another policy: contexts that it does not know become invalid, and valid
    /// again when a later policy knows them.
    pub(super) fn converted(&self, old: &Policy, new: &Policy) -> Self {
        Self::with_contexts(new, self.contexts(old, InitialSid::COUNT).iter())
    }

    /// The initial SIDs of `policy`, and behind them one for each context, in that order.
    pub(super) fn with_contexts(
        policy: &Policy,
        contexts: impl Iterator<Item = impl AsRef<str>>,
    ) -> Self {
        let table = Self::new(policy);
        for text in contexts {
            table.push(match policy.parse_context(text.as_ref()) {
                Ok(context) => Label::Valid(context),
                Err(_) => Label::Invalid(text.as_ref().into()),
            });
        }
        table
    }

    /// The contexts of all SIDs with a greater number than `after`, in order.
    pub(super) fn contexts(&self, policy: &Policy, after: u32) -> Vec<String> {
        let labels = self.labels.iter().skip(after as usize);
        let text = |label: &Label| match label {
            Label::Valid(context) => policy.format_context(context),
            Label::Invalid(text) => text.to_string(),
            Label::Unset => String::new(),
        };
        labels.map(|(_, label)| text(label)).collect()
    }

    /// Numbers one more label. A context that has a SID already keeps the first one.
    fn push(&self, label: Label) -> Option<Sid> {
        let context = match &label {
            Label::Valid(context) => Some(context.clone()),
            _ => None,
        };
        let index = self.labels.push(label);
        let sid = Sid::new(u32::try_from(index + 1).ok()?)?;
        if let Some(context) = context {
            let _ = self.by_context.pin().try_insert(context, sid);
        }
        Some(sid)
    }

    /// Numbers a new context; `None` when there are no numbers left.
    pub(super) fn add(&self, context: Context) -> Option<Sid> {
        self.find(&context).or_else(|| self.push(Label::Valid(context)))
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
