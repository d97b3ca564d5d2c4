//! The words of the trait as bytes. Numbers are small, so that a question is about six bytes and
//! its answer ten.

use crate::frame::{framed, unframed};
use flask::{
    AccessVector, Class, Decision, Explanation, FileKind, FileRule, InitialSid, LabelError,
    LabelRules, NodeRule, PortRule, Protocol, Question, Seqno, Sid,
};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// Begins every query, so that a port can carry other messages beside.
pub(crate) const MARK: u8 = b'Q';

/// Length of [`vocabulary`].
pub const VOCABULARY_BYTES: usize = blake3::OUT_LEN;

/// A digest of the classes, permissions and initial SIDs that this program was built with. Numbers
/// mean the same to two programs only where these are equal.
#[must_use]
pub fn vocabulary() -> [u8; VOCABULARY_BYTES] {
    let mut digest = blake3::Hasher::new();
    for class in Class::all() {
        digest.update(class.name().as_bytes());
        for permission in class.permissions() {
            digest.update(b" ");
            digest.update(permission.as_bytes());
        }
        digest.update(b"\n");
    }
    for initial in InitialSid::all() {
        digest.update(initial.name().as_bytes());
        digest.update(b"\n");
    }
    digest.finalize().into()
}

/// A question: source, target, number of the class.
pub(crate) type Asked = (u32, u32, u16);

/// What a client asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Query<'a> {
    Av(Asked),
    AvBefore(Asked),
    Create(Asked, Option<&'a str>),
    Member(Asked),
    ToSid(&'a str),
    ToContext(u32),
    Seqno,
    Rules,
    Explain(Asked, u32),
    /// It has applied the policy state `seqno` (with this to say about it), and waits for a later
    /// one.
    Next {
        seqno: u32,
        report: &'a [u8],
    },
}

/// What the server answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Answer {
    Decision {
        allowed: u32,
        auditallow: u32,
        auditdeny: u32,
        permissive: bool,
        seqno: u32,
    },
    Sid(u32),
    Context(String),
    Seqno(u32),
    Rules(Rules),
    Explanation {
        rules: Vec<String>,
        reason: String,
        would_allow: Option<String>,
    },
    InvalidContext(String),
    UnknownSid(u32),
    /// The server behind the port does not answer either.
    Unreachable,
    /// There is no later policy state yet.
    Unchanged,
    /// The bytes are no query.
    Nonsense,
}

/// [`LabelRules`], spelled in numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Rules {
    files: Vec<(String, u8, Option<u32>)>,
    ports: Vec<(u8, u16, u16, u32)>,
    nodes: Vec<(IpAddr, IpAddr, u32)>,
}

const KINDS: [FileKind; 8] = [
    FileKind::Any,
    FileKind::File,
    FileKind::Dir,
    FileKind::Char,
    FileKind::Block,
    FileKind::Socket,
    FileKind::Pipe,
    FileKind::Symlink,
];

const PROTOCOLS: [Protocol; 4] = [Protocol::Tcp, Protocol::Udp, Protocol::Dccp, Protocol::Sctp];

fn number_in<T: PartialEq>(all: &[T], one: &T) -> u8 {
    // Every value is in its list, which a test checks; beyond it nothing is read back.
    all.iter().position(|it| it == one).map_or(u8::MAX, |n| n as u8)
}

impl From<LabelRules> for Rules {
    fn from(rules: LabelRules) -> Self {
        let file =
            |rule: FileRule| (rule.path, number_in(&KINDS, &rule.kind), rule.sid.map(Sid::get));
        let port = |rule: PortRule| {
            (number_in(&PROTOCOLS, &rule.protocol), rule.low, rule.high, rule.sid.get())
        };
        let node = |rule: NodeRule| (rule.address, rule.mask, rule.sid.get());
        Self {
            files: rules.files.into_iter().map(file).collect(),
            ports: rules.ports.into_iter().map(port).collect(),
            nodes: rules.nodes.into_iter().map(node).collect(),
        }
    }
}

impl Rules {
    /// The rules; `None` if a number means nothing.
    pub(crate) fn read(self) -> Option<LabelRules> {
        let file = |(path, kind, sid): (String, u8, Option<u32>)| {
            let sid = match sid {
                Some(sid) => Some(Sid::new(sid)?),
                None => None,
            };
            Some(FileRule { path, kind: *KINDS.get(usize::from(kind))?, sid })
        };
        let port = |(protocol, low, high, sid): (u8, u16, u16, u32)| {
            let protocol = *PROTOCOLS.get(usize::from(protocol))?;
            Some(PortRule { protocol, low, high, sid: Sid::new(sid)? })
        };
        let node = |(address, mask, sid): (IpAddr, IpAddr, u32)| {
            Some(NodeRule { address, mask, sid: Sid::new(sid)? })
        };
        Some(LabelRules {
            files: self.files.into_iter().map(file).collect::<Option<_>>()?,
            ports: self.ports.into_iter().map(port).collect::<Option<_>>()?,
            nodes: self.nodes.into_iter().map(node).collect::<Option<_>>()?,
        })
    }
}

pub(crate) fn asked(q: Question) -> Asked {
    (q.ssid.get(), q.tsid.get(), q.tclass.number().into())
}

/// The question; `None` if a number means nothing.
pub(crate) fn question((ssid, tsid, class): Asked) -> Option<Question> {
    let tclass = Class::from_number(class)?;
    Some(Question { ssid: Sid::new(ssid)?, tsid: Sid::new(tsid)?, tclass })
}

