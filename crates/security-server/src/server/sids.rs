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
    by_context: papaya::HashMap<Context, Sid, rustc_hash::FxBuildHasher>,
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

    /// The same SIDs under another policy: contexts that it does not know become invalid, and valid again when a
    /// later policy knows them.
    pub(super) fn converted(&self, old: &Policy, new: &Policy) -> Self {
        let table = Self::new(new);
        for (_, label) in self.labels.iter().skip(InitialSid::COUNT as usize) {
            let text: Box<str> = match label {
                Label::Valid(context) => old.format_context(context).into(),
                Label::Invalid(text) => text.clone(),
                Label::Unset => "".into(),
            };
            table.push(match new.parse_context(&text) {
                Ok(context) => Label::Valid(context),
                Err(_) => Label::Invalid(text),
            });
        }
        table
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
