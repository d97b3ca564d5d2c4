//! A security server for tests: slow, obvious, and late on demand.

use avc::Avc;
use flask::{
    AccessVector, Class, Decision, Explanation, LabelError, LabelRules, Question, SecurityServer,
    Seqno, Sid, Unreachable,
};
use std::sync::{
    Arc, OnceLock, Weak,
    atomic::{AtomicBool, AtomicU32, Ordering::SeqCst},
};

/// What policy `seqno` says about `q`: the reference that every verdict is held against. Any
/// function would do that gives different answers to different questions and policies.
pub(crate) fn reference(q: Question, seqno: Seqno) -> Decision {
    let sides =
        u64::from(q.ssid.get()) * 31 + u64::from(q.tsid.get()) * 7 + u64::from(q.tclass.number());
    let mixed = (sides * 1009 + u64::from(seqno.0) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    Decision {
        allowed: AccessVector((mixed >> 32) as u32),
        auditallow: AccessVector((mixed >> 16) as u32),
        auditdeny: AccessVector((mixed >> 8) as u32),
        permissive: mixed >> 61 == 0,
        seqno,
    }
}

/// The `number`-th question of a sandbox.
pub(crate) fn question(number: u32) -> Question {
    let sid = |number| Sid::new(number + 1).expect("not 0");
    Question { ssid: sid(number / 1000), tsid: sid(number % 1000), tclass: Class::File }
}

/// Answers as [`reference`] says for its current policy.
#[derive(Default)]
pub(crate) struct Server {
    policy: AtomicU32,
    down: AtomicBool,
    /// How many of the next answers the policy overtakes on their way.
    overtaken: AtomicU32,
    avc: OnceLock<Weak<Avc>>,
}

impl Server {
    /// A server, and a cache of `entries` before it.
    pub(crate) fn with_cache(entries: usize) -> (Arc<Self>, Arc<Avc>) {
        let server = Arc::new(Self::default());
        let avc = Arc::new(Avc::with_capacity(server.clone(), entries));
        server.avc.get_or_init(|| Arc::downgrade(&avc));
        (server, avc)
    }

    /// The policy in force.
    pub(crate) fn policy(&self) -> Seqno {
        Seqno(self.policy.load(SeqCst))
    }

    /// Puts the next policy in force, without a word to the cache.
    pub(crate) fn change(&self) -> Seqno {
        Seqno(self.policy.fetch_add(1, SeqCst) + 1)
    }

    /// From now on there is an answer, or none.
    pub(crate) fn set_down(&self, down: bool) {
        self.down.store(down, SeqCst);
    }

    /// Lets the policy change, and the cache be reset, while each of the next `answers` is on its
    /// way.
    pub(crate) fn overtake(&self, answers: u32) {
        self.overtaken.store(answers, SeqCst);
    }
}

impl SecurityServer for Server {
    fn seqno(&self) -> Result<Seqno, Unreachable> {
        Ok(self.policy())
    }
    fn compute_av(&self, q: Question) -> Result<Decision, Unreachable> {
        if self.down.load(SeqCst) {
            return Err(Unreachable);
        }
        let answer = reference(q, self.policy());
        if self.overtaken.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)).is_ok() {
            let seqno = self.change();
            self.avc.get().and_then(Weak::upgrade).expect("a cache").reset(seqno);
        }
        Ok(answer)
    }
    fn compute_create(&self, q: Question, _: Option<&str>) -> Result<Sid, LabelError> {
        Ok(q.tsid)
    }
    fn compute_member(&self, q: Question) -> Result<Sid, LabelError> {
        Ok(q.tsid)
    }
    fn context_to_sid(&self, context: &str) -> Result<Sid, LabelError> {
        Err(LabelError::InvalidContext(context.to_owned()))
    }
    fn sid_to_context(&self, sid: Sid) -> Result<String, LabelError> {
        Err(LabelError::UnknownSid(sid))
    }
    fn label_rules(&self) -> Result<LabelRules, Unreachable> {
        Ok(LabelRules::default())
    }
    fn explain(&self, _: Question, _: AccessVector) -> Result<Explanation, Unreachable> {
        Ok(Explanation::default())
    }
}