impl From<Decision> for Answer {
    fn from(d: Decision) -> Self {
        Self::Decision {
            allowed: d.allowed.0,
            auditallow: d.auditallow.0,
            auditdeny: d.auditdeny.0,
            permissive: d.permissive,
            seqno: d.seqno.0,
        }
    }
}

impl From<Explanation> for Answer {
    fn from(e: Explanation) -> Self {
        Self::Explanation { rules: e.rules, reason: e.reason, would_allow: e.would_allow }
    }
}

impl From<LabelError> for Answer {
    fn from(error: LabelError) -> Self {
        match error {
            LabelError::InvalidContext(context) => Self::InvalidContext(context),
            LabelError::UnknownSid(sid) => Self::UnknownSid(sid.get()),
            _ => Self::Unreachable,
        }
    }
}

impl Answer {
    pub(crate) fn decision(self) -> Option<Decision> {
        let Self::Decision { allowed, auditallow, auditdeny, permissive, seqno } = self else {
            return None;
        };
        let [allowed, auditallow, auditdeny] = [allowed, auditallow, auditdeny].map(AccessVector);
        Some(Decision { allowed, auditallow, auditdeny, permissive, seqno: Seqno(seqno) })
    }

    pub(crate) fn explanation(self) -> Option<Explanation> {
        let Self::Explanation { rules, reason, would_allow } = self else { return None };
        Some(Explanation { rules, reason, would_allow })
    }

    /// What a question for a label came to: a value that `read` finds, or the error that it is.
    pub(crate) fn label<T>(self, read: impl FnOnce(Self) -> Option<T>) -> Result<T, LabelError> {
        match self {
            Self::InvalidContext(context) => Err(LabelError::InvalidContext(context)),
            Self::UnknownSid(sid) => {
                Err(Sid::new(sid).map_or(LabelError::Unreachable, LabelError::UnknownSid))
            }
            other => read(other).ok_or(LabelError::Unreachable),
        }
    }

    pub(crate) fn sid(self) -> Option<Sid> {
        if let Self::Sid(sid) = self { Sid::new(sid) } else { None }
    }
}

/// A query or an answer as it is sent.
pub(crate) fn encode(value: &impl Serialize) -> Vec<u8> {
    framed(MARK, value)
}

pub(crate) fn query(bytes: &[u8]) -> Option<Query<'_>> {
    unframed(MARK, bytes)
}

pub(crate) fn reply(bytes: &[u8]) -> Option<Answer> {
    unframed(MARK, bytes)
}

/// Reads foreign bytes as a query and as an answer, and writes again whichever they were: for
/// fuzzing.
#[must_use]
pub fn decode(bytes: &[u8]) -> Vec<Vec<u8>> {
    let asked = query(bytes).map(|query| encode(&query));
    let answer = reply(bytes).and_then(|answer| match answer {
        // By way of what they stand for.
        Answer::Rules(rules) => rules.read().map(|rules| Answer::Rules(rules.into())),
        Answer::Decision { .. } => answer.decision().map(Answer::from),
        Answer::Explanation { .. } => answer.explanation().map(Answer::from),
        other => Some(other),
    });
    asked.into_iter().chain(answer.map(|answer| encode(&answer))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_question_takes_few_bytes() {
        let q = Asked::from((300, 70_000, 3));
        assert!(encode(&Query::Av(q)).len() <= 8);
    }

    #[test]
    fn every_class_comes_back() {
        for tclass in Class::all() {
            let sid = InitialSid::Kernel.into();
            let q = Question { ssid: sid, tsid: sid, tclass };
            assert_eq!(question(asked(q)), Some(q));
        }
        assert_eq!(question((1, 1, 0)), None);
        assert_eq!(question((1, 1, u16::MAX)), None);
        assert_eq!(question((0, 1, 1)), None);
    }

    #[test]
    fn labelling_rules_come_back_as_they_were() {
        let sid = Sid::new(7).unwrap();
        let rules = LabelRules {
            files: KINDS
                .map(|kind| FileRule { path: "/x(/.*)?".into(), kind, sid: Some(sid) })
                .into_iter()
                .chain([FileRule { path: "é".into(), kind: FileKind::Any, sid: None }])
                .collect(),
            ports: PROTOCOLS.map(|protocol| PortRule { protocol, low: 1, high: 9, sid }).to_vec(),
            nodes: vec![NodeRule {
                address: "::1".parse().unwrap(),
                mask: "ffff::".parse().unwrap(),
                sid,
            }],
        };
        let bytes = encode(&Answer::Rules(rules.clone().into()));
        let Some(Answer::Rules(back)) = reply(&bytes) else { panic!("not read back") };
        assert_eq!(back.read(), Some(rules));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            let marked: Vec<u8> = [MARK].into_iter().chain(bytes.iter().copied()).collect();
            for read in decode(&bytes).into_iter().chain(decode(&marked)) {
                prop_assert!(decode(&read).contains(&read));
            }
        }

        #[test]
        fn a_message_cut_short_or_too_long_is_refused(seqno: u32, text in "\\PC{0,40}", cut in 1..9_usize) {
            let message = encode(&Query::Next { seqno, report: text.as_bytes() });
            prop_assert_eq!(query(&message), Some(Query::Next { seqno, report: text.as_bytes() }));
            let short = &message[..message.len().saturating_sub(cut)];
            prop_assert_ne!(query(short), Some(Query::Next { seqno, report: text.as_bytes() }));
            let mut long = message.clone();
            long.push(0);
            prop_assert_eq!(query(&long), None);
        }
    }
}
