//! The messages between runs or administrators and the daemon, beside queries to a security server.

use serde::{Deserialize, Serialize};
use server_port::{VOCABULARY_BYTES, framed, unframed, whole};

/// Begins every command and its answer.
const MARK: u8 = b'D';

/// The texts that a policy consists of, named for messages, and the classes that it is asked about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Name and CIL text of each.
    pub files: Vec<(String, String)>,
    /// The classes that the program has of its own, each with its permissions in the program's
    /// order.
    pub classes: Vec<(String, Vec<String>)>,
}

impl Policy {
    /// The longest policy that is taken.
    pub const MOST_BYTES: usize = 32 << 20;

    /// The policy as it is sent.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        // Into memory: that cannot fail.
        let files = postcard::to_allocvec(&self.files).unwrap_or_default();
        if self.classes.is_empty() {
            return files;
        }
        postcard::to_extend(&self.classes, files).unwrap_or_default()
    }

    /// A policy that was sent; `None` if these bytes are none.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (files, rest) = postcard::take_from_bytes(bytes).ok()?;
        let classes = if rest.is_empty() { Vec::new() } else { whole(rest)? };
        // What has no classes ends with the files: a policy has one form only.
        (rest.is_empty() == classes.is_empty()).then_some(Self { files, classes })
    }
}

/// A run that begins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewRun {
    /// Its name: letters, digits and `-`, at most 64.
    pub id: String,
    /// The command and its arguments, for people.
    pub command: String,
    /// The profile, for people.
    pub profile: String,
    /// What its user calls it.
    #[serde(default)]
    pub name: Option<String>,
}

/// A run that is registered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunStatus {
    /// Its name.
    pub id: String,
    /// Its user.
    pub uid: u32,
    /// Its monitor.
    pub pid: u32,
    /// The command and its arguments.
    pub command: String,
    /// The profile.
    pub profile: String,
    /// The policy state in force.
    pub seqno: u32,
    /// The booleans of its policy: every one, unless they are many and long.
    pub booleans: Vec<(String, bool)>,
    /// How many more it has.
    pub more_booleans: u64,
}

/// Whose policy is to be changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Target {
    /// A run's: its name, a prefix that only it has, or `last`.
    Run(String),
    /// That of every run whose policy has the booleans.
    All,
}

/// How a change went with one run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedMember {
    /// The run.
    pub run: String,
    /// `applied`, `ended`, `killed` or `unreached`; `unchanged` where its server was not.
    pub outcome: String,
    /// Until that was known.
    pub after_us: u64,
    /// What had to be done because it did not answer: `reported`, `frozen`, `killed`; empty if it
    /// answered.
    pub late: String,
    /// What it said about the change: a receipt as JSON.
    pub report: String,
}

/// A change that was made to one security server, or was not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    /// The policy state from now on.
    pub seqno: u32,
    /// Nobody decides by an older state any more.
    pub complete: bool,
    /// From its beginning until it was complete.
    pub took_us: u64,
    /// Everybody who had to apply it.
    pub members: Vec<ChangedMember>,
    /// Why it was not made there, and what to do, where others were changed.
    pub refused: Option<String>,
}

/// What the daemon is told to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// With the policy as sealed memory.
    Register {
        /// The run.
        run: NewRun,
        /// The classes and permissions that it was built with.
        vocabulary: [u8; VOCABULARY_BYTES],
    },
    /// The monitor of a registered run, on another connection. With what it says of its kernel
    /// side, once it has one, as sealed memory.
    Attach {
        /// The run's name.
        run: String,
    },
    /// The run of this connection ends: all of its records are to be in the journal.
    End,
    /// Changes booleans.
    Set {
        /// Whose.
        target: Target,
        /// Their new values.
        booleans: Vec<(String, bool)>,
    },
    /// Replaces the policy of this connection's run, with the policy as sealed memory.
    Load {
        /// What the kernel would go on granting is taken by killing.
        kills: bool,
    },
    /// Lists runs, as many as a message holds.
    Runs {
        /// Those behind that number.
        after: u64,
    },
    /// Takes in every record that lies in a spool of this user's; root: of everybody's.
    Flush,
}

/// What it answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// The connection speaks for the run. With the spool, if it is a registration.
    Attached {
        /// The policy state in force.
        seqno: u32,
    },
    /// It was done.
    Done,
    /// The policy was replaced.
    Loaded {
        /// The policy state from now on.
        seqno: u32,
    },
    /// What became of a change of booleans.
    Changed(Vec<Changed>),
    /// Some of the runs, in the order of their beginning.
    Runs {
        /// They.
        runs: Vec<RunStatus>,
        /// The number of the last of them, if there are more.
        next: Option<u64>,
    },
    /// Why not.
    Refused(String),
    /// Why a run that goes on cannot follow the change. Nothing has changed.
    Conflict(String),
}

/// A command or an answer as it is sent.
#[must_use]
pub fn encode(value: &impl Serialize) -> Vec<u8> {
    framed(MARK, value)
}

/// Whether the bytes are for the daemon, not for a security server.
#[must_use]
pub fn is_command(bytes: &[u8]) -> bool {
    bytes.first() == Some(&MARK)
}

/// A command or an answer that was sent; `None` if these bytes are none.
#[must_use]
pub fn read<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Option<T> {
    unframed(MARK, bytes)
}

/// Reads foreign bytes as everything that comes from outside, and writes again whatever they were:
/// for fuzzing.
#[must_use]
pub fn decode(bytes: &[u8]) -> Vec<Vec<u8>> {
    let command = read::<Command>(bytes).map(|command| encode(&command));
    let reply = read::<Reply>(bytes).map(|reply| encode(&reply));
    let policy = Policy::from_bytes(bytes).map(|policy| policy.to_bytes());
    [command, reply, policy].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn commands_come_back_as_they_were() {
        let run =
            NewRun { id: "x".into(), command: "make -j".into(), profile: "p".into(), name: None };
        for command in [
            Command::Register { run, vocabulary: server_port::vocabulary() },
            Command::Set { target: Target::All, booleans: vec![("a".into(), true)] },
            Command::Flush,
        ] {
            let bytes = encode(&command);
            assert!(is_command(&bytes));
            assert_eq!(read(&bytes), Some(command));
            assert_eq!(read::<Command>(&bytes[..bytes.len() - 1]), None);
        }
    }

    #[test]
    fn nothing_may_lie_behind_a_policy() {
        let files = vec![("a.cil".into(), "(type a)".into())];
        for classes in [Vec::new(), vec![("table".into(), vec!["select".into()])]] {
            let policy = Policy { files: files.clone(), classes };
            let bytes = policy.to_bytes();
            assert_eq!(Policy::from_bytes(&bytes), Some(policy));
            assert_eq!(Policy::from_bytes(&[&bytes[..], b"x"].concat()), None);
            assert_eq!(Policy::from_bytes(&[&bytes[..], &[0]].concat()), None);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            let marked: Vec<u8> = [MARK].into_iter().chain(bytes.iter().copied()).collect();
            for read in decode(&bytes).into_iter().chain(decode(&marked)) {
                prop_assert!(decode(&read).contains(&read));
            }
        }
    }
}
