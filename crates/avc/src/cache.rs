//! The access vector cache of one object manager.

use crate::{
    AccessOutcome, Hint, Source, Stats, Verdict,
    counters::Counters,
    slot::Key,
    sync::{AtomicU32, Ordering},
    table::Table,
};
use flask::{AccessVector, Decision, Question, SecurityServer, Seqno, Unreachable};
use std::sync::Arc;

/// Entries of a cache that is not told otherwise.
const DEFAULT_ENTRIES: usize = 4096;

/// How often a question is put to a security server whose answers stay behind the policy that was
/// heard of.
const TRIES: usize = 8;

/// Keeps the security server's answers for one object manager, and counts where they were found.
pub struct Avc {
    server: Arc<dyn SecurityServer>,
    /// The newest policy state heard of.
    current: AtomicU32,
    table: Table,
    counters: Counters,
}

impl Avc {
    /// An empty cache of a size that suits one sandbox: 256 KiB.
    #[must_use]
    pub fn new(server: Arc<dyn SecurityServer>) -> Self {
        Self::with_capacity(server, DEFAULT_ENTRIES)
    }

    /// An empty cache with room for `entries` answers, at 64 to 128 bytes each. Beyond that, the
    /// oldest are dropped.
    #[must_use]
    pub fn with_capacity(server: Arc<dyn SecurityServer>, entries: usize) -> Self {
        Self {
            server,
            current: AtomicU32::new(0),
            table: Table::new(entries),
            counters: Counters::default(),
        }
    }

    /// Asks whether `q.ssid` may use every permission of `requested` on `q.tsid`.
    ///
    /// Looks at `hint`, then in the cache, then asks the security server, and leaves `hint` at the
    /// answer. A denial is an answer, not an error. A call that begins after [`Avc::reset`] has
    /// returned is never answered from an older policy; one that was under way may be.
    ///
    /// # Errors
    ///
    /// [`Unreachable`] when the security server did not answer, or only with answers older than the
    /// policy that is in force; the caller denies.
    #[inline]
    pub fn has_perm(
        &self,
        q: Question,
        requested: AccessVector,
        hint: &Hint,
    ) -> Result<Verdict, Unreachable> {
        let key = Key::from(q);
        let current = self.current();
        match self.table.at(hint.place(), key, current) {
            Some(decision) => Ok(self.verdict(decision, requested, Source::Hint)),
            None => self.beyond_hint(q, requested, hint),
        }
    }

    /// The same for an object manager, which has to do something without an answer, too: it denies,
    /// on record.
    #[inline]
    pub fn ask(&self, q: Question, requested: AccessVector, hint: &Hint) -> AccessOutcome {
        AccessOutcome::new(requested, self.has_perm(q, requested, hint).ok())
    }

    /// Whether an answer that is kept here grants all of `requested`, with nothing to be recorded:
    /// then it counts as found. Else nothing was counted, and [`Avc::has_perm`] knows more. It asks
    /// no server, and leaves `hint` at the answer.
    #[inline]
    #[must_use]
    pub fn grants_kept(&self, q: Question, requested: AccessVector, hint: &Hint) -> bool {
        let (key, current) = (Key::from(q), self.current());
        let (source, decision) = match self.table.at(hint.place(), key, current) {
            Some(decision) => (Source::Hint, decision),
            None => match self.table.find(key, current) {
                Some((place, decision)) => {
                    hint.point_to(place);
                    (Source::Cache, decision)
                }
                None => return false,
            },
        };
        self.grants_plainly(decision, requested, source)
    }

    /// The same at the hint alone: the least that asking can take.
    #[inline]
    #[must_use]
    pub fn grants_at_hint(&self, q: Question, requested: AccessVector, hint: &Hint) -> bool {
        let decision = self.table.at(hint.place(), Key::from(q), self.current());
        decision.is_some_and(|decision| self.grants_plainly(decision, requested, Source::Hint))
    }

    /// Makes every answer older than `seqno` unusable, those too that are still on their way. Costs
    /// the same for any number of entries. A smaller `seqno` than an earlier one changes nothing.
    pub fn reset(&self, seqno: Seqno) {
        self.current.fetch_max(seqno.0, Ordering::AcqRel);
    }

    /// The newest policy state that this cache has heard of.
    #[must_use]
    #[inline]
    pub fn current(&self) -> Seqno {
        Seqno(self.current.load(Ordering::Acquire))
    }

    /// Counts `uses` of answers that their askers have kept, and have found current by
    /// [`Avc::current`], as found at the hint. An answer may be used for as long as its `seqno` is
    /// not less than that.
    #[inline]
    pub fn count_kept(&self, uses: u64) {
        self.counters.add(Source::Hint, uses);
    }

    /// How many decisions were asked for since the cache was made, and where they were found.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.counters.stats()
    }

    /// Whether all of `requested` is granted, with nothing to be recorded; then it is counted.
    #[inline]
    fn grants_plainly(&self, decision: Decision, requested: AccessVector, source: Source) -> bool {
        let plainly = requested.missing_from(decision.allowed).is_empty()
            && (requested & decision.auditallow).is_empty()
            && !requested.is_empty();
        if plainly {
            self.counters.count(source);
        }
        plainly
    }

    #[inline]
    fn verdict(&self, decision: Decision, requested: AccessVector, source: Source) -> Verdict {
        self.counters.count(source);
        Verdict::new(decision, requested, source)
    }

    /// Kept out of [`Avc::has_perm`], so that callers inline no more than the hint.
    #[inline(never)]
    fn beyond_hint(
        &self,
        q: Question,
        requested: AccessVector,
        hint: &Hint,
    ) -> Result<Verdict, Unreachable> {
        if let Some((place, decision)) = self.table.find(Key::from(q), self.current()) {
            hint.point_to(place);
            return Ok(self.verdict(decision, requested, Source::Cache));
        }
        self.ask_server(q, hint).map(|decision| self.verdict(decision, requested, Source::Server))
    }

    /// The security server's answer, kept for the next time. One that the policy has overtaken
    /// meanwhile is neither kept nor used: it is asked again, for as long as the answers move on
    /// with the policy.
    #[cold]
    fn ask_server(&self, q: Question, hint: &Hint) -> Result<Decision, Unreachable> {
        let (mut newest, mut tries) = (None, 0);
        while tries < TRIES {
            let decision = self.answer(q)?;
            let before = self.current.fetch_max(decision.seqno.0, Ordering::AcqRel);
            if decision.seqno.0 >= before {
                if let Some(place) = self.table.insert(Key::from(q), decision, decision.seqno) {
                    hint.point_to(place);
                }
                return Ok(decision);
            }
            tries = if newest < Some(decision.seqno) { 1 } else { tries + 1 };
            newest = newest.max(Some(decision.seqno));
        }
        self.unreachable()
    }

    fn answer(&self, q: Question) -> Result<Decision, Unreachable> {
        self.server.compute_av(q).or_else(|Unreachable| self.unreachable())
    }

    fn unreachable<T>(&self) -> Result<T, Unreachable> {
        self.counters.count(Source::Server);
        Err(Unreachable)
    }
}
