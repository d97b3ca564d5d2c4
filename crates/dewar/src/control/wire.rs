//! What the command and a run say to each other: JSON, in one message or, where it is long, in a
//! file that is passed.

use monitor::{ProcessStatus, Receipt, Record, RevokeMode};
use profile::{Amendment, Variables};
use runs::{Connector, VERSION, Versioned};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use server_port::{read_sealed, sealed};
use std::{collections::BTreeMap, net::IpAddr, os::fd::OwnedFd, path::PathBuf, time::SystemTime};

/// The most that is read of what the other side passes in a file.
const MOST_BYTES: usize = 64 << 20;

/// What a run is asked.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// What it is: [`Reply::Status`].
    Status,
    /// What runs in it: [`Reply::Processes`].
    Processes,
    /// What it has decided so far: [`Reply::Counters`].
    Counters,
    /// What was denied so far, in an order that stays: [`Reply::Denials`].
    Denials,
    /// What was changed so far: [`Reply::History`].
    History,
    /// Which process made a connection, as [`runs::Question`]: [`Reply::Connector`].
    Connector(String),
    /// To change: [`Reply::Done`].
    Amend(Amendment, RevokeMode),
    /// Which of these would give back what was taken since the run began: [`Reply::Taken`].
    Taken(Vec<Amendment>),
    /// To give what a program inside has asked for, as [`Request::Amend`], unless it gives back
    /// what was taken. Whoever was asked was told of that before; `None` if nobody was asked.
    Admit(Amendment, Option<Vec<String>>),
    /// To go on under another profile: [`Reply::Done`].
    Load(NewProfile, RevokeMode),
}

/// A profile for a run, read where its files can be read and its hosts be resolved.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct NewProfile {
    /// The file, or the shipped profile.
    pub(crate) name: String,
    /// Name and text of each file that it consists of.
    pub(crate) texts: Vec<(String, String)>,
    /// The addresses of its host names.
    pub(crate) hosts: BTreeMap<String, Vec<IpAddr>>,
}

/// What a run answers.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    Status(Box<Status>),
    Processes(Vec<ProcessStatus>),
    Counters(Counters),
    Denials(Vec<Denial>),
    History(Vec<PolicyChange>),
    Done(PolicyChange),
    /// What was taken, and by what.
    Taken(Vec<String>),
    /// Two descriptors come with it: see [`runs::Answer`].
    Connector(Connector),
    /// Nothing has changed; why.
    Refused(String),
}

/// What a run is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Status {
    pub(crate) id: String,
    /// As `dewar run --name` gave it.
    pub(crate) name: Option<String>,
    /// The monitor.
    pub(crate) pid: u32,
    pub(crate) started: SystemTime,
    /// The command and its arguments.
    pub(crate) command: Vec<String>,
    pub(crate) profile: String,
    /// The profile as it was named, and the directory where that was.
    #[serde(default)]
    pub(crate) argument: String,
    #[serde(default)]
    pub(crate) directory: PathBuf,
    /// What variables in patterns stand for.
    pub(crate) variables: Variables,
    pub(crate) domains: Vec<String>,
    /// How often its policy was changed.
    pub(crate) changes: usize,
}

/// Running totals of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Counters {
    /// By object manager.
    pub(crate) decisions: Vec<Decisions>,
    pub(crate) denied: u64,
    /// The kind of denial that is most frequent.
    pub(crate) most_denied: Option<String>,
    /// Processes by domain.
    pub(crate) domains: BTreeMap<String, usize>,
    /// What was denied to nobody, and may be why a program fails.
    #[serde(default)]
    pub(crate) remarks: Vec<String>,
}

/// How many decisions an object manager asked for, and where they were found.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Decisions {
    pub(crate) manager: String,
    pub(crate) queries: u64,
    pub(crate) hint: u64,
    pub(crate) cache: u64,
    pub(crate) server: u64,
}

/// A denial, and where in the profile the rules that bear on it stand.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Denial {
    #[serde(flatten)]
    pub(crate) record: Record,
    /// `FILE:LINE: TEXT` of the profile for each rule that has a place there.
    pub(crate) profile_rules: Vec<String>,
}

impl Denial {
    /// What `dewar explain` and `dewar allow` call it, which is at `index` of a record.
    pub(crate) fn number(&self, index: usize) -> usize {
        if self.record.number == 0 { index + 1 } else { self.record.number }
    }
}

