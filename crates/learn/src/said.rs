//! Lines that others write: programs inside to `DEWAR_DENIALS`, editors and agents to the socket of
//! questions. docs/ask.md describes them; all of it is foreign.

use serde::Deserialize;

/// What a program inside asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// What was denied so far.
    Denials,
    /// Lines of a profile, as [`crate::fragment()`] reads them.
    Propose(String),
}

/// An answer to a question.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// Which question.
    pub id: u64,
    /// `once`, `run`, `profile` or `no`; a letter will do.
    pub answer: String,
    /// The object of the question in full, where it has to be named.
    #[serde(default)]
    pub named: Option<String>,
}

/// One key of these.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum Asked {
    Denials(bool),
    Propose(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Answered {
    answer: Answer,
}

/// What a line from inside asks for; `None` if it is no such line.
#[must_use]
pub fn request(line: &[u8]) -> Option<Request> {
    match serde_json::from_slice(line) {
        Ok(Asked::Denials(true)) => Some(Request::Denials),
        Ok(Asked::Propose(text)) => Some(Request::Propose(text)),
        _ => None,
    }
}

/// The answer in a line from outside.
///
/// # Errors
///
/// What is wrong with the line.
pub fn answer(line: &[u8]) -> Result<Answer, serde_json::Error> {
    serde_json::from_slice(line).map(|Answered { answer }| answer)
}
