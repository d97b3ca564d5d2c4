//! The server as an object manager: requests and files have labels, and policy says who may see
//! which.
//!
//! | who asks | for what | permission |
//! |---|---|---|
//! | the request (its label is the subject) | the file that it names | `file { read }` |
//! | a plugin | the request | `request { read }`, and for its answer `request { reply }` |
//! | a plugin | the file that it is given | `file { read }` |

use avc::{Avc, Hint};
use flask::{
    AccessVector, Class, FileKind, LabelError, Question, SecurityServer, Seqno, Sid, perm,
};
use labelling::PathRules;
use plugin_host::{Target, base_policy};
use security_server::policy::Policy;
use std::{
    fmt::Write as _,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

/// The label of requests that are not labelled otherwise.
pub const CLIENT_CONTEXT: &str = "dewar_u:dewar_r:client_t";

/// Denials that are kept.
const KEPT: usize = 64;

/// Why there is no object manager.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManagerError {
    /// The policy has mistakes.
    #[error("{0}")]
    Policy(#[from] security_server::PolicyErrors),
    /// A label is none.
    #[error("{0}")]
    Label(#[from] LabelError),
    /// A labelling rule cannot be read.
    #[error("{0}")]
    Rule(#[from] labelling::BadRule),
    /// There is no answer.
    #[error("{0}")]
    Unreachable(#[from] flask::Unreachable),
    /// The policy was not taken.
    #[error("the policy was not taken: {0}")]
    Reload(String),
}

/// Something that was denied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Denied {
    pub(crate) question: Question,
    pub(crate) missing: AccessVector,
    pub(crate) object: String,
    pub(crate) times: u64,
}

/// Decides for one server.
pub(crate) struct Manager {
    pub(crate) server: Arc<security_server::Server>,
    avc: Avc,
    rules: Mutex<(Seqno, Arc<PathRules>)>,
    denied: Mutex<Vec<Denied>>,
}

/// The server's own policy for what lies beneath `root`: anybody may read it, plugins may see and
/// answer requests.
pub(crate) fn policy(root: &Path, targets: &[Target]) -> String {
    let mut text = base_policy();
    text.push_str(
        "(type client_t)\n(roletype dewar_r client_t)\n(type content_t)\n(roletype object_r content_t)\n\
         (allow client_t content_t (file (read)))\n(allow plugin_t content_t (file (read)))\n\
         (allow plugin_t client_t (request (read reply)))\n",
    );
    let escaped: String = (root.to_string_lossy().trim_end_matches('/').chars())
        .flat_map(
            |c| if c.is_alphanumeric() || "/-_".contains(c) { vec![c] } else { vec!['\\', c] },
        )
        .collect();
    // A text in CIL cannot have a quotation mark; any character fits there.
    let escaped = escaped.replace("\\\"", ".");
    // Writing to a `String` does not fail.
    let _ = writeln!(
        text,
        "(filecon \"{escaped}(/.*)?\" any (dewar_u object_r content_t ((s0) (s0))))"
    );
    // Who configures a target gives leave.
    for (_, permission) in targets.iter().map(|target| target.permission()) {
        let _ = writeln!(text, "(allow host_t plugin_t (plugin ({permission})))");
    }
    text
}

impl Manager {
    pub(crate) fn new(server: Arc<security_server::Server>) -> Result<Self, ManagerError> {
        let avc = Avc::new(Arc::clone(&server) as Arc<dyn SecurityServer>);
        let rules = Mutex::new(rules(&server)?);
        Ok(Self { server, avc, rules, denied: Mutex::default() })
    }

    /// The label of a context.
    pub(crate) fn sid(&self, context: &str) -> Result<Sid, ManagerError> {
        Ok(self.server.context_to_sid(context)?)
    }

    /// The label of a file, by the path where it really lies.
    pub(crate) fn file(&self, path: &Path) -> Sid {
        let rules = Arc::clone(&self.rules.lock().unwrap_or_else(PoisonError::into_inner).1);
        rules.sid(path, FileKind::File)
    }

    /// A policy that can be taken, and a server with it: all its rules can be read, and all
    /// `contexts` are labels in it.
    pub(crate) fn prepared<'c>(
        &self,
        files: &[(String, String)],
        contexts: impl Iterator<Item = &'c str>,
    ) -> Result<(Policy, Arc<dyn SecurityServer>), ManagerError> {
        let (policy, trial) = (security_server::cil::compile(files)?, self.server.fork());
        let taken = trial.reload(policy.clone());
        taken.map_err(|error| ManagerError::Reload(error.to_string()))?;
        rules(&trial)?;
        for context in contexts {
            trial.context_to_sid(context)?;
        }
        Ok((policy, Arc::new(trial)))
    }

    /// A new policy holds.
    pub(crate) fn reload(&self, policy: Policy) -> Result<Seqno, ManagerError> {
        let seqno = self.server.reload(policy);
        let seqno = seqno.map_err(|error| ManagerError::Reload(error.to_string()))?;
        *self.rules.lock().unwrap_or_else(PoisonError::into_inner) = rules(&self.server)?;
        self.avc.reset(seqno);
        Ok(seqno)
    }

    pub(crate) fn stats(&self) -> avc::Stats {
        self.avc.stats()
    }

    /// Whether a request of this label may read a file.
    #[inline]
    pub(crate) fn may_read(&self, ssid: Sid, tsid: Sid, hint: &Hint, name: &[u8]) -> bool {
        let question = Question { ssid, tsid, tclass: Class::File };
        self.allows(question, perm::file::READ, hint, name)
    }

    /// The same of a file that is not asked for: no denial is noted.
    pub(crate) fn would_read(&self, ssid: Sid, tsid: Sid) -> bool {
        let question = Question { ssid, tsid, tclass: Class::File };
        self.avc.ask(question, perm::file::READ, &Hint::default()).granted()
    }

    /// Whether a plugin may see and answer a request of this label.
    #[inline]
    pub(crate) fn may_answer(&self, plugin: Sid, request: Sid, hint: &Hint, name: &[u8]) -> bool {
        let question = Question { ssid: plugin, tsid: request, tclass: Class::Request };
        self.allows(question, perm::request::READ | perm::request::REPLY, hint, name)
    }

    #[inline]
    fn allows(&self, question: Question, wanted: AccessVector, hint: &Hint, name: &[u8]) -> bool {
        let asked = self.avc.ask(question, wanted, hint);
        if !asked.missing().is_empty() {
            self.note(question, asked.missing(), name);
        }
        asked.granted()
    }

    #[cold]
    fn note(&self, question: Question, missing: AccessVector, name: &[u8]) {
        let mut denied = self.denied.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |it: &&mut Denied| it.question == question && it.missing == missing;
        if let Some(known) = denied.iter_mut().find(same) {
            known.times += 1;
            return;
        }
        if denied.len() == KEPT {
            denied.remove(0);
        }
        let object = String::from_utf8_lossy(name).into_owned();
        denied.push(Denied { question, missing, object, times: 1 });
    }

    /// What was denied, each once, with an explanation.
    pub(crate) fn denials(&self) -> Vec<String> {
        let denied = self.denied.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let context = |sid| self.server.sid_to_context(sid).unwrap_or_default();
        let told = denied.iter().map(|it| {
            let class = it.question.tclass;
            let missing = it.missing.names(class).collect::<Vec<_>>().join(" ");
            let why = self.server.explain(it.question, it.missing).unwrap_or_default();
            let rule = why.would_allow.map_or(String::new(), |rule| format!("; {rule} would allow it"));
            let (ssid, tsid) = (context(it.question.ssid), context(it.question.tsid));
            let (object, times) = (&it.object, it.times);
            format!("{ssid} may not {class} {{ {missing} }} on {tsid} ({object}), {times} times: {}{rule}", why.reason)
        });
        told.collect()
    }
}

fn rules(server: &security_server::Server) -> Result<(Seqno, Arc<PathRules>), ManagerError> {
    let seqno = server.seqno()?;
    let rules = PathRules::new(&server.label_rules()?.files)?;
    Ok((seqno, Arc::new(rules)))
}