/// A change of policy that was asked for, and what came of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PolicyChange {
    pub(crate) when: SystemTime,
    /// As a command.
    pub(crate) what: String,
    pub(crate) outcome: ChangeResult,
    /// What it gave or took; `None` if it put another profile in force.
    #[serde(default)]
    pub(crate) amendment: Option<Amendment>,
}

impl PolicyChange {
    /// The change, with a receipt that names no more holders than have room in so many bytes.
    pub(crate) fn shortened(&self, bytes: usize) -> Self {
        let mut change = self.clone();
        if let ChangeResult::Receipt(receipt) = &mut change.outcome {
            receipt.name_at_most(bytes);
        }
        change
    }
}

/// What came of a change.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ChangeResult {
    /// It is in force.
    Receipt(Receipt),
    /// The policy before is in force.
    Failed(String),
}

/// A message on its way.
pub(crate) struct Packed {
    pub(crate) body: Vec<u8>,
    /// Holds the message, if `body` is empty.
    pub(crate) file: Option<OwnedFd>,
}

/// Makes a message of `said`.
pub(crate) fn pack<T: Serialize>(said: T) -> anyhow::Result<Packed> {
    let body = serde_json::to_vec(&Versioned { version: VERSION, said })?;
    if body.len() <= ipc::MAX_MESSAGE {
        return Ok(Packed { body, file: None });
    }
    Ok(Packed { body: Vec::new(), file: Some(sealed(&body)?) })
}

/// What a message says.
///
/// # Errors
///
/// If it is in another version, or none; or in a file that is not sealed memory, which could keep
/// its reader waiting.
pub(crate) fn unpack<T: DeserializeOwned>(body: &[u8], files: Vec<OwnedFd>) -> anyhow::Result<T> {
    match files.into_iter().next() {
        Some(file) if body.is_empty() => Ok(runs::read(&read_sealed(file, MOST_BYTES)?)?),
        _ => Ok(runs::read(body)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_arrive_whole_however_long_they_are() {
        for length in [0, 1000, 200_000] {
            let text = "x".repeat(length);
            let packed = pack(Reply::Refused(text.clone())).unwrap();
            assert_eq!(packed.file.is_some(), length > ipc::MAX_MESSAGE);
            let reply = unpack(&packed.body, packed.file.into_iter().collect()).unwrap();
            assert!(matches!(reply, Reply::Refused(said) if said == text));
        }
    }

    #[test]
    fn services_outside_ask_and_are_answered_in_the_same_words() {
        let question = Versioned { version: VERSION, said: runs::Question::Connector("n".into()) };
        let asked = unpack(&serde_json::to_vec(&question).unwrap(), Vec::new()).unwrap();
        assert!(matches!(asked, Request::Connector(name) if name == "n"));
        let run = || "r".to_owned();
        let connector =
            Connector { pid: 1, context: "c".into(), generation: 2, run: run(), name: None };
        let told = pack(Reply::Connector(connector.clone())).unwrap().body;
        let answer: Versioned<runs::Answer> = serde_json::from_slice(&told).unwrap();
        assert!(matches!(answer.said, runs::Answer::Connector(told) if told == connector));
        let refused = pack(Reply::Refused("why".into())).unwrap().body;
        let answer: Versioned<runs::Answer> = serde_json::from_slice(&refused).unwrap();
        assert!(matches!(answer.said, runs::Answer::Refused(why) if why == "why"));
    }

    #[test]
    fn a_file_that_could_keep_its_reader_waiting_is_refused() {
        let flags = rustix::event::EventfdFlags::CLOEXEC;
        let never = rustix::event::eventfd(0, flags).unwrap();
        assert!(unpack::<Request>(b"", vec![never]).is_err());
    }

    #[test]
    fn another_version_is_told_from_rubbish() {
        let other = br#"{"version": 7, "said": {"Unknown": 1}}"#;
        let error = unpack::<Request>(other, Vec::new()).unwrap_err().to_string();
        assert!(error.contains("different versions"), "{error}");
        for rubbish in
            [&b""[..], b"{", b"\xff", br#"{"version":1}"#, br#"{"version":1,"said":"Odd"}"#]
        {
            assert!(unpack::<Request>(rubbish, Vec::new()).is_err(), "{rubbish:?}");
        }
    }
}
